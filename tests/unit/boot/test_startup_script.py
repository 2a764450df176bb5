"""The pool's startup script: run whole, told line by line, ended in time."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from slurm_hooks.boot import keys
from tests.unit.boot.vms import Vm
from tests.waiting import wait_until


def told(vm: Vm) -> list[str]:
    lines = vm.console.splitlines()
    return [line.removeprefix("startup-script: ") for line in lines if "startup-script: " in line]


def test_script_without_an_interpreter_is_run_by_bash(vm: Vm) -> None:
    vm.tell(keys.STARTUP_SCRIPT, 'words=(a b); echo "${words[1]}"; echo last >&2; pwd')
    assert vm.boot()
    assert told(vm) == ["b", "last", str(vm.root)]


def test_script_has_a_path_and_a_home_and_nothing_else_of_ours(vm: Vm) -> None:
    vm.tell(keys.STARTUP_SCRIPT, "env | grep -v '^_=' | sort")
    assert vm.boot()
    names = {line.partition("=")[0] for line in told(vm)}
    assert names == {"HOME", "PATH", "PWD", "SHLVL"}
    assert f"HOME={Path.home()}" in told(vm)


def test_script_may_name_its_interpreter(vm: Vm) -> None:
    vm.tell(keys.STARTUP_SCRIPT, "#!/usr/bin/env python3\nprint(6 * 7)\n")
    assert vm.boot()
    assert told(vm) == ["42"]


def test_script_that_fails_fails_the_boot(vm: Vm) -> None:
    vm.tell(keys.STARTUP_SCRIPT, "echo about to fail; exit 7")
    assert not vm.boot()
    assert told(vm) == ["about to fail"]
    assert vm.steps[-1] == "startup-script failed ended with status 7 after 0 s"
    assert vm.options == ""


def test_script_killed_by_a_signal_fails_the_boot(vm: Vm) -> None:
    vm.tell(keys.STARTUP_SCRIPT, "kill -SEGV $$")
    assert not vm.boot()
    assert vm.steps[-1].startswith("startup-script failed ended with signal 11")


def test_script_that_does_not_end_is_ended_with_its_children(vm: Vm) -> None:
    vm.tell(keys.STARTUP_SCRIPT, f"sleep 300 & echo $! > {vm.root}/child; echo waits; wait")
    vm.tell(keys.STARTUP_SCRIPT_SECONDS, "1")
    assert not vm.boot()
    assert told(vm) == ["waits"]
    assert vm.steps[-1] == "startup-script failed not done after 1 s"
    child = (vm.root / "child").read_text().strip()
    wait_until("the child has ended", lambda: not is_running(child), 10)


def is_running(pid: str) -> bool:
    try:
        return Path("/proc", pid, "stat").read_text().rpartition(") ")[2][0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.slow
def test_script_ends_with_a_boot_that_is_told_to_end(vm: Vm) -> None:
    vm.tell(keys.STARTUP_SCRIPT, f"echo $$ > {vm.root}/script; exec sleep 300")
    with subprocess.Popen(vm.command, stdout=subprocess.PIPE, text=True) as program:
        file = vm.root / "script"
        wait_until("the script runs", lambda: file.exists() and file.read_text() != "", 20)
        program.terminate()
        output, _ = program.communicate(timeout=20)
    assert program.returncode == 1
    assert output.endswith("slurm-hooks-boot: startup-script failed told to end\n")
    wait_until("the script has ended", lambda: not is_running(file.read_text().strip()), 10)
    assert vm.options == ""


def test_what_a_script_leaves_in_the_background_lives_on_and_holds_up_nothing(vm: Vm) -> None:
    vm.tell(keys.STARTUP_SCRIPT, f"sleep 300 & echo $! > {vm.root}/child")
    assert vm.boot()
    child = int((vm.root / "child").read_text())
    os.kill(child, signal.SIGKILL)


def test_endless_output_does_not_push_our_lines_off_the_console(vm: Vm) -> None:
    vm.tell(keys.STARTUP_SCRIPT, "head -c 2000000 /dev/zero | tr '\\0' x; yes | head -n 100000")
    assert vm.boot()
    assert len(vm.console) < 400_000
    assert told(vm)[-1] == "(more output is not shown)"
    assert told(vm).count("(more output is not shown)") == 1


def test_last_words_of_a_script_are_told_however_fast_it_ends(vm: Vm) -> None:
    words = "import os; os.write(1, b'word\\n' * 12_000); os._exit(0)"
    vm.tell(keys.STARTUP_SCRIPT, f'exec python3 -c "{words}"')
    assert vm.boot()
    assert told(vm) == ["word"] * 12_000


def test_script_is_run_at_each_boot(vm: Vm) -> None:
    vm.tell(keys.STARTUP_SCRIPT, "echo again")
    assert vm.boot()
    assert vm.boot()
    assert told(vm) == ["again", "again"]


def test_script_that_cannot_be_run_fails_the_boot(vm: Vm) -> None:
    vm.tell(keys.STARTUP_SCRIPT, "#!/no/such/interpreter\n")
    assert not vm.boot()
    assert vm.steps[-1].startswith("startup-script failed No such file or directory")
