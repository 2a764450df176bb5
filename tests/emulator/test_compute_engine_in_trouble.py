"""The controller, with the real client, before a Compute Engine that answers late, in part, too
seldom or never to the end: nothing is killed, nothing is lost, and work goes on afterwards."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from slurm_hooks.compute.google_client import GoogleComputeClient
from slurm_hooks.compute.model import GroupReference, InstanceStatus
from slurm_hooks.compute.retry import RetryPolicy
from slurm_hooks.history.consoles import ConsolesDirectory
from slurm_hooks.reconcile.actions import NoticeKind, Plan
from slurm_hooks.reconcile.passes import Passes
from slurm_hooks.reconcile.resume_calls import CallsDirectory
from slurm_hooks.sandbox.emulator.control import EmulatorControl
from slurm_hooks.slurm.hostlist import expand
from slurm_hooks.slurm.model import JobState, NodeFlag
from tests.emulator.compute_world import GLOBAL, MACHINE_TYPE, ZONE
from tests.fakes.slurm import FakeSlurm
from tests.unit.reconcile.builders import N0, N1, example_cluster
from tests.waiting import eventually

pytestmark = pytest.mark.slow

N2 = "flexvm-a3u-2"
SECONDS = 60
MANY = 1000
QUICK = RetryPolicy(
    request_timeout_seconds=0.5,
    attempts=2,
    transient_pause_seconds=0.01,
    rate_pause_seconds=0.01,
)
LATER_THAN_THE_DEADLINE = 0.8


class Controller:
    """Passes over a Slurm in memory and an emulator; a job may run on N0 and N1."""

    def __init__(self, emulator: EmulatorControl, spool: Path) -> None:
        self.slurm = FakeSlurm(tuple(example_cluster().node_names("a3u")), "a3u")
        self.reader = GoogleComputeClient("demo", emulator.url, "anonymous")
        client = GoogleComputeClient("demo", emulator.url, "anonymous", QUICK)
        calls = CallsDirectory(spool, expand)
        consoles = ConsolesDirectory(spool / "consoles")
        self.passes = Passes(
            example_cluster(), self.slurm, client, calls, consoles, lambda: datetime.now(UTC)
        )

    def run_job(self) -> None:
        self.job_id = self.slurm.submit([N0, N1], "a3u")
        self.pass_until(lambda: self.state_of(self.job_id) is JobState.RUNNING)
        self.vm_ids = self.ids_of(N0, N1)

    def state_of(self, job_id: int) -> JobState:
        return self.slurm.jobs[job_id].state

    def ids_of(self, *names: str) -> list[str]:
        found = self.reader.read("flexvm").instances
        return [found[name].instance_id for name in names if name in found]

    def one_pass(self) -> Plan:
        """A pass, and slurmctld and slurmd between it and the next."""
        plan = self.passes.run()
        going = [n for n, v in self.slurm.nodes.items() if v.state.has(NodeFlag.POWERING_DOWN)]
        self.slurm.slept(going)
        self.slurm.pass_power_thread()
        return plan

    def register(self) -> None:
        """slurmd of each VM that runs registers, whatever the controller can read."""
        waking = [n for n, v in self.slurm.nodes.items() if v.state.has(NodeFlag.POWERING_UP)]
        if waking:
            found = self.reader.read("flexvm").instances
            running = [n for n in waking if n in found]
            self.slurm.register([n for n in running if found[n].status is InstanceStatus.RUNNING])

    def pass_until(self, holds: Callable[[], bool]) -> None:
        end = time.monotonic() + SECONDS
        while not holds():
            assert time.monotonic() < end, "it did not come to hold"
            self.one_pass()
            self.register()

    def assert_job_goes_on(self) -> None:
        assert self.state_of(self.job_id) is JobState.RUNNING
        assert self.ids_of(N0, N1) == self.vm_ids

    def assert_new_job_is_served(self) -> None:
        job_id = self.slurm.submit([N2], "a3u")
        self.pass_until(lambda: self.state_of(job_id) is JobState.RUNNING)

    def requests(self) -> list[tuple[str, ...]]:
        return [request.instances for request in self.reader.read("flexvm").requests.values()]


@pytest.fixture
def controller(emulator: EmulatorControl, tmp_path: Path) -> Iterator[Controller]:
    made = Controller(emulator, tmp_path)
    made.run_job()
    yield made
    made.assert_job_goes_on()


@pytest.mark.parametrize(
    "path", ["aggregated/instances$", "aggregated/instanceGroupManagers$", "resizeRequests$"]
)
@pytest.mark.parametrize(
    "fault",
    [
        {"kind": "partial"},
        {"kind": "http", "status": 503},
        {"kind": "http", "status": 403, "reason": "rateLimitExceeded"},
        {"kind": "delay", "delay_seconds": LATER_THAN_THE_DEADLINE},
        {"kind": "garbage", "status": 200},
    ],
    ids=lambda fault: str(fault.get("reason", fault["kind"])),
)
def test_lists_that_cannot_be_read_in_full_cost_nothing(
    emulator: EmulatorControl, controller: Controller, path: str, fault: dict[str, object]
) -> None:
    emulator.add_fault("GET", path, count=MANY, **fault)  # type: ignore[arg-type]
    for _ in range(3):
        plan = controller.one_pass()
        assert [notice.kind for notice in plan.notices] == [NoticeKind.UNAVAILABLE]
        assert not plan.actions
    emulator.clear_faults()
    controller.assert_job_goes_on()
    controller.assert_new_job_is_served()


def test_zone_out_of_reach_makes_the_lists_unreadable(
    emulator: EmulatorControl, controller: Controller
) -> None:
    emulator.set_unreachable_zones("us-central1-b")
    plan = controller.one_pass()
    assert [notice.kind for notice in plan.notices] == [NoticeKind.UNAVAILABLE]
    emulator.set_unreachable_zones()
    controller.assert_new_job_is_served()


@pytest.mark.parametrize("path", ["aggregated/instances$", "aggregated/instanceGroupManagers$"])
def test_page_that_is_missing_without_a_word_costs_nothing(
    emulator: EmulatorControl, controller: Controller, path: str
) -> None:
    """Every other list lacks half of what there is: two sightings in a row never agree."""
    for _ in range(4):
        emulator.add_fault("GET", path, kind="truncated")
        controller.one_pass()
        controller.one_pass()
    controller.assert_job_goes_on()
    controller.assert_new_job_is_served()


def test_lists_that_lag_behind_cost_no_job_and_lead_to_no_second_request(
    emulator: EmulatorControl, controller: Controller
) -> None:
    emulator.set_behaviour(listLagSeconds=1.5)
    controller.assert_new_job_is_served()
    emulator.set_behaviour(listLagSeconds=0)
    assert sorted(controller.requests()) == [(N0, N1), (N2,)]


@pytest.mark.parametrize("code", ["", "INTERNAL_ERROR"])
def test_request_whose_operation_is_stuck_comes_in_the_end(
    emulator: EmulatorControl, controller: Controller, code: str
) -> None:
    emulator.add_fault("POST", "resizeRequests$", kind="stuck")
    job_id = controller.slurm.submit([N2], "a3u")
    for _ in range(20):
        controller.one_pass()
    assert controller.requests() == [(N0, N1)]
    assert controller.state_of(job_id) is JobState.CONFIGURING
    assert emulator.release_stuck_operations(code) == 1
    controller.pass_until(lambda: controller.state_of(job_id) is JobState.RUNNING)
    assert sorted(controller.requests()) == [(N0, N1), (N2,)]


@pytest.mark.parametrize("code", ["", "INTERNAL_ERROR"])
def test_vm_whose_deletion_is_stuck_goes_in_the_end(
    emulator: EmulatorControl, controller: Controller, code: str
) -> None:
    job_id = controller.slurm.submit([N2], "a3u")
    controller.pass_until(lambda: controller.state_of(job_id) is JobState.RUNNING)
    emulator.add_fault("POST", "deleteInstances$", kind="stuck")
    controller.slurm.complete(job_id)
    controller.slurm.suspend([N2])
    controller.passes.run()
    again = controller.slurm.queue("a3u")
    controller.slurm.slept([N2])
    controller.slurm.allocate(again, [N2])
    for _ in range(10):
        controller.one_pass()
    assert controller.ids_of(N2)
    assert emulator.release_stuck_operations(code) == 1
    controller.pass_until(lambda: controller.state_of(again) is JobState.RUNNING)


def test_request_that_is_answered_too_late_is_made_once(
    emulator: EmulatorControl, controller: Controller
) -> None:
    emulator.add_fault(
        "POST", "resizeRequests$", kind="delay", delay_seconds=LATER_THAN_THE_DEADLINE, count=3
    )
    controller.assert_new_job_is_served()
    assert sorted(controller.requests()) == [(N0, N1), (N2,)]


def test_used_up_rate_costs_nothing(emulator: EmulatorControl, controller: Controller) -> None:
    emulator.set_behaviour(callsPerMinute=1)
    controller.one_pass()
    plan = controller.one_pass()
    assert [notice.kind for notice in plan.notices] == [NoticeKind.UNAVAILABLE]
    emulator.set_behaviour(callsPerMinute=0)
    controller.assert_new_job_is_served()


def test_requests_refused_for_their_rate_are_made_when_the_minute_turns(
    emulator: EmulatorControl, controller: Controller
) -> None:
    emulator.set_capacity(ZONE, MACHINE_TYPE, 0)
    emulator.add_fault(
        "POST", "resizeRequests$", status=403, reason="rateLimitExceeded", count=MANY
    )
    job_id = controller.slurm.submit([N2], "a3u")
    for _ in range(3):
        controller.one_pass()
    assert controller.state_of(job_id) is JobState.CONFIGURING
    assert controller.requests() == [(N0, N1)]


def group_and_template(controller: Controller) -> tuple[GroupReference, str]:
    (group,) = controller.reader.read("flexvm").groups.values()
    return group.reference, group.template


def test_group_that_is_wanted_keeps_the_template_that_a_person_deletes(
    controller: Controller,
) -> None:
    _, template = group_and_template(controller)
    operation = controller.reader.delete_template(GLOBAL, template, "by hand")
    done = eventually(lambda: controller.reader.get_operation(operation), lambda now: now.done)
    assert done.error is not None
    controller.assert_new_job_is_served()


def test_group_and_template_that_a_person_deletes_are_made_again(
    emulator: EmulatorControl, tmp_path: Path
) -> None:
    controller = Controller(emulator, tmp_path)
    controller.run_job()
    group, template = group_and_template(controller)
    reader = controller.reader
    reader.delete_group(group, "group by hand")
    eventually(lambda: reader.get_group(group), lambda found: found is None)
    operation = reader.delete_template(GLOBAL, template, "template by hand")
    eventually(lambda: reader.get_operation(operation), lambda now: now.done)
    controller.pass_until(lambda: controller.state_of(controller.job_id) is JobState.PENDING)
    controller.assert_new_job_is_served()
    assert group_and_template(controller) == (group, template)


def test_template_deleted_before_its_group_is_made_is_made_again(
    emulator: EmulatorControl, tmp_path: Path
) -> None:
    emulator.add_fault("POST", "instanceGroupManagers$", kind="stuck")
    controller = Controller(emulator, tmp_path)
    job_id = controller.slurm.submit([N0], "a3u")
    controller.pass_until(lambda: emulator.faults()[0].hits == 1)
    (template,) = controller.reader.read_templates("flexvm")
    operation = controller.reader.delete_template(GLOBAL, template.name, "by hand")
    eventually(lambda: controller.reader.get_operation(operation), lambda now: now.done)
    assert not controller.reader.read_templates("flexvm")
    emulator.release_stuck_operations()
    controller.pass_until(lambda: controller.state_of(job_id) is JobState.RUNNING)
