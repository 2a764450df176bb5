"""What is said about a cluster file that is wrong: where, what, and what to do."""

from __future__ import annotations

import pytest

from tests.unit.cluster.files import ABSENT, SLURM, changed, mistakes

POOL = "node_pools[1]"
NAMED = "projects/example-project/locations/us-central1/modelDevelopmentClusters/named"


@pytest.mark.parametrize(
    ("changes", "path", "problem"),
    [
        ({"node_pools__1__zone": ABSENT}, f"{POOL}.zone", "missing"),
        ({"node_pools__1__zone": ""}, f"{POOL}.zone", "empty"),
        ({"node_pools__1__zone": "us-central1"}, f"{POOL}.zone", "no zone"),
        ({"node_pools__1__zone": 7}, f"{POOL}.zone", "no text"),
        ({"node_pools__1__zone": "europe-west4-a"}, f"{POOL}.zone", "is in europe-west4"),
        ({"node_pools__1__enable_public_ips": "yes"}, f"{POOL}.enable_public_ips", "true nor"),
        ({"node_pools__1__enable_public_ips": 1}, f"{POOL}.enable_public_ips", "true nor"),
        ({"node_pools__1__labels": {"A": "b"}}, f"{POOL}.labels.A", "label key"),
        ({"node_pools__1__labels": {"a": 1}}, f"{POOL}.labels.a", "has the value 1"),
        ({"node_pools__1__labels": {"a": "x" * 64}}, f"{POOL}.labels.a", "has the value"),
        ({"node_pools__1__labels": ["a"]}, f"{POOL}.labels", "no map of labels"),
        ({"display_name": "x" * 129, "name": NAMED}, "display_name", "has 129 characters"),
        ({"slurm_hooks": {"hold_seconds": "0"}}, "slurm_hooks.hold_seconds", "out of range"),
        ({"slurm_hooks": {"most_kills_percent": 101}}, "slurm_hooks.most_kills_percent", "range"),
        ({"slurm_hooks": {"boot_timeout_seconds": -1}}, "slurm_hooks.boot_timeout_seconds", "ran"),
        (
            {"slurm_hooks": {"hold_seconds": 60, "longest_hold_seconds": 59}},
            "slurm_hooks.longest_hold_seconds",
            "is below hold_seconds 60",
        ),
        ({"node_pools__1__node_image": "debian"}, f"{POOL}.node_image", "no image"),
        ({"node_pools": []}, "node_pools", "empty"),
        ({"node_pools": {}}, "node_pools", "no list"),
        ({"node_pools__1": 5}, POOL, "no mapping"),
        ({"orchestrator_spec": ABSENT}, "orchestrator_spec", "missing"),
        ({"runtime_spec": {"service_account": "x"}}, "runtime_spec.service_account", "account"),
        ({"name": "x"}, "name", "no cluster name"),
        ({"network__network": "Net"}, "network.network", "no network"),
        ({"network__subnetwork": "a/b"}, "network.subnetwork", "no subnetwork"),
        (
            {"node_pools__1__slurm_hooks": {"capacity_wait_limit_seconds": 0}},
            f"{POOL}.slurm_hooks.capacity_wait_limit_seconds",
            "no time to wait",
        ),
        (
            {"node_pools__0__slurm_hooks": {"compact_placement": True}},
            "node_pools[0].slurm_hooks.compact_placement",
            "only for FLEX_START",
        ),
        ({"slurm_hooks": {"repair_days": 0}}, "slurm_hooks.repair_days", "out of range"),
        ({"slurm_hooks": {"repair_days": 91}}, "slurm_hooks.repair_days", "out of range"),
        (
            {"slurm_hooks": {"most_repairs_a_node": -1}},
            "slurm_hooks.most_repairs_a_node",
            "out of range",
        ),
        (
            {"slurm_hooks": {"stop_repairs_seconds": 10**18}},
            "slurm_hooks.stop_repairs_seconds",
            "out of range",
        ),
        (
            {"slurm_hooks": {"end_of_life_signal": "9; reboot"}},
            "slurm_hooks.end_of_life_signal",
            "no signal",
        ),
    ],
)
def test_wrong_field_is_named(changes: dict[str, object], path: str, problem: str) -> None:
    found = mistakes(changed(**changes))
    assert list(found) == [path]
    assert problem in found[path].problem
    assert found[path].remedy


