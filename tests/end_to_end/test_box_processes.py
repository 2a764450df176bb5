"""Processes are known by more than their pid."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from slurm_hooks.sandbox.box.processes import descendants, identify, identify_self
from tests.waiting import wait_until


def test_a_process_is_itself_and_no_earlier_one_with_its_pid() -> None:
    me = identify_self()
    assert me.is_alive()
    assert not replace(me, start_ticks=me.start_ticks - 1).is_alive()
    assert not replace(me, boot_id="another boot").is_alive()


def test_a_signal_never_reaches_a_stranger_with_the_same_pid() -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        identity = identify(process.pid)
        assert identity is not None
        stranger = replace(identity, start_ticks=identity.start_ticks + 1)
        assert not stranger.send_signal(signal.SIGKILL)
        assert not identity.wait_until_gone(deadline_seconds=0.1)
        assert identity.send_signal(signal.SIGKILL)
        assert identity.wait_until_gone(deadline_seconds=5)
        assert not identity.is_alive()
    assert identify(identity.pid) is None


def test_a_zombie_counts_as_gone() -> None:
    process = subprocess.Popen(["true"])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert identify(process.pid) is None
    process.wait()


def test_descendants_are_children_and_their_children() -> None:
    with subprocess.Popen(
        ["sh", "-c", "sleep 60 & echo $!; wait"], stdout=subprocess.PIPE, text=True
    ) as shell:
        assert shell.stdout is not None
        grandchild = int(shell.stdout.readline())
        assert descendants(os.getpid())[:1] == [shell.pid]
        assert descendants(os.getpid())[-1] == grandchild
        os.kill(grandchild, signal.SIGKILL)


def test_a_process_lives_on_after_its_first_thread() -> None:
    script = """\
import ctypes, platform, threading, time
libc = ctypes.CDLL(None)
threading.Thread(target=time.sleep, args=(60,)).start()
print("two threads", flush=True)
exit_of_one_thread = {"x86_64": 60, "aarch64": 93}[platform.machine()]
libc.syscall(exit_of_one_thread, 0)
"""
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True
    ) as process:
        identity = identify(process.pid)
        assert identity is not None
        assert process.stdout is not None
        process.stdout.readline()
        stat = Path(f"/proc/{process.pid}/stat")
        wait_until("its first thread is a zombie", lambda: ") Z " in stat.read_text(), 5)
        assert identity.is_alive()
        assert not identity.wait_until_gone(deadline_seconds=0.1)
        process.kill()
        assert identity.wait_until_gone(deadline_seconds=5)
        assert not identity.is_alive()
