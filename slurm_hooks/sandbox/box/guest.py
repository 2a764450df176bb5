"""One VM of a box: a slurmd and all that descends from it, gone without trace when the VM is.

The emulator starts this as a VM's boot command, with the VM's name in SLURM_HOOKS_VM_NAME. Two
processes: the outer one stands for the VM towards the emulator, the inner one, in a session of
its own, keeps slurmd. So the VM ends as a whole however the outer one ends, by SIGKILL too: the
inner one sees that and kills every descendant. slurmstepd and job processes leave slurmd's tree
by design; as a subreaper the inner one gets them back. Standard library only: it starts per VM.
"""

from __future__ import annotations

import argparse
import contextlib
import enum
import json
import os
import re
import select
import shlex
import shutil
import signal
import socket
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from slurm_hooks.sandbox.box import processes
from slurm_hooks.sandbox.box.guest_image import install_image
from slurm_hooks.sandbox.box.layout import Layout
from slurm_hooks.sandbox.box.node_programs import REBOOT_SIGNAL
from slurm_hooks.sandbox.node.faults import apply_lasting_faults
from slurm_hooks.sandbox.node.hardware import read_hardware
from slurm_hooks.sandbox.node.root import NodeRoot, boot_node

_STOP_SIGNALS = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP})

_FIRMWARE_SECONDS = 2.0
"""slurmctld ignores a registration whose boot time, in whole seconds, is before the resume
request. The VM is younger than the request, so 2 s after its start slurmd's start time (-b) is
later than it, whatever the rounding."""

_GPU_SECONDS = 3
"""How long a boot waits for GPUs, which are there from the start or broken."""

_NODE_NAME = re.compile(r"[a-z][a-z0-9-]{0,62}")


@dataclass(frozen=True, slots=True)
class _Vm:
    """This VM: its box, its name, its slurmd, and where Google's services answer."""

    layout: Layout
    node: str
    slurmd: Path
    api: str

    @property
    def root(self) -> NodeRoot:
        """The root of the node."""
        return NodeRoot(self.layout.node(self.node))


def main() -> int:
    """Be the VM named in SLURM_HOOKS_VM_NAME until told to stop, or until slurmd ends."""
    parser = argparse.ArgumentParser(prog="slurm_hooks.sandbox.box.guest")
    parser.add_argument("--dir", type=Path, required=True)
    parser.add_argument("--slurmd", type=Path, required=True)
    parser.add_argument("--api", required=True, help="where Google's services answer")
    arguments = parser.parse_args()
    node = os.environ.get("SLURM_HOOKS_VM_NAME", "")
    if not _NODE_NAME.fullmatch(node):
        parser.error(f"SLURM_HOOKS_VM_NAME is not a VM name: {node!r}")
    vm = _Vm(Layout(arguments.dir), node, arguments.slurmd, arguments.api)
    emulator = os.pidfd_open(os.getppid())
    outer_pid = os.getpid()
    inner_pid = os.fork()
    if inner_pid == 0:
        os.setsid()
        os._exit(_keep_node(vm, outer_pid))
    return _stand_for_vm(inner_pid, emulator)


def _stand_for_vm(inner_pid: int, emulator: int) -> int:
    """Pass on the order to stop; end when the inner process has ended, with its status."""
    inner = os.pidfd_open(inner_pid)
    orders = _Orders(inner, emulator)
    while orders.wait() is None:
        pass
    with contextlib.suppress(ProcessLookupError):
        os.kill(inner_pid, signal.SIGTERM)
    _, status = os.waitpid(inner_pid, 0)
    return os.waitstatus_to_exitcode(status)


def _keep_node(vm: _Vm, outer_pid: int) -> int:
    """Be the node until slurmd ends (status 1), a stop signal comes or the outer process is gone.

    A reboot ends slurmd and all of its processes, and boots the same VM again.
    """
    processes.become_subreaper()
    orders = _Orders(os.pidfd_open(outer_pid))
    order = _Order.REBOOT if os.getppid() == outer_pid else _Order.STOP
    while order is _Order.REBOOT:
        order = _live(vm, orders)
        processes.kill_descendants(deadline_seconds=10)
    vm.layout.guest(vm.node).unlink(missing_ok=True)
    shutil.rmtree(vm.layout.node_spools / vm.node, ignore_errors=True)
    return 1 if order is _Order.ENDED else 0


def _live(vm: _Vm, orders: _Orders) -> _Order:
    """One life between two boots: the boot program, then slurmd if the boot says so."""
    firmware_end = time.monotonic() + _FIRMWARE_SECONDS
    _switch_on(vm)
    if orders.stop_within(0):  # an order to reboot that came too early is carried out
        return _Order.STOP
    order = orders.wait_for(_start_boot(vm))
    if order is not _Order.ENDED:
        return order
    if orders.stop_within(firmware_end - time.monotonic()):
        return _Order.STOP
    options = _slurmd_options(vm)
    # A login VM runs none, and a VM whose boot failed stays as it is.
    return orders.wait_for(None if options is None else _start_slurmd(vm, options))


