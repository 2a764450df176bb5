"""Xids through whole health runs: from a Prolog's child over the job's file to its Epilog."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from slurm_hooks.health.cleared import write_cleared
from slurm_hooks.health.job_files import keep_baseline
from slurm_hooks.health.model import Context, JobOnNode, Verdict
from slurm_hooks.health.policy import HealthPolicy
from slurm_hooks.health.report import Report
from slurm_hooks.health.run import run_health
from tests.unit.health.node_roots import NodeRoot

JOB = JobOnNode(7, gpus=(2, 3), exit_code=1)
NOW = datetime(2026, 12, 1, 9, tzinfo=UTC)


@pytest.fixture
def node_of_identity(node: NodeRoot) -> NodeRoot:
    """A node that need not ask a metadata server who it is."""
    boot = node.path("proc/sys/kernel/random/boot_id").read_text()[:8]
    node.write("var/lib/slurm-hooks/health/identity", f"{boot}\n42\na3-highgpu-8g\n")
    return node


def says(node: NodeRoot, sequence: int, xid: int, gpu: int) -> None:
    address = node.gpu(gpu).pci_address
    node.kernel_log(f"4,{sequence},{sequence}000000,-;NVRM: Xid (PCI:{address}): {xid}, text")


def examine(node: NodeRoot, context: Context) -> Report:
    return run_health(context, node.host(), HealthPolicy(), JOB, only=["xid"])


def test_epilog_knows_from_the_prolog_what_came_during_the_job(node_of_identity: NodeRoot) -> None:
    says(node_of_identity, 10, 94, gpu=2)
    prolog = examine(node_of_identity, Context.PROLOG)
    assert (prolog.verdict, prolog.findings) == (Verdict.OK, ())
    keep_baseline(node_of_identity.host(), JOB.job_id, NOW, prolog.counters)
    assert examine(node_of_identity, Context.EPILOG).findings == ()
    says(node_of_identity, 11, 94, gpu=3)
    [finding] = examine(node_of_identity, Context.EPILOG).findings
    assert (finding.verdict, finding.of_job) == (Verdict.REQUEUE, True)
    assert (finding.gpu, finding.xid) == (node_of_identity.gpu(3).minor, 94)


def test_cleared_node_passes_its_prolog(node_of_identity: NodeRoot) -> None:
    says(node_of_identity, 10, 48, gpu=2)
    assert examine(node_of_identity, Context.PROLOG).verdict is Verdict.RESET
    write_cleared(node_of_identity.host(), NOW, "alice")
    assert examine(node_of_identity, Context.PROLOG).verdict is Verdict.OK
