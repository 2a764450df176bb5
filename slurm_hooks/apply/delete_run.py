"""Deletes all of a cluster: looks, does what can be done next, looks again, until nothing is left.

Nothing is remembered that a look does not show, so that a deletion which was cut short, or is done
twice, ends the same. No pass acts meanwhile: the mark in the spool forbids it, and stays.
"""

from __future__ import annotations

import contextlib
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from slurm_hooks.apply.inventory import (
    Deletion,
    Inventory,
    closing_reservation,
    inventory_lines,
    next_deletions,
    read_inventory,
)
from slurm_hooks.apply.retired_nodes import DELETED_REASON, UPDATES, Retirement, retirement_of
from slurm_hooks.apply.systems import Systems
from slurm_hooks.compute.classify import classify_operation
from slurm_hooks.compute.client import ComputeClient
from slurm_hooks.compute.errors import ComputeError, ErrorKind
from slurm_hooks.compute.model import Operation, Scope, ScopeKind
from slurm_hooks.reconcile import deleting
from slurm_hooks.reconcile.actions import (
    CancelRequest,
    DeleteGroup,
    DeleteInstance,
    DeleteTemplate,
)
from slurm_hooks.reconcile.bell import ring
from slurm_hooks.reconcile.locks import Locked, sole_runner
from slurm_hooks.reconcile.reasons import is_of_person
from slurm_hooks.reconcile.sightings import BELIEVED_AFTER
from slurm_hooks.slurm.client import NodeUpdate, ReservationSpecification, SlurmError
from slurm_hooks.slurm.hostlist import collapse
from slurm_hooks.slurm.model import Node

POLL_SECONDS = 2.0
OBEYED_SECONDS = 300.0
"""How long the pass that is under way may take to its end."""
CLOSED_LONGER_SECONDS = 600
"""How much longer than the deletion may take its reservation lasts."""
LASTING = (ErrorKind.PERMISSION, ErrorKind.CONFIG, ErrorKind.QUOTA)
"""Errors that no waiting mends."""


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """`force` takes nodes from their jobs; `timeout_seconds` is for all of it."""

    force: bool = False
    timeout_seconds: float = 1800.0


