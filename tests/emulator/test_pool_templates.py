"""The templates of all kinds of pools: bodies that the v1 API knows and the emulator takes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from slurm_hooks.compute.templates import template_body
from slurm_hooks.compute.wire import problems
from slurm_hooks.reconcile.specifications import template_of
from slurm_hooks.sandbox.emulator.template_rules import checked_properties
from tests.unit.cluster.files import ABSENT, build, changed


def changes_of(machine_type: str, model: str, **fields: object) -> dict[str, object]:
    """The second pool of the example as one of another kind."""
    return {
        "node_pools__1__machine_spec": {"machine_type": machine_type},
        "node_pools__1__boot_disk": ABSENT,
        "node_pools__1__provisioning_model": model,
        "node_pools__1__flex_start_max_duration": ABSENT,
        **{f"node_pools__1__{name}": value for name, value in fields.items()},
    }


def reserved(machine_type: str, affinity: dict[str, object]) -> dict[str, object]:
    spec = {"machine_type": machine_type, "reservation_affinity": affinity}
    return changes_of(machine_type, "RESERVATION", machine_spec=spec)


SPECIFIC: dict[str, object] = {
    "reservation_affinity_type": "SPECIFIC_RESERVATION",
    "values": ["projects/p/zones/us-central1-a/reservations/r"],
}
SEV: dict[str, object] = {"confidential_instance_type": "SEV"}


def properties_of(changes: dict[str, object]) -> dict[str, Any]:
    """What the emulator makes of the pool's template, as the official client sends it."""
    from google.cloud import compute_v1

    cluster = build(changed(**changes))
    body = template_body(template_of(cluster, cluster.pools["a3u"]))
    message = compute_v1.InstanceTemplate(body)
    sent = json.loads(
        compute_v1.InstanceTemplate.to_json(message, always_print_fields_with_no_presence=False)
    )
    assert problems("InstanceTemplate", sent) == []
    return checked_properties(sent, "example-project")


@pytest.mark.parametrize(
    ("changes", "model", "consumed", "maintenance"),
    [
        (changes_of("n2-standard-8", "ON_DEMAND"), "STANDARD", "NO_RESERVATION", "MIGRATE"),
        (changes_of("a3-highgpu-1g", "SPOT"), "SPOT", "NO_RESERVATION", "TERMINATE"),
        (changes_of("a3-ultragpu-8g", "FLEX_START"), "FLEX_START", "NO_RESERVATION", "TERMINATE"),
        (reserved("a3-highgpu-8g", SPECIFIC), "STANDARD", "SPECIFIC_RESERVATION", "TERMINATE"),
        (
            reserved("a3-ultragpu-8g", SPECIFIC),
            "RESERVATION_BOUND",
            "SPECIFIC_RESERVATION",
            "TERMINATE",
        ),
        (
            reserved("n2-standard-8", {"reservation_affinity_type": "ANY_RESERVATION"}),
            "STANDARD",
            "ANY_RESERVATION",
            "MIGRATE",
        ),
        (
            changes_of("n2d-standard-8", "ON_DEMAND", confidential_instance_config=SEV),
            "STANDARD",
            "NO_RESERVATION",
            "TERMINATE",
        ),
    ],
)
def test_pool_of_every_kind_has_a_template_that_is_taken(
    changes: dict[str, object], model: str, consumed: str, maintenance: str
) -> None:
    properties = properties_of(changes)
    assert properties["scheduling"]["provisioningModel"] == model
    assert properties["scheduling"]["onHostMaintenance"] == maintenance
    assert properties["reservationAffinity"]["consumeReservationType"] == consumed


def metadata_of(changes: dict[str, object]) -> dict[str, str]:
    items = properties_of(changes)["metadata"]["items"]
    return {item["key"]: item["value"] for item in items}


USUAL = {
    "slurm-hooks-cluster": "flexvm",
    "slurm-hooks-pool": "a3u",
    "slurm-hooks-home": "projects/example-project/locations/us-central1-a/instances/home",
}


def test_vms_are_told_what_they_need_to_boot_and_nothing_that_is_usual() -> None:
    assert metadata_of(changes_of("n2-standard-8", "ON_DEMAND")) == USUAL
    assert metadata_of(changes_of("a3-highgpu-1g", "SPOT")) == USUAL | {"slurm-hooks-gpus": "1"}


def test_storage_and_script_of_a_pool_reach_the_metadata_of_its_vms() -> None:
    data = "projects/p/locations/us-central1-a/instances/data"
    changes = changes_of("n2-standard-8", "ON_DEMAND", filestores=[data], startup_script="true")
    assert metadata_of(changes) == USUAL | {
        "slurm-hooks-filestores": data,
        "slurm-hooks-startup-script": "true",
    }


def test_settings_of_boots_reach_the_metadata_of_all_vms() -> None:
    data = "projects/p/locations/us-central1-a/instances/data"
    changes = changes_of("n2-standard-8", "ON_DEMAND", lustres=[data], startup_script="true")
    changes["slurm_hooks"] = {
        "controllers": ["ctl-0", "ctl-1:6820"],
        "authentication": "slurm",
        "key_secret": "projects/p/secrets/KEY/versions/3",
        "mount_sources": {data: "10.0.0.9@tcp:/x", data.replace("data", "other"): "10.0.0.8:/y"},
        "nfs_mount_options": "vers=3",
        "lustre_mount_options": "flock",
        "startup_script_timeout_seconds": 60,
    }
    assert metadata_of(changes) == USUAL | {
        "slurm-hooks-controllers": "ctl-0,ctl-1:6820",
        "slurm-hooks-authentication": "slurm",
        "slurm-hooks-key-secret": "projects/p/secrets/KEY/versions/3",
        "slurm-hooks-lustres": data,
        "slurm-hooks-mount-sources": f"{data}=10.0.0.9@tcp:/x",
        "slurm-hooks-nfs-options": "vers=3",
        "slurm-hooks-lustre-options": "flock",
        "slurm-hooks-startup-script": "true",
        "slurm-hooks-startup-script-seconds": "60",
    }


def test_login_vms_know_that_they_are() -> None:
    cluster = build(changed())
    metadata = dict(template_of(cluster, cluster.pools["login"]).metadata)
    assert metadata["slurm-hooks-role"] == "login"


def test_vms_have_the_default_account_where_none_is_named() -> None:
    accounts = properties_of(changes_of("n2-standard-8", "ON_DEMAND"))["serviceAccounts"]
    assert [account["email"] for account in accounts] == ["default"]
