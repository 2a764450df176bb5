"""However a box ends, its VMs end with it, and so do jobs that try to stay."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from slurm_hooks.sandbox.box.box import Box
from slurm_hooks.sandbox.demo.witness import Witness
from tests.end_to_end.leftovers import processes_of
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

NODES = ("flexvm-a3u-0", "flexvm-a3u-1")
STUBBORN_TASK = """\
trap '' TERM HUP INT
setsid bash -c 'trap "" TERM HUP INT; exec -a daemon-of-job sleep 300' &
exec -a task-of-job sleep 300
"""


@contextmanager
def stubborn_job(box: Box) -> Iterator[None]:
    """A job over both nodes whose processes leave their session and ignore signals.

    It comes from srun, since slurmctld starts batch jobs only every 30 s.
    """
    with subprocess.Popen(
        ["srun", "-N2", "--gres=gpu:8", "bash", "-c", STUBBORN_TASK],
        env=box.environment,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as user:
        try:
            box.wait_until(
                "the job runs on both nodes",
                lambda: len(job_processes(box)) == 2 * len(NODES),
                60,
            )
            yield
        finally:
            os.killpg(user.pid, signal.SIGKILL)


def job_processes(box: Box) -> list[str]:
    found = processes_of(box.layout.directory).values()
    return [text for text in found if text.startswith(("daemon-of-job", "task-of-job"))]


def is_slurmd_of(node: str, text: str) -> bool:
    return "slurmd -D" in text and f"-N {node} " in text


def test_down_ends_running_jobs(start_box: Callable[..., Box]) -> None:
    box = start_box()
    with stubborn_job(box):
        box.stop()
    assert processes_of(box.layout.directory) == {}
    assert not box.layout.directory.exists()


def test_jobs_end_with_a_killed_supervisor(start_box: Callable[..., Box]) -> None:
    box = start_box()
    supervisor = box.state.supervisor
    assert supervisor is not None
    with stubborn_job(box):
        supervisor.send_signal(signal.SIGKILL)
    wait_until("no process is left", lambda: not processes_of(box.layout.directory), 20)


def test_jobs_end_with_a_killed_emulator(start_box: Callable[..., Box]) -> None:
    box = start_box()
    with stubborn_job(box):
        box.emulator.kill(signal.SIGKILL)
        wait_until("no process of the job is left", lambda: not job_processes(box), 20)


def test_a_vm_that_vanishes_takes_its_part_of_the_job_alone(
    start_box: Callable[..., Box],
) -> None:
    box = start_box()
    here, gone = NODES
    with stubborn_job(box):
        box.control.vanish_instance(gone)
        box.wait_until(
            "its slurmd is gone",
            lambda: (
                not any(is_slurmd_of(gone, t) for t in processes_of(box.layout.directory).values())
            ),
            20,
        )
        assert any(is_slurmd_of(here, text) for text in processes_of(box.layout.directory).values())


def test_one_shot_passes_end_with_the_box(start_box: Callable[..., Box]) -> None:
    box = start_box(daemon=False, capacity=0)
    Witness(box, NODES).submit("#!/bin/sh\nhostname\n", "-N2", "--gres=gpu:8")
    box.wait_until(
        "a hook has started a pass of its own",
        lambda: any(
            "slurm_hooks.reconcile" in text for text in processes_of(box.layout.directory).values()
        ),
        30,
    )
    box.stop()
    assert processes_of(box.layout.directory) == {}
