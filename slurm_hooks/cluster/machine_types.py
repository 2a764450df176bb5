"""What a machine type is made of: a catalogue as data, with its source and date in the file.

`machine_types.json` in this package is the catalogue; a file of that name beside the cluster
file adds to it or replaces entries, so that a new machine type needs no new release. The CPU
count of the standard families is the last part of the name, as Compute Engine names them.
"""

from __future__ import annotations

import difflib
import json
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path

from slurm_hooks.cluster.errors import ClusterFileError, FieldError
from slurm_hooks.cluster.topology import ConfidentialInstanceType, ProvisioningModel

FILE_NAME = "machine_types.json"

EXAMPLE = '{"machine_types": {"NAME": {"cpus": 8, "memory_gb": 32}}}'
"""The least that declares a machine type, shown when one is unknown."""

STANDARD_MODELS = (
    ProvisioningModel.ON_DEMAND,
    ProvisioningModel.SPOT,
    ProvisioningModel.RESERVATION,
)
BOOT_DISK_TYPES = ("pd-ssd", "pd-standard", "hyperdisk-balanced")


@dataclass(frozen=True, slots=True)
class MachineType:
    """One machine type. `memory_gb` is what Compute Engine calls GB, which is 2^30 bytes.

    The first of `boot_disk_types` is the default. `sockets` counts those that the guest sees.
    `confidential_types` are those that the CPU platform has. VMs of a `reservation_bound` type live
    in a reservation as long as it does.
    """

    name: str
    cpus: int
    memory_gb: float
    sockets: int = 1
    threads_per_core: int = 2
    architecture: str = "X86_64"
    accelerator_type: str = ""
    accelerator_count: int = 0
    provisioning_models: tuple[ProvisioningModel, ...] = STANDARD_MODELS
    boot_disk_types: tuple[str, ...] = BOOT_DISK_TYPES
    confidential_types: tuple[ConfidentialInstanceType, ...] = ()
    reservation_bound: bool = False


@dataclass(frozen=True, slots=True)
class MachineCatalogue:
    """All machine types that are known, by name."""

    machine_types: dict[str, MachineType] = field(default_factory=dict)

    def get(self, name: str) -> MachineType | None:
        """The machine type of that name; None when the catalogue does not know it."""
        return self.machine_types.get(name)

    def nearest(self, name: str) -> str:
        """The known name most like this one; empty when none is like it."""
        return next(iter(difflib.get_close_matches(name, self.machine_types, n=1)), "")


@cache
def standard_catalogue() -> MachineCatalogue:
    """The catalogue of this package."""
    text = resources.files(__package__).joinpath(FILE_NAME).read_text(encoding="utf-8")
    document = json.loads(text)
    types = {name: _machine_type(name, entry) for name, entry in document["machine_types"].items()}
    for family, entry in document["families"].items():
        for cpus in entry["cpus"]:
            name = f"{family}-{cpus}"
            memory_gb = cpus * entry["memory_gb_per_cpu"]
            confidential = _confidential_types(entry.get("confidential_types"))
            types[name] = MachineType(name, cpus, memory_gb, confidential_types=confidential)
    return MachineCatalogue(types)


def catalogue_beside(cluster_file: Path) -> MachineCatalogue:
    """The catalogue together with the machine types declared beside a cluster file.

    Raises ClusterFileError when that file exists and cannot be used.
    """
    path = cluster_file.parent / FILE_NAME
    standard = standard_catalogue()
    if not path.is_file():
        return standard
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))["machine_types"].items()
        declared = {name: _machine_type(name, entry) for name, entry in entries}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ClusterFileError(
            (
                FieldError(
                    str(path), f"not a machine type file: {error!r}", f"write it as {EXAMPLE}"
                ),
            )
        ) from None
    return MachineCatalogue({**standard.machine_types, **declared})


def _machine_type(name: str, entry: dict[str, object]) -> MachineType:
    """Build one entry. Raises TypeError or ValueError for what it cannot be built from."""
    values = dict(entry)
    models = values.pop("provisioning_models", None)
    disks = values.pop("boot_disk_types", None)
    confidential = _confidential_types(values.pop("confidential_types", None))
    if models is not None:
        values["provisioning_models"] = tuple(ProvisioningModel(model) for model in _words(models))
    if disks is not None:
        values["boot_disk_types"] = _words(disks)
    values["confidential_types"] = confidential
    machine = MachineType(name, **values)  # type: ignore[arg-type]  # checked below
    if not isinstance(machine.reservation_bound, bool):
        raise ValueError(f"{name}: reservation_bound must be true or false")
    _check_numbers(machine)
    return machine


def _confidential_types(value: object) -> tuple[ConfidentialInstanceType, ...]:
    if value is None:
        return ()
    return tuple(ConfidentialInstanceType(word) for word in _words(value))


def _words(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not value or not all(isinstance(word, str) for word in value):
        raise ValueError(f"expected a list of words, not {value!r}")
    return tuple(value)


def _check_numbers(machine: MachineType) -> None:
    counts = (machine.cpus, machine.sockets, machine.threads_per_core, machine.accelerator_count)
    if not all(type(count) is int for count in counts) or min(counts[:3]) < 1 or counts[3] < 0:
        raise ValueError(f"{machine.name}: counts must be whole numbers")
    if machine.cpus % (machine.sockets * machine.threads_per_core):
        raise ValueError(f"{machine.name}: cpus must divide by sockets times threads_per_core")
    if not isinstance(machine.memory_gb, int | float) or not 1 <= machine.memory_gb < 1e6:
        raise ValueError(f"{machine.name}: memory_gb must be a number from 1")
    if not isinstance(machine.accelerator_type, str) or bool(machine.accelerator_type) != bool(
        machine.accelerator_count
    ):
        raise ValueError(f"{machine.name}: accelerator_type and accelerator_count belong together")
