"""Guests: what runs on VMs, as real processes of this machine.

Each VM that gets RUNNING has one process of its own session, a metadata server of its own, and a
file as its serial port. Whatever stops a VM, in the end no process of its guest is left. If the
emulator itself is killed, the kernel kills each guest's first process.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import logging
import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from slurm_hooks.sandbox.emulator import process_trees
from slurm_hooks.sandbox.emulator.metadata_server import MetadataServer
from slurm_hooks.sandbox.emulator.records import Instance
from slurm_hooks.sandbox.emulator.schedule import Effect
from slurm_hooks.sandbox.emulator.world import World

_PR_SET_PDEATHSIG = 1
_KILL_DEADLINE_SECONDS = 5.0
_LIBC = ctypes.CDLL(None, use_errno=True)
logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class GuestSettings:
    """The commands are argument vectors. Without a directory, serial ports live in a temporary
    one that is removed with the emulator."""

    boot_command: tuple[str, ...]
    stop_command: tuple[str, ...] = ()
    serial_directory: Path | None = None


@dataclass(slots=True, eq=False)
class _Guest:
    """One boot of one VM. `process` is None when the boot command could not be started."""

    instance: Instance
    metadata: MetadataServer
    environment: dict[str, str]
    process: subprocess.Popen[bytes] | None = None
    exited: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def group(self) -> int:
        """The process group of the guest; -1, which no process has, without one."""
        return self.process.pid if self.process else -1

    @property
    def marks(self) -> tuple[str, ...]:
        """What only this boot's environment holds."""
        names = ("SLURM_HOOKS_VM_ID", "GCE_METADATA_HOST")
        return tuple(f"{name}={self.environment[name]}" for name in names)


