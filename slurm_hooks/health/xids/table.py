"""What each Xid means: its class, what NVIDIA advises, and the verdict that we draw from it.

The table itself is xids.tsv. Actions are those of NVIDIA's Xid catalogue (October 2025), NONE
where it names none; classes and verdicts are ours. Verdict OK is for what is only logged.
`fatal_verdict` is for the NVLink 5 Xids, whose text says whether the link's error was fatal.
"""

from __future__ import annotations

import enum
import os
from dataclasses import dataclass
from functools import cache

from slurm_hooks.health.model import Verdict
from slurm_hooks.health.xids.nvlink5 import NVLINK5_XIDS, parse_nvlink_report

_FILE = "xids.tsv"


class XidClass(enum.StrEnum):
    """Whose fault an Xid tells of."""

    APPLICATION = "application"
    INFORMATION = "information"
    DRIVER = "driver"
    MEMORY = "memory"
    POWER = "power"
    BUS = "bus"
    FABRIC = "fabric"
    UNUSED = "unused"
    """No GPU since Ampere should report it. Once is odd, again is a case for a person."""


@dataclass(frozen=True, slots=True)
class XidRow:
    """One row of the table."""

    xid: int
    kind: XidClass
    action: str
    verdict: Verdict
    fatal_verdict: Verdict | None
    explanation: str


@cache
def xid_table() -> dict[int, XidRow]:
    """All rows by Xid."""
    path = os.path.join(os.path.dirname(__file__), _FILE)
    with open(path, encoding="ascii") as file:
        rows = [_row(line.rstrip("\n")) for line in file.readlines()[1:]]
    return {row.xid: row for row in rows}


def verdict_of_xid(xid: int, text: str, is_repeated: bool) -> Verdict:
    """What an Xid with this text comes to, by the table alone.

    An Xid that the table lacks is WARN however often it comes: newer drivers add informational
    ones, and a driver update must not drain a cluster.
    """
    row = xid_table().get(xid)
    if row is None:
        return Verdict.WARN
    if row.kind is XidClass.UNUSED and is_repeated:
        return Verdict.MANUAL
    if xid in NVLINK5_XIDS:
        return _verdict_of_nvlink(row, text)
    return row.verdict


def explanation_of_xid(xid: int) -> str:
    """A few words on an Xid, for a reason or a log line."""
    row = xid_table().get(xid)
    return row.explanation if row is not None else "an Xid that is not in the table"


def _verdict_of_nvlink(row: XidRow, text: str) -> Verdict:
    if row.verdict is row.fatal_verdict:
        return row.verdict
    report = parse_nvlink_report(text)
    if report is None:
        return Verdict.WARN
    if report.is_fatal and not report.is_bit_error_rate:
        return row.fatal_verdict or row.verdict
    return row.verdict


def _row(line: str) -> XidRow:
    xid, kind, action, verdict, fatal_verdict, explanation = line.split("\t")
    return XidRow(
        xid=int(xid),
        kind=XidClass(kind),
        action=action,
        verdict=Verdict(verdict),
        fatal_verdict=Verdict(fatal_verdict) if fatal_verdict else None,
        explanation=explanation,
    )
