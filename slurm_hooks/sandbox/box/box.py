"""A cluster in a box: real munged, slurmctld and slurmd, our daemon and the emulator.

Everything lies in one directory and descends from one supervisor, see there. A `Box` is a handle:
any number of them, in any process, may look after the same box.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from slurm_hooks.sandbox.box import supervision
from slurm_hooks.sandbox.box.configuration import BoxOptions
from slurm_hooks.sandbox.box.daemons import box_environment
from slurm_hooks.sandbox.box.layout import BoxError, Layout, default_directory
from slurm_hooks.sandbox.box.logs import log_tails
from slurm_hooks.sandbox.box.startup import prepare, start_box, start_daemon
from slurm_hooks.sandbox.box.state import BoxState, DaemonName, DaemonState, read_state
from slurm_hooks.sandbox.box.waiting import WaitedTooLong, wait_until
from slurm_hooks.sandbox.emulator.control import EmulatorControl

_COMMAND_SECONDS = 60.0
_END_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Daemon:
    """One daemon of a box, to be killed and started again."""

    box: Box
    name: DaemonName

    @property
    def state(self) -> DaemonState:
        """What box.json says of it now."""
        return self.box.state.daemon(self.name)

    @property
    def is_running(self) -> bool:
        """Whether its process runs."""
        return self.state.is_running

    def kill(self, signal_number: int = signal.SIGKILL) -> None:
        """Signal its process and wait for its end. Raises BoxError when it does not end."""
        process = self.state.process
        if process is None or not process.send_signal(signal_number):
            raise BoxError(f"{self.name} does not run")
        if not process.wait_until_gone(_END_SECONDS):
            raise BoxError(
                f"{self.name} still runs {_END_SECONDS:g} s after signal {signal_number}"
            )

    def start(self) -> None:
        """Start it and wait until it answers. Raises BoxError when it does not."""
        start_daemon(self.box.state, self.name)


class Box:
    """A handle of a box. `Box.start` makes one, `Box.open` finds one; as a context it is
    stopped at the end."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout

    @classmethod
    def start(
        cls,
        directory: Path | None = None,
        cluster_file: Path | None = None,
        *,
        daemon: bool = True,
        suspend_time_seconds: int = 15,
        capacity: int | None = None,
        latency: Mapping[str, float] | None = None,
        options: BoxOptions | None = None,
        release: bool = False,
        progress: Callable[[str], None] = lambda step: None,
    ) -> Self:
        """Make a box and wait until all of it answers.

        `capacity` is how many VMs each pool's zone can hold, None is without limit; `latency`
        are the emulator's by their JSON names. The box goes when this process ends, unless
        `release`. On any failure, an interrupt too, it is taken down and its logs are kept;
        raises BoxError then.
        """
        options = options or BoxOptions(
            with_daemon=daemon,
            suspend_time_seconds=suspend_time_seconds,
            capacity=capacity,
            latency=dict(latency or {}),
        )
        state = prepare(directory or default_directory(), cluster_file, options, sys.executable)
        box = cls(Layout(state.directory))
        try:
            start_box(state, options, progress)
            if release:
                supervision.request_release(box.layout)
        except BoxError as error:
            tails = log_tails(box.layout)
            box.stop(keep_logs=True)
            raise BoxError(f"{error}\nThe logs are in {box.logs}.\n{tails}") from error
        except BaseException:
            with interrupts_held_back():
                progress("taking the box down")
                box.stop(keep_logs=True)
                progress(f"the logs are in {box.logs}")
            raise
        return box

    @classmethod
    def open(cls, directory: Path | None = None) -> Self:
        """The box in a directory. Raises BoxError when there is none."""
        box = cls(Layout((directory or default_directory()).absolute()))
        _ = box.state
        return box

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def state(self) -> BoxState:
        """box.json as it is now. Raises BoxError when the box is gone."""
        state = read_state(self.layout)
        if state is None:
            raise BoxError(
                f"no box in {self.layout.directory}: start one with `slurm-hooks sandbox up`"
            )
        return state

    @property
    def logs(self) -> Path:
        """The directory of the log files."""
        return self.layout.logs

    @property
    def environment(self) -> dict[str, str]:
        """The environment in which commands meet the box's Slurm and no other."""
        return box_environment(self.layout, self.state.python, os.environ)

    @property
    def emulator_url(self) -> str:
        """Where the emulated Compute Engine answers."""
        return f"http://127.0.0.1:{self.state.ports.emulator}"

    @property
    def control(self) -> EmulatorControl:
        """The emulator's control surface."""
        return EmulatorControl(self.emulator_url)

    @property
    def munged(self) -> Daemon:
        """The munged of the box."""
        return Daemon(self, DaemonName.MUNGED)

    @property
    def emulator(self) -> Daemon:
        """The emulator. Killing it ends all VMs, and it forgets everything."""
        return Daemon(self, DaemonName.EMULATOR)

    @property
    def slurmctld(self) -> Daemon:
        """The slurmctld of the box."""
        return Daemon(self, DaemonName.SLURMCTLD)

    @property
    def daemon(self) -> Daemon:
        """The slurm-hooksd of the box."""
        return Daemon(self, DaemonName.HOOKSD)

    def run(
        self, arguments: Sequence[str], *, deadline_seconds: float = _COMMAND_SECONDS
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in the box's environment and directory for jobs, collect its output.

        Raises BoxError when it cannot be run or is not done by the deadline.
        """
        try:
            return subprocess.run(
                list(arguments),
                env=self.environment,
                cwd=self.layout.jobs,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=deadline_seconds,
                check=False,
            )
        except OSError as error:
            raise BoxError(f"{arguments[0]} cannot be run: {error.strerror}") from None
        except subprocess.TimeoutExpired:
            raise BoxError(f"{arguments[0]} was not done after {deadline_seconds:g} s") from None

    def wait_until(
        self, description: str, predicate: Callable[[], bool], deadline_seconds: float
    ) -> None:
        """Wait for a condition. Raises WaitedTooLong with the ends of all logs."""
        try:
            wait_until(description, predicate, deadline_seconds)
        except WaitedTooLong as error:
            raise WaitedTooLong(f"{error}\n{log_tails(self.layout)}") from None

    def stop(self, *, keep_logs: bool = False) -> None:
        """Take the box down and remove its directory; harmless when it is gone already.

        An interrupt meanwhile counts only once nothing is left.
        """
        with interrupts_held_back():
            state = read_state(self.layout)
            if state is not None:
                supervision.take_down(self.layout, state, keep_logs=keep_logs)


@contextmanager
def interrupts_held_back() -> Iterator[None]:
    """Let an interrupt (SIGINT) count only at the end: what it cut short would be left behind."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
