"""The fake reacts as slurmctld was measured to, so that tests built on it mean something."""

from __future__ import annotations

import pytest

from slurm_hooks.slurm.client import NodeUpdate, SlurmClient, SlurmRefused, SlurmUnavailable
from slurm_hooks.slurm.model import BaseState, JobState, NodeFlag, NodeState
from tests.fakes.slurm import SLURM_24_11, SLURM_26_05, Call, FakeSlurm
from tests.fakes.slurm_machine import ProgramCall


@pytest.fixture
def slurm() -> FakeSlurm:
    return FakeSlurm(["c-0", "c-1", "c-2"])


def flags(slurm: FakeSlurm, name: str) -> set[NodeFlag]:
    return set(slurm.nodes[name].state.flags) - {NodeFlag.CLOUD}


def test_fake_is_a_slurm_client(slurm: FakeSlurm) -> None:
    client: SlurmClient = slurm
    assert set(client.read().nodes) == {"c-0", "c-1", "c-2"}
    assert slurm.calls == [Call("read")]


def test_job_starts_when_the_last_of_its_nodes_registers(slurm: FakeSlurm) -> None:
    job_id = slurm.submit(["c-0", "c-1"])
    assert slurm.program_calls == [ProgramCall("ResumeProgram", ("c-0", "c-1"))]
    slurm.register(["c-0"])
    assert slurm.jobs[job_id].state is JobState.CONFIGURING
    slurm.register(["c-1"])
    assert slurm.jobs[job_id].state is JobState.RUNNING
    assert flags(slurm, "c-0") == set()


def test_forced_power_down_of_a_waking_node_requeues_its_job(slurm: FakeSlurm) -> None:
    job_id = slurm.submit(["c-0", "c-1"])
    slurm.update_nodes(["c-0"], NodeUpdate.POWER_DOWN_FORCE, "STOCKOUT: none")
    job = slurm.jobs[job_id]
    assert (job.state, job.nodes, job.restarts) == (JobState.PENDING, (), 1)
    assert flags(slurm, "c-0") == {NodeFlag.POWER_DOWN, NodeFlag.NOT_RESPONDING}
    assert slurm.nodes["c-0"].reason == "STOCKOUT: none"
    slurm.pass_power_thread()
    assert flags(slurm, "c-0") == {NodeFlag.POWERING_DOWN}
    slurm.slept(["c-0"])
    assert flags(slurm, "c-0") == {NodeFlag.POWERED_DOWN}


def test_cancelled_job_leaves_its_node_waking(slurm: FakeSlurm) -> None:
    job_id = slurm.submit(["c-0"])
    slurm.cancel(job_id)
    assert slurm.nodes["c-0"].state.base is BaseState.IDLE
    assert flags(slurm, "c-0") == {NodeFlag.POWERING_UP, NodeFlag.NOT_RESPONDING}


def test_plain_power_down_of_a_waking_node_waits(slurm: FakeSlurm) -> None:
    slurm.submit(["c-0"])
    slurm.update_nodes(["c-0"], NodeUpdate.POWER_DOWN)
    slurm.pass_power_thread()
    assert NodeFlag.POWERING_UP in flags(slurm, "c-0")


def test_forced_power_down_of_a_dead_running_node_hangs_in_completing(slurm: FakeSlurm) -> None:
    slurm.submit(["c-0"])
    slurm.register(["c-0"])
    slurm.update_nodes(["c-0"], NodeUpdate.POWER_DOWN_FORCE)
    slurm.pass_power_thread()
    assert flags(slurm, "c-0") == {NodeFlag.POWER_DOWN, NodeFlag.COMPLETING}


def test_down_then_power_down_frees_a_dead_running_node(slurm: FakeSlurm) -> None:
    job_id = slurm.submit(["c-0"])
    slurm.register(["c-0"])
    slurm.update_nodes(["c-0"], NodeUpdate.DOWN, "VM gone")
    slurm.update_nodes(["c-0"], NodeUpdate.POWER_DOWN)
    slurm.pass_power_thread()
    assert slurm.jobs[job_id].state is JobState.PENDING
    assert slurm.nodes["c-0"].state.base is BaseState.IDLE
    assert flags(slurm, "c-0") == {NodeFlag.POWERING_DOWN}


def test_power_up_wakes_a_sleeping_node_and_no_other(slurm: FakeSlurm) -> None:
    slurm.set_state("c-1", BaseState.IDLE, NodeFlag.CLOUD, NodeFlag.POWERING_DOWN)
    slurm.update_nodes(["c-0", "c-1"], NodeUpdate.POWER_UP)
    slurm.pass_power_thread()
    assert slurm.program_calls == [ProgramCall("ResumeProgram", ("c-0",))]
    assert flags(slurm, "c-1") == {NodeFlag.POWERING_DOWN}


