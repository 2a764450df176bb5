"""What a pool takes from outside: reservations, storage, encryption; and what becomes of it."""

from __future__ import annotations

import pytest

from slurm_hooks.cluster.pool_resources import RESERVATION_KEY
from slurm_hooks.cluster.topology import (
    ConfidentialInstanceType,
    ProvisioningModel,
    ReservationAffinityType,
    Reservations,
)
from slurm_hooks.reconcile.specifications import template_of
from tests.unit.cluster.files import ABSENT, build, changed, mistakes

POOL = "node_pools[1]"
AFFINITY = f"{POOL}.machine_spec.reservation_affinity"
RESERVATION = "projects/p/zones/us-central1-a/reservations/r"
SPECIFIC = {"reservation_affinity_type": "SPECIFIC_RESERVATION", "values": [RESERVATION]}
INSTANCE = "projects/p/locations/us-central1-a/instances/data"


def reserved(
    affinity: object, model: object = "RESERVATION", machine_type: str = "a3-ultragpu-8g"
) -> dict[str, object]:
    spec: dict[str, object] = {"machine_type": machine_type}
    if affinity is not ABSENT:
        spec["reservation_affinity"] = affinity
    return changed(
        node_pools__1__machine_spec=spec,
        node_pools__1__boot_disk=ABSENT,
        node_pools__1__provisioning_model=model,
        node_pools__1__flex_start_max_duration=ABSENT,
    )


@pytest.mark.parametrize(
    ("affinity", "place", "problem"),
    [
        (ABSENT, "", "is required"),
        ({"reservation_affinity_type": "NO_RESERVATION"}, ".reservation_affinity_type", "contra"),
        ({"reservation_affinity_type": "SOME"}, ".reservation_affinity_type", "no kind"),
        ({}, ".reservation_affinity_type", "missing"),
        ({"reservation_affinity_type": "SPECIFIC_RESERVATION"}, ".values", "names no"),
        ({**SPECIFIC, "values": ["r"]}, ".values[0]", "no reservation"),
        ({**SPECIFIC, "values": [RESERVATION.replace("-a/", "-b/")]}, ".values[0]", "is in"),
        ({**SPECIFIC, "key": "mine"}, ".key", "names no reservation"),
        (
            {"reservation_affinity_type": "ANY_RESERVATION", "values": [RESERVATION]},
            ".values",
            "only for SPECIFIC",
        ),
    ],
)
def test_affinity_of_a_reservation_pool_must_name_one(
    affinity: object, place: str, problem: str
) -> None:
    found = mistakes(reserved(affinity))
    assert list(found) == [AFFINITY + place]
    assert problem in found[AFFINITY + place].problem


@pytest.mark.parametrize("model", ["ON_DEMAND", "SPOT", "FLEX_START"])
def test_other_models_have_no_affinity(model: str) -> None:
    found = mistakes(reserved(SPECIFIC, model))
    assert list(found) == [AFFINITY]
    assert "must be absent" in found[AFFINITY].problem


def test_gpu_pool_with_an_affinity_is_a_reservation_pool() -> None:
    pool = build(reserved(SPECIFIC, ABSENT)).pools["a3u"]
    assert pool.provisioning_model is ProvisioningModel.RESERVATION
    specific = ReservationAffinityType.SPECIFIC_RESERVATION
    assert pool.reservations == Reservations(specific, RESERVATION_KEY, (RESERVATION,), bound=True)


def test_cpu_pool_with_an_affinity_and_no_model_is_on_demand_and_so_refused() -> None:
    found = mistakes(reserved(SPECIFIC, ABSENT, "n2-standard-8"))
    assert list(found) == [AFFINITY]


@pytest.mark.parametrize(
    "value",
    [
        RESERVATION,
        f"{RESERVATION}/reservationBlocks/b",
        f"{RESERVATION}/reservationBlocks/b/reservationSubBlocks/s",
    ],
)
def test_template_of_a_reservation_pool_names_what_it_uses(value: str) -> None:
    cluster = build(reserved({**SPECIFIC, "values": [value]}))
    reservation = template_of(cluster, cluster.pools["a3u"]).reservation
    assert reservation is not None
    assert (reservation.consumed, reservation.key) == ("SPECIFIC_RESERVATION", RESERVATION_KEY)
    assert (reservation.values, reservation.bound) == ((value,), True)


