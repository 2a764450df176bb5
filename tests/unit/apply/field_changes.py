"""A change of each field of the cluster file, as cases: what is there before and after."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from tests.unit.cluster.files import ABSENT

SLURM = "orchestrator_spec__slurm_spec"
LOCATION = "projects/example-project/locations/us-central1-a/instances"
RESERVATION = "projects/example-project/zones/us-central1-a/reservations"


def affinity(key: str | object, *values: str) -> dict[str, Any]:
    kind = "SPECIFIC_RESERVATION" if values else "ANY_RESERVATION"
    found = {"reservation_affinity_type": kind, "values": list(values)}
    return found if key is ABSENT else {**found, "key": key}


@dataclass(frozen=True)
class Case:
    """One field, in a file that has `before` of it and is changed to have `after`."""

    path: str
    before: object
    after: object
    base: dict[str, object] = dataclasses.field(default_factory=dict)


def more(name: str) -> dict[str, str]:
    """What Slurm wants beside a field of scheduling."""
    return {"preempt_mode": "REQUEUE"} if name == "preempt_type" else {}


BOUND = {
    "node_pools__1__provisioning_model": "RESERVATION",
    "node_pools__1__flex_start_max_duration": ABSENT,
    "node_pools__1__machine_spec__reservation_affinity": affinity(ABSENT, f"{RESERVATION}/r1"),
}
LOGIN = "node_pools.0"
POOL = "node_pools.1"
CASES: dict[str, list[Case]] = {
    "name": [
        Case("name", "projects/p1/locations/us-central1/modelDevelopmentClusters/flexvm",
             "projects/p1/locations/us-central1/modelDevelopmentClusters/other"),
    ],
    "network.network": [Case("network.network", "default", "other")],
    "network.subnetwork": [Case("network.subnetwork", "default", "other")],
    "runtime_spec.service_account": [
        Case("runtime_spec", {"service_account": "a@p.iam.gserviceaccount.com"},
             {"service_account": "b@p.iam.gserviceaccount.com"}),
    ],
    "labels": [Case("labels", {"a": "1"}, {"a": "2"})],
    "node_pools[].machine_spec.machine_type": [
        Case(f"{LOGIN}.machine_spec.machine_type", "n2-standard-8", "n2-standard-16"),
    ],
    "node_pools[].machine_spec.reservation_affinity.reservation_affinity_type": [
        Case(f"{POOL}.machine_spec.reservation_affinity", affinity(ABSENT, f"{RESERVATION}/r1"),
             affinity(ABSENT), BOUND),
    ],
    "node_pools[].machine_spec.reservation_affinity.values": [
        Case(f"{POOL}.machine_spec.reservation_affinity", affinity(ABSENT, f"{RESERVATION}/r1"),
             affinity(ABSENT, f"{RESERVATION}/r2"), BOUND),
    ],
    "node_pools[].provisioning_model": [
        Case(f"{LOGIN}.provisioning_model", "ON_DEMAND", "SPOT"),
    ],
    "node_pools[].flex_start_max_duration": [
        Case(f"{POOL}.flex_start_max_duration", "3600s", "7200s"),
    ],
    "node_pools[].scaling_spec.min_node_count": [
        Case(f"{POOL}.scaling_spec.min_node_count", 0, 1),
    ],
    "node_pools[].scaling_spec.max_node_count": [
        Case(f"{POOL}.scaling_spec.max_node_count", 2, 4),
    ],
    "node_pools[].zone": [Case(f"{POOL}.zone", "us-central1-a", "us-central1-b")],
    "node_pools[].enable_public_ips": [Case(f"{POOL}.enable_public_ips", "true", "false")],
    "node_pools[].boot_disk.boot_disk_type": [
        Case(f"{LOGIN}.boot_disk.boot_disk_type", "pd-standard", "pd-ssd"),
    ],
    "node_pools[].boot_disk.boot_disk_size_gb": [
        Case(f"{POOL}.boot_disk.boot_disk_size_gb", 400, 500),
    ],
    "node_pools[].labels": [Case(f"{POOL}.labels", {"a": "1"}, {"a": "2"})],
    "node_pools[].startup_script": [Case(f"{POOL}.startup_script", "echo 1", "echo 2")],
    "node_pools[].node_image": [
        Case(f"{POOL}.node_image", "projects/p/global/images/a", "projects/p/global/images/b"),
    ],
    "node_pools[].filestores": [Case(f"{POOL}.filestores", [f"{LOCATION}/a"], [f"{LOCATION}/b"])],
    "node_pools[].lustres": [Case(f"{POOL}.lustres", [], [f"{LOCATION}/b"])],
    "node_pools[].confidential_instance_config.confidential_instance_type": [
        Case(f"{LOGIN}.confidential_instance_config", {"confidential_instance_type": "SEV"},
             {"confidential_instance_type": "SEV_SNP"},
             {"node_pools__0__machine_spec__machine_type": "n2d-standard-8"}),
    ],
    "orchestrator_spec.slurm_spec.home_directory_storage": [
        Case("orchestrator_spec.slurm_spec.home_directory_storage", f"{LOCATION}/home",
             f"{LOCATION}/other"),
    ],
    "orchestrator_spec.slurm_spec.partitions[].id": [
        Case("orchestrator_spec.slurm_spec.partitions.0.id", "a3u", "gpu"),
    ],
    "orchestrator_spec.slurm_spec.partitions[].node_pool_ids": [
        Case("orchestrator_spec.slurm_spec.partitions",
             [{"id": "a", "node_pool_ids": ["a3u"]}, {"id": "b", "node_pool_ids": ["a3u"]}],
             [{"id": "a", "node_pool_ids": ["a3u"]}]),
    ],
    "orchestrator_spec.slurm_spec.partitions[].config": [
        Case("orchestrator_spec.slurm_spec.partitions.0.config", {"MaxNodes": "1"},
             {"MaxNodes": "2"}),
    ],
    "orchestrator_spec.slurm_spec.default_partition_id": [
        Case("orchestrator_spec.slurm_spec.default_partition_id", "a", "b",
             {f"{SLURM}__partitions": [{"id": "a", "node_pool_ids": ["a3u"]},
                                       {"id": "b", "node_pool_ids": ["a3u"]}]}),
    ],
    "orchestrator_spec.slurm_spec.prolog_bash_scripts": [
        Case("orchestrator_spec.slurm_spec.prolog_bash_scripts", [], ["echo 1"]),
    ],
    "orchestrator_spec.slurm_spec.epilog_bash_scripts": [
        Case("orchestrator_spec.slurm_spec.epilog_bash_scripts", ["echo 1"], ["echo 2"]),
    ],
    "orchestrator_spec.slurm_spec.config": [
        Case("orchestrator_spec.slurm_spec.config", {}, {"MessageTimeout": "60"}),
    ],
    "orchestrator_spec.slurm_spec.node_sets[].config": [
        Case("orchestrator_spec.slurm_spec.node_sets",
             [{"node_pool_id": "a3u", "config": {"Weight": "1"}}],
             [{"node_pool_id": "a3u", "config": {"Weight": "2"}}]),
    ],
    "orchestrator_spec.slurm_spec.accounting.accounting_storage_enforce": [
        Case("orchestrator_spec.slurm_spec.accounting", None,
             {"accounting_storage_enforce": "limits"}),
    ],
    **{
        f"orchestrator_spec.slurm_spec.scheduling.{name}": [
            Case("orchestrator_spec.slurm_spec.scheduling", None, {name: value, **more(name)})
        ]
        for name, value in {
            "priority_type": "priority/basic",
            "priority_weight_age": 1,
            "priority_weight_assoc": 1,
            "priority_weight_fairshare": 1,
            "priority_weight_job_size": 1,
            "priority_weight_partition": 1,
            "priority_weight_qos": 1,
            "priority_weight_tres": "cpu=1",
            "preempt_type": "preempt/partition_prio",
            "preempt_mode": "OFF",
            "preempt_exempt_time": "00:10:00",
        }.items()
    },
    "node_pools[].slurm_hooks.run_duration_follows_job": [
        Case(f"{POOL}.slurm_hooks", {}, {"run_duration_follows_job": True}),
    ],
    "node_pools[].slurm_hooks.compact_placement": [
        Case(f"{POOL}.slurm_hooks", {}, {"compact_placement": True}),
    ],
    "node_pools[].slurm_hooks.capacity_wait_limit_seconds": [
        Case(f"{POOL}.slurm_hooks", {}, {"capacity_wait_limit_seconds": 60}),
    ],
}  # fmt: skip
WITHOUT_A_CASE = {
    "display_name": "names the cluster where nothing else does, and shows it; it changes nothing",
    "node_pools[].id": "a pool of another id is another pool: see the tests of pools",
    "node_pools[].machine_spec.accelerator_type": "is that of the machine type, or refused",
    "node_pools[].machine_spec.accelerator_count": "is that of the machine type, or refused",
    "node_pools[].machine_spec.reservation_affinity.key": "has one value, or none",
    "orchestrator_spec.slurm_spec.login_node_pool_id": "see the tests of pools",
    "orchestrator_spec.slurm_spec.node_sets[].node_pool_id": "says whose the config is",
}
