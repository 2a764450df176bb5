"""The child of a health run: it touches the devices, and may hang there for ever.

It tells its parent each step over a pipe, so that what was found before a hang is not lost, and
it is known which check hangs. Frames are a length and a marshalled tuple: marshal is built in and
both ends are the same process image.
"""

from __future__ import annotations

import marshal
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from slurm_hooks.health.checks.gpus import finding_of
from slurm_hooks.health.driver.model import DriverError
from slurm_hooks.health.evidence import Evidence
from slurm_hooks.health.model import Finding, Verdict

if TYPE_CHECKING:
    from slurm_hooks.health.checks.base import Check

START, FOUND, COUNTERS, END = "start", "found", "counters", "end"

_LENGTH_BYTES = 4
_LONGEST_DETAIL = 400


def run_checks(checks: Iterable[Check], evidence: Evidence, pipe: int) -> None:
    """Run the checks one after the other and tell each step."""
    for check in checks:
        _tell(pipe, START, check.name)
        for finding in findings_of(check, evidence):
            _tell(
                pipe,
                FOUND,
                finding.check,
                str(finding.verdict),
                finding.detail[:_LONGEST_DETAIL],
                finding.gpu,
                finding.xid,
                finding.of_job,
            )
    _tell(pipe, COUNTERS, evidence.counters)
    _tell(pipe, END)


def findings_of(check: Check, evidence: Evidence) -> list[Finding]:
    """What one check finds. A driver that fails is a finding, and so is a mistake of ours: the
    one condemns the node, the other must not."""
    found: list[Finding] = []
    try:
        found.extend(check.run(evidence))
    except DriverError as error:
        found.append(finding_of(check.name, error, of_job=evidence.has_job_gpus))
    except Exception as error:
        detail = f"check failed by itself: {type(error).__name__}: {error}"
        found.append(Finding(check.name, Verdict.UNKNOWN, detail))
    return found


def _tell(pipe: int, *frame: object) -> None:
    body = marshal.dumps(frame)  # type: ignore[arg-type]
    os.write(pipe, len(body).to_bytes(_LENGTH_BYTES, "big") + body)


class Frames:
    """Puts the bytes of a pipe together to frames again."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[tuple[object, ...]]:
        """The frames that are whole with this data."""
        self._rest += data
        frames = []
        while len(self._rest) >= _LENGTH_BYTES:
            end = _LENGTH_BYTES + int.from_bytes(self._rest[:_LENGTH_BYTES], "big")
            if len(self._rest) < end:
                break
            frames.append(marshal.loads(self._rest[_LENGTH_BYTES:end]))
            self._rest = self._rest[end:]
        return frames
