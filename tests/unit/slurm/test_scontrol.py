"""The client asks each version in the way it understands, and never believes half an answer."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from slurm_hooks.slurm.client import (
    NodeUpdate,
    ReservationSpecification,
    SlurmClient,
    SlurmRefused,
    SlurmUnavailable,
)
from slurm_hooks.slurm.controllers import Controller
from slurm_hooks.slurm.hostlist import expand
from slurm_hooks.slurm.model import JobState
from slurm_hooks.slurm.process import CommandResult
from slurm_hooks.slurm.scontrol import MAX_ARGUMENT_BYTES, ScontrolClient
from tests.fakes.commands import CannedRunner
from tests.unit.slurm.recorded import recorded

CONF = Path("/etc/demo/slurm.conf")
TOKYO = timezone(timedelta(hours=9))
NO_CONTACT = "slurm_load_node error: Unable to contact slurm controller (connect failure)\n"


def ok(stdout: str = "", stderr: str = "") -> CommandResult:
    return CommandResult(0, stdout, stderr)


def failed(stderr: str, stdout: str = "") -> CommandResult:
    return CommandResult(1, stdout, stderr)


def slurm_22_05() -> CannedRunner:
    return CannedRunner(
        {
            "scontrol --version": ok(recorded("22.05", "version.txt")),
            "scontrol --all -o show nodes": ok(recorded("22.05", "nodes.txt")),
            "scontrol --all -o show jobs": ok(recorded("22.05", "jobs.txt")),
            "scontrol --all -o show partitions": ok(recorded("22.05", "partitions.txt")),
            "scontrol --all -o show reservations": ok(recorded("22.05", "reservations.txt")),
            "squeue --json": ok(recorded("22.05", "jobs.json")),
            "scontrol update": ok(),
            "scontrol ping": ok(recorded("22.05", "ping.txt")),
        }
    )


def slurm_with_json(version: str) -> CannedRunner:
    answers: dict[str, CommandResult | str] = {
        f"scontrol --all show {what} --json=v0.0.42": ok(recorded(version, f"{what}.json"))
        for what in ("nodes", "jobs", "partitions", "reservations")
    }
    answers["scontrol --version"] = ok(recorded(version, "version.txt"))
    return CannedRunner(answers)


def slurm_24_11() -> CannedRunner:
    return slurm_with_json("24.11")


def client(runner: CannedRunner) -> ScontrolClient:
    return ScontrolClient(CONF, runner=runner)


@pytest.mark.parametrize("runner", [slurm_22_05(), slurm_24_11(), slurm_with_json("26.05")])
def test_read_takes_four_commands_and_one_for_the_version(runner: CannedRunner) -> None:
    slurm: SlurmClient = client(runner)
    snapshot = slurm.read()
    assert len(snapshot.nodes) == 4
    assert snapshot.jobs[1].state is JobState.CONFIGURING
    assert set(snapshot.partitions) == {"cpu", "empty"}
    assert set(snapshot.reservations) == {"slurm-hooks-end"}
    assert snapshot.unreadable == ()
    assert len(runner.ran) == 5
    slurm.read()
    assert len(runner.ran) == 9


def test_nodes_are_read_before_jobs() -> None:
    runner = slurm_24_11()
    client(runner).read()
    asked = [ran.arguments[3] for ran in runner.ran if "show" in ran.arguments]
    assert asked.index("nodes") < asked.index("jobs")


def test_commands_see_only_the_environment_that_is_meant(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_TIME_FORMAT", "relative")
    runner = slurm_22_05()
    ScontrolClient(CONF, runner=runner, read_timeout_seconds=7).read()
    assert {ran.timeout_seconds for ran in runner.ran} == {7}
    environment = runner.ran[0].environment
    assert environment.keys() == {"SLURM_CONF", "PATH", "LC_ALL", "TZ"}
    assert (environment["SLURM_CONF"], environment["TZ"]) == (str(CONF), "UTC")


def test_commands_come_from_the_given_directory() -> None:
    runner = CannedRunner({"/opt/slurm/bin/scontrol --version": ok("slurm 24.11.5")})
    slurm = ScontrolClient(CONF, bin_directory="/opt/slurm/bin", runner=runner)
    assert str(slurm.version()) == "24.11.5"
    assert runner.ran[0].environment["PATH"].startswith("/opt/slurm/bin:")


@pytest.mark.parametrize(
    "answer",
    [
        failed(NO_CONTACT),
        ok("", NO_CONTACT),
        ok("", ""),
        ok("garbage\n", ""),
        ok(recorded("22.05", "nodes.txt"), "scontrol: error: something went wrong\n"),
        "no answer within 60 s",
    ],
)
def test_answer_without_believable_nodes_is_unavailable(answer: CommandResult | str) -> None:
    runner = slurm_22_05()
    runner.answers["scontrol --all -o show nodes"] = answer
    with pytest.raises(SlurmUnavailable, match="nodes"):
        client(runner).read()


def test_json_with_errors_and_exit_status_0_is_unavailable() -> None:
    runner = slurm_22_05()
    runner.answers["squeue --json"] = ok(recorded("22.05", "jobs-controller-down.json"))
    with pytest.raises(SlurmUnavailable, match="squeue --json: errors"):
        client(runner).read()


def test_slurm_without_its_json_plugin_is_asked_for_text() -> None:
    runner = slurm_22_05()
    runner.answers["squeue --json"] = failed("squeue: fatal: Unable to find serializer/json")
    slurm = client(runner)
    assert slurm.read().jobs[1].state is JobState.CONFIGURING
    runner.ran.clear()
    slurm.read()
    assert len(runner.ran) == 4


def test_version_is_asked_again_after_a_failure() -> None:
    runner = slurm_24_11()
    slurm = client(runner)
    slurm.read()
    command = "scontrol --all show nodes --json=v0.0.42"
    good = runner.answers[command]
    runner.answers[command] = failed(NO_CONTACT)
    with pytest.raises(SlurmUnavailable):
        slurm.read()
    runner.answers[command] = good
    runner.ran.clear()
    slurm.read()
    assert [ran.arguments[1] for ran in runner.ran].count("--version") == 1


def test_nodes_that_slurm_does_not_have_are_left_out_of_a_second_look() -> None:
    runner = slurm_22_05()
    assert list(client(runner).read_nodes(["demo-cpu-3", "demo-cpu-9"])) == ["demo-cpu-3"]
    runner.ran.clear()
    assert client(runner).read_nodes([]) == {}
    assert runner.ran == []


def test_update_names_all_nodes_in_one_command() -> None:
    runner = slurm_22_05()
    names = [f"c-{index}" for index in range(5_000)]
    client(runner).update_nodes(names, NodeUpdate.POWER_DOWN_FORCE, "STOCKOUT: no capacity")
    assert [ran.arguments for ran in runner.ran] == [
        (
            "scontrol",
            "update",
            "nodename=c-[0-4999]",
            "state=POWER_DOWN_FORCE",
            'reason="STOCKOUT: no capacity"',
        )
    ]
    assert runner.ran[0].timeout_seconds == 30


def test_update_of_names_that_do_not_fold_stays_below_the_argument_limit() -> None:
    runner = slurm_22_05()
    names = [f"{index}-node-with-a-long-name-that-ends-in-no-number-x" for index in range(6_000)]
    client(runner).update_nodes(names, NodeUpdate.DOWN, "x")
    arguments = [ran.arguments[2] for ran in runner.ran]
    assert max(map(len, arguments)) <= MAX_ARGUMENT_BYTES
    assert [name for text in arguments for name in expand(text.split("=")[1])] == names
    assert len(arguments) < 6


def test_update_of_no_nodes_runs_nothing() -> None:
    runner = slurm_22_05()
    client(runner).update_nodes([], NodeUpdate.DOWN, "x")
    assert runner.ran == []


@pytest.mark.parametrize("name", ["", "c-[0-3]", "a b", "-h", "c,d", "ALL=1", "c\n", "x" * 300])
def test_update_of_what_is_no_node_name_is_refused(name: str) -> None:
    runner = slurm_22_05()
    with pytest.raises(SlurmRefused, match="not a node name"):
        client(runner).update_nodes(["c-0", name], NodeUpdate.DOWN, "x")
    assert runner.ran == []


def test_update_of_nothing_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match="neither"):
        client(slurm_22_05()).update_nodes(["c-0"], None)


def test_reason_is_one_bounded_line() -> None:
    runner = slurm_22_05()
    reason = "a\nState=IDLE\x00b\u2028c\ud800" + "x" * 5_000
    client(runner).update_nodes(["c-0"], None, reason)
    argument = runner.ran[0].arguments[3]
    assert argument.startswith('reason="a State=IDLE b c xxx')
    assert len(argument) < 1_100


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (failed("slurm_update error: Invalid node name specified\n"), SlurmRefused),
        (failed("slurm_update error: Invalid node state specified\n"), SlurmRefused),
        (failed("slurm_update error: Access/permission denied\n"), SlurmRefused),
        (failed(NO_CONTACT), SlurmUnavailable),
        (failed("slurm_update error: Socket timed out on send/recv operation"), SlurmUnavailable),
        (failed("slurm_update error: Slurm backup controller in standby mode"), SlurmUnavailable),
        (failed("slurm_update error: Invalid authentication credential"), SlurmUnavailable),
        (failed("scontrol: fatal: invalid slurm.conf"), SlurmUnavailable),
        (failed("Segmentation fault"), SlurmUnavailable),
        (CommandResult(-11, "", ""), SlurmUnavailable),
        (ok("", "slurm_update error: Invalid node name specified"), SlurmRefused),
        ("no answer within 30 s", SlurmUnavailable),
    ],
)
def test_error_says_whether_to_repeat_the_update(
    answer: CommandResult | str, error: type[Exception]
) -> None:
    runner = slurm_22_05()
    runner.answers["scontrol update"] = answer
    with pytest.raises(error, match="scontrol update nodename=c-0 state=DOWN"):
        client(runner).update_nodes(["c-0"], NodeUpdate.DOWN)


def test_addresses_come_one_for_each_node_with_the_reason_that_stays() -> None:
    runner = slurm_22_05()
    client(runner).set_node_addresses(["c-0", "c-1"], "233.252.0.1", 'of "mine"')
    assert runner.ran[0].arguments == (
        "scontrol",
        "update",
        "nodename=c-[0-1]",
        "nodeaddr=233.252.0.1,233.252.0.1",
        'reason="of "mine""',
    )
    client(runner).set_node_addresses(["c-0"], "233.252.0.1", "")
    assert len(runner.ran[1].arguments) == 4


def test_addresses_of_many_nodes_come_in_commands_that_the_kernel_takes() -> None:
    runner = slurm_22_05()
    names = [f"c-{number}" for number in range(25_000)]
    client(runner).set_node_addresses(names, "233.252.0.1", "")
    assert len(runner.ran) == 3
    nodes = [expand(command.arguments[2].removeprefix("nodename=")) for command in runner.ran]
    assert [name for group in nodes for name in group] == names
    for command, group in zip(runner.ran, nodes, strict=True):
        assert command.arguments[3].count("233.252.0.1") == len(group)
        assert all(len(argument) <= MAX_ARGUMENT_BYTES for argument in command.arguments)


@pytest.mark.parametrize("address", ["", "a b", "x,y", "1.2.3.4 state=DOWN"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(SlurmRefused, match="not an address"):
        client(slurm_22_05()).set_node_addresses(["c-0"], address, "")


def test_reason_that_would_not_stay_as_it_is_is_refused() -> None:
    with pytest.raises(SlurmRefused, match="reason"):
        client(slurm_22_05()).set_node_addresses(["c-0"], "233.252.0.1", "two\nlines")


def test_admin_comment_is_one_argument_of_one_line() -> None:
    runner = slurm_22_05()
    client(runner).set_admin_comment(7, 'waiting for "x" = y\nsince Z')
    assert runner.ran[0].arguments == (
        "scontrol",
        "update",
        "jobid=7",
        'admincomment=waiting for "x" = y since Z',
    )


def test_node_comment_is_one_argument_of_one_line_for_a_checked_name() -> None:
    runner = slurm_22_05()
    client(runner).set_node_comment("c-0", "pool failed\n2 times state=DOWN")
    words = ("scontrol", "update", "nodename=c-0", "comment=pool failed 2 times state=DOWN")
    assert runner.ran[0].arguments == words
    with pytest.raises(SlurmRefused):
        client(runner).set_node_comment("c-0 state=DOWN", "x")


def test_reboot_is_one_command_for_checked_names() -> None:
    runner = slurm_22_05()
    runner.answers["scontrol reboot"] = ok()
    client(runner).reboot_nodes(["c-0", "c-1"], "slurm-hooks: REBOOT\ngpu_lost")
    assert runner.ran[0].arguments == (
        "scontrol",
        "reboot",
        "reason=slurm-hooks: REBOOT gpu_lost",
        "c-[0-1]",
    )
    for odd in ("ALL nodes", "--help", ""):
        with pytest.raises(SlurmRefused):
            client(runner).reboot_nodes([odd], "x")


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (
            "scontrol: error: RebootProgram isn't defined\nscontrol_reboot_nodes error: x",
            SlurmRefused,
        ),
        ("scontrol_reboot_nodes error: Unable to contact slurm controller", SlurmUnavailable),
    ],
)
def test_reboot_without_a_program_is_refused_and_no_silence(
    answer: str, error: type[Exception]
) -> None:
    runner = slurm_22_05()
    runner.answers["scontrol reboot"] = failed(answer)
    with pytest.raises(error, match="scontrol reboot"):
        client(runner).reboot_nodes(["c-0"], "x")


@pytest.mark.parametrize("part", ["_3", "+0", ""])
def test_one_task_or_component_is_addressed_alone(part: str) -> None:
    runner = slurm_22_05()
    runner.answers["scancel"] = ok()
    client(runner).set_admin_comment(7, "x", part)
    client(runner).signal_job(7, "USR1", part)
    assert f"jobid=7{part}" in runner.ran[0].arguments
    assert f"7{part}" in runner.ran[1].arguments


def test_part_that_is_none_is_refused() -> None:
    with pytest.raises(SlurmRefused, match="not a part"):
        client(slurm_22_05()).set_admin_comment(7, "x", " state=x")


def test_admin_comment_of_an_ended_job_is_refused() -> None:
    runner = slurm_22_05()
    runner.answers["scontrol update"] = failed("Invalid job id specified for job 7\n")
    with pytest.raises(SlurmRefused):
        client(runner).set_admin_comment(7, "x")


def test_responding_controller_may_be_the_backup() -> None:
    runner = slurm_22_05()
    assert client(runner).responding_controller() == Controller("primary", "controller")
    runner.answers["scontrol ping"] = failed(
        "", "Slurmctld(primary) at a is DOWN\nSlurmctld(backup) at b is UP\n"
    )
    assert client(runner).responding_controller() == Controller("backup", "b")
    runner.answers["scontrol ping"] = failed("", "Slurmctld(primary) at a is DOWN\n")
    assert client(runner).responding_controller() is None


LATER = datetime(2099, 5, 1, 12, 0, 30, tzinfo=UTC)


def test_reservation_begins_at_a_time_in_utc_and_lasts_whole_minutes() -> None:
    runner = CannedRunner({"scontrol create": ok("Reservation created: eol-1\n")})
    client(runner).create_reservation(
        ReservationSpecification("eol-1", ("n-0", "n-1"), LATER.astimezone(TOKYO), 90)
    )
    (ran,) = runner.ran
    assert ran.arguments == (
        "scontrol",
        "create",
        "reservation",
        "reservationname=eol-1",
        "starttime=2099-05-01T12:00:30",
        "duration=2",
        "nodes=n-[0-1]",
        "flags=maint,ignore_jobs",
        "users=root",
    )
    assert ran.environment["TZ"] == "UTC"


def test_reservation_that_exists_or_is_gone_is_no_error() -> None:
    exists = failed("Error creating the reservation: Duplicate reservation name\n")
    gone = failed("slurm_delete_reservation error: Requested reservation is invalid\n")
    runner = CannedRunner({"scontrol create": exists, "scontrol delete": gone})
    client(runner).create_reservation(ReservationSpecification("eol-1", ("n-0",), LATER, 60))
    client(runner).delete_reservation("eol-1")
    assert len(runner.ran) == 2


@pytest.mark.parametrize("name", ["", "a b", "a,b", "-x", "x=y", "a\n"])
def test_odd_reservation_and_signal_names_are_refused(name: str) -> None:
    slurm = client(CannedRunner({}))
    with pytest.raises(SlurmRefused, match="not a reservation name"):
        slurm.create_reservation(ReservationSpecification(name, ("n-0",), LATER, 60))
    with pytest.raises(SlurmRefused, match="not a reservation name"):
        slurm.delete_reservation(name)
    with pytest.raises(SlurmRefused, match="not a signal"):
        slurm.signal_job(1, name)
