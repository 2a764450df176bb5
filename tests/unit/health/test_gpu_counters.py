"""Counters of GPUs: what grew while the job ran, and nothing that stood there before."""

from __future__ import annotations

import pytest

from slurm_hooks.health.driver.model import EccCounts, NvLinkErrors, PcieErrors, ThrottleTimes
from slurm_hooks.health.model import Context, Verdict
from tests.unit.health.node_roots import NodeRoot
from tests.unit.health.runs import evidence_of, run_around_job, run_check

_SECOND = 1_000_000_000
_GROWTHS = [
    ("ecc", {"ecc": EccCounts(0, 1)}, Verdict.RESET, "1 uncorrected"),
    ("ecc", {"ecc": EccCounts(600_000, 0)}, Verdict.WARN, "1000 corrected"),
    ("pcie_errors", {"pcie_errors": PcieErrors(0, 0, 0, 1)}, Verdict.RESET, "1 fatal"),
    ("pcie_errors", {"pcie_errors": PcieErrors(1000, 0, 0, 0)}, Verdict.WARN, "100 PCIe replays"),
    ("nvlink_errors", {"nvlink_errors": NvLinkErrors(3, None)}, Verdict.WARN, "3 failed"),
    ("nvlink_errors", {"nvlink_errors": NvLinkErrors(None, 1e-5)}, Verdict.WARN, "bit error rate"),
    (
        "throttling",
        {"throttle_times": ThrottleTimes(0, 0, 300 * _SECOND, 0)},
        Verdict.WARN,
        "heat for 50%",
    ),
    (
        "throttling",
        {"throttle_times": ThrottleTimes(0, 0, 0, 120 * _SECOND)},
        Verdict.WARN,
        "power brake for 20%",
    ),
]

_COUNTERS = [growth for growth in _GROWTHS if "rate" not in growth[3]]
"""All but the bit error rate, which tells by itself and without a Prolog."""


@pytest.mark.parametrize(("name", "changes", "verdict", "told"), _GROWTHS)
def test_what_grew_during_the_job_is_found_after_it(
    node: NodeRoot, name: str, changes: dict[str, object], verdict: Verdict, told: str
) -> None:
    if name == "nvlink_errors":
        node.change_gpu(5, nvlink_errors=NvLinkErrors(0, None))

    (finding,) = run_around_job(node, name, {5: changes})

    assert (finding.gpu, finding.verdict) == (5, verdict)
    assert told in finding.detail


@pytest.mark.parametrize(("name", "changes", "verdict", "told"), _COUNTERS)
def test_what_stood_there_before_the_job_is_not_its_own(
    node: NodeRoot, name: str, changes: dict[str, object], verdict: Verdict, told: str
) -> None:
    node.change_gpu(5, **changes)

    assert run_around_job(node, name, {}) == []


@pytest.mark.parametrize(("name", "changes", "verdict", "told"), _COUNTERS)
def test_without_a_prolog_nothing_is_blamed_on_the_job(
    node: NodeRoot, name: str, changes: dict[str, object], verdict: Verdict, told: str
) -> None:
    node.change_gpu(5, **changes)

    assert run_check(name, evidence_of(node, Context.EPILOG)) == []


def test_counters_that_began_anew_are_not_compared(node: NodeRoot) -> None:
    node.change_gpu(5, ecc=EccCounts(0, 9))

    assert run_around_job(node, "ecc", {5: {"ecc": EccCounts(0, 3)}}) == []


def test_a_memory_error_of_the_jobs_own_gpu_lets_it_run_again(node: NodeRoot) -> None:
    (finding,) = run_around_job(node, "ecc", {5: {"ecc": EccCounts(0, 1)}})

    assert finding.of_job


def test_a_little_heat_and_few_replays_are_nothing(node: NodeRoot) -> None:
    heat: dict[str, object] = {"throttle_times": ThrottleTimes(0, 0, 30 * _SECOND, 0)}

    assert run_around_job(node, "throttling", {5: heat}) == []
    assert run_around_job(node, "pcie_errors", {5: {"pcie_errors": PcieErrors(5, 9, 9, 0)}}) == []
