"""`slurm-hooks report-faulty` before an emulated project: orders, lists, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from slurm_hooks.cli.main import app
from slurm_hooks.cluster.load import load_cluster
from slurm_hooks.cluster.topology import ProvisioningModel, ReservationAffinityType, Reservations
from slurm_hooks.compute.google_client import GoogleComputeClient
from slurm_hooks.compute.model import InstanceStatus, Operation, RequestReference
from slurm_hooks.history.event import EventKind
from slurm_hooks.history.events import EventHistory
from slurm_hooks.history.report import ReportState
from slurm_hooks.history.reports import FaultReports
from slurm_hooks.reconcile import deleting
from slurm_hooks.reconcile.bell import Bell
from slurm_hooks.reconcile.report_rules import why_not_reportable
from slurm_hooks.reconcile.specifications import group_of, request_of, template_of
from slurm_hooks.sandbox.emulator.control import EmulatorControl
from tests.emulator.compute_world import GLOBAL
from tests.emulator.running import emulator_in_thread
from tests.unit.cli.test_sync import configure
from tests.unit.cluster.files import EXAMPLE
from tests.unit.reconcile.builders import CLUSTER
from tests.waiting import eventually

NODE, OTHER = "flexvm-a3u-0", "flexvm-a3u-1"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def control() -> Iterator[EmulatorControl]:
    """A project in which the first two nodes of the example cluster have their VMs."""
    with emulator_in_thread() as control:
        make_vms(GoogleComputeClient("demo", control.url, "anonymous"))
        yield control


def make_vms(client: GoogleComputeClient) -> None:
    cluster = load_cluster(EXAMPLE, "flexvm")
    pool = cluster.pools["a3u"]

    def finish(operation: Operation) -> None:
        ended = eventually(lambda: client.get_operation(operation), lambda now: now.done)
        assert ended.error is None

    finish(client.insert_template(GLOBAL, template_of(cluster, pool), "template"))
    group = group_of(cluster, pool)
    finish(client.insert_group(group, "group"))
    reference = RequestReference(group.reference, "r")
    request = request_of(cluster, pool, reference, (NODE, OTHER), None, 3600)
    finish(client.insert_resize_request(request, "request"))
    eventually(
        lambda: client.read("flexvm").instances.values(),
        lambda vms: [vm.status for vm in vms] == [InstanceStatus.RUNNING] * 2,
    )


@pytest.fixture
def spool(tmp_path: Path, control: EmulatorControl, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SLURM_CONF", str(tmp_path / "slurm.conf"))
    monkeypatch.setenv("SUDO_USER", "ann")
    return configure(tmp_path, ApiEndpoint=control.url, Project="demo")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["report-faulty", *arguments])


def reports(spool: Path) -> FaultReports:
    return FaultReports(spool / "reports.sqlite3")


def test_order_is_written_down_with_who_and_why_and_the_daemon_is_woken(spool: Path) -> None:
    bell = Bell(spool)
    try:
        result = run(NODE, "--yes", "--description", "half of the\nbandwidth")
        assert bell.rung.wait(10)
    finally:
        bell.close()
    assert (result.exit_code, result.stderr) == (0, "")
    ordered = reports(spool).open()
    assert ordered is not None
    assert (ordered.node, ordered.pool, ordered.ordered_by) == (NODE, "a3u", "ann")
    assert (ordered.state, ordered.description) == (ReportState.ORDERED, "half of the bandwidth")
    (event,) = EventHistory(spool / "history.sqlite3").recent(ordered.ordered_utc)
    assert (event.kind, event.node) == (EventKind.VM_REPORT_AND_REPLACEMENT, NODE)
    assert (event.instance_id, event.message.partition(":")[0]) == (ordered.instance_id, "ORDERED")


def test_second_report_is_refused_naming_the_one_that_is_open(spool: Path) -> None:
    assert run(NODE, "--yes").exit_code == 0
    result = run(OTHER, "--yes")
    assert result.exit_code == 2
    assert f"the report of {NODE} is still open: ORDERED" in result.stderr
    assert len(reports(spool).latest(5)) == 1


def test_outcome_is_listed_for_people_and_for_programs(spool: Path) -> None:
    answer = json.loads(run(NODE, "--yes", "--json").stdout)
    assert (answer["node"], answer["action"], answer["state"]) == (NODE, "DELETE", "ORDERED")
    ordered = reports(spool).latest(1)[0]
    ended = replace(ordered, state=ReportState.REPLACED, detail="its VM is gone")
    reports(spool).keep(ended)
    assert f"{NODE} REPLACED: its VM is gone; node by ann" in run("--list").stdout
    (listed,) = json.loads(run("--list", "--json").stdout)
    assert (listed["number"], listed["state"]) == (answer["number"], "REPLACED")
    assert datetime.fromisoformat(listed["ordered_time"]).tzinfo is not None


def test_waiting_ends_with_the_report(spool: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = reports(spool)

    def end_it(_seconds: float) -> None:
        ordered = store.open()
        if ordered is not None:
            store.keep(replace(ordered, state=outcome, changed_utc=datetime.now(UTC)))

    monkeypatch.setattr("slurm_hooks.cli.report_faulty.time.sleep", end_it)
    for outcome, status in ((ReportState.REPLACED, 0), (ReportState.FAILED, 1)):
        result = run(NODE, "--yes", "--wait")
        assert result.exit_code == status
        assert f"{NODE} {outcome}" in result.stdout.splitlines()[-1]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "no node is named"),
        (("flexvm-a3u-99",), "no node 'flexvm-a3u-99' in the cluster file"),
        (("flexvm-login-0", "--yes"), "flexvm-login-0 has no VM"),
        ((NODE,), "nobody can be asked here"),
        ((NODE, "--behavior", "PERFORMANCE"), "--behavior tells Compute Engine about a host"),
        ((NODE, "--host"), "--host needs --behavior"),
        ((NODE, "--host", "--behavior", "SLOW"), "--host needs --behavior, not 'SLOW'"),
        (
            (NODE, "--host", "--behavior", "performance", "--yes"),
            "bound to a reservation alone, and pool a3u is FLEX_START",
        ),
        (
            ("flexvm-login-0", "--host", "--behavior", "PERFORMANCE"),
            "A3 Ultra, A4 and A4X alone, and pool login is of n2-standard-8",
        ),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_touched(
    spool: Path, arguments: tuple[str, ...], told: str
) -> None:
    result = run(*arguments)
    assert (result.exit_code, told in result.stderr) == (2, True), result.stderr
    assert reports(spool).latest(5) == []


def test_hosts_of_vms_that_are_bound_to_a_reservation_may_be_reported() -> None:
    flex = CLUSTER.pools["a3u"]
    bound = Reservations(ReservationAffinityType.SPECIFIC_RESERVATION, bound=True)
    reserved = replace(flex, provisioning_model=ProvisioningModel.RESERVATION, reservations=bound)
    assert why_not_reportable(reserved) == ""
    for machine_type, may_be in (("a4-highgpu-8g", True), ("a3-highgpu-8g", False)):
        of_type = replace(reserved, machine_type=machine_type)
        assert (why_not_reportable(of_type) == "") is may_be
    unbound = replace(reserved, reservations=replace(bound, bound=False))
    assert "bound to a reservation" in why_not_reportable(unbound)


def test_order_is_refused_where_no_daemon_would_carry_it_out(spool: Path) -> None:
    slurm_conf = spool.parent / "slurm.conf"
    slurm_conf.write_text("SlurmctldHost=head1\nSlurmctldHost=head2\n")
    result = run(NODE, "--yes")
    assert (result.exit_code, "not in charge" in result.stderr) == (2, True)
    slurm_conf.write_text("SlurmctldHost=head1\n")
    deleting.mark(spool)
    result = run(NODE, "--yes")
    assert (result.exit_code, "the cluster is deleted" in result.stderr) == (2, True)
    assert reports(spool).latest(5) == []
