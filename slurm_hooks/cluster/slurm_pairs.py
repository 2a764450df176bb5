"""Settings of slurm.conf that are each right and together are not.

The managed service checks parameters one by one, so these pass there and then keep the controller
from starting. Which do was measured on slurmctld 22.05.8; of others Slurm ignores one without a
word to the user.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from slurm_hooks.cluster.fields import shown
from slurm_hooks.cluster.slurm_parameters import Place

PairMistake = tuple[str, str, str]
"""The parameter that is named, what is wrong, what would be right."""

_EXCLUSIVE = {
    Place.GLOBAL: (
        ("DefMemPerCPU", "DefMemPerNode"),
        ("DefMemPerCPU", "DefMemPerGPU"),
        ("DefMemPerNode", "DefMemPerGPU"),
        ("MaxMemPerCPU", "MaxMemPerNode"),
    ),
    Place.PARTITION: (
        ("DefMemPerCPU", "DefMemPerNode"),
        ("DefMemPerCPU", "DefMemPerGPU"),
        ("DefMemPerNode", "DefMemPerGPU"),
        ("MaxMemPerCPU", "MaxMemPerNode"),
        ("AllowAccounts", "DenyAccounts"),
        ("AllowQos", "DenyQos"),
        ("OverSubscribe", "Shared"),
    ),
    Place.NODE: (("CoreSpecCount", "CPUSpecList"),),
}
_NEEDED = {
    "MCSParameters": "MCSPlugin",
    "SlurmSchedLogLevel": "SlurmSchedLogFile",
    "PrioritySiteFactorParameters": "PrioritySiteFactorPlugin",
}
_ALWAYS_COUNTED = {"cpu", "mem", "energy", "node", "billing", "fs/disk", "vmem", "pages"}
"""What Slurm counts without AccountingStorageTRES."""

_VICTIM_FATES = {"CANCEL", "REQUEUE", "SUSPEND"}


def check_pairs(place: Place, settings: Mapping[str, str]) -> Iterator[PairMistake]:
    """Every such mistake in one map, whose values each fit."""
    for one, other in _EXCLUSIVE.get(place, ()):
        if one in settings and other in settings:
            yield other, f"excludes {one}, which is set too", "keep one of them"
    if place is not Place.GLOBAL:
        return
    for name, needed in _NEEDED.items():
        if name in settings and needed not in settings:
            yield name, f"means nothing without {needed}", f"set {needed} too"
    yield from _check_preemption(settings)
    yield from _check_weights(settings)


def _check_preemption(settings: Mapping[str, str]) -> Iterator[PairMistake]:
    chosen = settings.get("PreemptType", "preempt/none").lower()
    mode = settings.get("PreemptMode", "OFF")
    words = set(mode.strip('"').upper().split(","))
    fates = words & _VICTIM_FATES
    named = "PreemptMode" if "PreemptMode" in settings else "PreemptType"
    if chosen == "preempt/none":
        if words - {"OFF", "GANG"}:
            yield (
                named,
                f"{shown(mode)} with PreemptType=preempt/none keeps slurmctld from starting",
                "write OFF or GANG, or set PreemptType to preempt/partition_prio or preempt/qos",
            )
    elif len(fates) != 1 or "OFF" in words:
        yield (
            named,
            f"PreemptType={chosen} with PreemptMode={shown(mode)} keeps slurmctld from starting",
            "name one of CANCEL, REQUEUE and SUSPEND,GANG in PreemptMode",
        )
    elif "SUSPEND" in words and "GANG" not in words:
        yield (
            named,
            "SUSPEND without GANG keeps slurmctld from starting",
            "write SUSPEND,GANG",
        )
    if "WITHIN" in words and chosen == "preempt/partition_prio":
        yield named, "WITHIN has a meaning only for preempt/qos", "remove it"


def _check_weights(settings: Mapping[str, str]) -> Iterator[PairMistake]:
    counted = settings.get("AccountingStorageTRES", "").strip('"').lower().split(",")
    weights = settings.get("PriorityWeightTRES", "").strip('"').lower()
    weighed = [pair.partition("=")[0] for pair in weights.split(",") if pair]
    missing = [kind for kind in weighed if kind not in _ALWAYS_COUNTED and kind not in counted]
    if missing:
        yield (
            "PriorityWeightTRES",
            f"{shown(missing[0])} is not counted, and slurmctld would not start",
            "name it in AccountingStorageTRES too",
        )
