"""A probe that is late: one that stands still in the driver hangs, one that is slow does not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from slurm_hooks.health import cli, hung_probe, run
from slurm_hooks.health.driver.call_signs import CallSigns
from slurm_hooks.health.evidence import Evidence
from slurm_hooks.health.late_probe import Lateness, LateProbe, Look, lateness_of
from slurm_hooks.health.model import Context, Finding, JobOnNode, Verdict
from slurm_hooks.health.policy import Deadlines, HealthPolicy
from slurm_hooks.health.report import PROBE_HANG, Report
from slurm_hooks.health.run import run_health
from slurm_hooks.sandbox.gpu.state import ATTACH, Hang
from tests.unit.health.node_roots import NodeRoot
from tests.waiting import wait_until

_SHORT = HealthPolicy(deadlines=Deadlines(prolog=1.0, epilog=20.0), disks=())
_JOB = JobOnNode(7, gpus=tuple(range(8)))
_SECONDS = 3.0

_FIRST = Look(
    10.0, 40, "nvmlDeviceGetFieldValues", "S", switches=7, ran=0.1, waited=0.0, call_began=9.0
)
_STILL = _FIRST._replace(time=14.0)


def test_call_in_which_nothing_moves_hangs() -> None:
    assert lateness_of([_FIRST, _STILL], _SECONDS) == Lateness(
        True, "nvmlDeviceGetFieldValues has stood still for 4 s"
    )


@pytest.mark.parametrize("state", ["R", "D", "S"])
def test_call_that_does_not_come_back_hangs_whatever_it_does_meanwhile(state: str) -> None:
    """A driver that waits for a dead processor of the GPU spins, or polls it."""
    spins = _STILL._replace(state=state, switches=900, ran=3.9)

    assert lateness_of([_FIRST._replace(state=state), spins], _SECONDS).is_hang


@pytest.mark.parametrize(
    ("last", "why"),
    [
        (_STILL._replace(call_number=41), "answers, call by call"),
        (_STILL._replace(state="R", ran=0.2, waited=3.8), "waits for a CPU"),
        (_STILL._replace(state="T"), "stopped"),
        (_STILL._replace(time=12.9), "may still answer"),
        (_STILL._replace(call="", state="S"), "outside the driver"),
        (_STILL._replace(call="", state="D", switches=8), "outside the driver"),
    ],
)
def test_probe_that_gets_on_or_gets_no_cpu_is_slow(last: Look, why: str) -> None:
    lateness = lateness_of([_FIRST._replace(call=last.call, state=last.state), last], _SECONDS)

    assert not lateness.is_hang
    assert why in lateness.why


@pytest.mark.parametrize("call", ["nvmlInitWithFlags", "nvmlDeviceGetHandleByIndex"])
def test_start_of_gpus_is_slow_while_it_moves_and_hangs_when_it_does_not(call: str) -> None:
    first = _FIRST._replace(call=call)
    moves, stands = _STILL._replace(call=call, switches=300), _STILL._replace(call=call)

    assert not lateness_of([first, moves], _SECONDS).is_hang
    assert lateness_of([first, stands], _SECONDS).is_hang


@pytest.mark.parametrize(("began", "is_hang"), [(14.0 - 29.9, False), (14.0 - 30.0, True)])
def test_start_of_gpus_that_moves_for_half_a_minute_hangs(began: float, is_hang: bool) -> None:
    """As the driver does that polls a GPU whose processor is dead."""
    first = _FIRST._replace(call="nvmlInitWithFlags", call_began=began)

    assert lateness_of([first, first._replace(time=14.0, switches=900)], 3.0).is_hang is is_hang


def test_what_sleeps_in_the_kernel_for_good_hangs_outside_the_driver_too() -> None:
    first = _FIRST._replace(call="", state="D")

    assert lateness_of([first, first._replace(time=14.0)], _SECONDS).is_hang


def test_only_the_last_seconds_count() -> None:
    """A call that began a moment ago is not judged by those before it."""
    signs = CallSigns()
    late = LateProbe(os.getpid(), signs, 0.2)
    late.look()
    began = time.monotonic()
    signs.begin("nvmlDeviceGetCount")
    while time.monotonic() - began < 0.5:
        late.look()

    assert "answers" not in late.lateness().why


def test_signs_tell_which_call_it_is_and_since_when() -> None:
    signs = CallSigns()
    before = time.monotonic()
    signs.begin("nvmlInitWithFlags")
    call = signs.read()
    assert (call.number, call.name) == (1, "nvmlInitWithFlags")
    assert before <= call.began <= time.monotonic()
    signs.end()
    assert signs.read()[:2] == (1, "")


@pytest.mark.slow
def test_slow_calls_of_the_driver_condemn_no_node(node: NodeRoot) -> None:
    node.change_driver(slow={"nvmlDeviceGetFieldValues": 150})

    report = run_health(Context.PROLOG, node.host(), _SHORT, _JOB)

    assert report.verdict is Verdict.UNKNOWN
    assert "call by call" in report.findings[-1].detail


@pytest.mark.slow
def test_cold_start_of_gpus_is_no_hang(node: NodeRoot) -> None:
    node.change_driver(slow={ATTACH: 60_000})

    report = run_health(Context.PROLOG, node.host(), _SHORT, _JOB)

    assert report.verdict is Verdict.UNKNOWN
    assert report.findings[-1].check == "driver"
    assert "still starts the GPUs" in report.findings[-1].detail


@pytest.mark.slow
def test_slow_probe_has_a_moment_of_grace(node: NodeRoot) -> None:
    node.change_driver(slow={ATTACH: 1_300})

    report = run_health(Context.PROLOG, node.host(), _SHORT, _JOB, only=["driver"])

    assert report.findings == ()
    assert report.seconds > _SHORT.deadlines.prolog


def test_run_with_a_slow_probe_is_over_before_slurmd_calls_it_hung() -> None:
    for prolog, report in ((5.0, 3.0), (7.0, 3.0), (1.0, 1.0)):
        policy = HealthPolicy(deadlines=Deadlines(prolog=prolog, report=report))
        times = run._times(Context.PROLOG, policy, began=100.0)
        assert times.deadline <= times.last_moment
        assert times.last_moment + report <= max(109.5, times.deadline + report)


_HOG = "import os, sys; os.sched_setaffinity(0, {int(sys.argv[1])})\nwhile True: pass"


@contextmanager
def _all_cpu_taken(cpu: int) -> Iterator[None]:
    """Two processes that want all of one CPU."""
    hogs = [subprocess.Popen([sys.executable, "-I", "-S", "-c", _HOG, str(cpu)]) for _ in range(2)]
    try:
        yield
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()


class _Starved:
    """A check that goes on in a driver call, with what CPU others leave to it."""

    name = "starved"
    contexts = frozenset(Context)
    summary = explanation = "of a test"

    def __init__(self, cpu: int) -> None:
        self._cpu = cpu

    def run(self, evidence: Evidence) -> Iterable[Finding]:
        evidence.driver.open()
        os.sched_setaffinity(0, {self._cpu})
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        while True:
            evidence.driver.count()


@pytest.mark.slow
def test_starved_probe_condemns_no_node(node: NodeRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    cpu = max(os.sched_getaffinity(0))
    monkeypatch.setattr(run, "checks_of", lambda context, only: [_Starved(cpu)])
    policy = HealthPolicy(deadlines=Deadlines(prolog=3.0))

    with _all_cpu_taken(cpu):
        report = run_health(Context.PROLOG, node.host(), policy, _JOB)

    assert report.verdict is Verdict.UNKNOWN
    detail = report.findings[0].detail
    # Even so the kernel may give it a turn between the two looks.
    assert "waits for a CPU" in detail or "answers, call by call" in detail


Hung = Callable[[Hang], Report]


@pytest.fixture
def hung(node: NodeRoot) -> Hung:
    """A Prolog on whose node the driver hangs."""

    def run_prolog(manner: Hang) -> Report:
        node.change_driver(hangs={"nvmlDeviceGetFieldValues": manner})
        return run_health(Context.PROLOG, node.host(), _SHORT, _JOB)

    return run_prolog


def test_driver_call_that_hangs_is_named(hung: Hung) -> None:
    report = hung(Hang.STUBBORN)

    assert report.verdict is Verdict.REBOOT
    assert report.findings[-1].check == PROBE_HANG
    assert "nvmlDeviceGetFieldValues has stood still" in report.findings[-1].detail


def test_epilog_after_a_hang_in_the_prolog_has_its_verdict_at_once(
    node: NodeRoot, hung: Hung
) -> None:
    hung(Hang.KILLABLE)

    report = run_health(Context.EPILOG, node.host(), _SHORT, _JOB)

    assert (report.verdict, report.findings[0].check) == (Verdict.REBOOT, PROBE_HANG)
    assert report.findings[0].of_job
    assert report.seconds < 5


@pytest.mark.slow
def test_prolog_after_a_hang_that_is_over_looks_again(node: NodeRoot, hung: Hung) -> None:
    hung(Hang.KILLABLE)
    node.change_driver(hangs={})
    wait_until("the end of the killed probe", lambda: _probe_is_gone(node), 10)

    assert run_health(Context.PROLOG, node.host(), _SHORT, _JOB, only=["driver"]).findings == ()


@pytest.mark.slow
def test_epilog_looks_again_when_a_hang_is_long_over(node: NodeRoot, hung: Hung) -> None:
    hung(Hang.KILLABLE)
    node.change_driver(hangs={})
    wait_until("the end of the killed probe", lambda: _probe_is_gone(node), 10)
    file = Path(node.host().state_directory, "hung-probe")
    *kept, given_up_at = file.read_text().split()
    file.write_text(" ".join([*kept, str(int(given_up_at) - 601)]))

    assert run_health(Context.EPILOG, node.host(), _SHORT, _JOB, only=["driver"]).findings == ()


@pytest.mark.slow
def test_epilog_looks_again_when_a_person_has_dealt_with_a_hang(
    node: NodeRoot, hung: Hung, capsys: pytest.CaptureFixture[str]
) -> None:
    hung(Hang.KILLABLE)
    node.change_driver(hangs={})
    wait_until("the end of the killed probe", lambda: _probe_is_gone(node), 10)

    assert cli.main(["clear", "--root", str(node.directory), "--by", "alice"]) == 0

    assert run_health(Context.EPILOG, node.host(), _SHORT, _JOB, only=["driver"]).findings == ()


@pytest.mark.slow
def test_epilog_looks_again_when_a_run_has_passed_since_a_hang(node: NodeRoot, hung: Hung) -> None:
    hung(Hang.KILLABLE)
    node.change_driver(hangs={})
    wait_until("the end of the killed probe", lambda: _probe_is_gone(node), 10)

    run_health(Context.PROLOG, node.host(), _SHORT, _JOB, only=["driver"])

    assert run_health(Context.EPILOG, node.host(), _SHORT, _JOB, only=["driver"]).findings == ()


def test_no_word_of_a_person_starts_a_probe_beside_one_that_hangs(
    node: NodeRoot, capsys: pytest.CaptureFixture[str]
) -> None:
    with _given_up_as_slow(node, 60):
        cli.main(["clear", "--root", str(node.directory), "--by", "alice"])
        report = run_health(Context.EPILOG, node.host(), _SHORT, _JOB)

    assert report.verdict is Verdict.REBOOT


def _probe_is_gone(node: NodeRoot) -> bool:
    return hung_probe.given_up(node.host(), Context.PROLOG) is None


@contextmanager
def _given_up_as_slow(node: NodeRoot, seconds_ago: int) -> Iterator[None]:
    child = os.fork()
    if child == 0:
        signal.pause()
        os._exit(0)
    try:
        hung_probe.remember(node.host(), child, "driver", is_hang=False)
        file = Path(node.host().state_directory, "hung-probe")
        *kept, given_up_at = file.read_text().split()
        file.write_text(" ".join([*kept, str(int(given_up_at) - seconds_ago)]))
        yield
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


@pytest.mark.parametrize(("seconds_ago", "verdict"), [(0, Verdict.UNKNOWN), (60, Verdict.REBOOT)])
def test_slow_probe_that_sigkill_does_not_end_hangs(
    node: NodeRoot, seconds_ago: int, verdict: Verdict
) -> None:
    with _given_up_as_slow(node, seconds_ago):
        report = run_health(Context.EPILOG, node.host(), _SHORT, _JOB)

    assert report.verdict is verdict
    assert report.seconds < 5
