"""A health run ends with one verdict, in time, whatever a check does."""

from __future__ import annotations

import ctypes
import fcntl
import os
import signal
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from slurm_hooks.health import hung_probe, probe, run
from slurm_hooks.health.driver.model import DriverError, DriverFault
from slurm_hooks.health.evidence import Evidence
from slurm_hooks.health.host import Host
from slurm_hooks.health.model import Context, Finding, JobOnNode, Verdict
from slurm_hooks.health.policy import Deadlines, HealthPolicy
from slurm_hooks.health.report import PROBE_HANG, Report
from slurm_hooks.sandbox.gpu.state import DriverState, Hang
from tests.unit.health.node_roots import NodeRoot

_SHORT = HealthPolicy(deadlines=Deadlines(prolog=1.0))


class _Check:
    """A check that does what a test wants."""

    contexts = frozenset(Context)
    summary = explanation = "of a test"

    def __init__(self, name: str, work: Callable[[Evidence], Iterable[Finding]]) -> None:
        self.name = name
        self._work = work

    def run(self, evidence: Evidence) -> Iterable[Finding]:
        return self._work(evidence)


@pytest.fixture
def examine(
    tmp_path: Path, driver_library: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Report]:
    hangs = DriverState(hangs={"nvmlInitWithFlags": Hang.STUBBORN})
    NodeRoot(tmp_path, driver_library).with_driver(hangs)

    def examine_with(
        *checks: _Check, policy: HealthPolicy = _SHORT, job: JobOnNode | None = None
    ) -> Report:
        monkeypatch.setattr(run, "checks_of", lambda context, only: list(checks))
        host = Host(root=str(tmp_path), name="n1", metadata_url="http://127.0.0.1:9")
        return run.run_health(Context.PROLOG, host, policy, job)

    return examine_with


def _finds(name: str, *verdicts: Verdict) -> _Check:
    return _Check(name, lambda _: [Finding(name, verdict, "seen") for verdict in verdicts])


def _hangs(evidence: Evidence) -> Iterable[Finding]:
    evidence.driver.open()
    return []


def test_a_run_that_finds_nothing_is_ok(examine: Callable[..., Report]) -> None:
    report = examine(_finds("a"), _finds("b"))

    assert (report.verdict, report.findings, report.hung_check) == (Verdict.OK, (), "")


@pytest.mark.parametrize("order", [(Verdict.WARN, Verdict.RESET), (Verdict.RESET, Verdict.WARN)])
def test_the_verdict_is_the_gravest_whatever_the_order(
    examine: Callable[..., Report], order: tuple[Verdict, Verdict]
) -> None:
    report = examine(_finds("a", order[0]), _finds("b", order[1]))

    assert report.verdict is Verdict.RESET
    assert [finding.verdict for finding in report.findings] == list(order)


def test_among_equals_the_check_of_more_authority_names_the_verdict(
    examine: Callable[..., Report],
) -> None:
    report = examine(
        _finds("a", Verdict.WARN), _finds("b", Verdict.REBOOT), _finds("c", Verdict.REBOOT)
    )

    assert report.decisive is not None
    assert report.decisive.check == "b"


def test_a_check_that_hangs_is_a_finding_and_those_before_it_are_kept(
    examine: Callable[..., Report],
) -> None:
    began = time.monotonic()

    report = examine(_finds("a", Verdict.WARN), _Check("b", _hangs), _finds("c", Verdict.RESET))

    assert time.monotonic() - began < 4
    assert report.hung_check == "b"
    assert [(f.check, f.verdict) for f in report.findings] == [
        ("a", Verdict.WARN),
        (PROBE_HANG, Verdict.REBOOT),
    ]
    assert "b did not answer" in report.findings[1].detail


def test_no_probe_is_started_beside_one_that_still_hangs(
    examine: Callable[..., Report], tmp_path: Path
) -> None:
    child = os.fork()
    if child == 0:
        signal.pause()
        os._exit(0)
    try:
        hung_probe.remember(Host(root=str(tmp_path)), child, "nvlink", is_hang=True)

        report = examine(_finds("a", Verdict.MANUAL))

        assert [(f.check, f.verdict) for f in report.findings] == [(PROBE_HANG, Verdict.REBOOT)]
        assert "nvlink" in report.findings[0].detail
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)

    assert examine(_finds("a")).verdict is Verdict.OK


