"""Log lines become one case a GPU and Xid; what says nothing of its own is left out."""

from __future__ import annotations

import pytest

from slurm_hooks.health.model import Verdict
from slurm_hooks.health.probe_name import PROBE_NAME
from slurm_hooks.health.xids.cases import XidCase, cases_of
from slurm_hooks.health.xids.kernel_log import LoggedXid

GPU, OTHER_GPU = "0000:9b:00", "0000:9c:00"
OWN_PROCESS = 4242


def line(xid: int, text: str = "x", seconds: float = 1.0, address: str = GPU) -> str:
    stamp = int(seconds * 1_000_000)
    return f"4,{int(seconds * 10)},{stamp},-;NVRM: Xid (PCI:{address}): {xid}, {text}"


def once(xid: int, text: str = "x", seconds: float = 1.0, address: str = GPU) -> LoggedXid:
    record = line(xid, text, seconds, address)
    return LoggedXid(record, record)


def cases(*logged: LoggedXid) -> list[XidCase]:
    return cases_of(logged, own_processes=(OWN_PROCESS,))


def xids(*logged: LoggedXid) -> list[tuple[str, int]]:
    return [(case.pci_address, case.xid) for case in cases(*logged)]


def test_lines_of_one_xid_and_gpu_are_one_case() -> None:
    logged = [LoggedXid(line(31, "a", 1.0), line(31, "a", 9.0), 3), once(31, "b", 5.0)]
    [case] = cases(*logged)
    assert (case.xid, case.pci_address, case.count) == (31, GPU, 4)
    assert (case.last_seconds, case.last_text) == (9.0, "a")


def test_lines_of_two_gpus_are_two_cases() -> None:
    assert xids(once(31), once(31, address=OTHER_GPU)) == [(GPU, 31), (OTHER_GPU, 31)]


def test_line_that_is_no_xid_makes_no_case() -> None:
    assert cases(LoggedXid("4,1,1,-;NVRM: Xid (PCI:x): 31, y", "garbage")) == []


def test_fatal_line_rules_over_others_of_its_xid() -> None:
    fatal = "NETIR_LINK_EVT Fatal XC0 i0 Link 03 (0x021465c6 0x00000000)"
    harmless = fatal.replace("Fatal", "Nonfatal")
    [case] = cases(once(149, fatal, 1.0), once(149, harmless, 2.0))
    assert case.verdict is Verdict.RESET
    assert cases(once(149, harmless))[0].verdict is Verdict.OK


@pytest.mark.parametrize(("seconds", "verdict"), [(30.0, Verdict.WARN), (90.0, Verdict.MANUAL)])
def test_xid_out_of_use_is_repeated_only_by_a_later_event(seconds: float, verdict: Verdict) -> None:
    [case] = cases(LoggedXid(line(1, "a", 1.0), line(1, "a", 1.0 + seconds), 2))
    assert case.verdict is verdict
    [case] = cases(once(1, "a", 1.0), once(1, "b", 1.0 + seconds))
    assert case.verdict is verdict


def test_channel_removal_follows_another_xid_of_its_gpu() -> None:
    assert xids(once(45), once(13)) == [(GPU, 13)]
    assert xids(once(45), once(48)) == [(GPU, 48)]


@pytest.mark.parametrize(
    "other", [once(48, address=OTHER_GPU), once(154), once(14), once(45, "another channel")]
)
def test_channel_removal_without_another_xid_stands_alone(other: LoggedXid) -> None:
    assert (GPU, 45) in xids(once(45), other)


def test_withdrawn_xid_makes_no_case() -> None:
    assert xids(once(163, seconds=1.0), once(162, seconds=2.0)) == [(GPU, 162)]


@pytest.mark.parametrize(
    "withdrawal", [once(162, seconds=0.5), once(162, seconds=2.0, address=OTHER_GPU)]
)
def test_xid_is_withdrawn_only_afterwards_and_on_its_gpu(withdrawal: LoggedXid) -> None:
    assert (GPU, 163) in xids(once(163, seconds=1.0), withdrawal)


@pytest.mark.parametrize("xid", [31, 48, 119])
def test_xid_of_this_probe_makes_no_case(xid: int) -> None:
    assert xids(once(xid, f"pid={OWN_PROCESS}, name=python3, x")) == []
    assert xids(once(xid, f"pid={OWN_PROCESS + 1}, name=python3, x")) == [(GPU, xid)]


@pytest.mark.parametrize("xid", [48, 119])
def test_no_process_hides_its_faults_by_taking_the_probes_name(xid: int) -> None:
    assert xids(once(xid, f"pid=7, name={PROBE_NAME}, x")) == [(GPU, xid)]
