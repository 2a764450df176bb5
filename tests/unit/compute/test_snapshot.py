"""VMs of one name are kept apart, and one VM that came twice is one."""

from __future__ import annotations

from datetime import UTC, datetime

from slurm_hooks.compute.model import Instance, InstanceStatus
from slurm_hooks.compute.snapshot import assemble


def instance(name: str, zone: str, identity: str, day: int | None) -> Instance:
    created = None if day is None else datetime(2026, 1, day, tzinfo=UTC)
    return Instance(name, identity, zone, InstanceStatus.RUNNING, creation_time_utc=created)


def test_the_oldest_of_a_name_stands_for_it_and_all_are_told() -> None:
    young, old, undated = (
        instance("n", "a", "1", 2),
        instance("n", "b", "2", 1),
        instance("n", "c", "3", None),
    )
    snapshot = assemble([], [], [undated, young, old, instance("m", "a", "4", 1)])
    assert snapshot.instances["n"] == old
    assert snapshot.duplicates == (old, young, undated)
    assert set(snapshot.instances) == {"n", "m"}


def test_a_vm_that_was_made_anew_between_two_pages_is_told_apart() -> None:
    before, after = instance("n", "a", "1", 1), instance("n", "a", "2", 2)
    assert assemble([], [], [before, after]).duplicates == (before, after)


def test_a_vm_on_two_pages_is_one_vm() -> None:
    twice = instance("n", "a", "1", 1)
    snapshot = assemble([], [], [twice, twice])
    assert (snapshot.instances, snapshot.duplicates) == ({"n": twice}, ())
