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
import http.client
import json
import os
import re
import select
import shutil
import signal
import socket
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from http import HTTPStatus
from pathlib import Path

from slurm_hooks.boot import keys
from slurm_hooks.sandbox.box import processes
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

_METADATA_SECONDS = 10.0
_NODE_NAME = re.compile(r"[a-z][a-z0-9-]{0,62}")


def main() -> int:
    """Be the VM named in SLURM_HOOKS_VM_NAME until told to stop, or until slurmd ends."""
    parser = argparse.ArgumentParser(prog="slurm_hooks.sandbox.box.guest")
    parser.add_argument("--dir", type=Path, required=True)
    parser.add_argument("--slurmd", required=True)
    arguments = parser.parse_args()
    node = os.environ.get("SLURM_HOOKS_VM_NAME", "")
    if not _NODE_NAME.fullmatch(node):
        parser.error(f"SLURM_HOOKS_VM_NAME is not a VM name: {node!r}")
    layout = Layout(arguments.dir)
    emulator = os.pidfd_open(os.getppid())
    outer_pid = os.getpid()
    inner_pid = os.fork()
    if inner_pid == 0:
        os.setsid()
        os._exit(_keep_slurmd(layout, node, arguments.slurmd, outer_pid))
    return _stand_for_vm(inner_pid, emulator)


def _stand_for_vm(inner_pid: int, emulator: int) -> int:
    """Pass on the order to stop; end when the inner process has ended, with its status."""
    inner = os.pidfd_open(inner_pid)
    orders = _Orders(inner, emulator)
    while not orders.wait():
        pass
    with contextlib.suppress(ProcessLookupError):
        os.kill(inner_pid, signal.SIGTERM)
    _, status = os.waitpid(inner_pid, 0)
    return os.waitstatus_to_exitcode(status)


def _keep_slurmd(layout: Layout, node: str, program: str, outer_pid: int) -> int:
    """Run slurmd until it ends (status 1), a stop signal comes or the outer process is gone.

    A reboot ends slurmd and all of its processes, and starts it on the same VM again.
    """
    processes.become_subreaper()
    orders = _Orders(os.pidfd_open(outer_pid))
    order = None if os.getppid() == outer_pid else _Order.STOP
    failed = False
    if order is None and _is_login_node():
        _write_identity(layout, node)
        while orders.wait() is not _Order.STOP:
            pass
        order = _Order.STOP
    while order is not _Order.STOP and not orders.stop_within(_FIRMWARE_SECONDS):
        _boot(layout, node)
        slurmd = _start_slurmd(layout, node, program)
        with orders.also_watching(slurmd.pid):
            while (order := orders.wait()) is None:
                processes.reap_children()
        failed = order is _Order.STOP and not slurmd.is_alive()
        processes.kill_descendants(deadline_seconds=10)
    layout.guest(node).unlink(missing_ok=True)
    shutil.rmtree(layout.node_spools / node, ignore_errors=True)
    return 1 if failed else 0


def _is_login_node() -> bool:
    """Whether the VM's metadata says so: a login node has no slurmd."""
    host = os.environ.get("GCE_METADATA_HOST", "")
    if not host:
        return False
    connection = http.client.HTTPConnection(host, timeout=_METADATA_SECONDS)
    with contextlib.closing(connection):
        path = f"/computeMetadata/v1/instance/attributes/{keys.ROLE}"
        connection.request("GET", path, headers={"Metadata-Flavor": "Google"})
        answer = connection.getresponse()
        return answer.status == HTTPStatus.OK and answer.read().decode() == keys.Role.LOGIN


def _boot(layout: Layout, node: str) -> None:
    """Make the node that health programs look at, and tell who can be asked for a reboot."""
    root = NodeRoot(layout.node(node))
    boot_node(
        root,
        read_hardware(layout.hardware, node),
        layout.driver_library,
        os.environ.get("SLURM_HOOKS_VM_ID", ""),
        os.environ.get("GCE_METADATA_HOST", ""),
    )
    apply_lasting_faults(root)
    for scripts in layout.site_scripts:
        if scripts.is_dir():
            place = root.path("etc", "slurm-hooks", scripts.name)
            shutil.copytree(scripts, place, dirs_exist_ok=True)
    _write_identity(layout, node)


class _Order(enum.Enum):
    """What the guest is told to do."""

    STOP = enum.auto()
    REBOOT = enum.auto()


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

    @contextlib.contextmanager
    def also_watching(self, pid: int) -> Iterator[None]:
        """Take the end of one more process as a reason to stop."""
        descriptor = os.pidfd_open(pid)
        self._poll.register(descriptor, select.POLLIN)
        try:
            yield
        finally:
            self._poll.unregister(descriptor)
            os.close(descriptor)

    def stop_within(self, seconds: float) -> bool:
        """Whether a reason to stop comes in this time; what else comes is passed over."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if self.wait(left) is _Order.STOP:
                return True
        return False

    def wait(self, seconds: float | None = None) -> _Order | None:
        """Wait for an order; None when none came, or only the end of some child.

        An order to reboot counts although slurmd may have ended since.
        """
        ready = {
            descriptor
            for descriptor, _ in self._poll.poll(None if seconds is None else seconds * 1000)
        }
        wakeup = self._wakeup.fileno()
        signals = set(self._wakeup.recv(4096)) if wakeup in ready else set()
        if not _STOP_SIGNALS.isdisjoint(signals):
            return _Order.STOP
        if REBOOT_SIGNAL in signals:
            return _Order.REBOOT
        return _Order.STOP if ready - {wakeup} else None


def _start_slurmd(layout: Layout, node: str, program: str) -> processes.ProcessIdentity:
    spool = layout.node_spools / node
    shutil.rmtree(spool, ignore_errors=True)
    spool.mkdir(mode=0o700)
    with layout.log(f"{node}.out").open("ab") as output:
        return processes.start(
            (program, "-D", "-b", "-N", node, "-f", str(layout.slurm_conf)),
            output=output,
            directory=spool,
            environment={**os.environ, "SLURM_CONF": str(layout.slurm_conf)},
            death_signal=signal.SIGKILL,
        )


def _write_identity(layout: Layout, node: str) -> None:
    identity = json.dumps(asdict(processes.identify_self()))
    layout.guest(node).write_text(identity + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
