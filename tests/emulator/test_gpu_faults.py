"""The control surface breaks GPUs of pretended nodes, and of nothing else."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from slurm_hooks.sandbox.emulator.control import EmulatorControl, EmulatorControlError
from slurm_hooks.sandbox.gpu.state import STATE_NAME
from tests.emulator.http_api import Api
from tests.emulator_process import EmulatorProcess
from tests.waiting import eventually

pytestmark = pytest.mark.slow

# Boots as a box's guest does, but without slurmd, and with a driver that no program loads.
GUEST = """
import os, time
from pathlib import Path
from slurm_hooks.sandbox.node.hardware import NodeHardware
from slurm_hooks.sandbox.node.root import NodeRoot, boot_node
roots = Path({roots!r})
node, vm_id = os.environ["SLURM_HOOKS_VM_NAME"], os.environ["SLURM_HOOKS_VM_ID"]
(roots / "library").touch()
hardware = NodeHardware(gpus=8, nvlinks=18)
boot_node(NodeRoot(roots / node), hardware, roots / "library", vm_id, "127.0.0.1:9")
print("booted", flush=True)
time.sleep(600)
"""


@pytest.fixture
def emulator(tmp_path: Path) -> Iterator[EmulatorProcess]:
    guest = shlex.join([sys.executable, "-c", GUEST.format(roots=str(tmp_path))])
    with EmulatorProcess("--boot-command", guest, "--node-roots", str(tmp_path)) as running:
        Api(running.url).make_group()
        yield running


def driver_lines(roots: Path, node: str) -> list[str]:
    path = roots / node / "usr/lib" / STATE_NAME
    return path.read_text().splitlines() if path.exists() else []


def boot(emulator: EmulatorProcess, roots: Path, node: str) -> None:
    Api(emulator.url).make_vms(node)
    eventually(lambda: (roots / node / "boot").exists(), bool)


def test_fault_reaches_the_gpu_that_was_named(emulator: EmulatorProcess, tmp_path: Path) -> None:
    boot(emulator, tmp_path, "n-0")
    emulator.control.gpu_fault("n-0", "lost", gpu=3)
    lines = driver_lines(tmp_path, "n-0")
    assert [line for line in lines if line.endswith(".lost=1")] == ["gpu.3.lost=1"]
    assert "NVRM: Xid (PCI:0000:07:00): 79," in (tmp_path / "n-0/dev/kmsg").read_text()


def test_state_of_the_driver_can_be_set_line_by_line(
    emulator: EmulatorProcess, tmp_path: Path
) -> None:
    boot(emulator, tmp_path, "n-0")
    emulator.control.set_gpu_state("n-0", {"gpu.2.field.230": "uint:2", "gpu.0.serial": None})
    lines = driver_lines(tmp_path, "n-0")
    assert "gpu.2.field.230=uint:2" in lines
    assert not [line for line in lines if line.startswith("gpu.0.serial=")]


def refused(control: EmulatorControl, node: str, kind: str, gpu: int = 0) -> tuple[int, str]:
    with pytest.raises(EmulatorControlError) as caught:
        control.gpu_fault(node, kind, gpu=gpu)
    assert caught.value.status is not None
    return caught.value.status, str(caught.value)


def test_what_cannot_be_broken_is_refused_with_the_reason(
    emulator: EmulatorProcess, tmp_path: Path
) -> None:
    boot(emulator, tmp_path, "n-0")
    assert refused(emulator.control, "n-9", "lost")[0] == 404
    for kind, gpu, reason in (
        ("melted", 0, "kind must be one of"),
        ("lost", 8, "has no GPU 8"),
        ("xid", 0, "an Xid is a number"),
    ):
        status, text = refused(emulator.control, "n-0", kind, gpu)
        assert status == 400
        assert reason in text


def test_vm_before_its_boot_is_not_taken_for_the_last_one_of_its_name(
    emulator: EmulatorProcess, tmp_path: Path
) -> None:
    boot(emulator, tmp_path, "n-0")
    (tmp_path / "n-0" / "boot").write_text("1\n127.0.0.1:9\n0.0\n")
    assert "has not booted yet" in refused(emulator.control, "n-0", "lost")[1]


def test_emulator_without_pretended_nodes_says_so() -> None:
    with EmulatorProcess("--boot-command", "/bin/sleep 600") as running:
        Api(running.url).make_group()
        Api(running.url).make_vms("n-0")
        assert "without --node-roots" in refused(running.control, "n-0", "lost")[1]
