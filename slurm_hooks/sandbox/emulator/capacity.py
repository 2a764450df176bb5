"""How many VMs of a machine type a zone can hold. A VM holds its place until it is gone."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class CapacityTable:
    """Limits and use by (zone, machine type). `default` None is without limit."""

    default: int | None = None
    limits: dict[tuple[str, str], int | None] = field(default_factory=dict)
    used: Counter[tuple[str, str]] = field(default_factory=Counter)

    def set_limit(self, zone: str, machine_type: str, vms: int | None) -> None:
        """Change a limit. VMs beyond a lowered limit stay."""
        self.limits[zone, machine_type] = vms

    def has_room(self, zone: str, machine_type: str, vms: int) -> bool:
        """Whether so many more VMs fit."""
        limit = self.limits.get((zone, machine_type), self.default)
        return limit is None or self.used[zone, machine_type] + vms <= limit

    def take(self, zone: str, machine_type: str) -> None:
        """Note that a VM was made."""
        self.used[zone, machine_type] += 1

    def give_back(self, zone: str, machine_type: str) -> None:
        """Note that a VM is gone."""
        self.used[zone, machine_type] -= 1