@pytest.mark.parametrize(
    ("pool_id", "problem"),
    [
        ("a_b", "cannot be part of a VM name"),
        ("-a", "cannot be part of a VM name"),
        ("x" * 55, "makes node names of 64 characters"),
    ],
)
def test_pool_id_must_fit_into_node_names(pool_id: str, problem: str) -> None:
    partitions = [{"id": "p", "node_pool_ids": [pool_id]}]
    document = changed(
        node_pools__1__id=pool_id, orchestrator_spec__slurm_spec__partitions=partitions
    )
    found = mistakes(document)
    assert list(found) == [f"{POOL}.id"]
    assert problem in found[f"{POOL}.id"].problem


def test_two_pools_of_one_id_are_refused() -> None:
    found = mistakes(changed(node_pools__1__id="login"))
    assert "entry 0" in found[f"{POOL}.id"].problem


@pytest.mark.parametrize("duration", ["29s", "604801s", "10", "10m", "-5s", "1.5s", 600, "s"])
def test_duration_outside_its_form_or_range_is_refused(duration: object) -> None:
    found = mistakes(changed(node_pools__1__flex_start_max_duration=duration))
    assert list(found) == [f"{POOL}.flex_start_max_duration"]
    assert "604800s" in found[f"{POOL}.flex_start_max_duration"].remedy


@pytest.mark.parametrize(
    ("low", "high", "field"),
    [
        (-1, 2, "min_node_count"),
        (3, 2, "max_node_count"),
        (0, 65_537, "max_node_count"),
        ("x", 2, "min_node_count"),
        (True, 2, "min_node_count"),
        (0, 1.0, "max_node_count"),
        (0, "9" * 5000, "max_node_count"),
    ],
)
def test_node_counts_must_be_ordered_whole_numbers(low: object, high: object, field: str) -> None:
    scaling = {"min_node_count": low, "max_node_count": high}
    found = mistakes(changed(node_pools__1__scaling_spec=scaling))
    assert list(found) == [f"{POOL}.scaling_spec.{field}"]


def test_login_pool_must_have_a_fixed_size() -> None:
    scaling = {"min_node_count": 1, "max_node_count": 2}
    found = mistakes(changed(node_pools__0__scaling_spec=scaling))
    assert list(found) == ["node_pools[0].scaling_spec"]


@pytest.mark.parametrize(
    ("machine", "field", "remedy"),
    [
        ({"machine_type": "a3-ultragpu-8"}, "machine_type", "did you mean a3-ultragpu-8g?"),
        ({"machine_type": "qqq"}, "machine_type", "declare it in machine_types.json"),
        (
            {"machine_type": "a3-ultragpu-8g", "accelerator_type": "NVIDIA_B200"},
            "accelerator_type",
            "write NVIDIA_H200_141GB",
        ),
        ({"machine_type": "a3-ultragpu-8g", "accelerator_count": 4}, "accelerator_count", "8"),
    ],
)
def test_accelerator_must_fit_a_known_machine_type(
    machine: dict[str, object], field: str, remedy: str
) -> None:
    found = mistakes(changed(node_pools__1__machine_spec=machine))
    assert list(found) == [f"{POOL}.machine_spec.{field}"]
    assert remedy in found[f"{POOL}.machine_spec.{field}"].remedy


