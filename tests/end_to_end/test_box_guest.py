"""A VM of a box ends as a whole, however its end comes and whatever its processes do."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from slurm_hooks.boot import keys
from slurm_hooks.sandbox.box.layout import Layout, claim_directory
from slurm_hooks.sandbox.box.node_programs import REBOOT_SIGNAL
from slurm_hooks.sandbox.box.processes import ProcessIdentity
from tests.end_to_end.leftovers import processes_of
from tests.unit.boot.vms import Vm, good_vm
from tests.waiting import wait_until

NODE = "flexvm-a3u-0"

SLURMD = """\
#!/bin/sh
[ "$1" = -V ] && exec echo slurm-wlm 22.05.8
# As slurmd does: a step manager that leaves its parent's session and tree, and a job below it.
(setsid sh -c 'trap "" TERM HUP; sleep 300 & echo $! > job.pid; wait' "$SLURM_CONF" &)
exec sleep 300
"""

pytestmark = pytest.mark.slow


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    layout = claim_directory(tmp_path / "box")
    layout.create()
    program = layout.programs / "slurmd"
    program.write_text(SLURMD)
    program.chmod(0o755)
    return layout


@pytest.fixture
def vm(tmp_path: Path) -> Iterator[Vm]:
    """Whom the guest asks at its boot."""
    with good_vm(tmp_path / "unused") as vm:
        name = vm.servers.replies["/computeMetadata/v1/instance/name"]
        vm.servers.replies["/computeMetadata/v1/instance/name"] = replace(name, body=NODE.encode())
        vm.tell(keys.CLUSTER, "flexvm")
        yield vm


def command_of(layout: Layout, vm: Vm) -> list[str]:
    return [
        *("env", f"SLURM_HOOKS_VM_NAME={NODE}"),
        f"GCE_METADATA_HOST={vm.servers.url.removeprefix('http://')}",
        *(sys.executable, "-m", "slurm_hooks.sandbox.box.guest", "--dir", str(layout.directory)),
        *("--slurmd", str(layout.programs / "slurmd"), "--api", vm.servers.url),
    ]


@pytest.fixture
def guest(layout: Layout, vm: Vm) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(command_of(layout, vm), start_new_session=True) as process:
        job = layout.node_spools / NODE / "job.pid"
        wait_until("the job runs", job.exists, 20)
        assert layout.guest(NODE).exists()
        yield process
        process.kill()


def expect_nothing_left(layout: Layout) -> None:
    wait_until("no process is left", lambda: not processes_of(layout.directory), 10)
    assert not (layout.node_spools / NODE).exists()
    assert not layout.guest(NODE).exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stopped_vm_leaves_no_process(
    layout: Layout, guest: subprocess.Popen[bytes], number: signal.Signals
) -> None:
    guest.send_signal(number)
    assert guest.wait(timeout=10) == 0
    expect_nothing_left(layout)


def test_a_killed_vm_leaves_no_process(layout: Layout, guest: subprocess.Popen[bytes]) -> None:
    os.killpg(guest.pid, signal.SIGKILL)
    assert guest.wait(timeout=10) == -signal.SIGKILL
    expect_nothing_left(layout)


def test_a_vm_whose_slurmd_dies_ends_with_an_error(
    layout: Layout, guest: subprocess.Popen[bytes]
) -> None:
    slurmd = next(
        pid for pid, text in processes_of(layout.directory).items() if text.startswith("sleep 300")
        and (layout.node_spools / NODE / "job.pid").read_text().strip() != str(pid)
    )  # fmt: skip
    os.kill(slurmd, signal.SIGKILL)
    assert guest.wait(timeout=10) == 1
    expect_nothing_left(layout)


def test_a_vm_whose_boot_fails_stays_without_slurmd_and_boots_again_when_told(
    layout: Layout, vm: Vm, tmp_path: Path
) -> None:
    vm.tell(keys.STARTUP_SCRIPT, "exit 3")
    console = tmp_path / "console"

    def has_failed_twice() -> bool:
        failures = console.read_text().count("startup-script failed ended with status 3")
        if failures == 1 and not is_booting(layout):
            reboot(layout)  # which a VM heeds once its slurmd, if it had one, would run
        return failures == 2

    with (
        console.open("wb") as output,
        subprocess.Popen(command_of(layout, vm), stdout=output, start_new_session=True) as guest,
    ):
        try:
            wait_until("the boot has failed twice", has_failed_twice, 20)
            assert not (layout.node_spools / NODE).exists()
            guest.terminate()
            assert guest.wait(timeout=10) == 0
        finally:
            guest.kill()
    expect_nothing_left(layout)


def is_booting(layout: Layout) -> bool:
    return any("slurm_hooks.boot" in text for text in processes_of(layout.directory).values())


def reboot(layout: Layout) -> None:
    identity = ProcessIdentity(**json.loads(layout.guest(NODE).read_text()))
    identity.send_signal(REBOOT_SIGNAL)


def test_a_vm_ends_with_whoever_started_it(layout: Layout, vm: Vm) -> None:
    script = "import subprocess, sys; subprocess.Popen(sys.argv[1:]).wait()"
    with subprocess.Popen(
        [sys.executable, "-c", script, *command_of(layout, vm)], start_new_session=True
    ) as emulator:
        job = layout.node_spools / NODE / "job.pid"
        wait_until("the job runs", job.exists, 20)
        emulator.kill()
    expect_nothing_left(layout)
