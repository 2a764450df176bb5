"""What a job leaves on its GPUs is ended, and nobody else's process ever is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from slurm_hooks.health.checks import processes
from slurm_hooks.health.driver.model import GpuMemory
from slurm_hooks.health.model import Context, Finding, JobOnNode, Verdict
from tests.unit.health.node_roots import NodeRoot
from tests.unit.health.runs import evidence_of, run_check
from tests.waiting import wait_until

_USER = 65_534
_JOB = JobOnNode(7, user_id=_USER, gpus=(0, 1, 2, 3))
_GIBIBYTE = 1024**3
_STUBBORN = "import signal; signal.signal(15, signal.SIG_IGN); print(flush=True); signal.pause()"

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="starts processes of other users")

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_PAUSE_SECONDS", 0.1)


@pytest.fixture
def start(node: NodeRoot) -> Iterator[Start]:
    """Starts a real process that ignores SIGTERM, and shows it in the node's /proc."""
    started: list[subprocess.Popen[str]] = []

    def start_one(job: str = "7", user: int = _USER) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _STUBBORN],
            env={"SLURM_JOB_ID": job} if job else {},
            stdout=subprocess.PIPE,
            text=True,
            user=user,
        )
        started.append(process)
        assert process.stdout is not None
        process.stdout.readline()
        node.path("proc", str(process.pid)).symlink_to(f"/proc/{process.pid}")
        return process

    yield start_one
    for process in started:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def _found(node: NodeRoot, job: JobOnNode = _JOB) -> list[Finding]:
    return run_check("ghost_processes", evidence_of(node, Context.EPILOG, job=job))


def _has_ended(process: subprocess.Popen[str]) -> bool:
    return process.poll() == -signal.SIGKILL


def test_a_job_that_left_its_gpus_is_no_ghost(node: NodeRoot) -> None:
    assert _found(node) == []


def test_a_ghost_that_ignores_sigterm_is_killed(node: NodeRoot, start: Start) -> None:
    ghost = start()
    node.change_gpu(2, processes=(ghost.pid,))

    _found(node)

    wait_until("the ghost's end", lambda: _has_ended(ghost), 10)


def test_the_ghosts_of_all_gpus_of_the_job_are_killed(node: NodeRoot, start: Start) -> None:
    ghosts = [start() for _ in range(4)]
    for index, ghost in enumerate(ghosts):
        node.change_gpu(index, processes=(ghost.pid,))

    _found(node)

    for ghost in ghosts:
        wait_until("each ghost's end", lambda ghost=ghost: _has_ended(ghost), 10)  # type: ignore


def test_a_gpu_that_does_not_answer_saves_no_ghost_of_another(node: NodeRoot, start: Start) -> None:
    ghost = start()
    node.change_gpu(0, errors={"nvmlDeviceGetComputeRunningProcesses_v3": 15})
    node.change_gpu(3, processes=(ghost.pid,))

    (finding,) = _found(node)

    assert (finding.verdict, finding.gpu, finding.of_job) == (Verdict.REBOOT, 0, True)
    wait_until("the ghost's end", lambda: _has_ended(ghost), 10)


@pytest.mark.parametrize(
    ("job", "user"),
    [("8", _USER), ("", _USER), ("7", 65_533), ("77", _USER)],
    ids=["another job", "a login of the same user", "another user's word", "a longer number"],
)
def test_a_process_of_anybody_else_survives(
    node: NodeRoot, start: Start, job: str, user: int
) -> None:
    other = start(job, user)
    node.change_gpu(1, processes=(other.pid,))

    (finding,) = _found(node)

    assert (finding.verdict, finding.gpu) == (Verdict.WARN, 1)
    assert other.poll() is None


def test_a_job_whose_user_nobody_tells_has_no_ghost_by_its_environment(
    node: NodeRoot, start: Start
) -> None:
    other = start()
    node.change_gpu(1, processes=(other.pid,))

    _found(node, JobOnNode(7, gpus=(0, 1)))

    assert other.poll() is None


def test_a_ghost_on_a_gpu_that_the_job_did_not_have_survives(node: NodeRoot, start: Start) -> None:
    other = start()
    node.change_gpu(5, processes=(other.pid,))

    assert _found(node) == []
    assert other.poll() is None


