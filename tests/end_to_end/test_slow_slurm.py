"""A slurmctld that answers slowly, or with nonsense, costs time and nothing else."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.end_to_end.fleet import UNTIL_TOLD, Fleet
from tests.end_to_end.lifecycle import N0, N1
from tests.end_to_end.watch import Watch

pytestmark = pytest.mark.slow

SLOW_SECONDS = 6
"""Of each command. A slurmctld of a large cluster that swaps takes 20; ours wait for 60."""
DONE_SECONDS = 150
"""A pass has half a dozen commands, and three passes lead to a node that runs a job."""
COMMANDS = ("scontrol", "squeue", "scancel")

_WRAPPER = """\
#!/bin/sh
if [ -e "{mode}/slow" ]; then sleep {seconds}; fi
if [ -e "{mode}/nonsense" ]; then cat "{mode}/nonsense"; exit 0; fi
exec "{real}/${{0##*/}}" "$@"
"""


@dataclass(frozen=True)
class Commands:
    """Slurm's commands as our daemon meets them, and as nobody else does."""

    mode: Path

    @contextmanager
    def slow(self) -> Iterator[None]:
        """Each takes its time."""
        with self._having("slow", ""):
            yield

    @contextmanager
    def answering(self, text: str) -> Iterator[None]:
        """Each answers this, and that all is well."""
        with self._having("nonsense", text):
            yield

    @contextmanager
    def _having(self, name: str, text: str) -> Iterator[None]:
        path = self.mode / name
        # Complete at once: what finds half of it would be another answer.
        hidden = self.mode / f".{name}"
        hidden.write_text(text, encoding="utf-8")
        hidden.rename(path)
        try:
            yield
        finally:
            path.unlink()


def wrap_commands(fleet: Fleet, directory: Path) -> Commands:
    """Have the daemon use commands of ours that lead to Slurm's."""
    settings = fleet.box.layout.settings
    text = settings.read_text(encoding="utf-8")
    match = re.search(r"^SlurmBinDir=(.*)$", text, re.MULTILINE)
    assert match is not None
    for name in COMMANDS:
        path = directory / name
        wrapper = _WRAPPER.format(mode=directory, seconds=SLOW_SECONDS, real=match.group(1))
        path.write_text(wrapper, encoding="utf-8")
        path.chmod(0o755)
    settings.write_text(text.replace(match.group(0), f"SlurmBinDir={directory}"), encoding="utf-8")
    process = fleet.box.daemon.state.process
    assert process is not None
    assert process.send_signal(signal.SIGHUP)
    fleet.box.wait_until("the daemon to use them", lambda: bool(fleet.log_lines("reloaded")), 30)
    return Commands(directory)


def test_slow_answers_delay_a_job_and_nonsense_is_an_outage(
    start_fleet: Callable[..., Fleet], tmp_path: Path
) -> None:
    fleet = start_fleet(1)
    fleet.wait_until_up(N0)
    commands = wrap_commands(fleet, tmp_path)
    watch = Watch(fleet, "Slurm")
    vm, changes = fleet.vm_id(N0), fleet.changes()
    with fleet.interactive(N0, *UNTIL_TOLD) as running:
        fleet.box.wait_until("the job", lambda: "ALLOCATED" in fleet.node_flags(N0), 30)
        with commands.slow(), fleet.interactive(N1, "hostname") as waiting:
            assert waiting.wait(DONE_SECONDS) == 0
        assert watch.has_noticed_nothing()

        for answer in ("", "Segmentation fault\n", '{"nodes": 7}\n'):
            watch = Watch(fleet, "Slurm")
            with commands.answering(answer):
                watch.wait_until_noticed()
            watch.wait_until_over()

        fleet.wait_for_passes()
        assert not [line for line in fleet.changes()[len(changes) :] if N0 in line]
        assert fleet.vm_id(N0) == vm
        fleet.let_go()
        assert running.wait(30) == 0
