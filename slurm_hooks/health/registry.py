"""All checks, in the order of their authority: what stands first names the verdict among equals.

Each is imported when a run needs it, since a prolog pays for every module.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from slurm_hooks.health.model import Context

if TYPE_CHECKING:
    from slurm_hooks.health.checks.base import Check

_CHECKS: tuple[tuple[str, str], ...] = (
    ("driver", "DriverCheck"),
    ("driver", "RecoveryActionCheck"),
    ("memory", "RowRemapCheck"),
    ("memory", "SramCheck"),
    ("driver", "GpuLostCheck"),
    ("inventory", "InventoryCheck"),
    ("links", "FabricCheck"),
    ("xids", "XidCheck"),
    ("links", "NvLinkCheck"),
    ("memory", "EccCheck"),
    ("memory", "RetiredPagesCheck"),
    ("links", "PcieLinkCheck"),
    ("links", "PcieErrorsCheck"),
    ("links", "NvLinkErrorsCheck"),
    ("clocks", "ThrottlingCheck"),
    ("clocks", "PersistenceCheck"),
    ("memory", "InforomCheck"),
    ("notices", "MaintenanceNoticeCheck"),
    ("network", "NetworkCheck"),
    ("network", "RdmaCheck"),
    ("disks", "DisksCheck"),
    ("disks", "DiskSpaceCheck"),
    ("tasks", "StuckTasksCheck"),
    ("tasks", "LoadCheck"),
    ("processes", "GhostProcessesCheck"),
    ("dcgm", "DcgmCheck"),
)
"""Module below `slurm_hooks.health.checks` and the class in it."""


def all_checks() -> Iterator[Check]:
    """Every check there is."""
    for module, name in _CHECKS:
        yield getattr(import_module(f"slurm_hooks.health.checks.{module}"), name)()


def checks_of(context: Context, only: Sequence[str] = ()) -> list[Check]:
    """The checks that run in a context; with `only`, those of these names in any context."""
    if only:
        return [check for check in all_checks() if check.name in only]
    return [check for check in all_checks() if context in check.contexts]
