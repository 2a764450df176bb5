"""The regions and zones that the emulator serves, and scopes: where a resource lives."""

from __future__ import annotations

import enum
import functools
from collections.abc import Iterable
from dataclasses import dataclass

DEFAULT_ZONES = (
    "us-central1-a",
    "us-central1-b",
    "us-central1-c",
    "us-central1-f",
    "europe-west4-a",
    "europe-west4-b",
    "europe-west4-c",
    "us-east5-a",
    "us-east5-b",
    "us-east5-c",
)


class ScopeKind(enum.StrEnum):
    """The word for a scope in the service's paths."""

    ZONE = "zones"
    REGION = "regions"
    GLOBAL = "global"


@dataclass(frozen=True, slots=True, order=True)
class Scope:
    """A zone, a region, or the whole project (then `name` is empty)."""

    kind: ScopeKind
    name: str = ""

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}" if self.name else str(self.kind)

    @property
    def region(self) -> str:
        """The region that this scope lies in; empty for GLOBAL."""
        return region_of(self.name) if self.kind is ScopeKind.ZONE else self.name


GLOBAL = Scope(ScopeKind.GLOBAL)


@functools.cache
def zone_scope(zone: str) -> Scope:
    """The scope of a zone."""
    return Scope(ScopeKind.ZONE, zone)


def region_of(zone: str) -> str:
    """The region of a zone, by its name."""
    return zone.rpartition("-")[0]


@dataclass(frozen=True, slots=True)
class Places:
    """The zones of each region that is served."""

    zones_by_region: dict[str, tuple[str, ...]]

    @classmethod
    def of(cls, zones: Iterable[str]) -> Places:
        """Group zones by region, keeping their order."""
        grouped: dict[str, tuple[str, ...]] = {}
        for zone in zones:
            region = region_of(zone)
            grouped[region] = (*grouped.get(region, ()), zone)
        return cls(grouped)

    @property
    def zones(self) -> list[str]:
        """All zones."""
        return [zone for zones in self.zones_by_region.values() for zone in zones]

    @property
    def regions(self) -> list[str]:
        """All regions."""
        return list(self.zones_by_region)

    @property
    def scopes(self) -> list[Scope]:
        """All regions and zones as scopes, regions first."""
        regions = [Scope(ScopeKind.REGION, region) for region in self.regions]
        return [*regions, *(zone_scope(zone) for zone in self.zones)]

    def has(self, scope: Scope) -> bool:
        """Whether the scope is served."""
        return scope == GLOBAL or scope in self.scopes