def test_accelerator_on_a_cpu_machine_is_refused() -> None:
    machine = {"machine_type": "n2-standard-8", "accelerator_type": "NVIDIA_B200"}
    found = mistakes(changed(node_pools__0__machine_spec=machine))
    assert found["node_pools[0].machine_spec.accelerator_type"].remedy == "remove it"


@pytest.mark.parametrize(
    ("machine_type", "model", "problem"),
    [
        ("a3-ultragpu-8g", ABSENT, "must say its model"),
        ("a3-ultragpu-8g", "STANDARD", "no provisioning model"),
        ("a3-highgpu-1g", "ON_DEMAND", "not offered as ON_DEMAND"),
        ("a4x-highgpu-4g", "FLEX_START", "not offered as FLEX_START"),
        ("n2-standard-8", "FLEX_START", "not offered as FLEX_START"),
    ],
)
def test_provisioning_model_must_fit_the_machine_type(
    machine_type: str, model: object, problem: str
) -> None:
    document = changed(
        node_pools__1__machine_spec={"machine_type": machine_type},
        node_pools__1__provisioning_model=model,
        node_pools__1__flex_start_max_duration=ABSENT,
    )
    found = mistakes(document)
    assert list(found) == [f"{POOL}.provisioning_model"]
    assert problem in found[f"{POOL}.provisioning_model"].problem


def test_run_duration_belongs_to_flex_start_alone() -> None:
    found = mistakes(changed(node_pools__1__provisioning_model="SPOT"))
    assert list(found) == [f"{POOL}.flex_start_max_duration"]


@pytest.mark.parametrize("size", [9, 65_537])
def test_boot_disk_must_fit(size: int) -> None:
    disk = {"boot_disk_type": "pd-standard", "boot_disk_size_gb": size}
    found = mistakes(changed(node_pools__1__boot_disk=disk))
    assert list(found) == [
        f"{POOL}.boot_disk.boot_disk_type",
        f"{POOL}.boot_disk.boot_disk_size_gb",
    ]


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"login_node_pool_id": "b"}, "login_node_pool_id"),
        ({"default_partition_id": "b"}, "default_partition_id"),
        ({"partitions": [{"id": "p", "node_pool_ids": ["b"]}]}, "partitions[0].node_pool_ids[0]"),
        (
            {"partitions": [{"id": "p", "node_pool_ids": ["a3u", "a3u"]}]},
            "partitions[0].node_pool_ids[1]",
        ),
        (
            {"partitions": [{"id": "p", "node_pool_ids": ["login"]}]},
            "partitions[0].node_pool_ids[0]",
        ),
        ({"partitions": [{"id": "default", "node_pool_ids": ["a3u"]}]}, "partitions[0].id"),
        ({"partitions": [{"id": "a b", "node_pool_ids": ["a3u"]}]}, "partitions[0].id"),
        ({"partitions": [{"id": "p", "node_pool_ids": []}]}, "partitions[0].node_pool_ids"),
        ({"partitions": []}, "partitions"),
        ({"home_directory_storage": "home"}, "home_directory_storage"),
    ],
)
def test_slurm_spec_must_hold_together(changes: dict[str, object], path: str) -> None:
    paths = {f"orchestrator_spec__slurm_spec__{key}": value for key, value in changes.items()}
    assert list(mistakes(changed(**paths))) == [f"{SLURM}.{path}"]


def test_repeated_partition_is_refused() -> None:
    twice = [{"id": "p", "node_pool_ids": ["a3u"]}] * 2
    found = mistakes(changed(orchestrator_spec__slurm_spec__partitions=twice))
    assert list(found) == [f"{SLURM}.partitions[1].id"]


@pytest.mark.parametrize("cluster_id", ["has-hyphen", "UPPER", "9x", "elevenchars"])
def test_cluster_id_must_fit_into_node_names(cluster_id: str) -> None:
    assert list(mistakes(changed(), cluster_id)) == ["cluster id"]


def test_file_that_names_no_cluster_id_says_how_to_give_one() -> None:
    found = mistakes(changed(display_name="Two Words"))
    assert "pass the cluster id" in found["name"].remedy


