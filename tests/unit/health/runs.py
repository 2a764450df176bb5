"""Runs of single checks on a pretended node, with the real binding on the pretended driver."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from slurm_hooks.health.evidence import Evidence
from slurm_hooks.health.identity import Identity
from slurm_hooks.health.machine_types import expected_hardware
from slurm_hooks.health.model import Context, Finding, JobOnNode
from slurm_hooks.health.policy import HealthPolicy
from slurm_hooks.health.probe import findings_of
from slurm_hooks.health.registry import all_checks
from tests.unit.health.node_roots import NodeRoot

BEGAN = datetime(2026, 12, 1, 10, 0, tzinfo=UTC)
JOB = JobOnNode(7, user_id=1000, gpus=tuple(range(8)), exit_code=1)


def evidence_of(
    node: NodeRoot,
    context: Context = Context.PROLOG,
    *,
    machine_type: str = "a3-highgpu-8g",
    policy: HealthPolicy | None = None,
    job: JobOnNode | None = JOB,
    before: Evidence | None = None,
    minutes: float = 10.0,
) -> Evidence:
    """What a run of the context has to look at; `before` is the Prolog's, `minutes` earlier."""
    policy = policy or HealthPolicy()
    identity = Identity("1", machine_type, "1f6c3a52")
    return Evidence(
        context,
        node.host(),
        policy,
        expected_hardware(node.host(), identity, policy),
        node.driver(),
        BEGAN + timedelta(minutes=minutes if before is not None else 0),
        job=job if context is not Context.BACKGROUND else None,
        baseline=before.counters if before is not None else {},
        baseline_time=before.now if before is not None else None,
    )


def run_check(name: str, evidence: Evidence) -> list[Finding]:
    """What one check finds, as a run sees it: failures of the driver are findings, too."""
    check = next(check for check in all_checks() if check.name == name)
    try:
        return findings_of(check, evidence)
    finally:
        evidence.driver.close()


def run_around_job(
    node: NodeRoot, name: str, change: dict[int, dict[str, object]], minutes: float = 10.0
) -> list[Finding]:
    """What a check finds in the Epilog, after GPUs changed since the Prolog; by NVML index."""
    prolog = evidence_of(node)
    before = run_check(name, prolog)
    assert before == []
    for index, fields in change.items():
        node.change_gpu(index, **fields)
    return run_check(name, evidence_of(node, Context.EPILOG, before=prolog, minutes=minutes))
