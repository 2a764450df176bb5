"""Which jobs a node has: a file that an Epilog never took away does not count for ever."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from slurm_hooks.health.job_files import jobs_on_node, keep_baseline
from tests.slurm_daemons import PrivateSlurm, require_slurm
from tests.unit.health.node_roots import NodeRoot
from tests.waiting import wait_until

_NOW = datetime(2026, 12, 1, 10, tzinfo=UTC)
_SOCKETS = "Num       RefCount Protocol Flags    Type St Inode Path\n"


def begins(node: NodeRoot, job_id: int, minutes_ago: float = 0) -> None:
    keep_baseline(node.host(), job_id, _NOW, {})
    began = time.time() - minutes_ago * 60
    os.utime(Path(node.host().state_directory, "jobs", str(job_id)), (began, began))


def listens(node: NodeRoot, *sockets: str) -> None:
    line = "0000000000000000: 00000002 00000000 00010000 0001 01 {} {}\n"
    lines = [line.format(number, path) for number, path in enumerate(sockets)]
    node.write("proc/net/unix", _SOCKETS + "".join(lines))


def test_job_whose_epilog_never_ran_is_gone_when_it_has_no_step(bare_node: NodeRoot) -> None:
    begins(bare_node, 7, minutes_ago=60)
    listens(bare_node, "/run/systemd/notify", "/var/spool/slurmd/g-0_77.0", "@/tmp/7.0")

    assert jobs_on_node(bare_node.host()) == ()


@pytest.mark.parametrize(
    "socket", ["/var/spool/slurmd/g-0_7.4294967292", "/spool/a-b-0_7.0", "/var/spool/g-0_7.3.1"]
)
def test_job_with_a_step_is_here_however_long_it_runs(bare_node: NodeRoot, socket: str) -> None:
    begins(bare_node, 7, minutes_ago=60 * 24 * 7)
    listens(bare_node, socket)

    assert jobs_on_node(bare_node.host()) == (7,)


def test_job_that_has_just_begun_needs_no_step(bare_node: NodeRoot) -> None:
    begins(bare_node, 7, minutes_ago=20)
    begins(bare_node, 6, minutes_ago=40)
    listens(bare_node)

    assert jobs_on_node(bare_node.host()) == (7,)


def test_job_is_here_where_nobody_can_tell(bare_node: NodeRoot) -> None:
    begins(bare_node, 7, minutes_ago=60)

    assert jobs_on_node(bare_node.host()) == (7,)


@pytest.mark.slow
def test_real_slurmstepd_is_seen(
    bare_node: NodeRoot, tmp_path_factory: pytest.TempPathFactory
) -> None:
    require_slurm()
    # slurmstepd's socket there has a path of 108 bytes at most
    slurm = PrivateSlurm(tmp_path_factory.mktemp("s"), node_count=1)

    def here() -> tuple[int, ...]:
        """Without the jobs of other tests' clusters, which have the same numbers."""
        sockets = Path("/proc/net/unix").read_text().splitlines(keepends=True)
        own = [line for line in sockets if str(slurm.directory) in line]
        bare_node.write("proc/net/unix", _SOCKETS + "".join(own))
        return jobs_on_node(bare_node.host())

    try:
        slurm.start()
        job_id = slurm.submit()
        begins(bare_node, job_id, minutes_ago=60)
        assert here() == ()
        slurm.start_slurmd("demo-cpu-0")
        wait_until("the job's step", lambda: here() == (job_id,), 60)
        slurm.command("scancel", str(job_id))
        wait_until("the end of the step", lambda: here() == (), 60)
    finally:
        slurm.stop()
