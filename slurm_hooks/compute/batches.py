"""How a set of VMs is cut into calls: at most 1,000 a call, links and bare names apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

MOST_PER_CALL = 1_000


def is_mixed(zones_by_name: Mapping[str, str]) -> bool:
    """Whether some members have a VM (a zone) and some have none."""
    return len({bool(zone) for zone in zones_by_name.values()}) > 1


def delete_batches(zones_by_name: Mapping[str, str]) -> list[dict[str, str]]:
    """Parts of `zones_by_name`, each of which one `delete_instances` takes. Sorted by name."""
    ordered = sorted(zones_by_name.items())
    with_vm = iter([(name, zone) for name, zone in ordered if zone])
    without_vm = iter([(name, zone) for name, zone in ordered if not zone])
    return [*_cut(with_vm), *_cut(without_vm)]


def _cut(members: Iterator[tuple[str, str]]) -> Iterator[dict[str, str]]:
    while batch := dict(islice(members, MOST_PER_CALL)):
        yield batch
