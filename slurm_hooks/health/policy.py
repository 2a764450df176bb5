"""What a site decides about health checks: thresholds, expectations, overrides, switches.

Written in /etc/slurm-hooks/health.yaml. Every default works without a file.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from slurm_hooks.health.model import Verdict


class ExpectedHardware(NamedTuple):
    """What a machine type has; None for what is not checked.

    `nvlinks` are active links a GPU, 0 where it has none by design; `pcie_lanes` the width of its
    PCIe link.
    """

    gpus: int | None = None
    nvlinks: int | None = None
    rdma_ports: int | None = None
    network_interfaces: int | None = None
    pcie_lanes: int | None = None


class Thresholds(NamedTuple):
    """Limits beyond which a value is a finding."""

    disk_warn_percent: int = 90
    disk_full_percent: int = 98
    inodes_full_percent: int = 98
    load_per_core_warn: float = 4.0
    ecc_corrected_per_second_warn: float = 100.0
    retired_pages_bad: int = 10
    nvlink_bit_error_rate_warn: float = 1e-6
    pcie_replays_per_minute_warn: float = 8.0
    rdma_downs_bad: int = 3
    throttled_percent_warn: int = 10
    ghost_memory_bytes: int = 512 * 1024 * 1024
    dcgm_every_minutes: int = 60


class Deadlines(NamedTuple):
    """Seconds. `prolog` is for the whole run of the checks, whatever the driver does."""

    prolog: float = 5.0
    epilog: float = 30.0
    background: float = 45.0
    report: float = 3.0
    site_script: float = 60.0
    burn_in: float = 900.0


class HealthPolicy(NamedTuple):
    """The whole policy. `xids` overrides the Xid table, `machine_types` adds to the built-in
    expectations (what is None there stays as it is built in), `observe` reports and does not act,
    `observed_checks` the same for single ones."""

    observe: bool = False
    observed_checks: frozenset[str] = frozenset()
    disabled_checks: frozenset[str] = frozenset()
    xids: Mapping[int, Verdict] = MappingProxyType({})
    machine_types: Mapping[str, ExpectedHardware] = MappingProxyType({})
    most_restarts: int = 3
    """A job that was queued again so often is not queued again by an Epilog."""
    disks: tuple[str, ...] = ("/", "/mnt/localssd", "/mnt/localdisk")
    disk_full_verdict: Verdict = Verdict.MANUAL
    """What a disk means that a job has filled: MANUAL, REPLACE or WARN."""
    burn_in: tuple[str, ...] | None = None
    """The command that a node must stand after a repair. None for DCGM's where it is installed,
    empty for none at all."""
    thresholds: Thresholds = Thresholds()
    deadlines: Deadlines = Deadlines()
