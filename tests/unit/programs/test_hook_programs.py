"""The three power-save programs in the surroundings that slurmctld gives them."""

from __future__ import annotations

import contextlib
import json
import os
import re
import resource
import signal
import stat
from pathlib import Path

import pytest

from slurm_hooks.reconcile.bell import Bell
from slurm_hooks.reconcile.locks import sole_runner
from slurm_hooks.reconcile.resume_calls import CallsDirectory
from slurm_hooks.reconcile.snapshot import JobShare
from slurm_hooks.slurm.hostlist import expand
from tests.unit.programs.conftest import PROGRAMS, HookBench
from tests.waiting import wait_until

NODES = "flexvm-a3u-[0-1]"
LARGEST_ARGUMENT_BYTES = 131_071
NULL = Path(os.devnull)
RESUME_FILE = {
    "all_nodes_resume": NODES,
    "jobs": [
        {"job_id": 12, "nodes_alloc": NODES, "nodes_resume": "flexvm-a3u-0", "features": None},
        {"job_id": 13, "nodes_resume": "flexvm-a3u-[1,7]"},
    ],
}


def close_standard_descriptors() -> None:
    os.closerange(0, 3)


def block_signals() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())


@pytest.mark.parametrize("program", ["resume", "suspend", "resume-fail"])
def test_call_rings_the_daemon_and_exits_zero(bench: HookBench, bell: Bell, program: str) -> None:
    result = bench.run(program, NODES)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    assert bell.rung.is_set()
    assert f"{program}[" in bench.log
    assert f"nodes={NODES}" in bench.log
    assert "daemon=answered" in bench.log


def test_resume_leaves_jobs_and_nodes_for_the_daemon(bench: HookBench, bell: Bell) -> None:
    resume_file = bench.directory / "resume.json"
    resume_file.write_text(json.dumps(RESUME_FILE))
    bench.extra_environment["SLURM_RESUME_FILE"] = str(resume_file)
    bench.run("resume", NODES)
    (call,) = bench.calls()
    assert call.nodes == ("flexvm-a3u-0", "flexvm-a3u-1")
    assert call.jobs == (JobShare(12, ("flexvm-a3u-0",)), JobShare(13, ("flexvm-a3u-1",)))


def test_resume_file_of_slurm_22_05_is_understood(bench: HookBench, bell: Bell) -> None:
    resume_file = bench.directory / "resume.json"
    resume_file.write_text(
        json.dumps({"all_nodes": NODES, "jobs": [{"job_id": 12, "nodes": NODES}]})
    )
    bench.extra_environment["SLURM_RESUME_FILE"] = str(resume_file)
    bench.run("resume", NODES)
    assert bench.calls()[0].jobs == (JobShare(12, ("flexvm-a3u-0", "flexvm-a3u-1")),)


def test_vanished_resume_file_is_logged_and_the_call_goes_on(bench: HookBench, bell: Bell) -> None:
    bench.extra_environment["SLURM_RESUME_FILE"] = "/proc/1/fd/nonexistent"
    assert bench.run("resume", NODES).returncode == 0
    (call,) = bench.calls()
    assert call.jobs == ()
    assert "resume file unreadable" in bench.log


@pytest.mark.parametrize("text", ["", "{", "[]", '{"jobs": 7}', '{"jobs": [{"job_id": "x"}]}'])
def test_garbage_in_the_resume_file_costs_the_jobs_alone(
    bench: HookBench, bell: Bell, text: str
) -> None:
    resume_file = bench.directory / "resume.json"
    resume_file.write_text(text)
    bench.extra_environment["SLURM_RESUME_FILE"] = str(resume_file)
    bench.run("resume", NODES)
    (call,) = bench.calls()
    assert (call.nodes, call.jobs) == (("flexvm-a3u-0", "flexvm-a3u-1"), ())


def test_closed_descriptors_and_blocked_signals_do_no_harm(bench: HookBench, bell: Bell) -> None:
    def as_slurm_22_05_does() -> None:
        close_standard_descriptors()
        block_signals()

    assert bench.run("resume", NODES, preexec=as_slurm_22_05_does).returncode == 0
    assert bell.rung.is_set()
    assert len(bench.calls()) == 1


def test_settings_before_the_hostlist_are_those_that_count(bench: HookBench, bell: Bell) -> None:
    """Slurm 26.05 passes on arguments that stand in slurm.conf, before the hostlist."""
    settings_file = bench.directory / "slurm-hooks.conf"
    elsewhere = settings_file.rename(bench.directory / "other.conf")
    assert bench.run("resume", "--settings", str(elsewhere), NODES).returncode == 0
    assert bell.rung.is_set()
    assert bench.calls()[0].nodes == ("flexvm-a3u-0", "flexvm-a3u-1")


def test_features_behind_the_hostlist_are_no_nodes(bench: HookBench, bell: Bell) -> None:
    bench.run("resume", NODES, "a3u,flexvm")
    assert bench.calls()[0].nodes == ("flexvm-a3u-0", "flexvm-a3u-1")


@pytest.mark.skipif(Path("/etc/slurm-hooks").exists(), reason="would reach a real installation")
@pytest.mark.skipif(Path("/etc/slurm/slurm-hooks.conf").exists(), reason="likewise")
def test_empty_environment_without_settings_still_exits_zero(bench: HookBench) -> None:
    result = bench.run("resume", NODES, environment={})
    assert (result.returncode, result.stderr) == (0, "")


def test_wrong_settings_name_their_line_in_no_traceback(bench: HookBench) -> None:
    (bench.directory / "slurm-hooks.conf").write_text("Spool=/nowhere\n")
    result = bench.run("suspend", NODES)
    assert (result.returncode, result.stderr) == (0, "")


