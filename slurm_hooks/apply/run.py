"""Carries out an apply: few steps, each safe to repeat, so that one that was cut short goes on.

No step trusts what an earlier run may have noted: each looks at the world and does what is left.
The order keeps jobs from harm: the daemon hears of the new file first, and lets nodes that leave
become free; only then does slurm.conf forget them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from slurm_hooks.apply.changes import compare
from slurm_hooks.apply.departures import held_up
from slurm_hooks.apply.impact import impact_of, slurm_node_names
from slurm_hooks.apply.inventory import closing_reservation
from slurm_hooks.apply.place import Place
from slurm_hooks.apply.plan import Plan
from slurm_hooks.apply.rendered_files import look_at_files, replace_file, write_files
from slurm_hooks.apply.retired_nodes import to_give_back
from slurm_hooks.apply.steps import ApplyOptions, Ending, Outcome, Progress, Standing, Step
from slurm_hooks.apply.systems import Systems, missing_includes, read_running, read_slurm
from slurm_hooks.apply.taking import Taking, Way, digest_of, taking_of
from slurm_hooks.apply.wanted import Wanted
from slurm_hooks.cluster.machine_types import FILE_NAME as CATALOGUE_FILE
from slurm_hooks.cluster.topology import Cluster
from slurm_hooks.compute.errors import ComputeError
from slurm_hooks.reconcile import deleting
from slurm_hooks.reconcile.bell import ring
from slurm_hooks.slurm.client import NodeUpdate, SlurmUnavailable
from slurm_hooks.slurm.render import include_lines

POLL_SECONDS = 2.0
TAKING_SECONDS = 120.0
"""How long a slurmctld that was told may take until it has the nodes."""


class Application:
    """One apply. `standing` says how the cluster stands; `pause` and `seconds` are the clock."""

    def __init__(
        self,
        place: Place,
        wanted: Wanted,
        applied: Cluster | None,
        systems: Systems,
        options: ApplyOptions,
        progress: Progress,
        standing: Callable[[], Standing],
        pause: Callable[[float], None] = time.sleep,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self._place = place
        self._wanted = wanted
        self._applied = applied
        self._systems = systems
        self._options = options
        self._progress = progress
        self._standing = standing
        self._pause = pause
        self._seconds = seconds
        self._end = 0.0

    def plan(self) -> Plan:
        """What there is to do. Raises ForeignFiles, OSError."""
        cluster = self._wanted.cluster
        changes = compare(self._applied, cluster)
        return Plan(
            cluster=cluster,
            changes=changes,
            impact=impact_of(changes, self._applied, cluster, read_slurm(self._systems)),
            files=look_at_files(
                self._place.directory, self._wanted.texts, self._options.overwrites_files
            ),
            taking=self._taking(),
            comes_back=deleting.is_marked(self._place.spool),
        )

    def carry_out(self) -> Ending:
        """Do all steps. Raises ForeignFiles, OSError, SlurmError, RestartFailed."""
        self._end = self._seconds() + self._options.timeout_seconds
        steps = {
            Step.CLUSTER_FILE: self._replace_cluster_file,
            Step.NODES_THAT_LEAVE: self._wait_for_departures,
            Step.FILES: self._write_files,
            Step.SLURMCTLD: self._have_it_taken,
            Step.RUNNING: self._wait_until_running,
        }
        for step, do in steps.items():
            self._progress.begins(step)
            ending = do()
            if ending is not None:
                return ending
            self._progress.ends(step)
        return Ending(Outcome.DONE, Step.RUNNING)

    def _replace_cluster_file(self) -> Ending | None:
        place, wanted = self._place, self._wanted
        if wanted.catalogue_text is not None:
            _put(place.cluster_file.parent / CATALOGUE_FILE, wanted.catalogue_text)
        _put(place.cluster_file, wanted.cluster_text)
        deleting.unmark(place.spool)
        ring(place.spool)
        return None

    def _wait_for_departures(self) -> Ending | None:
        return self._wait(Step.NODES_THAT_LEAVE, self._departures_held_up)

    def _departures_held_up(self) -> tuple[str, ...]:
        slurm = read_slurm(self._systems)
        if slurm is None:
            return self._held_up_without_slurm()
        cluster = self._wanted.cluster
        try:
            return held_up(cluster, slurm, self._systems.compute.read(cluster.cluster_id))
        except ComputeError as error:
            return (f"Compute Engine cannot be read: {error}",)

    def _held_up_without_slurm(self) -> tuple[str, ...]:
        """A slurmctld that never ran with our nodes has none to leave; another must answer."""
        nodes = [name for name in self._wanted.texts if name.endswith("nodes.conf")]
        directory, texts = self._place.directory, self._wanted.texts
        if all(_is_absent_or(directory / name, texts[name]) for name in nodes):
            return ()
        return ("slurmctld does not answer, so nobody knows which nodes are in use",)

    def _write_files(self) -> Ending | None:
        options = self._options
        write_files(self._place.directory, self._wanted.texts, options.overwrites_files)
        return None

    def _have_it_taken(self) -> Ending | None:
        missing = missing_includes(self._place.slurm_conf, include_lines(self._wanted.configless))
        if missing:
            lines = (f"add to {self._place.slurm_conf}:", *missing, "and run this again")
            return Ending(Outcome.NEEDS_HANDS, Step.SLURMCTLD, lines)
        taking = self._taking()
        if taking.way is Way.RESTART and not self._options.restarts_slurmctld:
            lines = (
                f"{taking.why}: add --restart-slurmctld, or restart it and run this again;"
                " no scontrol reconfigure before that",
            )
            return Ending(Outcome.NEEDS_HANDS, Step.SLURMCTLD, lines)
        if taking.way is not Way.KEEP:
            self._tell_slurmctld(taking.way)
        self._give_back()
        return None

    def _tell_slurmctld(self, way: Way) -> None:
        if way is Way.RESTART:
            self._systems.restart()
            self._wait_until_taken()
        # after a restart, too: it is how the slurmds hear of it
        self._systems.slurm.reconfigure()
        self._wait_until_taken()
        self._place.remember_taken(digest_of(self._wanted.texts))
        ring(self._place.spool)

    def _give_back(self) -> None:
        """Let nodes serve again that an earlier deletion took out of service."""
        slurm = read_slurm(self._systems)
        if slurm is None:
            return
        cluster_id = self._wanted.cluster.cluster_id
        if closing_reservation(cluster_id) in slurm.reservations:
            self._systems.slurm.delete_reservation(closing_reservation(cluster_id))
        names = to_give_back(slurm.nodes.values(), cluster_id)
        if names:
            self._systems.slurm.update_nodes(names, NodeUpdate.IDLE)
            ring(self._place.spool)

    def _wait_until_taken(self) -> None:
        end = self._seconds() + TAKING_SECONDS
        while True:
            running = read_running(self._systems, self._wanted.cluster)
            if running is not None and running.nodes == slurm_node_names(self._wanted.cluster):
                return
            if self._seconds() > end:
                had = "does not answer" if running is None else "has other nodes"
                raise SlurmUnavailable(
                    f"slurmctld {had} {TAKING_SECONDS:g} s after it was told: see its log"
                )
            self._pause(POLL_SECONDS / 4)

    def _wait_until_running(self) -> Ending | None:
        if not self._options.waits_until_running:
            return None
        return self._wait(Step.RUNNING, self._running_held_up)

    def _running_held_up(self) -> tuple[str, ...]:
        standing = self._standing()
        return () if standing.is_running else (standing.lines or ("it is on its way",))

    def _wait(self, step: Step, held_up_by: Callable[[], tuple[str, ...]]) -> Ending | None:
        """Wait until nothing holds a step up, and tell of what does whenever that changes."""
        told: tuple[str, ...] = ()
        while lines := held_up_by():
            news = tuple(line for line in lines if line not in told)
            if news:
                self._progress.says(step, news)
            told = lines
            if self._seconds() > self._end:
                return Ending(Outcome.HELD_UP, step, lines)
            self._pause(POLL_SECONDS)
        return None

    def _taking(self) -> Taking:
        return taking_of(
            self._wanted.texts,
            slurm_node_names(self._wanted.cluster),
            read_running(self._systems, self._wanted.cluster),
            self._place.taken_digest(),
            restarts_for_nodes=self._systems.restarts_for_nodes,
        )


def _put(path: Path, text: str) -> None:
    """Replace a file, unless it has the text already: whoever watches it would read it anew."""
    if not _is_absent_or(path, text) or not path.exists():
        replace_file(path, text)


def _is_absent_or(path: Path, text: str) -> bool:
    try:
        return path.read_text(encoding="utf-8") == text
    except FileNotFoundError:
        return True
    except UnicodeDecodeError:
        return False
