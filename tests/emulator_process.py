"""An emulator in a process of its own, as tests and benchmarks use it."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from types import TracebackType

from slurm_hooks.sandbox.emulator.control import EmulatorControl

_READY = "listening on "
_START_SECONDS = 60.0
_STOP_SECONDS = 30.0


class EmulatorProcess:
    """Starts `slurm-hooks emulator --fast` on a free port and stops it at the end.

    `url` is the base URL of both the API and the control surface, `control` steers it. Further
    arguments go to the command, e.g. `EmulatorProcess("--capacity", "0")`.
    """

    def __init__(self, *arguments: str, fast: bool = True) -> None:
        self._arguments: Sequence[str] = (*(("--fast",) if fast else ()), *arguments)
        self._process: subprocess.Popen[str] | None = None
        self.url = ""

    @property
    def control(self) -> EmulatorControl:
        """The control surface."""
        return EmulatorControl(self.url)

    @property
    def pid(self) -> int:
        """The process id of the running emulator."""
        assert self._process is not None, "the emulator is not started"
        return self._process.pid

    def __enter__(self) -> EmulatorProcess:
        command = [sys.executable, "-m", "slurm_hooks.cli.main", "emulator"]
        self._process = subprocess.Popen(
            [*command, "--listen", "127.0.0.1:0", *self._arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "NO_PROXY": "127.0.0.1"},
        )
        try:
            self.url = self._read_url(self._process)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    @staticmethod
    def _read_url(process: subprocess.Popen[str]) -> str:
        assert process.stdout is not None
        deadline = time.monotonic() + _START_SECONDS
        while select.select([process.stdout], [], [], max(0.0, deadline - time.monotonic()))[0]:
            line = process.stdout.readline()
            if line.startswith(_READY):
                return line.removeprefix(_READY).strip()
            if not line:
                raise RuntimeError(f"the emulator ended with status {process.wait()}")
        raise RuntimeError(f"the emulator was not ready after {_START_SECONDS:.0f} s")

    def wait(self) -> int:
        """Wait for the emulator to end by itself; its exit status."""
        assert self._process is not None, "the emulator is not started"
        return self._process.wait(_STOP_SECONDS)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        process = self._process
        if process is None:
            return
        process.terminate()
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()