def test_unusable_spool_is_logged_and_the_daemon_rung_all_the_same(
    bench: HookBench, bell: Bell
) -> None:
    requests = bench.spool_directory / "requests"
    requests.write_text("a file where a directory should be")
    assert bench.run("resume", NODES).returncode == 0
    assert "spool unusable" in bench.log
    assert bell.rung.is_set()


def test_full_disk_is_survived(bench: HookBench, bell: Bell) -> None:
    def no_file_may_grow() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    result = bench.run("resume", NODES, preexec=no_file_may_grow)
    assert (result.returncode, result.stderr) == (0, "")
    assert bell.rung.is_set()
    assert bench.call_files() == []


def test_longest_hostlist_is_kept_whole(bench: HookBench, bell: Bell) -> None:
    names = [f"flexvm-a3u-{number}" for number in range(6_200)]
    hostlist = ",".join(names)
    hostlist += "," * (LARGEST_ARGUMENT_BYTES - len(hostlist))
    assert bench.run("resume", hostlist).returncode == 0
    assert bench.calls()[0].nodes == tuple(names)


def test_argument_that_is_no_hostlist_is_refused_in_the_log(bench: HookBench, bell: Bell) -> None:
    assert bench.run("resume", "a;rm -rf $HOME\n").returncode == 0
    assert "not a hostlist" in bench.log
    assert bench.calls()[0].nodes == ()


def test_concurrent_calls_for_the_same_nodes_all_arrive_whole(bench: HookBench, bell: Bell) -> None:
    processes = [bench.start("resume", [NODES]) for _ in range(12)]
    assert {process.wait(timeout=30) for process in processes} == {0}
    for process in processes:
        process.communicate()
    calls = bench.calls()
    assert len({call.call_id for call in calls}) == 12
    assert {call.nodes for call in calls} == {("flexvm-a3u-0", "flexvm-a3u-1")}


def test_call_of_suspend_only_wakes_the_daemon(bench: HookBench, bell: Bell) -> None:
    bench.run("suspend", NODES)
    assert CallsDirectory(bench.spool_directory, expand).read() == ()
    assert len(bench.call_files()) == 1, "reading alone, as a dry run does, removes nothing"
    assert bench.calls() == ()
    assert bench.call_files() == []


def test_call_file_of_another_owner_or_writable_by_others_is_refused(
    bench: HookBench, bell: Bell
) -> None:
    bench.run("resume", NODES)
    (file,) = bench.call_files()
    file.chmod(0o666)
    assert bench.calls() == ()
    assert bench.call_files() == []


def test_spool_is_readable_for_the_slurm_user_alone(bench: HookBench, bell: Bell) -> None:
    bench.run("resume", NODES)
    (file,) = bench.call_files()
    modes = {stat.S_IMODE(path.stat().st_mode) & 0o077 for path in (file, file.parent)}
    assert modes == {0}
    socket = bench.spool_directory / "slurm-hooksd.sock"
    assert stat.S_IMODE(socket.stat().st_mode) == 0o600


def test_silent_daemon_gets_a_detached_one_shot_pass(bench: HookBench) -> None:
    assert bench.run("resume", NODES).returncode == 0
    assert "one-shot pass started" in bench.log
    # The bench has no cluster file, so the pass ends with saying just that in the log.
    wait_until("one-shot pass to speak", lambda: "not started" in bench.log, 60)
    assert "cluster_config.json" in bench.log


def test_one_shot_pass_outlives_the_surroundings_of_its_program(bench: HookBench) -> None:
    def as_slurm_22_05_does() -> None:
        close_standard_descriptors()
        block_signals()

    with sole_runner(bench.spool_directory):  # so that the pass waits and can be looked at
        assert bench.run("resume", NODES, preexec=as_slurm_22_05_does).returncode == 0
        (pid,) = one_shot_passes(bench)
        try:
            assert os.getsid(pid) == pid
            assert {Path(f"/proc/{pid}/fd/{n}").readlink() for n in (0, 1, 2)} == {NULL}
            blocked = re.search(r"SigBlk:\s*(\w+)", Path(f"/proc/{pid}/status").read_text())
            assert blocked is not None and int(blocked.group(1), 16) == 0
        finally:
            os.kill(pid, signal.SIGKILL)
    wait_until("the pass to be gone", lambda: not one_shot_passes(bench), 20)


def one_shot_passes(bench: HookBench) -> list[int]:
    settings_file = os.fsencode(bench.directory / "slurm-hooks.conf")
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):  # it has just ended
                if settings_file in (entry / "cmdline").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
    return found


def test_daemon_that_does_not_answer_is_not_waited_for(bench: HookBench) -> None:
    import socket

    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as deaf:
        deaf.bind(str(bench.spool_directory / "slurm-hooksd.sock"))
        deaf.listen(1)
        assert bench.run("suspend", NODES).returncode == 0
        assert "one-shot pass started" in bench.log
        wait_until("one-shot pass to speak", lambda: "not started" in bench.log, 60)


@pytest.mark.parametrize("program", ["resume", "suspend", "resume-fail"])
def test_installed_program_is_one_that_slurmctld_accepts(program: str) -> None:
    path = PROGRAMS / f"slurm-hooks-{program}"
    assert path.stat().st_mode & 0o022 == 0
    first_line = path.read_text().splitlines()[0]
    assert first_line.startswith("#!/")
    assert "env" not in Path(first_line[2:]).parts


def test_help_says_what_the_program_is_for(bench: HookBench) -> None:
    result = bench.run("resume", "--help")
    assert "ResumeProgram=" in result.stdout
    assert bench.call_files() == []
