"""Every state of a node, and every reason why one is not there or takes no jobs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from slurm_hooks.boot.console import BootState, BootStep
from slurm_hooks.cluster.topology import Cluster, ProvisioningModel
from slurm_hooks.compute.model import (
    ErrorDetail,
    InstanceStatus,
    Member,
    MemberAction,
    RequestState,
)
from slurm_hooks.health.model import Verdict
from slurm_hooks.history.event import EventKind
from slurm_hooks.history.report import FaultAction, FaultReport, ReportState
from slurm_hooks.reconcile.repairs import log_of
from slurm_hooks.reconcile.snapshot import System, Unavailable
from slurm_hooks.slurm.model import BaseState, JobState, Node, NodeFlag
from slurm_hooks.slurm.model import NodeState as SlurmState
from slurm_hooks.status.model import NodeState
from tests.unit.reconcile.builders import (
    GROUP,
    N0,
    N1,
    NOW,
    World,
    example_cluster,
    job,
    off,
    request,
    starting,
    stopping,
    vm,
)
from tests.unit.reconcile.condemned import drained, happened, reason
from tests.unit.status.standing import STATIC, found, off_with, one, status, up, with_member

HELD = (
    "slurm-hooks: pool held until 2026-05-01T12:05:00Z after 3 failures,"
    " the last at 2026-05-01T12:00:00Z: QUOTA_EXCEEDED"
)
RUNS = job(7, N0, state=JobState.RUNNING)


def booting(status_word: InstanceStatus = InstanceStatus.RUNNING, minutes: int = 10) -> World:
    """A node that starts for job 7 and has a VM."""
    made = NOW - timedelta(minutes=minutes)
    its_vm = replace(vm(N0, status_word), creation_time_utc=made)
    return World([starting(N0)], [job(7, N0)], vms=[its_vm])


def asking(state: RequestState, **errors: str) -> World:
    """A node that starts for job 7, with its request and no VM."""
    waits = request("r", N0, job_id=7, state=state, **errors)  # type: ignore[arg-type]
    return World([starting(N0)], [job(7, N0)], [waits])


def registered(node: Node, *jobs: object, cluster: Cluster = STATIC) -> World:
    """A node with its VM."""
    return World([node], jobs, vms=[vm(N0)], cluster=cluster)  # type: ignore[arg-type]


def with_an_unknown_word(node: Node) -> Node:
    """The node in a state with a word that we do not know."""
    state = SlurmState(node.state.base, node.state.flags, frozenset({"NEW"}))
    return replace(node, state=state)


def on_the_way() -> Iterator[tuple[World, NodeState, str]]:
    yield (
        asking(RequestState.ACCEPTED, last_attempt="ZONE_RESOURCE_POOL_EXHAUSTED"),
        NodeState.PREPARING,
        "waits for capacity since 2026-05-01T11:55:00Z (ZONE_RESOURCE_POOL_EXHAUSTED: text)",
    )
    yield (
        asking(RequestState.FAILED, error="QUOTA_EXCEEDED"),
        NodeState.PREPARING,
        "its start failed (QUOTA_EXCEEDED: text)",
    )
    yield (
        asking(RequestState.SUCCEEDED),
        NodeState.PREPARING,
        "its VM came and went, it is asked for again",
    )
    yield World([starting(N0)], [job(7, N0)]), NodeState.PREPARING, "its VM is asked for"
    yield (
        World([starting(N0, base=BaseState.IDLE)], requests=[request("r", N0, job_id=7)]),
        NodeState.PREPARING,
        "is powered down again: nobody waits for it",
    )
    yield booting(), NodeState.PREPARING, "its VM boots since 2026-05-01T11:50:00Z"
    yield (
        booting(InstanceStatus.STAGING),
        NodeState.PREPARING,
        "its VM is STAGING since 2026-05-01T11:50:00Z",
    )
    yield booting(InstanceStatus.STOPPING), NodeState.PREPARING, "waits until its old VM is gone"
    yield (
        World([starting(N0)], vms=[vm(N0)]),
        NodeState.PREPARING,
        "its VM is RUNNING since 2026-05-01T11:50:00Z",
    )
    yield (
        booting(minutes=31),
        NodeState.PREPARING,
        "slurmd did not register in time, its VM is replaced",
    )


@pytest.mark.parametrize(("world", "state", "detail"), tuple(on_the_way()))
def test_node_on_its_way_says_what_it_waits_for(
    world: World, state: NodeState, detail: str
) -> None:
    assert found(world, N0) == (state, detail)


def test_waiting_node_names_its_request_and_its_job() -> None:
    world = asking(RequestState.ACCEPTED, last_attempt="ZONE_RESOURCE_POOL_EXHAUSTED")
    stands = one(status(world), N0)
    assert stands.request is not None
    assert (stands.request.name, stands.request.state) == ("r", "ACCEPTED")
    assert (stands.request.code, stands.jobs) == ("ZONE_RESOURCE_POOL_EXHAUSTED", (7,))
    assert stands.slurm_state == "ALLOCATED+CLOUD+NOT_RESPONDING+POWERING_UP"


def test_node_of_a_spot_pool_says_why_its_vm_does_not_come() -> None:
    world = World(
        [starting(N0)], [job(7, N0)], cluster=example_cluster(model=ProvisioningModel.SPOT)
    )
    error = ErrorDetail("ZONE_RESOURCE_POOL_EXHAUSTED")
    member = Member(GROUP.reference, N0, MemberAction.CREATING, error)
    state, detail = found(world, N0, compute=with_member(world, member))
    assert state is NodeState.PREPARING
    assert detail.endswith("(ZONE_RESOURCE_POOL_EXHAUSTED)")


def test_booting_node_tells_the_step_that_its_console_names() -> None:
    steps = {N0: BootStep("mount", BootState.WAITING, "/home")}
    state, detail = found(booting(), N0, boot_steps=steps)
    assert (state, detail) == (
        NodeState.PREPARING,
        "its VM boots since 2026-05-01T11:50:00Z: mount waiting /home",
    )


def test_failed_boot_is_an_error() -> None:
    steps = {N0: BootStep("mount", BootState.FAILED, "/home: timed out after 60 s")}
    assert found(booting(), N0, boot_steps=steps) == (
        NodeState.ERROR,
        "its boot failed: mount failed /home: timed out after 60 s",
    )


def test_static_node_that_was_replaced_is_under_repair_until_it_is_back() -> None:
    world = replace(booting(), cluster=STATIC)
    just, long_ago = (happened(EventKind.VM_DELETION, minutes_ago=m) for m in (5, 500))
    assert found(world, N0, repairs=log_of([just]))[0] is NodeState.REPAIRING
    assert found(world, N0, repairs=log_of([long_ago]))[0] is NodeState.PREPARING


def there() -> Iterator[tuple[World, NodeState, str]]:
    yield registered(up(N0)), NodeState.RUNNING, ""
    yield registered(up(N0, base=BaseState.ALLOCATED), RUNS), NodeState.RUNNING, ""
    yield (
        registered(up(N0, NodeFlag.DRAIN, reason="disk swap", user="ann")),
        NodeState.RUNNING,
        "takes no jobs: drained by ann: disk swap",
    )
    yield (
        registered(up(N0, base=BaseState.DOWN, reason="disk swap", user="ann")),
        NodeState.RUNNING,
        "takes no jobs: down by ann: disk swap",
    )
    yield (
        World([up(N0, NodeFlag.DRAIN, reason="disk swap", user="ann")]),
        NodeState.ERROR,
        "its VM is gone; takes no jobs: drained by ann: disk swap",
    )
    yield (
        registered(up(N0, NodeFlag.DRAIN, reason="Kill task failed", user="slurm")),
        NodeState.ERROR,
        "takes no jobs: drained by slurm: Kill task failed; a person must look",
    )
    yield (
        registered(drained(reason(Verdict.REPLACE))),
        NodeState.REPAIRING,
        "it is repaired: REPLACE gpu_lost: gpu 3 fell off the bus",
    )
    yield (
        registered(drained(reason(Verdict.REPLACE), base=BaseState.ALLOCATED), RUNS),
        NodeState.REPAIRING,
        "it is repaired when job 7 ends: REPLACE gpu_lost: gpu 3 fell off the bus",
    )
    yield (
        registered(drained(reason(Verdict.MANUAL))),
        NodeState.ERROR,
        "drained: MANUAL gpu_lost: gpu 3 fell off the bus; only a person can repair it",
    )
    yield (
        registered(drained(f"{reason(Verdict.REBOOT)} : reboot issued", NodeFlag.REBOOT_REQUESTED)),
        NodeState.REPAIRING,
        "it reboots: REBOOT gpu_lost: gpu 3 fell off the bus",
    )
    yield (
        registered(up(N0, NodeFlag.REBOOT_ISSUED, base=BaseState.DOWN, reason="new kernel")),
        NodeState.REPAIRING,
        "it reboots: new kernel",
    )
    yield (
        registered(up(N0, NodeFlag.NOT_RESPONDING, base=BaseState.DOWN, reason="Not responding")),
        NodeState.REPAIRING,
        "slurmd does not answer, it is replaced: Not responding",
    )
    yield (
        World([up(N0)], cluster=STATIC),
        NodeState.REPAIRING,
        "its VM is gone, it is powered down in a moment",
    )
    yield (
        World([up(N0)], vms=[vm(N0, InstanceStatus.STOPPED)], cluster=STATIC),
        NodeState.REPAIRING,
        "its VM is STOPPED, it is powered down in a moment",
    )
    yield World([up(N0)], vms=[vm(N0, InstanceStatus.STOPPING)]), NodeState.REPAIRING, "its VM goes"
    yield (
        registered(
            replace(
                up(N0),
                state=SlurmState(BaseState.IDLE, frozenset({NodeFlag.CLOUD}), frozenset({"NEW"})),
            )
        ),
        NodeState.ERROR,
        "a state that is left alone",
    )


@pytest.mark.parametrize(("world", "state", "detail"), tuple(there()))
def test_node_that_is_up_says_why_it_takes_no_jobs(
    world: World, state: NodeState, detail: str
) -> None:
    found_state, found_detail = found(world, N0)
    shown = found_detail.replace(" since 2026-05-01T11:59:00Z", "")
    assert (found_state, shown) == (state, detail)


def test_condemned_node_of_a_stopped_pool_stays_for_a_person() -> None:
    stop = happened(EventKind.REPAIRS_STOPPED, name="")
    state, detail = found(registered(drained(reason())), N0, repairs=log_of([stop]))
    assert state is NodeState.ERROR
    assert detail.endswith("the repairs of pool a3u are stopped")


def test_node_of_another_generation_moves_when_its_job_ends() -> None:
    pool = replace(STATIC.pools["a3u"], boot_disk_size_gb=200)
    changed = replace(STATIC, pools={**STATIC.pools, "a3u": pool})
    busy = registered(up(N0, base=BaseState.ALLOCATED), RUNS, cluster=changed)
    assert found(busy, N0) == (
        NodeState.UPDATING,
        "moves to the new generation of its pool when job 7 ends",
    )
    free = registered(up(N0), cluster=changed)
    assert found(free, N0)[1] == "moves to the new generation of its pool in its turn"


def test_node_that_the_file_does_not_name_any_more_leaves() -> None:
    gone = "flexvm-a3u-4"
    busy = World(
        [up(gone, base=BaseState.ALLOCATED)], [job(7, gone, state=JobState.RUNNING)], vms=[vm(gone)]
    )
    assert found(busy, gone) == (NodeState.UPDATING, "leaves the cluster when job 7 ends")
    assert found(World([up(gone)], vms=[vm(gone)]), gone)[1] == (
        "leaves the cluster and is powered down"
    )
    assert found(World([off(gone)]), gone)[1] == "has left the cluster; slurm.conf still names it"
    assert found(World(vms=[vm(gone)]), gone)[1] == "its VM is of no use and is deleted"


def test_node_that_slurm_does_not_name_yet_joins() -> None:
    assert found(World([up(N0)], vms=[vm(N0)]), N1) == (
        NodeState.UPDATING,
        "slurm.conf does not name it yet",
    )


def away() -> Iterator[tuple[World, NodeState, str]]:
    yield World([off(N0)]), NodeState.OFF, ""
    yield World([off_with(N0, HELD, NodeFlag.DRAIN)]), NodeState.OFF, HELD_SAYS
    yield World([off_with(N0, HELD, NodeFlag.DRAIN)], cluster=STATIC), NodeState.ERROR, HELD_SAYS
    yield (
        World([off_with(N0, "slurm-hooks: request failed QUOTA_EXCEEDED: text")]),
        NodeState.OFF,
        "request failed QUOTA_EXCEEDED: text",
    )
    yield (
        World([off_with(N0, "disk swap", NodeFlag.DRAIN)]),
        NodeState.OFF,
        "takes no jobs: drained since 2026-05-01T12:00:00Z: disk swap",
    )
    yield (
        World([stopping(N0)], vms=[vm(N0)]),
        NodeState.OFF,
        "it is powered down, its VM is deleted",
    )
    yield World([off(N0)], vms=[vm(N0)]), NodeState.OFF, "its VM is of no use and is deleted"
    yield World([off(N0)], cluster=STATIC), NodeState.PREPARING, "it is powered up next"
    yield (
        World([off_with(N0, "slurm-hooks: new generation")], cluster=STATIC),
        NodeState.UPDATING,
        "it is powered up next; before that new generation",
    )
    yield (
        World(
            [
                replace(
                    off_with(N0, "ResumeTimeout reached"),
                    state=SlurmState(
                        BaseState.DOWN, frozenset({NodeFlag.CLOUD, NodeFlag.POWERED_DOWN})
                    ),
                )
            ]
        ),
        NodeState.ERROR,
        "it did not come within ResumeTimeout and is offered again",
    )


HELD_SAYS = (
    "its pool is held until 2026-05-01T12:05:00Z: 3 failures,"
    " the last at 2026-05-01T12:00:00Z: QUOTA_EXCEEDED"
)


@pytest.mark.parametrize(("world", "state", "detail"), tuple(away()))
def test_node_that_is_off_says_when_it_comes(world: World, state: NodeState, detail: str) -> None:
    assert found(world, N0) == (state, detail)


def test_node_that_a_person_reported_is_under_repair_until_the_report_is_over() -> None:
    report = FaultReport(
        N0,
        "a3u",
        "us-central1-a",
        "70",
        FaultAction.DELETE,
        NOW,
        NOW,
        ordered_by="ann",
        state=ReportState.REPLACING,
        detail="its VM is deleted",
    )
    assert found(registered(up(N0)), N0, report=report) == (
        NodeState.REPAIRING,
        "reported faulty by ann, REPLACING: its VM is deleted",
    )
    both = World([up(N0), up(N1)], vms=[vm(N0), vm(N1)], cluster=STATIC)
    assert found(both, N1, report=report) == (NodeState.RUNNING, "")


def test_end_of_life_is_that_of_the_vm() -> None:
    end = NOW + timedelta(days=2)
    world = World([up(N0)], vms=[replace(vm(N0), termination_time_utc=end)])
    stands = one(status(world), N0)
    assert stands.end_of_life_utc == end
    assert stands.vm is not None
    assert (stands.vm.status, stands.vm.zone) == ("RUNNING", "us-central1-a")


def test_without_slurm_the_vms_are_told() -> None:
    silent = Unavailable(System.SLURM, "slurmctld is silent")
    assert found(registered(up(N0)), N0, slurm=silent) == (
        NodeState.PREPARING,
        "its VM is RUNNING; Slurm could not be read",
    )
    assert found(World(), N0, slurm=silent)[0] is NodeState.OFF


def test_without_compute_engine_slurm_alone_tells() -> None:
    silent = Unavailable(System.COMPUTE, "503")
    assert found(registered(up(N0)), N0, compute=silent) == (NodeState.RUNNING, "")
    assert found(booting(), N0, compute=silent)[1] == ("it is on its way; its VM is not known")
    assert found(World([off(N0)], cluster=STATIC), N0, compute=silent)[0] is NodeState.PREPARING
