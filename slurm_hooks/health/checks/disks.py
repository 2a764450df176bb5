"""The node's disks: room, inodes, and whether they can be written."""

from __future__ import annotations

import os
from collections.abc import Iterator

from slurm_hooks.health.evidence import Evidence
from slurm_hooks.health.model import Context, Finding, Verdict

_ROOT = "/"


class DisksCheck:
    """Whether the disks of the policy have room, inodes, and are writable."""

    name = "disks"
    contexts = frozenset({Context.PROLOG, Context.BACKGROUND})
    summary = "the disks have room and inodes left and are writable"
    explanation = (
        "Asks the file systems at the paths of `disks` in the policy (/, /mnt/localssd and"
        " /mnt/localdisk by default; one that is not mounted is left out). Read-only, fuller than"
        " disk_full_percent or out of inodes (inodes_full_percent) mean MANUAL, since only a person"
        " knows what may be removed; fuller than disk_warn_percent is a WARN."
    )

    def run(self, evidence: Evidence) -> Iterator[Finding]:
        """Look at each disk."""
        for path in evidence.policy.disks:
            place = evidence.host.path(path.lstrip("/"))
            if path != _ROOT and not os.path.ismount(place):
                continue
            try:
                found = os.statvfs(place)
            except OSError as error:
                yield Finding(self.name, Verdict.MANUAL, f"{path} cannot be read: {error.strerror}")
                continue
            yield from self._judge(path, found, evidence)

    def _judge(self, path: str, found: os.statvfs_result, evidence: Evidence) -> Iterator[Finding]:
        limits = evidence.policy.thresholds
        used = _used_percent(found.f_blocks - found.f_bfree, found.f_bavail)
        inodes = _used_percent(found.f_files - found.f_ffree, found.f_favail)
        if found.f_flag & os.ST_RDONLY:
            yield Finding(self.name, Verdict.MANUAL, f"{path} is read-only")
        if used >= limits.disk_full_percent:
            yield Finding(self.name, Verdict.MANUAL, f"{path} is {used:.0f}% full")
        elif used >= limits.disk_warn_percent:
            yield Finding(self.name, Verdict.WARN, f"{path} is {used:.0f}% full")
        if inodes >= limits.inodes_full_percent:
            yield Finding(self.name, Verdict.MANUAL, f"{path} has {inodes:.0f}% of inodes used")


def _used_percent(used: int, available: int) -> float:
    """As `df` counts: of what users can have. File systems without such a limit are at 0."""
    return 100 * used / (used + available) if used + available > 0 else 0.0