@pytest.mark.parametrize(
    ("fault", "verdict"),
    [
        (DriverFault.GPU_IS_LOST, Verdict.REBOOT),
        (DriverFault.RESET_REQUIRED, Verdict.RESET),
        (DriverFault.IRQ_ISSUE, Verdict.RESET),
        (DriverFault.UNKNOWN, Verdict.REBOOT),
        (DriverFault.TIMEOUT, Verdict.REBOOT),
    ],
)
def test_a_driver_call_that_fails_condemns_the_node(
    examine: Callable[..., Report], fault: DriverFault, verdict: Verdict
) -> None:
    def work(_: Evidence) -> Iterable[Finding]:
        raise DriverError(fault, int(fault), "nvmlDeviceGetX")

    report = examine(_Check("a", work))

    assert report.verdict is verdict
    assert fault.name in report.findings[0].detail


def test_a_mistake_of_ours_is_loud_and_lets_the_job_start(examine: Callable[..., Report]) -> None:
    report = examine(_Check("a", lambda _: [Finding("a", Verdict.OK, 1 / 0)]))  # type: ignore

    assert report.verdict is Verdict.UNKNOWN
    assert not report.verdict.fails_job
    assert "ZeroDivisionError" in report.findings[0].detail


def test_the_checks_after_a_failing_one_still_run(examine: Callable[..., Report]) -> None:
    report = examine(_Check("a", lambda _: 1 // 0), _finds("b", Verdict.RESET))  # type: ignore

    assert report.verdict is Verdict.RESET


def test_a_crash_in_the_drivers_library_condemns_the_node(examine: Callable[..., Report]) -> None:
    def crash(_: Evidence) -> Iterable[Finding]:
        signal.signal(signal.SIGSEGV, signal.SIG_DFL)
        ctypes.string_at(0)
        return []

    report = examine(_Check("a", crash))

    assert report.verdict is Verdict.REBOOT
    assert report.findings[0].check == "a"


def test_a_probe_that_somebody_kills_is_no_fault_of_the_node(
    examine: Callable[..., Report],
) -> None:
    def killed(_: Evidence) -> Iterable[Finding]:
        os.kill(os.getpid(), signal.SIGKILL)
        return []

    assert examine(_Check("a", killed)).verdict is Verdict.UNKNOWN


def test_a_probe_that_ends_before_its_first_check_has_looked_at_nothing(
    examine: Callable[..., Report], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe, "run_checks", lambda *_: None)

    assert examine(_finds("a")).hung_check == PROBE_HANG


def test_in_observe_mode_findings_are_told_and_do_not_count(
    examine: Callable[..., Report],
) -> None:
    report = examine(_finds("a", Verdict.REPLACE), policy=HealthPolicy(observe=True))

    assert report.verdict is Verdict.OK
    assert [finding.verdict for finding in report.findings] == [Verdict.REPLACE]


def test_a_check_that_is_only_observed_does_not_count(examine: Callable[..., Report]) -> None:
    policy = HealthPolicy(observed_checks=frozenset({"a"}))

    report = examine(_finds("a", Verdict.REPLACE), _finds("b", Verdict.RESET), policy=policy)

    assert report.verdict is Verdict.RESET


def test_a_check_that_is_switched_off_does_not_run(examine: Callable[..., Report]) -> None:
    policy = HealthPolicy(disabled_checks=frozenset({"a"}))

    assert examine(_finds("a", Verdict.REPLACE), policy=policy).findings == ()


def test_counters_are_left_for_the_epilog(examine: Callable[..., Report]) -> None:
    def count(evidence: Evidence) -> Iterable[Finding]:
        evidence.note("ecc 0", 7)
        return []

    assert examine(_Check("a", count)).counters == {"ecc 0": 7}


def test_the_probe_inherits_none_of_slurmds_descriptors(
    examine: Callable[..., Report], tmp_path: Path
) -> None:
    def tell(_: Evidence) -> Iterable[Finding]:
        places = [str(Path(f"/proc/self/fd/{number}").readlink()) for number in (0, 1, 2)]
        return [Finding("a", Verdict.WARN, " ".join(places))]

    report = examine(_Check("a", tell))

    assert report.findings[0].detail == "/dev/null /dev/null /dev/null"


def test_more_findings_than_a_pipe_holds_are_all_told(examine: Callable[..., Report]) -> None:
    many = [Finding("a", Verdict.WARN, "x" * 400) for _ in range(2000)]

    report = examine(_Check("a", lambda _: many), policy=HealthPolicy())

    assert len(report.findings) == 2000


def test_a_probe_that_has_told_all_and_does_not_end_is_not_waited_for(
    examine: Callable[..., Report], monkeypatch: pytest.MonkeyPatch
) -> None:
    def tell(_: Evidence) -> Iterable[Finding]:
        return [Finding("a", Verdict.WARN, str(os.getpid()))]

    def never_end(_: int) -> None:
        while True:
            signal.pause()

    monkeypatch.setattr(os, "_exit", never_end)
    began = time.monotonic()

    report = examine(_Check("a", tell), policy=HealthPolicy(deadlines=Deadlines(prolog=20.0)))

    probe = int(report.findings[0].detail)
    try:
        assert time.monotonic() - began < 10
        assert report.verdict is Verdict.WARN
        assert report.hung_check == ""
    finally:
        os.kill(probe, signal.SIGKILL)
        os.waitpid(probe, 0)


def test_a_hang_of_a_check_that_is_only_observed_does_not_count(
    examine: Callable[..., Report],
) -> None:
    policy = HealthPolicy(deadlines=Deadlines(prolog=1.0), observed_checks=frozenset({"b"}))

    report = examine(_Check("b", _hangs), policy=policy)

    assert report.verdict is Verdict.OK
    assert [finding.check for finding in report.findings] == [PROBE_HANG]


@pytest.mark.parametrize(("gpus", "of_job"), [((0, 1), True), ((), False)])
def test_a_hang_hits_a_job_that_has_gpus(
    examine: Callable[..., Report], gpus: tuple[int, ...], of_job: bool
) -> None:
    report = examine(_Check("b", _hangs), job=JobOnNode(7, gpus=gpus))

    assert report.findings[0].of_job is of_job


def test_a_process_of_another_boot_is_no_hung_probe(
    examine: Callable[..., Report], tmp_path: Path
) -> None:
    host = Host(root=str(tmp_path))
    hung_probe.remember(host, os.getpid(), "nvlink", is_hang=True)
    assert hung_probe.given_up(host, Context.PROLOG) is not None
    file = Path(host.state_directory, "hung-probe")
    process_id, began, check, boot, *rest = file.read_text().split()
    file.write_text(" ".join([process_id, began, check, "0" * len(boot), *rest]))

    assert examine(_finds("a")).verdict is Verdict.OK
    assert not file.exists()


def test_a_check_that_waits_knows_how_long_it_may(examine: Callable[..., Report]) -> None:
    def tell(evidence: Evidence) -> Iterable[Finding]:
        seconds = (evidence.seconds_left(0.1), evidence.seconds_left(60.0))
        return [Finding("a", Verdict.WARN, f"{seconds[0]} {seconds[1] < 1.0}")]

    assert examine(_Check("a", tell)).findings[0].detail == "0.1 True"


def test_the_probe_keeps_no_descriptor_that_slurmd_left_open(
    examine: Callable[..., Report],
) -> None:
    reader, writer = os.pipe()
    left_open = (writer, fcntl.fcntl(writer, fcntl.F_DUPFD, 500))

    def tell(_: Evidence) -> Iterable[Finding]:
        kept = [number for number in left_open if Path(f"/proc/self/fd/{number}").exists()]
        return [Finding("a", Verdict.WARN, str(kept))]

    try:
        assert examine(_Check("a", tell)).findings[0].detail == "[]"
    finally:
        for descriptor in (reader, *left_open):
            os.close(descriptor)