def test_vms_of_older_gpu_machines_outlive_their_reservation() -> None:
    pool = build(reserved(SPECIFIC, machine_type="a3-highgpu-8g")).pools["a3u"]
    assert pool.reservations is not None
    assert not pool.reservations.bound


@pytest.mark.parametrize("kind", ["filestores", "lustres"])
def test_storage_is_named_by_its_full_name_once_and_in_the_region(kind: str) -> None:
    elsewhere = "projects/p/locations/europe-west4-a/instances/far"
    wrong = ["data", INSTANCE, INSTANCE, elsewhere]
    found = mistakes(changed(**{f"node_pools__1__{kind}": wrong}))
    assert list(found) == [f"{POOL}.{kind}[{index}]" for index in (0, 2, 3)]
    assert "no instance" in found[f"{POOL}.{kind}[0]"].problem
    assert "same mount" in found[f"{POOL}.{kind}[2]"].problem
    assert "is in europe-west4" in found[f"{POOL}.{kind}[3]"].problem


def test_home_storage_may_be_regional_and_must_be_in_the_region() -> None:
    field = "orchestrator_spec.slurm_spec.home_directory_storage"
    regional = "projects/p/locations/us-central1/instances/home"
    assert not mistakes(changed(**{field: regional}))
    assert list(mistakes(changed(**{field: regional.replace("us-", "asia-")}))) == [field]


def test_nodes_learn_from_their_metadata_what_to_mount() -> None:
    other = INSTANCE.replace("data", "more")
    cluster = build(
        changed(node_pools__1__filestores=[INSTANCE, other], node_pools__1__lustres=[other])
    )
    metadata = dict(template_of(cluster, cluster.pools["a3u"]).metadata)
    assert metadata["slurm-hooks-filestores"] == f"{INSTANCE},{other}"
    assert metadata["slurm-hooks-lustres"] == other
    of_login = dict(template_of(cluster, cluster.pools["login"]).metadata)
    assert of_login["slurm-hooks-home"] == metadata["slurm-hooks-home"]
    assert not {"slurm-hooks-filestores", "slurm-hooks-lustres"} & of_login.keys()


@pytest.mark.parametrize(
    ("machine_type", "kind", "remedy"),
    [
        ("n2-standard-8", "SEV", "choose another machine type"),
        ("n2d-standard-8", "TDX", "SEV, SEV_SNP"),
        ("c3-standard-8", "SEV", "TDX"),
    ],
)
def test_encryption_must_fit_the_cpu_platform(machine_type: str, kind: str, remedy: str) -> None:
    field = "node_pools[0].confidential_instance_config.confidential_instance_type"
    document = changed(
        node_pools__0__machine_spec={"machine_type": machine_type},
        node_pools__0__confidential_instance_config={"confidential_instance_type": kind},
    )
    found = mistakes(document)
    assert list(found) == [field]
    assert remedy in found[field].remedy


def test_encryption_reaches_the_template() -> None:
    cluster = build(
        changed(
            node_pools__0__machine_spec={"machine_type": "n2d-standard-8"},
            node_pools__0__confidential_instance_config={"confidential_instance_type": "SEV_SNP"},
        )
    )
    pool = cluster.pools["login"]
    assert pool.confidential_instance_type is ConfidentialInstanceType.SEV_SNP
    assert template_of(cluster, pool).confidential_instance_type == "SEV_SNP"


@pytest.mark.parametrize("field", ["labels", "node_pools.1.labels"])
def test_labels_by_which_we_know_vms_are_ours(field: str) -> None:
    found = mistakes(changed(**{field: {"slurm-hooks-pool": "x"}}))
    (path,) = found
    assert path.endswith("labels.slurm-hooks-pool")
    assert "slurm-hooks knows its VMs" in found[path].problem


def test_more_labels_than_a_vm_may_have_are_refused() -> None:
    labels = {f"k{index}": "v" for index in range(61)}
    assert list(mistakes(changed(node_pools__1__labels=labels))) == [f"{POOL}.labels"]


def test_startup_script_must_fit_into_the_metadata_of_a_vm() -> None:
    assert not mistakes(changed(node_pools__1__startup_script="x" * 262_144))
    found = mistakes(changed(node_pools__1__startup_script="é" * 131_073))
    assert list(found) == [f"{POOL}.startup_script"]
    assert "262146 bytes" in found[f"{POOL}.startup_script"].problem
