"""DCGM's own diagnostics, where they are installed and the node is idle."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, NamedTuple

from slurm_hooks.health import files
from slurm_hooks.health.evidence import Evidence
from slurm_hooks.health.host import Host
from slurm_hooks.health.model import Context, Finding, Verdict

_DIAGNOSTIC_SECONDS = 35.0
_LEAST_SECONDS = 5.0
_RESTART_SECONDS = 5.0
_LAST_RUN = "dcgm-last-run"
_ROOTS = ("DCGM Diagnostic", "DCGM GPU Diagnostic")
"""The key of the whole answer, in DCGM 4 and in DCGM 3."""
_SHOWN_CHARACTERS = 80


_HARDWARE_CATEGORIES = frozenset({1, 2, 5, *range(9, 16)})
"""DCGM's categories of errors: performance, Xids, and those of hardware. The others are of software
and settings."""
_SOFTWARE_TESTS = frozenset(
    {
        "software",
        "denylist",
        "blacklist",
        "nvml library",
        "cuda main library",
        "cuda toolkit libraries",
        "permissions and os blocks",
        "persistence mode",
        "environment variables",
        "graphics processes",
    }
)
"""Tests that look at no hardware, in versions of DCGM that tell no category. `software` is the one
name that DCGM 4 has for them all."""


class _Result(NamedTuple):
    """What one test says. `gpu_index` is DCGM's and NVML's number; None for no single GPU.
    `is_of_hardware`: if it failed, hardware did; `why` is the first thing that it says about it."""

    test: str
    gpu_index: int | None
    status: str
    is_of_hardware: bool = True
    why: str = ""

    @property
    def has_failed(self) -> bool:
        """Whether the test failed there."""
        return self.status.upper() == "FAIL"


def failed_tests(output: str) -> list[str] | None:
    """The names of the tests in which hardware failed, in an answer of dcgmi; None where that
    tells no result."""
    try:
        results = list(_results(output))
    except (ValueError, RecursionError):
        return None
    return (
        sorted({r.test for r in results if r.has_failed and r.is_of_hardware}) if results else None
    )


class DcgmCheck:
    """Runs the shortest diagnostic now and then."""

    name = "dcgm"
    contexts = frozenset({Context.BACKGROUND})
    summary = "DCGM's quick diagnostic passes on every GPU (where dcgmi is installed)"
    explanation = (
        "Runs `dcgmi diag -r 1 -j` while no job and no process is on the GPUs, at most every"
        " dcgm_every_minutes. A failure of hardware on any GPU means RESET, one of software (a"
        " missing library, no host engine, a setting) is UNKNOWN. One that does not end may"
        " leave nv-hostengine hanging: its service is restarted, and that is a WARN. An answer that"
        " nobody can read is UNKNOWN. Without dcgmi, on a busy node, or where a GPU is cut into"
        " instances (MIG), which the diagnostic does not support, nothing is done."
    )

    def run(self, evidence: Evidence) -> Iterator[Finding]:
        """Run the diagnostic if it is due."""
        program = evidence.host.path("usr", "bin", "dcgmi")
        if not evidence.expects_gpus or not os.access(program, os.X_OK):
            return
        if any(evidence.driver.is_in_multi_instance_mode(gpu) for gpu in evidence.gpus()):
            return
        if _is_busy(evidence) or (evidence.may_act and not _is_due(evidence)):
            return
        seconds = evidence.seconds_left(_DIAGNOSTIC_SECONDS + _RESTART_SECONDS) - _RESTART_SECONDS
        if seconds < _LEAST_SECONDS:
            return
        from slurm_hooks.health.children import PATH, run_program

        if evidence.may_act:
            _keep_time(evidence)
        arguments = (program, "diag", "-r", "1", "-j")
        ended = run_program(arguments, seconds, {"PATH": PATH, "LANG": "C.UTF-8"})
        if ended.status is not None:
            yield from self._judge(ended.output, ended.status, evidence)
        elif evidence.may_act:
            _restart_service(evidence.host)
            yield Finding(self.name, Verdict.WARN, "the diagnostic hung, DCGM was restarted")
        else:
            yield Finding(self.name, Verdict.WARN, "the diagnostic hung")

    def _judge(self, output: str, status: int, evidence: Evidence) -> Iterator[Finding]:
        try:
            results = list(_results(output))
        except (ValueError, RecursionError):
            detail = f"no JSON from dcgmi (exit {status}): {output[:_SHOWN_CHARACTERS]}"
            yield Finding(self.name, Verdict.UNKNOWN, detail)
            return
        failures = [result for result in results if result.has_failed]
        minors = {gpu.index: gpu.minor for gpu in evidence.gpus()} if failures else {}
        for result in failures:
            index = result.gpu_index
            minor = minors.get(index) if index is not None else None
            verdict = Verdict.RESET if result.is_of_hardware else Verdict.UNKNOWN
            said = f": {result.why[:_SHOWN_CHARACTERS]}" if result.why else ""
            yield Finding(self.name, verdict, f"DCGM test {result.test} failed{said}", gpu=minor)
        if not results:
            yield Finding(self.name, Verdict.UNKNOWN, f"dcgmi told no results (exit {status})")
        elif status != 0 and not failures:
            detail = f"dcgmi ended with {status} and told no failure"
            yield Finding(self.name, Verdict.UNKNOWN, detail)


def _is_busy(evidence: Evidence) -> bool:
    """Whether a job is on the node, or anything on a GPU: not every job has a Prolog."""
    from slurm_hooks.health.job_files import jobs_on_node

    if jobs_on_node(evidence.host):
        return True
    return any(evidence.driver.process_ids(gpu) for gpu in evidence.gpus())


def _is_due(evidence: Evidence) -> bool:
    try:
        last = float(files.read_text(_last_run(evidence)))
    except ValueError:
        return True
    seconds = evidence.policy.thresholds.dcgm_every_minutes * 60
    return not 0 <= evidence.now.timestamp() - last < seconds


def _keep_time(evidence: Evidence) -> None:
    files.write_text(_last_run(evidence), f"{evidence.now.timestamp()}\n")


def _last_run(evidence: Evidence) -> str:
    return f"{evidence.host.state_directory}/{_LAST_RUN}"


def _results(output: str) -> Iterator[_Result]:
    """Every result, and what each test says in sum where DCGM says that; nothing for an answer of
    another shape. Raises ValueError where there is no JSON."""
    import json  # only where DCGM has answered

    answer = json.loads(output[output.find("{") : output.rfind("}") + 1])
    known = [key for key in _ROOTS if isinstance(answer, dict) and key in answer]
    for category in _list(answer[known[0]] if known else {}, "test_categories"):
        for test in _list(category, "tests"):
            yield from _results_of_test(test)


def _results_of_test(test: dict[str, Any]) -> Iterator[_Result]:
    name = str(test.get("name", ""))
    results = _list(test, "results")
    for result in results:
        yield _result(name, _index(result), result)
    summary = test.get("test_summary")
    has_failure = any(str(result.get("status", "")).upper() == "FAIL" for result in results)
    if isinstance(summary, dict) and not has_failure:
        yield _result(name, None, summary)


def _result(test: str, gpu_index: int | None, told: dict[str, Any]) -> _Result:
    """DCGM 4, and later versions of 3, say of each error in which category it is."""
    warnings = _list(told, "warnings")
    categories = {warning["error_category"] for warning in warnings if "error_category" in warning}
    is_of_hardware = (
        not _HARDWARE_CATEGORIES.isdisjoint(_number(category) for category in categories)
        if categories
        else test.lower() not in _SOFTWARE_TESTS
    )
    why = str(warnings[0].get("warning", "")) if warnings else ""
    return _Result(test, gpu_index, str(told.get("status", "")), is_of_hardware, why)


def _number(value: object) -> int:
    return int(str(value)) if str(value).isdecimal() else -1


def _index(result: dict[str, Any]) -> int | None:
    """The GPU's number. DCGM 4 numbers other things, too, and says which kind they are."""
    if str(result.get("entity_group", "GPU")).upper() != "GPU":
        return None
    number = str(result.get("gpu_id", result.get("entity_id", "")))
    return int(number) if number.isascii() and number.isdigit() else None


def _list(value: Any, key: str) -> list[dict[str, Any]]:
    found = value.get(key) if isinstance(value, dict) else None
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def _restart_service(host: Host) -> None:
    from slurm_hooks.health.children import PATH, run_program

    systemctl = host.path("usr", "bin", "systemctl")
    arguments = (systemctl, "try-restart", "nvidia-dcgm.service")
    try:
        run_program(arguments, _RESTART_SECONDS, {"PATH": PATH})
    except OSError:
        return
