"""DCGM's answers, of version 3 and 4, are read GPU by GPU, and a hung DCGM is restarted."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from slurm_hooks.health.checks import dcgm
from slurm_hooks.health.evidence import Evidence
from slurm_hooks.health.job_files import keep_baseline
from slurm_hooks.health.model import Context, Finding, Verdict
from tests.unit.health.node_roots import NodeRoot
from tests.unit.health.runs import evidence_of, run_check
from tests.unit.health.tools import add_tool, tool_calls

_MEMORY, _LIBRARY, _INTERNAL = 10, 4, 16
"""Of DCGM's categories of errors."""


def _answer(root: str, results: list[dict[str, object]], **test: object) -> str:
    tests = [{"name": "software", "results": results, **test}]
    categories = [{"category": "Deployment", "tests": tests}]
    return json.dumps({root: {"version": "x", "test_categories": categories}})


def _version_3(*states: str, test: str = "Page Retirement/Row Remap") -> str:
    results: list[dict[str, object]] = [
        {"gpu_id": str(number), "status": state, "info": ""} for number, state in enumerate(states)
    ]
    return _answer("DCGM GPU Diagnostic", results, name=test)


def _version_4(*states: str, group: str = "GPU", category: int | str = _MEMORY) -> str:
    warning = {"warning": "It broke.", "error_id": 7, "error_category": category}
    results: list[dict[str, object]] = [
        {"entity_group": group, "entity_group_id": 1, "entity_id": number, "status": state}
        | ({"warnings": [warning]} if state == "Fail" else {})
        for number, state in enumerate(states)
    ]
    worst = "Fail" if "Fail" in states else "Pass"
    return _answer("DCGM Diagnostic", results, test_summary={"status": worst})


def _install(node: NodeRoot, answer: str, status: int = 0) -> None:
    node.write("dcgm-answer", answer)
    add_tool(node, "usr/bin/dcgmi", f'cat "$ROOT/dcgm-answer"\nexit {status}')


def _evidence(node: NodeRoot, minutes: float = 0) -> Evidence:
    evidence = evidence_of(node, Context.BACKGROUND)
    evidence.now += timedelta(minutes=minutes)
    return evidence


def _found(node: NodeRoot, minutes: float = 0) -> list[Finding]:
    return run_check("dcgm", _evidence(node, minutes))


@pytest.mark.parametrize(
    "answer",
    [_version_3("PASS", "PASS"), _version_4("Pass", "Pass"), _version_4("Skip", "Pass"),
     "Warning: something first\n" + _version_3("Pass") + "\nand last"],
)  # fmt: skip
def test_gpus_that_pass_or_are_skipped_are_well(node: NodeRoot, answer: str) -> None:
    _install(node, answer)

    assert _found(node) == []
    assert tool_calls(node) == ["dcgmi diag -r 1 -j"]


@pytest.mark.parametrize(
    "answer", [_version_3("PASS", "FAIL", "PASS"), _version_4("Pass", "Fail", "Pass")]
)
def test_a_failure_on_the_second_gpu_counts(node: NodeRoot, answer: str) -> None:
    node.change_gpu(1, minor=6)
    _install(node, answer, status=226)

    (finding,) = _found(node)

    assert (finding.verdict, finding.gpu) == (Verdict.RESET, 6)
    assert " failed" in finding.detail


@pytest.mark.parametrize("category", [*range(9, 16), 5, 2, "12"])
def test_a_failure_of_hardware_asks_for_a_reset_and_says_why(
    node: NodeRoot, category: int | str
) -> None:
    _install(node, _version_4("Fail", category=category), status=226)

    (finding,) = _found(node)

    assert finding.verdict is Verdict.RESET
    assert finding.detail == "DCGM test software failed: It broke."


@pytest.mark.parametrize(
    "answer",
    [
        *(_version_4("Fail", category=category) for category in (0, 3, _LIBRARY, 6, 7, 8)),
        *(_version_4("Fail", category=category) for category in (_INTERNAL, 99, "?")),
        _version_3("FAIL", test="NVML Library"),
        _version_3("FAIL", test="CUDA Main Library"),
        _version_3("FAIL", test="Denylist"),
        _version_3("FAIL", test="Permissions and OS Blocks"),
        _version_3("FAIL", test="software"),
    ],
)
def test_a_failure_of_software_condemns_no_node(node: NodeRoot, answer: str) -> None:
    _install(node, answer, status=226)

    assert [finding.verdict for finding in _found(node)] == [Verdict.UNKNOWN]


