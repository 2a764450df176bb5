"""The rendered files as the real slurmctld of this machine understands them."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from slurm_hooks.cluster.load import load_cluster
from slurm_hooks.slurm.render import RenderOptions, parse_slurm_version, render
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
