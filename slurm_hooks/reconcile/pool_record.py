"""What is known of a pool's failures in a row, and how it is kept: as a comment of one node.

Slurm keeps the comment of a node over power cycles, reconfigure and restarts (22.05.8, measured),
so the count, the length of the holds and their end outlive us. The texts are for people too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from slurm_hooks.cluster.policy import Policy
from slurm_hooks.reconcile.reasons import PREFIX

_TIME_FORMAT = "%Y-%m-%dT%H:%M:%SZ"
_TIME = r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)"
_RECORD = re.compile(
    rf"{PREFIX} pool failed (\d{{1,9}}) times in a row, last {_TIME},"
    rf" held (\d{{1,9}}) times(?:, until {_TIME})?: (.*)"
)
_HOLD = re.compile(rf"{PREFIX} pool held until {_TIME} ")
_LONGEST_DOUBLING = 32
_LONGEST_CAUSE = 300


@dataclass(frozen=True, slots=True)
class PoolFailure:
    """One failure of a pool. `key` tells it from all others of the pool.

    `began_utc` is when what failed was begun, where that is known and the failure stays listed.
    """

    key: str
    time_utc: datetime
    code: str
    detail: str = ""
    began_utc: datetime | None = None

    @property
    def cause(self) -> str:
        """Code and detail as one bounded line."""
        text = f"{self.code}: {self.detail}" if self.detail else self.code
        plain = "".join(character if character.isprintable() else " " for character in text)
        return " ".join(plain.split())[:_LONGEST_CAUSE].rstrip() or "UNKNOWN"


@dataclass(frozen=True, slots=True)
class PoolRecord:
    """Failures of a pool since its last success, how often it was held for them, and until when.

    `cause` is that of the last failure.
    """

    failures: int
    last_utc: datetime
    holds: int = 0
    until_utc: datetime | None = None
    cause: str = ""

    def is_held(self, now: datetime) -> bool:
        """Whether the pool is held at this time."""
        return self.until_utc is not None and now < self.until_utc

    def is_forgotten(self, policy: Policy, slowest_failure_seconds: int, now: datetime) -> bool:
        """Whether the last failure and the last hold are so long ago that they tell nothing.

        A start of the pool takes up to `slowest_failure_seconds` to fail.
        """
        quiet_since = max(self.last_utc, self.until_utc or self.last_utc)
        kept_seconds = policy.longest_hold_seconds + slowest_failure_seconds
        return now - quiet_since > timedelta(seconds=kept_seconds)


def with_failures(record: PoolRecord | None, failures: list[PoolFailure]) -> PoolRecord:
    """The record with these failures counted too."""
    last = failures[-1]
    time_utc = max(failure.time_utc for failure in failures)
    if record is None:
        return PoolRecord(len(failures), time_utc, cause=last.cause)
    return replace(
        record,
        failures=record.failures + len(failures),
        last_utc=max(record.last_utc, time_utc),
        cause=last.cause,
    )


def with_hold(record: PoolRecord, policy: Policy, now: datetime) -> PoolRecord:
    """The record with a hold that begins now, twice as long as the one before, within the limit."""
    seconds = policy.hold_seconds * 2 ** min(record.holds, _LONGEST_DOUBLING)
    length = timedelta(seconds=min(seconds, policy.longest_hold_seconds))
    until = (now + length).replace(microsecond=0)
    return replace(record, holds=record.holds + 1, until_utc=until)


def record_text(record: PoolRecord | None) -> str:
    """The comment that keeps the record; empty for none."""
    if record is None:
        return ""
    until = f", until {_stamp(record.until_utc)}" if record.until_utc else ""
    return (
        f"{PREFIX} pool failed {record.failures} times in a row, last {_stamp(record.last_utc)},"
        f" held {record.holds} times{until}: {record.cause}"
    )


def read_record(comment: str) -> PoolRecord | None:
    """The record in a node's comment; None where there is none that we understand."""
    match = _RECORD.fullmatch(comment)
    if match is None:
        return None
    failures, last, holds, until, cause = match.groups()
    last_utc, until_utc = _time(last), _time(until)
    if last_utc is None or (until is not None and until_utc is None):
        return None
    return PoolRecord(int(failures), last_utc, int(holds), until_utc, cause)


def hold_phrase(record: PoolRecord) -> str:
    """What the reason of a held node says after its first words."""
    until = _stamp(record.until_utc) if record.until_utc else ""
    return f"until {until} after {record.failures} failures, the last at {_stamp(record.last_utc)}"


def hold_end(reason: str) -> datetime | None:
    """Until when a node's reason says that its pool is held; None for any other reason."""
    match = _HOLD.match(reason)
    return _time(match.group(1)) if match else None


def _stamp(time_utc: datetime) -> str:
    return time_utc.strftime(_TIME_FORMAT)


def _time(text: str | None) -> datetime | None:
    try:
        return datetime.strptime(text or "", _TIME_FORMAT).replace(tzinfo=UTC)
    except ValueError:
        return None