def _switch_on(vm: _Vm) -> None:
    """Make the node that the boot and health programs look at, and tell who can be asked for a
    reboot."""
    boot_node(
        vm.root,
        read_hardware(vm.layout.hardware, vm.node),
        vm.layout.driver_library,
        os.environ.get("SLURM_HOOKS_VM_ID", ""),
        os.environ.get("GCE_METADATA_HOST", ""),
    )
    apply_lasting_faults(vm.root)
    for scripts in vm.layout.site_scripts:
        if scripts.is_dir():
            place = vm.root.path("etc", "slurm-hooks", scripts.name)
            shutil.copytree(scripts, place, dirs_exist_ok=True)
    install_image(vm.layout, vm.root, vm.slurmd)
    _write_identity(vm)


class _Order(enum.Enum):
    """What the guest is told to do, or that what it runs has ended."""

    STOP = enum.auto()
    REBOOT = enum.auto()
    ENDED = enum.auto()


class _Orders:
    """Reasons to stop, which are a stop signal and the end of a process behind a pidfd, and the
    signal to reboot."""

    def __init__(self, *pidfds: int) -> None:
        self._poll = select.poll()
        self._wakeup, self._sender = socket.socketpair()
        self._wakeup.setblocking(False)
        self._sender.setblocking(False)
        signal.set_wakeup_fd(self._sender.fileno())
        for number in (*_STOP_SIGNALS, REBOOT_SIGNAL, signal.SIGCHLD):
            signal.signal(number, lambda *_: None)
        for descriptor in (self._wakeup.fileno(), *pidfds):
            self._poll.register(descriptor, select.POLLIN)

    def wait_for(self, process: processes.ProcessIdentity | None) -> _Order:
        """Wait for an order, or for the end of a child, if there is one to wait for."""
        watched = os.pidfd_open(process.pid) if process else None
        if watched is not None:
            self._poll.register(watched, select.POLLIN)
        try:
            while (order := self._wait(watched=watched)) is None:
                processes.reap_children()
            return order
        finally:
            if watched is not None:
                self._poll.unregister(watched)
                os.close(watched)

    def stop_within(self, seconds: float) -> bool:
        """Whether a reason to stop comes in this time, or has come already; what else comes is
        passed over."""
        end = time.monotonic() + seconds
        while True:
            left = max(0.0, end - time.monotonic())
            if self._wait(left) is _Order.STOP:
                return True
            if not left:
                return False

    def wait(self) -> _Order | None:
        """Wait for an order; None when none came, but the end of some child."""
        return self._wait()

    def _wait(self, seconds: float | None = None, watched: int | None = None) -> _Order | None:
        """An order to reboot counts although the watched process may have ended since."""
        ready = {
            descriptor
            for descriptor, _ in self._poll.poll(None if seconds is None else seconds * 1000)
        }
        wakeup = self._wakeup.fileno()
        signals = set(self._wakeup.recv(4096)) if wakeup in ready else set()
        if not _STOP_SIGNALS.isdisjoint(signals) or ready - {wakeup, watched}:
            return _Order.STOP
        if REBOOT_SIGNAL in signals:
            return _Order.REBOOT
        return _Order.ENDED if watched in ready else None


def _start_boot(vm: _Vm) -> processes.ProcessIdentity:
    """Start what a VM runs at each boot. Its output is the serial console, as ours is."""
    metadata = f"http://{os.environ.get('GCE_METADATA_HOST', '')}/computeMetadata/v1"
    with os.fdopen(os.dup(1), "ab") as console:
        return processes.start(
            (
                sys.executable, "-I", "-m", "slurm_hooks.boot.program",
                "--root", str(vm.root.directory), "--console", "", "--metadata-url", metadata,
                "--secret-manager-url", vm.api, "--filestore-url", vm.api,
                "--lustre-url", f"{vm.api}/lustre", "--gpu-seconds", str(_GPU_SECONDS),
            ),
            output=console,
            directory=vm.root.directory,
            environment=os.environ,
            death_signal=signal.SIGKILL,
        )  # fmt: skip


def _slurmd_options(vm: _Vm) -> tuple[str, ...] | None:
    """What the boot has handed to slurmd, but for the place of the configuration; None where no
    slurmd is to start."""
    try:
        text = vm.root.path("run", "slurm-hooks", "slurmd").read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    words = shlex.split(text.partition("=")[2].strip().strip('"'))
    # Configless slurmds of one machine would share one munged and one /run/slurm.
    if "--conf-server" in words:
        place = words.index("--conf-server")
        del words[place : place + 2]
    return ("-f", str(vm.layout.slurm_conf), *words)


def _start_slurmd(vm: _Vm, options: tuple[str, ...]) -> processes.ProcessIdentity:
    spool = vm.layout.node_spools / vm.node
    shutil.rmtree(spool, ignore_errors=True)
    spool.mkdir(mode=0o700)
    with vm.layout.log(f"{vm.node}.out").open("ab") as output:
        return processes.start(
            (str(vm.slurmd), "-D", "-b", *options),
            output=output,
            directory=spool,
            environment={**os.environ, "SLURM_CONF": str(vm.layout.slurm_conf)},
            death_signal=signal.SIGKILL,
        )


def _write_identity(vm: _Vm) -> None:
    identity = json.dumps(asdict(processes.identify_self()))
    # As a whole: whoever wants to reboot the VM may be reading it.
    path = vm.layout.guest(vm.node)
    temporary = path.with_suffix(".new")
    temporary.write_text(identity + "\n", encoding="utf-8")
    temporary.replace(path)


if __name__ == "__main__":
    sys.exit(main())
