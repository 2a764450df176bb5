"""However a box ends, its VMs end with it, and so do jobs that try to stay."""

from __future__ import annotations

import signal
from collections.abc import Callable

import pytest

from slurm_hooks.sandbox.box.box import Box
from slurm_hooks.sandbox.demo.witness import Witness
from tests.end_to_end.leftovers import processes_of
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

NODES = ("flexvm-a3u-0", "flexvm-a3u-1")
STUBBORN_JOB = """\
#!/bin/bash
trap '' TERM HUP INT
setsid bash -c 'trap "" TERM HUP INT; while :; do sleep 30; done' &
srun sleep 300
wait
"""


def run_stubborn_job(box: Box) -> Witness:
    witness = Witness(box, NODES)
    job_id = witness.submit(STUBBORN_JOB, "-N2", "--gres=gpu:8")
    box.wait_until(
        "the job runs on both nodes",
        lambda: (
            sum("sleep 300" in text for text in processes_of(box.layout.directory).values()) > 2
        ),
        60,
    )
    assert witness.job(job_id).state == "RUNNING"
    return witness


def test_down_ends_running_jobs(start_box: Callable[..., Box]) -> None:
    box = start_box()
    run_stubborn_job(box)
    box.stop()
    assert processes_of(box.layout.directory) == {}
    assert not box.layout.directory.exists()


def test_jobs_end_with_a_killed_supervisor(start_box: Callable[..., Box]) -> None:
    box = start_box()
    run_stubborn_job(box)
    supervisor = box.state.supervisor
    assert supervisor is not None
    supervisor.send_signal(signal.SIGKILL)
    wait_until("no process is left", lambda: not processes_of(box.layout.directory), 20)


def test_jobs_end_with_a_killed_emulator(start_box: Callable[..., Box]) -> None:
    box = start_box()
    run_stubborn_job(box)
    box.emulator.kill(signal.SIGKILL)
    wait_until(
        "no process of a job is left",
        lambda: not any("sleep" in text for text in processes_of(box.layout.directory).values()),
        20,
    )


def test_a_vm_that_vanishes_takes_its_part_of_the_job_alone(
    start_box: Callable[..., Box],
) -> None:
    box = start_box()
    witness = run_stubborn_job(box)
    slurmd_of = {node: f"-N {node} " for node in NODES}
    box.control.vanish_instance(NODES[1])
    box.wait_until(
        "its slurmd is gone",
        lambda: (
            not any(
                slurmd_of[NODES[1]] in text for text in processes_of(box.layout.directory).values()
            )
        ),
        20,
    )
    assert any(slurmd_of[NODES[0]] in text for text in processes_of(box.layout.directory).values())
    assert [vm.name for vm in witness.project.instances()] == [NODES[0]]


def test_one_shot_passes_end_with_the_box(start_box: Callable[..., Box]) -> None:
    box = start_box(daemon=False, capacity=0)
    Witness(box, NODES).submit(STUBBORN_JOB, "-N2", "--gres=gpu:8")
    box.wait_until(
        "a hook has started a pass of its own",
        lambda: any(
            "slurm_hooks.reconcile" in text for text in processes_of(box.layout.directory).values()
        ),
        30,
    )
    box.stop()
    assert processes_of(box.layout.directory) == {}
