"""DCGM's own diagnostics, where they are installed and the node is idle."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from slurm_hooks.health import files
from slurm_hooks.health.children import PATH, run_program
from slurm_hooks.health.evidence import Evidence
from slurm_hooks.health.host import Host
from slurm_hooks.health.job_files import jobs_on_node
from slurm_hooks.health.model import Context, Finding, Verdict

_DIAGNOSTIC_SECONDS = 35.0
_RESTART_SECONDS = 5.0
_LAST_RUN = "dcgm-last-run"
_ROOTS = ("DCGM Diagnostic", "DCGM GPU Diagnostic")
"""The key of the whole answer, in DCGM 4 and in DCGM 3."""


class DcgmCheck:
    """Runs the shortest diagnostic now and then."""

    name = "dcgm"
    contexts = frozenset({Context.BACKGROUND})
    summary = "DCGM's quick diagnostic passes on every GPU (where dcgmi is installed)"
    explanation = (
        "Runs `dcgmi diag -r 1 -j` while no job is on the node, at most every dcgm_every_minutes. A"
        " failure on any GPU means RESET. A diagnostic that does not end may leave nv-hostengine"
        " hanging: its service is restarted, and that is a WARN, as is an answer that nobody can"
        " read. Without dcgmi, or with jobs on the node, nothing is done."
    )

    def run(self, evidence: Evidence) -> Iterator[Finding]:
        """Run the diagnostic if it is due."""
        program = evidence.host.path("usr", "bin", "dcgmi")
        if not evidence.expects_gpus or not os.access(program, os.X_OK):
            return
        if jobs_on_node(evidence.host) or not _is_due(evidence):
            return
        arguments = (program, "diag", "-r", "1", "-j")
        ended = run_program(arguments, _DIAGNOSTIC_SECONDS, {"PATH": PATH, "LANG": "C.UTF-8"})
        if ended.status is None:
            _restart_service(evidence.host)
            yield Finding(self.name, Verdict.WARN, "the diagnostic hung, DCGM was restarted")
            return
        yield from self._judge(ended.output, ended.status)

    def _judge(self, output: str, status: int) -> Iterator[Finding]:
        import json  # only where DCGM has answered

        try:
            answer = json.loads(output[output.find("{") :])
        except ValueError:
            detail = f"no JSON from dcgmi (exit {status}): {output[:80]}"
            yield Finding(self.name, Verdict.UNKNOWN, detail)
            return
        results = list(_results(answer))
        if not results:
            yield Finding(self.name, Verdict.UNKNOWN, "dcgmi told no results")
        for test, gpu, state in results:
            if state.upper() == "FAIL":
                yield Finding(self.name, Verdict.RESET, f"DCGM test {test} failed", gpu=gpu)


def _is_due(evidence: Evidence) -> bool:
    path = f"{evidence.host.state_directory}/{_LAST_RUN}"
    now = evidence.now.timestamp()
    try:
        last = float(files.read_text(path))
    except ValueError:
        last = 0.0
    if 0 <= now - last < evidence.policy.thresholds.dcgm_every_minutes * 60:
        return False
    files.write_text(path, f"{now}\n")
    return True


def _results(answer: Any) -> Iterator[tuple[str, int | None, str]]:
    """Test, GPU and status of every result; nothing for an answer of another shape."""
    known = [key for key in _ROOTS if isinstance(answer, dict) and key in answer]
    root: Any = answer[known[0]] if known else {}
    for category in _list(root, "test_categories"):
        for test in _list(category, "tests"):
            for result in _list(test, "results"):
                gpu = str(result.get("gpu_id", result.get("entity_id", "")))
                number = int(gpu) if gpu.isascii() and gpu.isdigit() else None
                yield str(test.get("name", "")), number, str(result.get("status", ""))


def _list(value: Any, key: str) -> list[dict[str, Any]]:
    found = value.get(key) if isinstance(value, dict) else None
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def _restart_service(host: Host) -> None:
    systemctl = host.path("usr", "bin", "systemctl")
    try:
        run_program(
            (systemctl, "try-restart", "nvidia-dcgm.service"), _RESTART_SECONDS, {"PATH": PATH}
        )
    except OSError:
        return
