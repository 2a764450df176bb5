"""The probe goes by a name of its own, in full, so that the driver's log tells it from others."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from slurm_hooks.health import run
from slurm_hooks.health.evidence import Evidence
from slurm_hooks.health.model import Context, Finding, Verdict
from slurm_hooks.health.policy import HealthPolicy
from slurm_hooks.health.probe_name import PROBE_NAME, take_probe_name
from slurm_hooks.health.run import run_health
from tests.unit.health.node_roots import NodeRoot


def own_name() -> str:
    return Path("/proc/self/comm").read_text().rstrip("\n")


def test_process_takes_the_name_in_full() -> None:
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        take_probe_name()
        os.write(writer, own_name().encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writer)
    with os.fdopen(reader) as told:
        assert told.read() == PROBE_NAME
    assert own_name() != PROBE_NAME


class NameCheck:
    name = "name"
    contexts = frozenset(Context)
    summary = explanation = ""

    def run(self, evidence: Evidence) -> list[Finding]:
        return [Finding(self.name, Verdict.WARN, own_name())]


def test_checks_of_a_run_have_the_probes_name(
    bare_node: NodeRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    checks = [NameCheck()]
    monkeypatch.setattr(run, "checks_of", lambda context, only: checks)
    report = run_health(Context.BACKGROUND, bare_node.host(), HealthPolicy())
    assert [finding.detail for finding in report.findings] == [PROBE_NAME]
    assert own_name() != PROBE_NAME
