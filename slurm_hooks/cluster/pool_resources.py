"""What a node pool takes from outside: reservations, storage, the CPU's encryption, labels.

Pure: values in, mistakes out. Facts: the managed service's rules, and Compute Engine's forms of
names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from slurm_hooks.cluster import resource_names as names
from slurm_hooks.cluster.errors import FieldError
from slurm_hooks.cluster.fields import shown
from slurm_hooks.cluster.machine_types import MachineType
from slurm_hooks.cluster.spec import NodePoolSpec, ReservationAffinitySpec
from slurm_hooks.cluster.spelling import join
from slurm_hooks.cluster.topology import (
    ProvisioningModel,
    ReservationAffinityType,
    Reservations,
)

RESERVATION_KEY = "compute.googleapis.com/reservation-name"
"""The label key that stands for a reservation's name."""

_LABEL = re.compile(r"[a-z0-9_-]{0,63}")
OUR_LABELS = "slurm-hooks-"
MOST_LABELS = 60
"""Of the 64 that a VM may have; the rest is ours."""


def check_reservation(
    path: str, pool: NodePoolSpec, model: ProvisioningModel | None
) -> Iterator[FieldError]:
    """Whether affinity and model fit, and what the affinity says. `path` is of the machine_spec."""
    affinity, field = pool.machine_spec.reservation_affinity, f"{path}.reservation_affinity"
    if model is ProvisioningModel.RESERVATION:
        if affinity is None:
            remedy = f"name the reservation: {_EXAMPLE}"
            yield FieldError(field, "is required by provisioning_model RESERVATION", remedy)
        else:
            yield from _check_affinity(field, affinity, pool.zone)
    elif affinity is not None and model is not None:
        problem = f"must be absent with provisioning_model {model}"
        yield FieldError(field, problem, "remove it, or write provisioning_model RESERVATION")


def reservations_of(pool: NodePoolSpec, machine: MachineType) -> Reservations | None:
    """The reservations of a pool that has been checked."""
    affinity = pool.machine_spec.reservation_affinity
    if affinity is None:
        return None
    is_specific = affinity.reservation_affinity_type is ReservationAffinityType.SPECIFIC_RESERVATION
    return Reservations(
        affinity=affinity.reservation_affinity_type,
        key=(affinity.key or RESERVATION_KEY) if is_specific else "",
        values=tuple(affinity.values),
        bound=is_specific and machine.reservation_bound,
    )


def check_confidential(path: str, pool: NodePoolSpec, machine: MachineType) -> Iterator[FieldError]:
    """Whether the CPU platform has the encryption that is asked for."""
    config = pool.confidential_instance_config
    if config is None or config.confidential_instance_type in machine.confidential_types:
        return
    offered = ", ".join(machine.confidential_types)
    remedy = f"write one of {offered}" if offered else "remove it, or choose another machine type"
    problem = f"{machine.name} has no {config.confidential_instance_type}"
    yield FieldError(f"{path}.confidential_instance_type", problem, remedy)


def check_storage(path: str, pool: NodePoolSpec) -> Iterator[FieldError]:
    """The names of the Filestore and Lustre instances of a pool. `path` is the pool's own."""
    for kind, instances in (("filestores", pool.filestores), ("lustres", pool.lustres)):
        first: dict[str, int] = {}
        for index, text in enumerate(instances):
            match = names.STORAGE.fullmatch(text)
            if match is None:
                problem = f"{shown(text)} is no instance"
                remedy = "write projects/P/locations/ZONE/instances/NAME"
                yield FieldError(f"{path}.{kind}[{index}]", problem, remedy)
            elif first.setdefault(match.group("name"), index) != index:
                problem = f"has the name of entry {first[match.group('name')]}, and the same mount"
                remedy = "mount one of them alone, since the name is the mount point"
                yield FieldError(f"{path}.{kind}[{index}]", problem, remedy)


def check_labels(path: str, labels: Mapping[str, object]) -> Iterator[FieldError]:
    """Labels that Compute Engine would refuse, that would take the place of ours, or too many."""
    remedy = "use lower-case letters, digits, _ and -, at most 63, keys from a letter"
    for key, text in labels.items():
        where = join(path, key)
        if not (_LABEL.fullmatch(key) and key[:1].isalpha()):
            yield FieldError(where, f"{shown(key)} is no label key", remedy)
        elif key.startswith(OUR_LABELS):
            problem = "is one of the labels by which slurm-hooks knows its VMs"
            yield FieldError(where, problem, "use another key")
        elif not (isinstance(text, str) and _LABEL.fullmatch(text)):
            yield FieldError(where, f"has the value {shown(text)}", remedy)
    if len(labels) > MOST_LABELS:
        yield FieldError(path, f"has {len(labels)} labels", f"write {MOST_LABELS} at most")


_EXAMPLE = (
    '{"reservation_affinity_type": "SPECIFIC_RESERVATION",'
    f' "key": "{RESERVATION_KEY}", "values": ["projects/P/zones/Z/reservations/R"]}}'
)


def _check_affinity(
    path: str, affinity: ReservationAffinitySpec, zone: str
) -> Iterator[FieldError]:
    kind = affinity.reservation_affinity_type
    if kind is ReservationAffinityType.NO_RESERVATION:
        problem = "contradicts provisioning_model RESERVATION"
        remedy = "write SPECIFIC_RESERVATION or ANY_RESERVATION, or another model"
        yield FieldError(f"{path}.reservation_affinity_type", problem, remedy)
    elif kind is ReservationAffinityType.ANY_RESERVATION:
        for field in ("key", "values"):
            if getattr(affinity, field):
                problem = "has a meaning only for SPECIFIC_RESERVATION"
                yield FieldError(f"{path}.{field}", problem, "remove it, or change the type")
    else:
        yield from _check_specific(path, affinity, zone)


def _check_specific(
    path: str, affinity: ReservationAffinitySpec, zone: str
) -> Iterator[FieldError]:
    if affinity.key and affinity.key != RESERVATION_KEY:
        problem = f"{shown(affinity.key)} names no reservation"
        yield FieldError(f"{path}.key", problem, f"write {RESERVATION_KEY}")
    if not affinity.values:
        yield FieldError(f"{path}.values", "names no reservation", f"write {_EXAMPLE}")
    for index, text in enumerate(affinity.values):
        match = names.RESERVATION.fullmatch(text)
        if match is None:
            problem = f"{shown(text)} is no reservation, block or sub-block"
            remedy = "write projects/P/zones/Z/reservations/R"
            yield FieldError(f"{path}.values[{index}]", problem, remedy)
        elif names.ZONE.fullmatch(zone) and match.group("zone") != zone:
            problem = f"is in {match.group('zone')}, but the pool is in {zone}"
            yield FieldError(f"{path}.values[{index}]", problem, "keep both in one zone")
