"""Hook programs as Slurm runs them: real processes, with a spool and settings of their own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from slurm_hooks.programs import spool
from slurm_hooks.reconcile.bell import Bell
from slurm_hooks.reconcile.resume_calls import CallsDirectory
from slurm_hooks.reconcile.snapshot import ResumeCall
from slurm_hooks.slurm.hostlist import expand

PROGRAMS = Path(sys.executable).parent
DEADLINE_SECONDS = 20


@dataclass
class HookBench:
    """A place to run hook programs in and to see what they left."""

    directory: Path
    extra_environment: dict[str, str] = field(default_factory=dict)

    @property
    def spool_directory(self) -> Path:
        return self.directory / "spool"

    @property
    def log(self) -> str:
        path = self.directory / "log"
        return path.read_text() if path.exists() else ""

    def environment(self) -> dict[str, str]:
        """What Slurm gives a program: SLURM_CONF, and nothing that a shell would have."""
        return {"SLURM_CONF": str(self.directory / "slurm.conf"), **self.extra_environment}

    def start(
        self,
        program: str,
        arguments: Sequence[str],
        *,
        environment: Mapping[str, str] | None = None,
        preexec: Callable[[], None] | None = None,
    ) -> subprocess.Popen[str]:
        """Start a hook program; its output is kept."""
        return subprocess.Popen(
            [str(PROGRAMS / f"slurm-hooks-{program}"), *arguments],
            env=dict(self.environment() if environment is None else environment),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=preexec,
        )

    def run(
        self,
        program: str,
        *arguments: str,
        environment: Mapping[str, str] | None = None,
        preexec: Callable[[], None] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run a hook program to its end."""
        process = self.start(program, arguments, environment=environment, preexec=preexec)
        stdout, stderr = process.communicate(timeout=DEADLINE_SECONDS)
        return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)

    def calls(self) -> tuple[ResumeCall, ...]:
        """The ResumeProgram calls that the daemon finds; what is spent goes, as in its passes."""
        directory = CallsDirectory(self.spool_directory, expand)
        calls = directory.read()
        directory.remove_spent()
        return calls

    def call_files(self) -> list[Path]:
        """All files that hooks left, in order."""
        return sorted(Path(spool.requests_directory(str(self.spool_directory))).glob("*"))


@pytest.fixture
def bench(tmp_path: Path) -> HookBench:
    """A bench without a daemon."""
    (tmp_path / "spool").mkdir(mode=0o700)
    (tmp_path / "slurm-hooks.conf").write_text(
        f"SpoolDir={tmp_path}/spool\nLogFile={tmp_path}/log\n"
        f"ClusterConfig={tmp_path}/cluster_config.json\n"
    )
    return HookBench(tmp_path)


@pytest.fixture
def bell(bench: HookBench) -> Iterator[Bell]:
    """A daemon's bell that answers on the bench."""
    bell = Bell(bench.spool_directory)
    yield bell
    bell.close()
