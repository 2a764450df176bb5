"""One read of Compute Engine put together, with VMs of one name kept apart."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from slurm_hooks.compute.model import ComputeSnapshot, Group, Instance, Member, ResizeRequest

_NEVER = datetime.max.replace(tzinfo=UTC)


def assemble(
    groups: Iterable[Group],
    requests: Iterable[ResizeRequest],
    instances: Iterable[Instance],
    members: Iterable[Member] = (),
) -> ComputeSnapshot:
    """A snapshot of what was read.

    Of several VMs of one name the oldest stands under `instances`, all under `duplicates`. A VM
    that came twice, on two pages, is one VM. A member whose VM was listed has one.
    """
    by_name: dict[str, dict[tuple[str, str], Instance]] = defaultdict(dict)
    for instance in instances:
        by_name[instance.name][instance.zone, instance.instance_id] = instance
    namesakes = {name: sorted(found.values(), key=_age) for name, found in by_name.items()}
    return ComputeSnapshot(
        groups={group.reference: group for group in groups},
        requests={request.reference: request for request in requests},
        instances={name: found[0] for name, found in namesakes.items()},
        duplicates=_duplicates(namesakes.values()),
        members={member.name: member for member in members if member.name not in namesakes},
    )


def _age(instance: Instance) -> tuple[datetime, str, str]:
    return (instance.creation_time_utc or _NEVER, instance.zone, instance.instance_id)


def _duplicates(namesakes: Iterable[Sequence[Instance]]) -> tuple[Instance, ...]:
    return tuple(instance for found in namesakes if len(found) > 1 for instance in found)
