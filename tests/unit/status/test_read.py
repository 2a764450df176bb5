"""What is read for a status: each system once, and the consoles of few VMs that boot."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from slurm_hooks.compute.errors import ComputeError, ErrorKind
from slurm_hooks.compute.model import InstanceStatus
from slurm_hooks.history.conditions import FILE_NAME as CONDITIONS_FILE
from slurm_hooks.history.conditions import Condition, ConditionsFile
from slurm_hooks.history.report import FaultAction, FaultReport
from slurm_hooks.history.reports import FaultReports
from slurm_hooks.reconcile import deleting
from slurm_hooks.reconcile.bell import Bell, daemon_listens
from slurm_hooks.slurm.client import SlurmUnavailable
from slurm_hooks.slurm.model import BaseState, NodeFlag
from slurm_hooks.status.model import ClusterState, NodeState
from slurm_hooks.status.read import MOST_CONSOLES, StatusSources, status_of
from tests.fakes.compute import FakeCompute
from tests.fakes.slurm import FakeSlurm
from tests.unit.reconcile.builders import N0, N1, NOW, example_cluster, starting
from tests.unit.status.standing import LOGIN, login_vm, one, up

MANY = example_cluster(max_node_count=20, login_nodes=1)
BOOTS = "slurm-hooks-boot: mount begins /home\n"


@pytest.fixture
def sources(tmp_path: Path) -> StatusSources:
    """A cluster of which nothing is there, and a spool of nobody's."""
    return StatusSources(MANY, FakeSlurm(), FakeCompute(), tmp_path)


def slurm_of(sources: StatusSources) -> FakeSlurm:
    assert isinstance(sources.slurm, FakeSlurm)
    return sources.slurm


def compute_of(sources: StatusSources) -> FakeCompute:
    assert isinstance(sources.compute, FakeCompute)
    return sources.compute


def add_vm(sources: StatusSources, name: str, status: InstanceStatus) -> None:
    """A VM of the node's, whose console says that it mounts."""
    vm = replace(login_vm(status), name=name)
    compute_of(sources).state.instances[vm.zone, name] = vm
    compute_of(sources).state.serial_output[name] = BOOTS


def consoles_read(sources: StatusSources) -> list[object]:
    calls = compute_of(sources).calls_of("get_serial_port_output")
    return [call.subject for call in calls]


def test_consoles_of_vms_that_run_and_have_not_registered_are_read(sources: StatusSources) -> None:
    waking = [starting(name, base=BaseState.IDLE) for name in (N0, "flexvm-a3u-2")]
    nodes = {node.name: node for node in (up(N1), *waking)}
    slurm_of(sources).nodes.update(nodes)
    add_vm(sources, N0, InstanceStatus.RUNNING)
    add_vm(sources, N1, InstanceStatus.RUNNING)
    add_vm(sources, "flexvm-a3u-2", InstanceStatus.STAGING)
    add_vm(sources, LOGIN, InstanceStatus.RUNNING)
    found = status_of(sources, NOW)
    assert consoles_read(sources) == [N0, LOGIN]
    assert one(found, N0).detail.endswith("mount begins /home")
    assert one(found, LOGIN).detail == "it boots: mount begins /home"


def test_of_many_vms_that_boot_few_consoles_are_read(sources: StatusSources) -> None:
    names = [f"flexvm-a3u-{index}" for index in range(20)]
    slurm_of(sources).nodes.update({name: starting(name) for name in names})
    for name in names:
        add_vm(sources, name, InstanceStatus.RUNNING)
    status_of(sources, NOW)
    assert len(consoles_read(sources)) == MOST_CONSOLES


def test_console_that_cannot_be_read_costs_its_step_alone(sources: StatusSources) -> None:
    slurm_of(sources).nodes[N0] = starting(N0)
    add_vm(sources, N0, InstanceStatus.RUNNING)
    refusal = ComputeError(ErrorKind.PERMISSION, "forbidden", "no")
    compute_of(sources).fail_next(refusal, "get_serial_port_output")
    assert one(status_of(sources, NOW), N0).state is NodeState.PREPARING


def test_each_half_may_be_missing(sources: StatusSources) -> None:
    slurm_of(sources).fail_next(SlurmUnavailable("slurmctld is silent"))
    compute_of(sources).fail_next(ComputeError(ErrorKind.TRANSIENT, "503", "busy"), "read")
    found = status_of(sources, NOW)
    assert [part.system.value for part in found.unavailable] == ["Slurm", "Compute Engine"]
    assert found.state is ClusterState.ERROR


def test_spool_tells_of_deletion_reports_and_conditions(sources: StatusSources) -> None:
    slurm_of(sources).nodes[N0] = up(N0)
    order = FaultReport(N0, "a3u", "z", "70", FaultAction.DELETE, NOW, NOW)
    FaultReports(sources.spool_directory / "reports.sqlite3").order(order)
    condition = Condition("FAILURE", "refused", "insert group g", "QUOTA")
    ConditionsFile(sources.spool_directory / CONDITIONS_FILE).write([condition])
    bell = Bell(sources.spool_directory)
    try:
        found = status_of(sources, NOW)
    finally:
        bell.close()
    assert one(found, N0).state is NodeState.REPAIRING
    assert "insert group g: refused: QUOTA" in found.held_up_by
    deleting.mark(sources.spool_directory)
    assert status_of(sources, NOW).state is ClusterState.STOPPING


def test_history_that_cannot_be_read_is_told(sources: StatusSources) -> None:
    slurm_of(sources).nodes[N0] = up(N0, NodeFlag.DRAIN, reason="mine")
    for name in ("history.sqlite3", "reports.sqlite3"):
        (sources.spool_directory / name).write_text("no database" * 100)
    found = status_of(sources, NOW)
    assert [part.system.value for part in found.unavailable] == ["history"]


def test_whether_the_daemon_listens_is_known_without_waking_it(tmp_path: Path) -> None:
    assert daemon_listens(tmp_path) is False
    bell = Bell(tmp_path)
    try:
        assert daemon_listens(tmp_path) is True
        assert not bell.rung.is_set()
    finally:
        bell.close()
    assert daemon_listens(tmp_path) is False
