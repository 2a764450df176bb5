"""The node's disks: whether they can be read and written, and whether they have room."""

from __future__ import annotations

import os
from collections.abc import Iterator

from slurm_hooks.health import files
from slurm_hooks.health.evidence import Evidence
from slurm_hooks.health.model import Context, Finding, Verdict

_ROOT = "/"
_HAD_ROOM = "disks-with-room"


class DisksCheck:
    """Whether the disks of the policy can be read and written."""

    name = "disks"
    contexts = frozenset({Context.PROLOG, Context.BACKGROUND})
    summary = "the disks can be read and written"
    explanation = (
        "Asks the file systems at the paths of `disks` in the policy (/, /mnt/localssd and"
        " /mnt/localdisk by default; one that is not mounted is left out). One that is read-only or"
        " cannot be read means MANUAL."
    )

    def run(self, evidence: Evidence) -> Iterator[Finding]:
        """Look at each disk."""
        for path in _mounted(evidence):
            try:
                found = os.statvfs(_place(path, evidence))
            except OSError as error:
                yield Finding(self.name, Verdict.MANUAL, f"{path} cannot be read: {error.strerror}")
                continue
            if found.f_flag & os.ST_RDONLY:
                yield Finding(self.name, Verdict.MANUAL, f"{path} is read-only")


class DiskSpaceCheck:
    """Whether the disks of the policy have room and inodes left."""

    name = "disk_space"
    contexts = frozenset({Context.PROLOG, Context.BACKGROUND})
    summary = "the disks have room and inodes left"
    explanation = (
        "Asks the file systems at the paths of `disks` in the policy. Fuller than"
        " disk_full_percent, or out of inodes (inodes_full_percent), means what"
        " `disk_full_verdict` says: MANUAL, since a job has filled the disk, no hardware is at"
        " fault, and only a person knows what may be removed; REPLACE, since a new VM has empty"
        " disks; or WARN. A disk that never had room on this VM is MANUAL all the same: it would be"
        " full on the next VM, too. Fuller than disk_warn_percent is a WARN, and so is all in the"
        " background while a job runs, since its Epilog may clean up after it."
    )

    def run(self, evidence: Evidence) -> Iterator[Finding]:
        """Look at each disk, and remember those that had room once."""
        had_room = set(files.read_text(_memory(evidence)).splitlines())
        has_room = set()
        for path in _mounted(evidence):
            try:
                found = os.statvfs(_place(path, evidence))
            except OSError:
                continue
            full = self._full(path, found, evidence, had_room=path in had_room)
            yield from full
            if not full:
                has_room.add(path)
                yield from self._nearly_full(path, found, evidence)
        if evidence.may_act and not has_room <= had_room:
            lines = sorted(has_room | had_room)
            files.write_text(_memory(evidence), "".join(f"{path}\n" for path in lines))

    def _full(
        self, path: str, found: os.statvfs_result, evidence: Evidence, *, had_room: bool
    ) -> list[Finding]:
        limits, used, inodes = evidence.policy.thresholds, _used(found), _used_inodes(found)
        details = []
        if used >= limits.disk_full_percent:
            details.append(f"{path} is {used:.0f}% full")
        if inodes >= limits.inodes_full_percent:
            details.append(f"{path} has {inodes:.0f}% of inodes used")
        verdict = evidence.policy.disk_full_verdict
        if verdict is Verdict.REPLACE and not had_room:
            verdict = Verdict.MANUAL
            details = [f"{detail}, and was never seen otherwise" for detail in details]
        if evidence.context is Context.BACKGROUND and _has_jobs(evidence):
            verdict = Verdict.WARN
        return [Finding(self.name, verdict, detail) for detail in details]

    def _nearly_full(
        self, path: str, found: os.statvfs_result, evidence: Evidence
    ) -> Iterator[Finding]:
        used = _used(found)
        if used >= evidence.policy.thresholds.disk_warn_percent:
            yield Finding(self.name, Verdict.WARN, f"{path} is {used:.0f}% full")


def _mounted(evidence: Evidence) -> Iterator[str]:
    for path in evidence.policy.disks:
        if path == _ROOT or os.path.ismount(_place(path, evidence)):
            yield path


def _place(path: str, evidence: Evidence) -> str:
    return evidence.host.path(path.lstrip("/"))


def _memory(evidence: Evidence) -> str:
    return f"{evidence.host.state_directory}/{_HAD_ROOM}"


def _has_jobs(evidence: Evidence) -> bool:
    from slurm_hooks.health.job_files import jobs_on_node

    return bool(jobs_on_node(evidence.host))


def _used(found: os.statvfs_result) -> float:
    return _percent(found.f_blocks - found.f_bfree, found.f_bavail)


def _used_inodes(found: os.statvfs_result) -> float:
    return _percent(found.f_files - found.f_ffree, found.f_favail)


def _percent(used: int, available: int) -> float:
    """As `df` counts: of what users can have. File systems without such a limit are at 0."""
    return 100 * used / (used + available) if used + available > 0 else 0.0