class Removal:
    """One deletion. `tell` gets what is left and what holds it up whenever that changes."""

    def __init__(
        self,
        spool: Path,
        systems: Systems,
        cluster_id: str,
        options: DeleteOptions,
        tell: Callable[[tuple[str, ...]], None],
        pause: Callable[[float], None] = time.sleep,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self._spool = spool
        self._systems = systems
        self._cluster_id = cluster_id
        self._options = options
        self._tell = tell
        self._pause = pause
        self._seconds = seconds
        self._run_id = uuid.uuid4().hex
        self._in_flight: dict[str, Operation] = {}
        self._attempts: Counter[str] = Counter()
        self._errors: dict[str, ComputeError] = {}

    def carry_out(self) -> tuple[str, ...]:
        """Delete everything; what is left when the time is over, empty when nothing is.

        Raises SlurmError, OSError, and Locked when the pass under way does not end.
        """
        end = self._seconds() + self._options.timeout_seconds
        was_marked = deleting.is_marked(self._spool)
        told: tuple[str, ...] = ()
        empty_since: float | None = None
        with self._without_passes():
            while True:
                left = self._look_and_do()
                if left and left != told:
                    self._tell(left)
                told = left
                now = self._seconds()
                if not left:
                    empty_since = now if empty_since is None else empty_since
                    settled = 0.0 if was_marked else BELIEVED_AFTER.total_seconds()
                    if now - empty_since >= settled:
                        return ()
                else:
                    empty_since, was_marked = None, False
                if left and (now > end or self._is_hopeless()):
                    return left
                self._pause(POLL_SECONDS)

    @contextlib.contextmanager
    def _without_passes(self) -> Iterator[None]:
        """Be sure that no pass acts: none runs, or the one that runs has seen the mark."""
        deleting.mark(self._spool)
        try:
            with sole_runner(self._spool):
                yield
            return
        except Locked:
            pass
        end = self._seconds() + OBEYED_SECONDS
        while not deleting.is_obeyed(self._spool):
            if self._seconds() > end:
                raise Locked(str(self._spool))
            ring(self._spool)
            self._pause(POLL_SECONDS / 4)
        yield

    def _look_and_do(self) -> tuple[str, ...]:
        """One round; what is still left, a line a thing."""
        self._poll()
        try:
            found = read_inventory(self._systems, self._cluster_id)
        except ComputeError as error:
            return (f"Compute Engine cannot be read: {error}",)
        nodes_left, is_busy = self._retire(found)
        if not is_busy:
            for deletion in next_deletions(found, frozenset(self._attempts)):
                self._start(deletion)
        if not found.has_resources and not nodes_left:
            for name in found.reservations:
                self._systems.slurm.delete_reservation(name)
        refusals = tuple(f"{subject}: {error}" for subject, error in self._errors.items())
        return (*inventory_lines(found), *nodes_left, *refusals)

    def _retire(self, found: Inventory) -> tuple[tuple[str, ...], bool]:
        """Take Slurm's nodes out of service; what is left to do, and whether a job forbids more."""
        holders = {node for use in found.jobs for node in use.nodes}
        steps: dict[Retirement, list[Node]] = {}
        for name, node in found.nodes.items():
            step = retirement_of(node, has_job=name in holders, force=self._options.force)
            steps.setdefault(step, []).append(node)
        if steps.keys() - {Retirement.NOTHING}:
            self._close(found)
        refusals = [
            line
            for step, updates in UPDATES.items()
            for names, reason in _by_reason(steps.get(step, []))
            for update in updates
            for line in self._update(names, update, reason)
        ]
        lines = (
            f"nodes {step}: {collapse(node.name for node in nodes)}"
            for step, nodes in steps.items()
            if step is not Retirement.NOTHING
        )
        return (*lines, *refusals), Retirement.BUSY in steps

    def _close(self, found: Inventory) -> None:
        """Keep jobs off all nodes. It ends by itself, should nobody come to take it away."""
        name = closing_reservation(self._cluster_id)
        if name not in found.reservations:
            seconds = int(self._options.timeout_seconds) + CLOSED_LONGER_SECONDS
            nodes = tuple(sorted(found.nodes))
            self._systems.slurm.create_reservation(
                ReservationSpecification(name, nodes, datetime.now(UTC), seconds)
            )

    def _update(self, names: list[str], update: NodeUpdate, reason: str | None) -> Iterator[str]:
        """Change nodes; a line where Slurm does not, which the next round tries again."""
        try:
            self._systems.slurm.update_nodes(names, update, reason)
        except SlurmError as error:
            yield f"{collapse(names)}: {error}"

    def _start(self, deletion: Deletion) -> None:
        subject = deletion.subject
        if subject in self._in_flight:
            return
        request_id = f"{self._run_id} {subject}#{self._attempts[subject]}"
        try:
            self._in_flight[subject] = _call(self._systems.compute, deletion, request_id)
        except ComputeError as error:
            self._end(subject, error)

    def _poll(self) -> None:
        for subject, operation in list(self._in_flight.items()):
            try:
                now = self._systems.compute.get_operation(operation)
            except ComputeError as error:
                if error.kind is ErrorKind.GONE:
                    self._end(subject, None)
                continue
            if now.error is not None:
                kind = classify_operation(now) or ErrorKind.CONFLICT
                self._end(subject, ComputeError(kind, now.error.code, now.error.message))
            elif now.done:
                self._end(subject, None)

    def _end(self, subject: str, error: ComputeError | None) -> None:
        self._in_flight.pop(subject, None)
        self._attempts[subject] += 1
        self._errors.pop(subject, None)
        if error is not None and error.kind in LASTING:
            self._errors[subject] = error

    def _is_hopeless(self) -> bool:
        return bool(self._errors) and not self._in_flight


def _by_reason(nodes: list[Node]) -> Iterator[tuple[list[str], str | None]]:
    """Nodes in two commands: those that get our reason, and those that keep a person's."""
    kept = [node.name for node in nodes if node.reason and is_of_person(node.reason)]
    if kept:
        yield kept, None
    rest = [node.name for node in nodes if not (node.reason and is_of_person(node.reason))]
    if rest:
        yield rest, DELETED_REASON


def _call(compute: ComputeClient, deletion: Deletion, request_id: str) -> Operation:
    if isinstance(deletion, CancelRequest):
        return compute.cancel_resize_request(deletion.request, request_id)
    if isinstance(deletion, DeleteGroup):
        return compute.delete_group(deletion.group, request_id)
    if isinstance(deletion, DeleteInstance):
        return compute.delete_instance(deletion.zone, deletion.name, request_id)
    if isinstance(deletion, DeleteTemplate):
        scope = Scope(ScopeKind.GLOBAL, "")
        return compute.delete_template(scope, deletion.name, request_id)
    return compute.delete_workload_policy(deletion.scope, deletion.name, request_id)