@pytest.mark.parametrize(
    ("key", "nearest"),
    [("zoone", "zone"), ("machineSpecs", "machine_spec"), ("boot_disc", "boot_disk")],
)
def test_unknown_field_names_the_nearest_known_one(key: str, nearest: str) -> None:
    found = mistakes(changed(**{f"node_pools__1__{key}": 1}))
    assert found[f"{POOL}.{key}"].problem == "unknown field"
    assert found[f"{POOL}.{key}"].remedy == f"did you mean {nearest}?"


@pytest.mark.parametrize(
    ("scripts", "place", "problem"),
    [
        (["true"] * 100, "", "has 100 parts"),
        (["true", ""], "[1]", "is empty"),
        ("true", "", "no list"),
        ([7], "[0]", "no text"),
    ],
)
def test_site_scripts_that_cannot_be_run_are_mistakes(
    scripts: object, place: str, problem: str
) -> None:
    found = mistakes(changed(**{f"{SLURM}.prolog_bash_scripts": scripts}))
    assert problem in found[f"{SLURM}.prolog_bash_scripts{place}"].problem


def test_field_of_the_service_that_is_not_read_is_refused_by_name() -> None:
    found = mistakes(changed(lustre_export_config={"destination_bucket": "b"}))
    assert "this version does not export" in found["lustre_export_config"].problem
    found = mistakes(changed(cluster_status={"state": "RUNNING"}))
    assert "only answers with" in found["cluster_status"].problem


def test_one_field_in_two_spellings_is_refused() -> None:
    found = mistakes(changed(node_pools__1__machineSpec={"machine_type": "a3-ultragpu-8g"}))
    assert list(found) == [f"{POOL}.machine_spec"]
    assert "more than once" in found[f"{POOL}.machine_spec"].problem


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("node_pools__1__zone", "<zone>"),
        ("node_pools__1__zone", "ZONE"),
        ("node_pools__1__scaling_spec__max_node_count", "MAX_NODE_COUNT"),
        ("name", "projects/PROJECT_ID/locations/us-central1/modelDevelopmentClusters/x"),
        ("network__network", "projects/${PROJECT}/global/networks/default"),
        ("runtime_spec", {"service_account": "x@PROJECT_ID.iam.gserviceaccount.com"}),
        ("orchestrator_spec__slurm_spec__partitions__0__node_pool_ids__0", "<pool>"),
    ],
)
def test_unreplaced_placeholder_is_refused_at_its_place(path: str, value: object) -> None:
    found = mistakes(changed(**{path: value}))
    assert len(found) == 1
    assert "placeholder" in next(iter(found.values())).problem


def test_all_wrong_labels_are_named_at_once() -> None:
    document = changed(labels={"A": "b", "c": "D", "e": 1, "fine": "x"})
    assert set(mistakes(document)) == {"labels.A", "labels.c", "labels.e"}


def test_all_mistakes_are_named_at_once() -> None:
    document = changed(
        node_pools__0__zone="<zone>",
        node_pools__1__zoone="x",
        node_pools__1__machine_spec__machine_type="a3-ultragpu-8",
        node_pools__1__scaling_spec__max_node_count="many",
        orchestrator_spec__slurm_spec__login_node_pool_id="logn",
        orchestrator_spec__slurm_spec__partitions__0__node_pool_ids=["a3u", 5],
        orchestrator_spec__slurm_spec__default_partition_id="other",
    )
    assert set(mistakes(document)) == {
        "node_pools[0].zone",
        f"{POOL}.zoone",
        f"{POOL}.machine_spec.machine_type",
        f"{POOL}.scaling_spec.max_node_count",
        f"{SLURM}.login_node_pool_id",
        f"{SLURM}.partitions[0].node_pool_ids[1]",
        f"{SLURM}.default_partition_id",
    }
