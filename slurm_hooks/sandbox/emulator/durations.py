"""Durations as the API takes them: `{"seconds": "3600", "nanos": 0}`, seconds also as a number."""

from __future__ import annotations

from typing import Any

from slurm_hooks.sandbox.emulator.problems import Findings

SCHEDULING_SECONDS = (30, 120 * 86400)
FLEX_START_SECONDS = (30, 7 * 86400)
REQUEST_SECONDS = (600, 7 * 86400)
VALIDITY_SECONDS = (90, 7200)
_NANOS = 1_000_000_000


def seconds_of(
    duration: dict[str, Any], name: str, limits: tuple[int, int], findings: Findings
) -> int | None:
    """The whole seconds of a duration; None, with a finding, if it is malformed or out of range."""
    lowest, highest = limits
    text, nanos = str(duration.get("seconds", "")), duration.get("nanos", 0)
    if not text.isascii() or not text.isdigit():
        findings.add(f"{name}.seconds", text, "A whole number of seconds is required.")
        return None
    if not 0 <= nanos < _NANOS:
        findings.add(f"{name}.nanos", nanos, "Must be from 0 to 999,999,999.")
        return None
    seconds = int(text)
    if not lowest <= seconds <= highest or (seconds == highest and nanos):
        findings.add(name, text, f"Must be from {lowest} to {highest} seconds inclusive.")
        return None
    return seconds