class GuestProcesses:
    """The guests of one emulator. `perform` lets an effect happen in the engine's present."""

    def __init__(
        self, settings: GuestSettings, world: World, perform: Callable[[Effect], None]
    ) -> None:
        self._settings = settings
        self._world = world
        self._perform = perform
        self._guests: dict[int, _Guest] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_stopping = False
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        if settings.serial_directory is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="slurm-hooks-emulator-")
            self._directory = Path(self._temporary.name)
        else:
            self._directory = settings.serial_directory
            self._directory.mkdir(parents=True, exist_ok=True)

    def boot(self, instance: Instance) -> None:
        """Start the boot command of a VM and its metadata server; not while the emulator ends."""
        if self._is_stopping:
            return
        metadata = MetadataServer(self._world, instance)
        guest = _Guest(instance, metadata, _environment(instance, metadata.port))
        self._guests[instance.instance_id] = guest
        self._start(metadata.serve())
        with self._serial_path(instance).open("ab", buffering=0) as serial:
            try:
                guest.process = _spawn(self._settings.boot_command, guest.environment, serial)
            except OSError as error:
                serial.write(f"emulator: the boot command failed: {error}\n".encode())
                logger.error("%s: the boot command failed: %s", instance.name, error)
                guest.exited.set()
                return
        self._watch(guest)

    def _watch(self, guest: _Guest) -> None:
        process = guest.process
        if process is None:
            return
        loop = asyncio.get_running_loop()
        descriptor = os.pidfd_open(process.pid)

        def on_exit() -> None:
            loop.remove_reader(descriptor)
            os.close(descriptor)
            status = process.wait()
            logger.info("%s: the guest ended with status %s", guest.instance.name, status)
            guest.exited.set()

        loop.add_reader(descriptor, on_exit)

    def shut_down(self, instance: Instance, stopped: Effect) -> None:
        """Stop a guest: stop command, SIGTERM, the shutdown window, SIGKILL."""
        guest = self._guests.pop(instance.instance_id, None)
        if guest is None:
            stopped()
            return

        async def stop() -> None:
            await self._stop(guest)
            self._perform(stopped)

        self._start(stop())

    async def _stop(self, guest: _Guest) -> None:
        window_seconds = self._world.behaviour.shutdown_window_seconds
        if self._settings.stop_command:
            await self._run_stop_command(guest, window_seconds)
        if guest.process is not None and not guest.exited.is_set():
            _signal_group(guest.group, signal.SIGTERM)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(window_seconds):
                    await guest.exited.wait()
        await self._kill(guest)
        await guest.metadata.close()
        self._forget_serial(guest.instance)

    async def _run_stop_command(self, guest: _Guest, limit_seconds: float) -> None:
        with self._serial_path(guest.instance).open("ab", buffering=0) as serial:
            try:
                process = _spawn(self._settings.stop_command, guest.environment, serial)
            except OSError as error:
                serial.write(f"emulator: the stop command failed: {error}\n".encode())
                return
        try:
            await asyncio.to_thread(process.wait, limit_seconds)
        except subprocess.TimeoutExpired:
            logger.warning("%s: the stop command took too long", guest.instance.name)
            _signal_group(process.pid, signal.SIGKILL)
            await asyncio.to_thread(process.wait)

    async def _kill(self, guest: _Guest) -> None:
        _signal_group(guest.group, signal.SIGKILL)
        all_gone = await asyncio.to_thread(
            process_trees.kill_all, guest.group, guest.marks, _KILL_DEADLINE_SECONDS
        )
        if not all_gone:
            logger.error("%s: some of the guest's processes cannot be killed", guest.instance.name)
        elif guest.process is not None:
            await guest.exited.wait()

    def power_off(self, instance: Instance) -> None:
        """Kill a guest at once and take its metadata server away."""
        guest = self._guests.pop(instance.instance_id, None)
        if guest is None:
            return
        _signal_group(guest.group, signal.SIGKILL)

        async def clear() -> None:
            await self._kill(guest)
            await guest.metadata.close()
            if instance.gone:
                self._forget_serial(instance)

        self._start(clear())

    def kill(self, instance: Instance) -> None:
        """Kill a guest's processes; its VM and metadata server stay."""
        guest = self._guests.get(instance.instance_id)
        if guest is not None:
            _signal_group(guest.group, signal.SIGKILL)
            self._start(self._kill(guest))

    def serial_output(self, instance: Instance) -> bytes:
        """All that the VM has written since its creation."""
        try:
            return self._serial_path(instance).read_bytes()
        except FileNotFoundError:
            return b""

    async def stop_all(self) -> None:
        """Stop all guests in order, side by side; afterwards nothing of them is left."""
        self._is_stopping = True
        guests = list(self._guests.values())
        self._guests.clear()
        for guest in guests:
            self._start(self._stop(guest))
        while self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._temporary is not None:
            self._temporary.cleanup()

    def _serial_path(self, instance: Instance) -> Path:
        return self._directory / f"{instance.name}-{instance.instance_id}.log"

    def _forget_serial(self, instance: Instance) -> None:
        if self._temporary is not None:
            self._serial_path(instance).unlink(missing_ok=True)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._note_end)

    def _note_end(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            logger.error("work on a guest failed", exc_info=task.exception())


def _environment(instance: Instance, metadata_port: int) -> dict[str, str]:
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "SLURM_HOOKS_VM_NAME": instance.name,
        "SLURM_HOOKS_VM_ID": str(instance.instance_id),
        "SLURM_HOOKS_VM_ZONE": instance.zone,
        "GCE_METADATA_HOST": f"127.0.0.1:{metadata_port}",
    }


def _spawn(
    command: tuple[str, ...], environment: dict[str, str], output: Any
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        env=environment,
        cwd="/",
        start_new_session=True,
        preexec_fn=_die_with_parent,
    )


def _die_with_parent() -> None:
    """Have the kernel kill this process when the emulator dies; runs in the new process."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _signal_group(group: int, number: int) -> None:
    if group > 1:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, number)