def test_resume_of_a_sleeping_drained_node_springs_the_trap(slurm: FakeSlurm) -> None:
    slurm.update_nodes(["c-0"], NodeUpdate.DRAIN, "why")
    slurm.update_nodes(["c-0"], NodeUpdate.RESUME)
    assert flags(slurm, "c-0") == {NodeFlag.POWERED_DOWN, NodeFlag.NOT_RESPONDING}
    assert slurm.nodes["c-0"].reason == ""


def test_newest_version_has_no_trap() -> None:
    slurm = FakeSlurm(["c-0"], version=SLURM_26_05)
    slurm.update_nodes(["c-0"], NodeUpdate.DRAIN, "why")
    slurm.update_nodes(["c-0"], NodeUpdate.RESUME)
    assert flags(slurm, "c-0") == {NodeFlag.POWERED_DOWN}
    assert slurm.nodes["c-0"].reason == ""


def test_idle_undrains_without_the_trap(slurm: FakeSlurm) -> None:
    slurm.update_nodes(["c-0"], NodeUpdate.DRAIN, "why")
    slurm.update_nodes(["c-0"], NodeUpdate.IDLE)
    assert flags(slurm, "c-0") == {NodeFlag.POWERED_DOWN}


def test_resume_of_a_healthy_node_is_refused(slurm: FakeSlurm) -> None:
    with pytest.raises(SlurmRefused):
        slurm.update_nodes(["c-0"], NodeUpdate.RESUME)


def test_reason_alone_on_a_healthy_node_clears_the_old_one(slurm: FakeSlurm) -> None:
    slurm.set_state("c-0", BaseState.IDLE, NodeFlag.CLOUD, reason="old")
    slurm.update_nodes(["c-0"], None, "new")
    assert slurm.nodes["c-0"].reason == ""


def test_later_versions_keep_the_reason_of_a_healthy_node() -> None:
    slurm = FakeSlurm(["c-0"], version=SLURM_24_11)
    slurm.update_nodes(["c-0"], None, "new")
    assert slurm.nodes["c-0"].reason == "new"


def test_later_versions_show_a_node_as_off_until_it_is_suspended_again() -> None:
    slurm = FakeSlurm(["c-0"], version=SLURM_24_11)
    slurm.update_nodes(["c-0"], NodeUpdate.POWER_DOWN)
    assert flags(slurm, "c-0") == {NodeFlag.POWER_DOWN, NodeFlag.POWERED_DOWN}
    slurm.pass_power_thread()
    assert flags(slurm, "c-0") == {NodeFlag.POWERING_DOWN}


def test_interactive_job_ends_with_its_node(slurm: FakeSlurm) -> None:
    job_id = slurm.submit(["c-0"], batch=False)
    slurm.update_nodes(["c-0"], NodeUpdate.DOWN, "gone")
    assert slurm.jobs[job_id].state is JobState.NODE_FAIL


def test_resume_timeout_takes_the_node_out_and_requeues(slurm: FakeSlurm) -> None:
    job_id = slurm.submit(["c-0"])
    slurm.resume_timeout(["c-0"])
    assert slurm.jobs[job_id].state is JobState.PENDING
    assert slurm.nodes["c-0"].state.base is BaseState.DOWN
    assert slurm.nodes["c-0"].reason == "ResumeTimeout reached"
    assert slurm.program_calls[-1] == ProgramCall("ResumeFailProgram", ("c-0",))


def test_next_call_fails_once(slurm: FakeSlurm) -> None:
    slurm.fail_next(SlurmUnavailable("no answer"))
    with pytest.raises(SlurmUnavailable):
        slurm.read()
    assert len(slurm.read().nodes) == 3


def test_unknown_node_is_refused_before_anything_changes(slurm: FakeSlurm) -> None:
    with pytest.raises(SlurmRefused):
        slurm.update_nodes(["c-0", "nope"], NodeUpdate.DOWN, "x")
    assert slurm.nodes["c-0"].state.base is BaseState.IDLE


def test_snapshot_does_not_change_with_the_cluster(slurm: FakeSlurm) -> None:
    snapshot = slurm.read()
    job_id = slurm.submit(["c-0"])
    assert job_id not in snapshot.jobs
    slurm.set_admin_comment(job_id, "waiting")
    assert slurm.jobs[job_id].admin_comment == "waiting"


