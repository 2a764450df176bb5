"""All state of one emulated project, and the little that every part of the engine needs.

Nothing here reads a clock, opens a socket or waits: time is `now`, set by the engine, and later
effects stand in the schedule.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Protocol

from slurm_hooks.sandbox.emulator.capacity import CapacityTable
from slurm_hooks.sandbox.emulator.identifiers import Identifiers
from slurm_hooks.sandbox.emulator.places import Places, Scope
from slurm_hooks.sandbox.emulator.problems import OperationFailure
from slurm_hooks.sandbox.emulator.project import Project, healthy
from slurm_hooks.sandbox.emulator.quotas import QuotaTable
from slurm_hooks.sandbox.emulator.records import Group, Instance, Operation, Template
from slurm_hooks.sandbox.emulator.schedule import Effect, Schedule
from slurm_hooks.sandbox.emulator.settings import Behaviour, Latency

if TYPE_CHECKING:
    from slurm_hooks.sandbox.emulator.resource_policies import ResourcePolicy


class Guests(Protocol):
    """What runs on VMs."""

    def boot(self, instance: Instance) -> None:
        """Start the guest of a VM that has just become RUNNING."""

    def shut_down(self, instance: Instance, stopped: Effect) -> None:
        """Stop the guest in order; call `stopped` once nothing of it runs any more."""

    def power_off(self, instance: Instance) -> None:
        """Kill the guest at once."""

    def kill(self, instance: Instance) -> None:
        """Kill the guest's processes only; the VM keeps its metadata server."""

    def serial_output(self, instance: Instance) -> bytes:
        """All that the guest has written to its serial port."""


class NoGuests:
    """VMs on which nothing runs."""

    def boot(self, instance: Instance) -> None:
        """Do nothing."""

    def shut_down(self, instance: Instance, stopped: Effect) -> None:
        """Say at once that nothing runs."""
        stopped()

    def power_off(self, instance: Instance) -> None:
        """Do nothing."""

    def kill(self, instance: Instance) -> None:
        """Do nothing."""

    def serial_output(self, instance: Instance) -> bytes:
        """An empty port."""
        return b""


@dataclass(frozen=True, slots=True)
class Replay:
    """A request id's first call (method and path) and the operation that it began."""

    call: str
    operation: Operation


@dataclass(slots=True)
class World:
    """One project."""

    places: Places
    identifiers: Identifiers
    now: datetime
    latency: Latency = field(default_factory=Latency)
    behaviour: Behaviour = field(default_factory=Behaviour)
    guests: Guests = field(default_factory=NoGuests)
    schedule: Schedule = field(default_factory=Schedule)
    capacity: CapacityTable = field(default_factory=CapacityTable)
    quotas: QuotaTable = field(default_factory=QuotaTable)
    templates: dict[tuple[Scope, str], Template] = field(default_factory=dict)
    groups: dict[tuple[Scope, str], Group] = field(default_factory=dict)
    instances: dict[tuple[str, str], Instance] = field(default_factory=dict)
    policies: dict[tuple[Scope, str], ResourcePolicy] = field(default_factory=dict)
    unreachable_zones: frozenset[str] = frozenset()
    operations: dict[tuple[Scope, str], Operation] = field(default_factory=dict)
    replays: dict[str, Replay] = field(default_factory=dict)
    next_operation_failure: OperationFailure | None = None
    next_operation_is_stuck: bool = False
    stuck_operations: list[Callable[[OperationFailure | None], None]] = field(default_factory=list)
    free_addresses: list[int] = field(default_factory=list)
    address_count: int = 0
    gone_listeners: list[Callable[[Instance], None]] = field(default_factory=list)
    settled_listeners: list[Callable[[Group], None]] = field(default_factory=list)
    project: Project = field(init=False)
    round_is_scheduled: bool = False
    round_is_due: bool = False

    def __post_init__(self) -> None:
        self.project = healthy(self.identifiers, self.places)

    def after(self, seconds: float, effect: Effect) -> None:
        """Let an effect happen so many seconds from now."""
        self.schedule.at(self.now + timedelta(seconds=seconds), effect)

    def path(self, below_project: str) -> str:
        """A path below the project as messages name it."""
        return f"projects/{self.identifiers.project}/{below_project}"
