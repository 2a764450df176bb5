"""What a good cluster file becomes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from slurm_hooks.cluster.errors import ClusterFileError
from slurm_hooks.cluster.load import DEFAULT_IMAGES, load_cluster
from slurm_hooks.cluster.topology import ProvisioningModel
from tests.shared_data import shared_file
from tests.unit.cluster.files import ABSENT, EXAMPLE, SLURM, build, changed


def test_example_is_the_cluster_of_the_documentation() -> None:
    cluster = load_cluster(EXAMPLE)
    assert (cluster.cluster_id, cluster.project) == ("flexvm", "example-project")
    assert cluster.region == "us-central1"
    assert cluster.partitions == {"a3u": ("a3u",)}
    assert cluster.default_partition == "a3u"
    assert cluster.home_directory_storage.endswith("/instances/home")
    pool = cluster.pools["a3u"]
    assert pool.provisioning_model is ProvisioningModel.FLEX_START
    assert pool.run_duration_seconds == 604_800
    assert (pool.min_node_count, pool.max_node_count) == (0, 2)
    assert (pool.accelerator_type, pool.accelerator_count) == ("NVIDIA_H200_141GB", 8)
    assert (pool.boot_disk_type, pool.boot_disk_size_gb) == ("hyperdisk-balanced", 400)
    assert pool.public_ip is True
    assert pool.zones == ("us-central1-a",)
    assert not pool.is_login


def test_login_pool_is_marked_and_on_demand() -> None:
    pool = load_cluster(EXAMPLE).pools["login"]
    assert pool.is_login
    assert pool.provisioning_model is ProvisioningModel.ON_DEMAND
    assert pool.run_duration_seconds is None


def test_published_example_needs_only_its_placeholders_replaced(tmp_path: Path) -> None:
    text = shared_file("facts/managed-service.md").read_text()
    example = text.partition("```json\n")[2].partition("```")[0]
    for placeholder, value in (
        ("<project-id>", "example-project"),
        ("<region>", "us-central1"),
        ("<zone>", "us-central1-a"),
        ("<filestore-id>", "home"),
    ):
        example = example.replace(placeholder, value)
    (tmp_path / "cluster.json").write_text(example)
    assert load_cluster(tmp_path / "cluster.json") == load_cluster(EXAMPLE)


def test_yaml_means_the_same_as_json(tmp_path: Path) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(yaml.safe_dump(json.loads(EXAMPLE.read_text())))
    assert load_cluster(path) == load_cluster(EXAMPLE)


def test_file_without_a_known_suffix_is_told_by_its_content(tmp_path: Path) -> None:
    (tmp_path / "json").write_text(EXAMPLE.read_text())
    (tmp_path / "yaml").write_text(yaml.safe_dump(json.loads(EXAMPLE.read_text())))
    assert load_cluster(tmp_path / "json") == load_cluster(tmp_path / "yaml")


def test_camel_case_means_the_same_as_snake_case() -> None:
    text = json.dumps(changed())
    for snake, camel in (
        ("node_pools", "nodePools"),
        ("machine_spec", "machineSpec"),
        ("min_node_count", "minNodeCount"),
        ("enable_public_ips", "enablePublicIps"),
        ("boot_disk_size_gb", "bootDiskSizeGb"),
        ("login_node_pool_id", "loginNodePoolId"),
        ("flex_start_max_duration", "flexStartMaxDuration"),
    ):
        assert snake in text
        text = text.replace(f'"{snake}"', f'"{camel}"')
    assert build(json.loads(text)) == build(changed())


def test_numbers_and_booleans_may_be_texts() -> None:
    document = changed(
        node_pools__1__scaling_spec={"min_node_count": "0", "max_node_count": "2"},
        node_pools__1__enable_public_ips="false",
        node_pools__1__boot_disk__boot_disk_size_gb="400",
    )
    pool = build(document).pools["a3u"]
    assert (pool.max_node_count, pool.public_ip, pool.boot_disk_size_gb) == (2, False, 400)


def test_signal_of_capitals_is_no_placeholder() -> None:
    policy = build(changed(slurm_hooks={"end_of_life_signal": "USR1"})).policy
    assert policy.end_of_life_signal == "USR1"


def test_run_duration_is_seven_days_unless_given() -> None:
    document = changed(node_pools__1__flex_start_max_duration=ABSENT)
    assert build(document).pools["a3u"].run_duration_seconds == 604_800
    document = changed(node_pools__1__flex_start_max_duration="30s")
    assert build(document).pools["a3u"].run_duration_seconds == 30


def test_accelerators_and_disk_may_be_left_to_the_machine_type() -> None:
    document = changed(
        node_pools__1__machine_spec={"machine_type": "a3-highgpu-8g"},
        node_pools__1__boot_disk=ABSENT,
    )
    pool = build(document).pools["a3u"]
    assert (pool.accelerator_type, pool.accelerator_count) == ("NVIDIA_H100_80GB", 8)
    assert (pool.boot_disk_type, pool.boot_disk_size_gb) == ("pd-ssd", 100)


def test_null_means_absent() -> None:
    assert build(changed(node_pools__1__node_image=None)) == build(changed())


@pytest.mark.parametrize(
    ("name_end", "display_name", "argument", "expected"),
    [
        ("", "shown", "", "shown"),
        ("named", "shown", "", "named"),
        ("named", "shown", "given", "given"),
        ("named", "Not An Id", "", "named"),
    ],
)
def test_cluster_id_is_the_argument_then_the_name_then_the_display_name(
    name_end: str, display_name: str, argument: str, expected: str
) -> None:
    base = "projects/example-project/locations/us-central1/modelDevelopmentClusters/"
    document = changed(name=base + name_end, display_name=display_name)
    assert build(document, argument).cluster_id == expected


def test_bare_network_names_become_partial_urls() -> None:
    cluster = build(changed(network={"network": "vpc", "subnetwork": "nodes"}))
    assert cluster.network == "projects/example-project/global/networks/vpc"
    assert cluster.subnetwork == "projects/example-project/regions/us-central1/subnetworks/nodes"
    assert build(changed(network=ABSENT)).network.endswith("/networks/default")


def test_full_urls_become_partial_ones() -> None:
    url = "https://www.googleapis.com/compute/v1/projects/host-project/global/networks/shared"
    cluster = build(changed(network={"network": url}))
    assert cluster.network == "projects/host-project/global/networks/shared"
    assert cluster.project == "example-project", "a shared VPC's project is not the cluster's"


def test_labels_of_the_cluster_are_on_every_pool_and_the_pools_own_win() -> None:
    document = changed(labels={"team": "a", "tier": "x"}, node_pools__1__labels={"tier": "y"})
    cluster = build(document)
    assert cluster.pools["a3u"].labels == (("team", "a"), ("tier", "y"))
    assert cluster.pools["login"].labels == (("team", "a"), ("tier", "x"))


def test_image_is_the_pools_or_the_default_of_its_architecture() -> None:
    image = "projects/images/global/images/family/slurm"
    assert build(changed(node_pools__1__node_image=image)).pools["a3u"].source_image == image
    document = changed(
        node_pools__1__machine_spec={"machine_type": "a4x-highgpu-4g"},
        node_pools__1__provisioning_model="SPOT",
        node_pools__1__flex_start_max_duration=ABSENT,
    )
    assert build(document).pools["a3u"].source_image == DEFAULT_IMAGES["ARM64"]


def test_startup_script_may_look_like_a_placeholder() -> None:
    script = "#!/bin/sh\ncat <input> ${HOME} FOO_BAR\n"
    document = changed(node_pools__1__startup_script=script)
    assert build(document).pools["a3u"].startup_script == script


def test_site_scripts_are_read_as_they_are_and_in_order() -> None:
    before = ["#!/bin/bash\necho ${SLURM_JOB_ID} <x>\n", "SCRATCH_DIR"]
    cluster = build(
        changed(**{f"{SLURM}.prolog_bash_scripts": before, f"{SLURM}.epilogBashScripts": ["b"]})
    )
    assert cluster.prolog_scripts == tuple(before)
    assert cluster.epilog_scripts == ("b",)
    assert build(changed()).prolog_scripts == ()


def test_declared_machine_type_beside_the_file_is_known(tmp_path: Path) -> None:
    document = changed(node_pools__0__machine_spec__machine_type="z9-standard-8")
    (tmp_path / "cluster.json").write_text(json.dumps(document))
    with pytest.raises(ClusterFileError, match="z9-standard-8"):
        load_cluster(tmp_path / "cluster.json")
    declared = {"machine_types": {"z9-standard-8": {"cpus": 8, "memory_gb": 32}}}
    (tmp_path / "machine_types.json").write_text(json.dumps(declared))
    assert load_cluster(tmp_path / "cluster.json").pools["login"].machine_type == "z9-standard-8"


@pytest.mark.parametrize(
    "text", ["", "[]", '{"machine_types": {"x": {"cpus": "8"}}}', '{"machine_types": {"x": 1}}']
)
def test_unusable_machine_type_file_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "cluster.json").write_text(EXAMPLE.read_text())
    (tmp_path / "machine_types.json").write_text(text)
    with pytest.raises(ClusterFileError) as caught:
        load_cluster(tmp_path / "cluster.json")
    assert caught.value.errors[0].path.endswith("machine_types.json")


def test_our_settings_of_a_pool_are_read_and_are_off_by_default() -> None:
    plain = build(changed()).pools["a3u"]
    assert (plain.run_duration_follows_job, plain.compact_placement) == (False, False)
    assert plain.capacity_wait_limit_seconds is None
    ours = {
        "run_duration_follows_job": True,
        "compact_placement": True,
        "capacity_wait_limit_seconds": 7200,
    }
    pool = build(changed(node_pools__1__slurm_hooks=ours)).pools["a3u"]
    assert (pool.run_duration_follows_job, pool.compact_placement) == (True, True)
    assert pool.capacity_wait_limit_seconds == 7200