@pytest.fixture
def rebooting(slurm: FakeSlurm) -> FakeSlurm:
    slurm.set_state("c-0", BaseState.IDLE, NodeFlag.CLOUD, NodeFlag.DRAIN, reason="why")
    slurm.reboot_nodes(["c-0"], "why")
    assert slurm.issue_reboots() == ["c-0"]
    assert slurm.nodes["c-0"].reason == "why : reboot issued"
    return slurm


def test_drained_node_is_drained_still_after_its_reboot(rebooting: FakeSlurm) -> None:
    rebooting.reboot_nodes(["c-0"], "why")
    rebooting.come_back(["c-0"])
    drained = frozenset({NodeFlag.CLOUD, NodeFlag.DRAIN})
    assert rebooting.nodes["c-0"].state == NodeState(BaseState.IDLE, drained)
    assert rebooting.nodes["c-0"].reason == "why : reboot issued"


def test_node_serves_again_after_its_reboot(slurm: FakeSlurm) -> None:
    slurm.set_state("c-0", BaseState.IDLE, NodeFlag.CLOUD)
    slurm.reboot_nodes(["c-0"], "why")
    slurm.issue_reboots()
    slurm.come_back(["c-0"])
    assert slurm.nodes["c-0"].state == NodeState(BaseState.IDLE, frozenset({NodeFlag.CLOUD}))
    assert slurm.nodes["c-0"].reason == ""


def test_node_that_does_not_come_back_is_down_and_undrained(rebooting: FakeSlurm) -> None:
    rebooting.reboot_timeout(["c-0"])
    assert rebooting.nodes["c-0"].state.base is BaseState.DOWN
    assert not rebooting.nodes["c-0"].state.has(NodeFlag.DRAIN)
    assert rebooting.nodes["c-0"].reason == "why : reboot issued : reboot timed out"


def test_power_down_ends_a_reboot_and_its_reason(rebooting: FakeSlurm) -> None:
    rebooting.update_nodes(["c-0"], NodeUpdate.POWER_DOWN)
    assert rebooting.nodes["c-0"].reason == ""
    rebooting.pass_power_thread()
    assert rebooting.nodes["c-0"].state.has(NodeFlag.POWERING_DOWN)
    assert not rebooting.nodes["c-0"].state.has(NodeFlag.DRAIN, NodeFlag.REBOOT_ISSUED)


def test_reboot_waits_for_the_job_of_its_node(slurm: FakeSlurm) -> None:
    slurm.set_state("c-0", BaseState.IDLE, NodeFlag.CLOUD)
    job_id = slurm.submit(["c-0"])
    slurm.reboot_nodes(["c-0"], "why")
    assert slurm.issue_reboots() == []
    slurm.complete(job_id)
    assert slurm.issue_reboots() == ["c-0"]


def test_node_comment_is_kept_until_it_is_cleared(slurm: FakeSlurm) -> None:
    slurm.set_node_comment("c-0", "rack 7")
    slurm.submit(["c-0"])
    assert slurm.nodes["c-0"].comment == "rack 7"
    slurm.set_node_comment("c-0", "")
    assert slurm.nodes["c-0"].comment == ""
    with pytest.raises(SlurmRefused):
        slurm.set_node_comment("nope", "x")


@pytest.mark.parametrize("update", [NodeUpdate.POWER_UP, NodeUpdate.DRAIN])
def test_comment_costs_a_node_in_service_its_reason(slurm: FakeSlurm, update: NodeUpdate) -> None:
    slurm.update_nodes(["c-0"], update, "x")
    slurm.set_node_comment("c-0", "rack 7")
    assert slurm.nodes["c-0"].reason == ("x" if update is NodeUpdate.DRAIN else "")


def test_idle_on_a_node_with_a_job_is_refused(slurm: FakeSlurm) -> None:
    slurm.submit(["c-0"])
    with pytest.raises(SlurmRefused):
        slurm.update_nodes(["c-0"], NodeUpdate.IDLE)


def test_power_up_of_a_waking_node_wakes_it_once_more(slurm: FakeSlurm) -> None:
    slurm.submit(["c-0"])
    slurm.update_nodes(["c-0"], NodeUpdate.POWER_UP)
    assert {NodeFlag.POWERED_DOWN, NodeFlag.POWERING_UP} <= flags(slurm, "c-0")
    slurm.pass_power_thread()
    assert flags(slurm, "c-0") == {NodeFlag.POWERING_UP, NodeFlag.NOT_RESPONDING}
    assert [call.program for call in slurm.program_calls] == ["ResumeProgram", "ResumeProgram"]