def test_one_error_of_hardware_among_others_counts(node: NodeRoot) -> None:
    warnings = [{"warning": "x", "error_category": number} for number in (_LIBRARY, _MEMORY)]
    _install(node, _answer("DCGM Diagnostic", [{"status": "Fail", "warnings": warnings}]))

    assert [finding.verdict for finding in _found(node)] == [Verdict.RESET]


def test_a_failure_that_only_the_sum_tells_counts(node: NodeRoot) -> None:
    summary = {"status": "Fail"}
    _install(node, _answer("DCGM Diagnostic", [], name="Inforom", test_summary=summary))

    (finding,) = _found(node)

    assert (finding.verdict, finding.gpu) == (Verdict.RESET, None)


def test_a_failing_processor_is_not_taken_for_a_gpu(node: NodeRoot) -> None:
    _install(node, _version_4("Fail", group="CPU"))

    assert [finding.gpu for finding in _found(node)] == [None]


@pytest.mark.parametrize(
    ("answer", "status"),
    [("", 1), ("garbage {", 0), ("[]", 0), ("{}", 0), ('{"DCGM Diagnostic": 7}', 0),
     ('{"DCGM Diagnostic": {"test_categories": [1, {"tests": "x"}]}}', 0),
     ('{"DCGM Diagnostic": {"runtime_error": "no host engine"}}', 1),
     (_version_4("Pass"), 200)],
)  # fmt: skip
def test_an_answer_that_says_nothing_is_unknown_and_never_well(
    node: NodeRoot, answer: str, status: int
) -> None:
    _install(node, answer, status)

    assert [finding.verdict for finding in _found(node)] == [Verdict.UNKNOWN]


def test_without_dcgm_nothing_is_done(node: NodeRoot) -> None:
    assert _found(node) == []


def test_a_node_without_gpus_runs_no_diagnostic(bare_node: NodeRoot) -> None:
    _install(bare_node, "garbage")

    evidence = evidence_of(bare_node, Context.BACKGROUND, machine_type="n2-standard-8")
    assert run_check("dcgm", evidence) == []
    assert tool_calls(bare_node) == []


def test_a_diagnostic_that_hangs_restarts_the_service(
    node: NodeRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dcgm, "_DIAGNOSTIC_SECONDS", 0.3)
    monkeypatch.setattr(dcgm, "_LEAST_SECONDS", 0.1)
    add_tool(node, "usr/bin/dcgmi", "sleep 60")
    add_tool(node, "usr/bin/systemctl")

    (finding,) = _found(node)

    assert finding.verdict is Verdict.WARN
    assert tool_calls(node)[1] == "systemctl try-restart nvidia-dcgm.service"


def test_a_diagnostic_that_the_run_has_no_time_for_is_put_off(node: NodeRoot) -> None:
    _install(node, "garbage")
    evidence = _evidence(node)
    evidence.deadline = 0.0

    assert run_check("dcgm", evidence) == []
    assert tool_calls(node) == []
    assert [finding.verdict for finding in _found(node)] == [Verdict.UNKNOWN]


def test_it_runs_once_an_hour(node: NodeRoot) -> None:
    _install(node, _version_4("Pass"))

    for minutes in (0, 30, 59, 61, 62):
        _found(node, minutes)

    assert len(tool_calls(node)) == 2


def test_somebody_who_only_looks_gets_an_answer_and_leaves_no_trace(node: NodeRoot) -> None:
    _install(node, _version_4("Fail"), 226)
    _found(node)

    for _ in range(2):
        evidence = _evidence(node, 1)
        evidence.may_act = False
        assert len(run_check("dcgm", evidence)) == 1

    _found(node, 61)
    assert len(tool_calls(node)) == 4


def test_it_does_not_run_beside_a_job(node: NodeRoot) -> None:
    _install(node, "garbage")
    keep_baseline(node.host(), 7, datetime.now(UTC), {})

    assert _found(node) == []


def test_a_job_that_went_with_an_earlier_boot_does_not_stop_it(node: NodeRoot) -> None:
    _install(node, _version_4("Pass"))
    keep_baseline(node.host(), 7, datetime.now(UTC), {})
    node.write("proc/sys/kernel/random/boot_id", "ffffffff-9b1d-4f0e-8a77-0c2d5e6f7a81\n")

    _found(node)

    assert len(tool_calls(node)) == 1


def test_it_does_not_run_where_a_gpu_is_cut_into_instances(node: NodeRoot) -> None:
    _install(node, "garbage")
    node.change_gpu(3, is_in_multi_instance_mode=True)

    assert _found(node) == []
    assert tool_calls(node) == []


def test_it_does_not_run_beside_a_process_on_a_gpu(node: NodeRoot) -> None:
    _install(node, "garbage")
    node.change_gpu(3, processes=(4711,))

    assert _found(node) == []
