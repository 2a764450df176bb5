"""A probe that is late: does it hang, or is it merely slow?

A call that stands still is the device's fault. A probe that gets no CPU, or that the driver answers
call by call while it starts eight GPUs, is not: condemning it would cost a healthy node. Loaded
only for a probe that is late.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

from slurm_hooks.health import files
from slurm_hooks.health.driver.call_signs import CallSigns

ATTACHING_CALLS = frozenset({"nvmlInitWithFlags", "nvmlDeviceGetHandleByIndex"})
"""Calls that start GPUs which nobody has open, one after the other: seconds for each of them."""

LONGEST_START_SECONDS = 30.0
"""Of such a call: a driver that waits for a GPU's dead processor moves for ever."""

_IN_KERNEL, _STOPPED = "D", "T"
_STARVED_SHARE = 0.5
_NANOSECONDS = 1e9


class Look(NamedTuple):
    """A probe at one moment. `call` is empty outside the driver, `state` the kernel's letter,
    `switches` how often it has left the CPU, `ran` and `waited` the seconds that it has run and
    that it was ready to but had no CPU. `time` and `call_began` are by the monotonic clock."""

    time: float
    call_number: int
    call: str
    state: str
    switches: int
    ran: float
    waited: float
    call_began: float


class Lateness(NamedTuple):
    """Whether a late probe hangs, and why that is believed, for people."""

    is_hang: bool
    why: str


class LateProbe:
    """A probe under observation. It must have stood still for `seconds` to count as hanging."""

    def __init__(self, process_id: int, signs: CallSigns, seconds: float) -> None:
        self._process_id = process_id
        self._signs = signs
        self._seconds = seconds
        self._looks: list[Look] = []

    def look(self) -> None:
        """Look at it now. What is older than is needed is forgotten."""
        self._looks.append(_look(self._process_id, self._signs))
        enough = self._looks[-1].time - self._seconds
        while len(self._looks) > 1 and self._looks[1].time <= enough:
            del self._looks[0]

    def lateness(self) -> Lateness:
        """What the looks so far say."""
        return lateness_of(self._looks, self._seconds)


def lateness_of(looks: Sequence[Look], seconds: float) -> Lateness:
    """Whether a probe has stood still for that many seconds, up to the last look. Pure."""
    first, last = looks[0], looks[-1]
    passed = last.time - first.time
    if last.state == _STOPPED:
        return Lateness(False, "somebody has stopped it")
    if last.waited - first.waited > _STARVED_SHARE * passed:
        return Lateness(False, "it waits for a CPU")
    if last.call_number != first.call_number:
        return Lateness(False, "the driver answers, call by call")
    if passed < seconds:
        return Lateness(False, f"{last.call or 'it'} may still answer")
    has_slept = first.switches == last.switches and first.state == last.state != "R"
    if not last.call:
        if has_slept and last.state == _IN_KERNEL:
            return Lateness(True, f"the kernel has held it for {passed:.0f} s")
        return Lateness(False, "it is at work outside the driver")
    started = last.time - last.call_began
    if last.call in ATTACHING_CALLS and not has_slept:
        if started < LONGEST_START_SECONDS:
            return Lateness(False, f"{last.call} still starts the GPUs")
        return Lateness(True, f"{last.call} has not come back for {started:.0f} s")
    return Lateness(True, f"{last.call} has stood still for {passed:.0f} s")


def _look(process_id: int, signs: CallSigns) -> Look:
    place = f"/proc/{process_id}"
    call = signs.read()
    state, switches = "", 0
    for line in files.read_text(f"{place}/status").splitlines():
        key, _, value = line.partition(":")
        if key == "State":
            state = value.strip()[:1].upper()
        elif key in ("voluntary_ctxt_switches", "nonvoluntary_ctxt_switches"):
            switches += int(value)
    ran, waited = _cpu_seconds(f"{place}/schedstat")
    now = time.monotonic()
    return Look(now, call.number, call.name, state, switches, ran, waited, call.began)


def _cpu_seconds(path: str) -> tuple[float, float]:
    """Seconds on a CPU and seconds in wait for one; zeros from a kernel that does not count."""
    parts = files.read_text(path).split()
    if len(parts) < 2 or not (parts[0].isdigit() and parts[1].isdigit()):
        return 0.0, 0.0
    return int(parts[0]) / _NANOSECONDS, int(parts[1]) / _NANOSECONDS
