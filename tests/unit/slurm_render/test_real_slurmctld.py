"""The rendered files as the real slurmctld of this machine understands them."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from slurm_hooks.cluster.load import load_cluster
from slurm_hooks.cluster.slurm_parameters import Place, all_parameters
from slurm_hooks.slurm.render import RenderOptions, parse_slurm_version, render
from tests.unit.cluster.files import SLURM, build, changed, mistakes
from tests.unit.slurm_render.clusters import EXAMPLE, cluster_of, pool
from tests.unit.slurm_render.scratch_slurmctld import (
    DEADLINE_SECONDS,
    SLURMCTLD,
    ScratchSlurmctld,
    scratch_slurmctld,
)
from tests.waiting import wait_until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(SLURMCTLD is None, reason="slurmctld is not installed"),
]

PROGRAMS = ("slurm-hooks-resume", "slurm-hooks-suspend", "slurm-hooks-resume-fail")


def installed_version() -> tuple[int, int]:
    answer = subprocess.run([str(SLURMCTLD), "-V"], capture_output=True, text=True, check=True)
    return parse_slurm_version(answer.stdout)


def programs_in(directory: Path) -> str:
    directory.mkdir()
    for name in PROGRAMS:
        (directory / name).write_text(f'#!/bin/sh\necho "{name} $1" >> {directory}/calls\n')
        (directory / name).chmod(0o755)
    return str(directory)


@pytest.fixture
def example(tmp_path: Path) -> Iterator[ScratchSlurmctld]:
    options = RenderOptions(
        slurm_version=installed_version(),
        programs_directory=programs_in(tmp_path / "programs"),
        one_machine_first_port=27_001,
    )
    with scratch_slurmctld(tmp_path, render(load_cluster(EXAMPLE), options)) as controller:
        yield controller


def test_example_nodes_are_powered_down_cloud_nodes(example: ScratchSlurmctld) -> None:
    nodes = example.scontrol("-o", "show", "nodes").splitlines()
    names = [re.findall(r"NodeName=(\S+)", line)[0] for line in nodes if line]
    assert names == ["flexvm-a3u-0", "flexvm-a3u-1"]
    for line in nodes:
        assert "State=IDLE+CLOUD+POWERED_DOWN" in line
        assert "Gres=gpu:nvidia_h200_141gb:8" in line
        assert "CPUTot=224" in line
        assert "NodeAddr=127.0.0.1" in line


def test_each_node_of_one_machine_has_a_port_of_its_own(example: ScratchSlurmctld) -> None:
    assert re.findall(r"Port=(\d+)", example.scontrol("-o", "show", "nodes")) == ["27001", "27002"]


def test_power_saving_is_on_with_our_programs(example: ScratchSlurmctld) -> None:
    config = dict(
        re.findall(r"^(\w+)\s+= (.*)$", example.scontrol("show", "config"), flags=re.MULTILINE)
    )
    for key, program in zip(
        ("ResumeProgram", "SuspendProgram", "ResumeFailProgram"), PROGRAMS, strict=True
    ):
        assert config[key].endswith(f"/programs/{program}")
    assert config["ResumeTimeout"] == "64800 sec"
    assert config["SuspendTime"] == "300 sec"
    assert config["ReturnToService"] == "2"
    assert "idle_on_node_suspend" in config["SlurmctldParameters"]


def test_node_health_is_understood(example: ScratchSlurmctld) -> None:
    config = dict(
        re.findall(r"^(\w+)\s+= (.*)$", example.scontrol("show", "config"), flags=re.MULTILINE)
    )
    for key, program in (
        ("Prolog", "slurm-hooks-prolog"),
        ("Epilog", "slurm-hooks-epilog"),
        ("HealthCheckProgram", "slurm-hooks-health-check"),
        ("RebootProgram", "slurm-hooks-reboot"),
    ):
        assert config[f"{key}[0]" if f"{key}[0]" in config else key].endswith(f"/{program}")
    assert set(config["HealthCheckNodeState"].split(",")) == {"CYCLE", "ANY"}
    assert config["HealthCheckInterval"] == "300 sec"
    assert config["BatchStartTimeout"] == "330 sec"
    assert {"Alloc", "Contain", "DeferBatch"} <= set(config["PrologFlags"].split(","))


def test_power_up_reaches_our_resume_program(example: ScratchSlurmctld) -> None:
    example.scontrol("update", "nodename=flexvm-a3u-1", "state=power_up", "reason=wanted")
    calls = example.slurm_conf.parent / "programs" / "calls"
    wait_until(
        "the program to be called",
        lambda: calls.exists() and calls.read_text().endswith("\n"),
        DEADLINE_SECONDS,
    )
    assert calls.read_text() == "slurm-hooks-resume flexvm-a3u-1\n"
    assert "POWERING_UP" in example.scontrol("-o", "show", "node", "flexvm-a3u-1")


def test_slurmctld_finds_no_fault_with_the_files(example: ScratchSlurmctld) -> None:
    log = example.log().lower()
    assert "running as primary controller" in log
    for fault in (
        "power_save program",
        "not enabled",
        "more than once",
        "parse",
        "gres",
        "invalid n",
    ):
        assert fault not in log


def test_partition_takes_the_life_of_its_vms_as_time_limit(example: ScratchSlurmctld) -> None:
    partition = example.scontrol("-o", "show", "partition", "a3u")
    assert "MaxTime=7-00:00:00" in partition
    assert "DefaultTime=1-00:00:00" in partition
    assert "Nodes=flexvm-a3u-[0-1]" in partition
    assert "Default=YES" in partition


def test_static_and_single_nodes_are_understood_too(tmp_path: Path) -> None:
    cluster = cluster_of(
        pool("cpu-a", minimum=2, maximum=5),
        pool("gpu", machine_type="a3-highgpu-1g", minimum=1, maximum=1, life_seconds=3600),
        partitions={"batch": ("cpu-a",), "all": ("cpu-a", "gpu")},
    )
    options = RenderOptions(
        slurm_version=installed_version(), programs_directory=programs_in(tmp_path / "programs")
    )
    with scratch_slurmctld(tmp_path, render(cluster, options)) as controller:
        nodes = controller.scontrol("-o", "show", "nodes")
        assert nodes.count("NodeName=") == 6
        assert nodes.count(",static ActiveFeatures") == 3
        config = controller.scontrol("show", "config")
        assert re.search(r"SuspendExcNodes\s+= c-cpu-a-\[0-1\],c-gpu-0\n", config)
        assert "MaxTime=01:00:00" in controller.scontrol("-o", "show", "partition", "all")


def test_settings_of_the_cluster_file_are_taken(tmp_path: Path) -> None:
    document = changed(
        **{
            f"{SLURM}.config": {
                "preempt_type": "preempt/partition_prio",
                "PreemptMode": "SUSPEND,GANG",
                "SchedulerParameters": "bf_window=1440,bf_resolution=600",
                "SlurmctldParameters": "preempt_send_user_signal",
                "PriorityType": "priority/multifactor",
                "priority_weight_tres": "cpu=100,mem=150",
                "AccountingStorageEnforce": "associations",
                "kill_wait": "45",
            },
            f"{SLURM}.partitions.0.config": {
                "over_subscribe": "FORCE:2",
                "MaxTime": "12:00:00",
                "PriorityTier": "7",
                "DefMemPerNode": "4000",
            },
            f"{SLURM}.node_sets": [
                {"node_pool_id": "a3u", "config": {"Weight": "3", "Features": "fast"}}
            ],
        }
    )
    options = RenderOptions(
        slurm_version=installed_version(), programs_directory=programs_in(tmp_path / "programs")
    )
    with scratch_slurmctld(tmp_path, render(build(document), options)) as controller:
        config = controller.scontrol("show", "config")
        assert re.search(r"PreemptMode\s+= GANG,SUSPEND\n", config)
        assert re.search(r"KillWait\s+= 45 sec", config)
        assert re.search(r"SlurmctldParameters\s+= .*idle_on_node_suspend.*preempt_send", config)
        assert re.search(r"SchedulerParameters\s+= .*sched_interval=10.*bf_window=1440", config)
        partition = controller.scontrol("-o", "show", "partition", "a3u")
        for word in ("MaxTime=12:00:00", "DefaultTime=12:00:00", "OverSubscribe=FORCE:2"):
            assert word in partition
        assert "DefMemPerNode=4000" in partition
        node = controller.scontrol("-o", "show", "node", "flexvm-a3u-0")
        assert " Weight=3 " in node
        assert ",dynamic,fast " in node


@pytest.mark.parametrize(
    "config",
    [
        {"PreemptType": "preempt/none", "PreemptMode": "SUSPEND,GANG"},
        {"PreemptType": "preempt/qos"},
        {"PreemptType": "preempt/partition_prio", "PreemptMode": "SUSPEND"},
        {"PreemptType": "preempt/partition_prio", "PreemptMode": "CANCEL,REQUEUE"},
        {"PriorityType": "priority/multifactor", "PriorityWeightTRES": "gres/gpu=5"},
        {"MCSParameters": "ondemand"},
    ],
)
def test_what_the_cluster_file_may_not_say_does_keep_slurmctld_from_starting(
    tmp_path: Path, config: dict[str, str]
) -> None:
    assert mistakes(changed(**{f"{SLURM}.config": config}))
    cluster = replace(load_cluster(EXAMPLE), slurm_config=tuple(config.items()))
    texts = render(cluster, RenderOptions(slurm_version=installed_version()))
    with (
        pytest.raises((AssertionError, FileNotFoundError)),
        scratch_slurmctld(tmp_path, texts),
    ):
        pass


def test_installed_slurm_knows_every_parameter_of_the_table(tmp_path: Path) -> None:
    version = installed_version()
    lines = [
        f"{_LINE_STARTS.get(found.place, '').format(number)}{found.name}=1"
        for number, found in enumerate(all_parameters())
        if found.place is not Place.SLURMDBD and found.since <= version
    ]
    unknown = unrecognized_keys(tmp_path, lines)
    assert unknown == []


def test_installed_slurm_knows_no_parameter_that_is_newer(tmp_path: Path) -> None:
    version = installed_version()
    newer = [found for found in all_parameters() if found.since > version]
    lines = [
        f"{_LINE_STARTS.get(found.place, '').format(number)}{found.name}=1"
        for number, found in enumerate(newer)
    ]
    assert sorted(unrecognized_keys(tmp_path, lines)) == sorted(found.name for found in newer)


_LINE_STARTS = {Place.NODE: "NodeName=n{} ", Place.PARTITION: "PartitionName=p{} "}


def unrecognized_keys(directory: Path, lines: list[str]) -> list[str]:
    """The keys that Slurm's own parser does not know, whatever else it says of the lines."""
    slurm_conf = directory / "slurm.conf"
    slurm_conf.write_text("\n".join([*lines, ""]))
    answer = subprocess.run(
        ["scontrol", "show", "config"],
        env={"SLURM_CONF": str(slurm_conf), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
    )
    return re.findall(r"unrecognized key: (\w+)", answer.stderr)
