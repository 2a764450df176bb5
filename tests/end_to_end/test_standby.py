"""Only the daemon on the host whose slurmctld is in charge acts; it takes over within a pass.

One slurmctld stands for both: what the clients read says on which host it runs.
"""

from __future__ import annotations

import socket
from collections.abc import Callable

import pytest

from tests.end_to_end.fleet import Fleet

pytestmark = pytest.mark.slow

HERE = socket.gethostname()
STOOD_BY = r"\bstood by\b"


def set_controllers(fleet: Fleet, *hosts: str) -> None:
    """Name the hosts of slurmctld, the first one in charge, for all who read slurm.conf anew."""
    conf = fleet.box.layout.slurm_conf
    lines = conf.read_text(encoding="utf-8").splitlines()
    kept = [line for line in lines if not line.startswith("SlurmctldHost=")]
    named = [f"SlurmctldHost={host}(127.0.0.1)" for host in hosts]
    fresh = conf.with_suffix(".new")
    fresh.write_text("\n".join([*named, *kept]) + "\n", encoding="utf-8")
    fresh.rename(conf)


def test_daemon_beside_a_standby_watches_and_takes_over(start_fleet: Callable[..., Fleet]) -> None:
    fleet = start_fleet(0)
    set_controllers(fleet, "elsewhere", HERE)
    fleet.box.wait_until("the daemon to stand by", lambda: bool(fleet.log_lines(STOOD_BY)), 30)
    job_id = fleet.submit(1)
    fleet.wait_for_job(job_id, "CONFIGURING")
    seen = len(fleet.log_lines(STOOD_BY))
    fleet.box.wait_until("more passes", lambda: len(fleet.log_lines(STOOD_BY)) >= seen + 4, 60)
    assert (fleet.request_states(), fleet.comment(job_id)) == ({}, "")

    set_controllers(fleet, HERE, "elsewhere")
    fleet.wait_for_job(job_id, "COMPLETED")
    assert len(fleet.inserts()) == 1
    assert len(fleet.log_lines("standing by, only watching")) == 1
