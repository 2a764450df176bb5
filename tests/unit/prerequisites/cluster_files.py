"""A cluster file that names something of everything that a project must have."""

from __future__ import annotations

from typing import Any

ACCOUNT = "nodes@demo.iam.gserviceaccount.com"
RESERVATION = "projects/demo/zones/us-central1-a/reservations/r1"
INSTANCES = "projects/demo/locations/us-central1-a/instances"
IMAGE = "projects/demo/global/images/node"
SECRET_VERSION = "projects/demo/secrets/munge/versions/1"


def pool(pool_id: str, machine_type: str, least: int, most: int, **more: Any) -> dict[str, Any]:
    """A pool in us-central1-a."""
    return {
        "id": pool_id,
        "machine_spec": {"machine_type": machine_type},
        "scaling_spec": {"min_node_count": least, "max_node_count": most},
        "zone": "us-central1-a",
        "node_image": IMAGE,
        **more,
    }


def rich_document() -> dict[str, Any]:
    """A login pool, a Flex-start pool and one of a reservation, storage of both kinds, a secret."""
    affinity = {
        "reservation_affinity_type": "SPECIFIC_RESERVATION",
        "key": "compute.googleapis.com/reservation-name",
        "values": [RESERVATION],
    }
    flex = pool("a3u", "a3-ultragpu-8g", 0, 2, provisioning_model="FLEX_START")
    flex["lustres"] = [f"{INSTANCES}/scratch"]
    reserved = pool("a4r", "a4-highgpu-8g", 1, 3, provisioning_model="RESERVATION")
    reserved["machine_spec"]["reservation_affinity"] = affinity
    return {
        "display_name": "demo",
        "name": "projects/demo/locations/us-central1/modelDevelopmentClusters/demo",
        "network": {
            "network": "projects/demo/global/networks/default",
            "subnetwork": "projects/demo/regions/us-central1/subnetworks/default",
        },
        "node_pools": [pool("login", "n2-standard-8", 1, 1), flex, reserved],
        "orchestrator_spec": {
            "slurm_spec": {
                "home_directory_storage": f"{INSTANCES}/home",
                "login_node_pool_id": "login",
                "partitions": [{"id": "all", "node_pool_ids": ["a3u", "a4r"]}],
            }
        },
        "runtime_spec": {"service_account": ACCOUNT},
        "slurm_hooks": {"key_secret": SECRET_VERSION},
    }