@pytest.mark.parametrize(
    ("cgroup", "is_ended"),
    [
        ("0::/system.slice/slurmstepd.scope/job_7/step_0/user/task_0", True),
        ("5:devices:/slurm/uid_65534/job_7/step_batch", True),
        ("0::/system.slice/slurmstepd.scope/job_77/step_0", False),
        ("0::/system.slice/slurmstepd.scope/job_8/step_0", False),
    ],
)
def test_slurms_cgroup_says_whose_a_process_is(
    node: NodeRoot, start: Start, cgroup: str, is_ended: bool
) -> None:
    process = start("7" if not is_ended else "", 65_533 if is_ended else _USER)
    node.path("proc", str(process.pid)).unlink()
    for name in ("stat", "status", "environ"):
        text = open(f"/proc/{process.pid}/{name}").read()  # noqa: SIM115, PTH123
        node.write(f"proc/{process.pid}/{name}", text)
    node.write(f"proc/{process.pid}/cgroup", f"{cgroup}\n")
    node.change_gpu(0, processes=(process.pid,))

    _found(node)

    if is_ended:
        wait_until("the process's end", lambda: _has_ended(process), 10)
    assert (process.poll() is None) is not is_ended


def test_a_number_that_another_process_has_by_now_is_not_killed(
    node: NodeRoot, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = start("8")
    open_descriptor = os.pidfd_open
    place = node.path("proc", str(other.pid))

    def show_the_new_one(process_id: int) -> int:
        for name in ("environ", "stat", "status"):
            place.joinpath(name).unlink()
        place.rmdir()
        place.symlink_to(f"/proc/{other.pid}")
        return open_descriptor(process_id)

    place.unlink()
    node.write(f"proc/{other.pid}/environ", "SLURM_JOB_ID=7\0")
    node.write(f"proc/{other.pid}/stat", "1 (python3) S 1 1\n")
    node.write(f"proc/{other.pid}/status", f"Uid:\t{_USER}\t{_USER}\n")
    node.change_gpu(0, processes=(other.pid,))
    monkeypatch.setattr(os, "pidfd_open", show_the_new_one)

    _found(node)

    assert other.poll() is None


@pytest.mark.parametrize("state", ["", "4711 (python3) Z 1 1", "4711 (a) b) X 1 1"])
def test_a_listed_process_that_is_dead_is_no_ghost(node: NodeRoot, state: str) -> None:
    node.write("proc/4194999/stat", state)
    node.change_gpu(0, processes=(4_194_999, 4_194_998))

    assert _found(node) == []


def test_a_ghost_that_cannot_be_ended_condemns_the_gpu(node: NodeRoot) -> None:
    node.write("proc/4194999/stat", "4194999 (python3) D 1 1\n")
    node.write("proc/4194999/cgroup", "0::/system.slice/slurmstepd.scope/job_7/step_0\n")
    node.change_gpu(3, processes=(4_194_999,))

    (finding,) = _found(node)

    assert (finding.verdict, finding.gpu) == (Verdict.RESET, 3)
    assert "4194999" in finding.detail


def test_memory_that_no_process_holds_condemns_the_gpu(node: NodeRoot) -> None:
    node.change_gpu(3, memory=GpuMemory(80 * _GIBIBYTE, 2 * _GIBIBYTE, _GIBIBYTE))
    node.change_gpu(4, memory=GpuMemory(80 * _GIBIBYTE, 2 * _GIBIBYTE, _GIBIBYTE))

    (finding,) = _found(node)

    assert (finding.verdict, finding.gpu, finding.of_job) == (Verdict.RESET, 3, False)


def test_a_gpu_that_tells_neither_processes_nor_memory_is_not_judged(node: NodeRoot) -> None:
    node.change_gpu(0, memory=None, raw={"processes.compute": None})

    assert _found(node) == []


def test_memory_condemns_no_gpu_that_does_not_tell_who_holds_it(node: NodeRoot) -> None:
    memory = GpuMemory(80 * _GIBIBYTE, 2 * _GIBIBYTE, _GIBIBYTE)
    unsupported = ("processes.compute", "processes.mps", "processes.graphics")
    node.change_gpu(0, memory=memory, raw=dict.fromkeys(unsupported))

    assert _found(node) == []


def test_somebody_who_only_looks_kills_nothing(node: NodeRoot, start: Start) -> None:
    ghost = start()
    node.change_gpu(0, processes=(ghost.pid,))
    evidence = evidence_of(node, Context.EPILOG, job=_JOB)
    evidence.may_act = False

    assert [finding.verdict for finding in run_check("ghost_processes", evidence)] == [
        Verdict.RESET
    ]
    assert ghost.poll() is None


@pytest.mark.parametrize("job", [None, JobOnNode(7, user_id=_USER)])
def test_without_a_job_that_had_gpus_there_are_no_ghosts(
    node: NodeRoot, start: Start, job: JobOnNode | None
) -> None:
    process = start()
    node.change_gpu(0, processes=(process.pid,))

    assert run_check("ghost_processes", evidence_of(node, Context.EPILOG, job=job)) == []
    assert process.poll() is None
