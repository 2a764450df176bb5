"""NVML's field numbers that are asked for, and how to read what two of them answer.

Facts: gpu-health.md sections 2.2 and 3; NVML's header for the form of bit error rates.
"""

from __future__ import annotations

RECOVERY_ACTIONS = (230, 226, 227)
"""The recovery action, and what older drivers have instead: reset, and drain and reset."""

RECOVERY_NONE = 0
RECOVERY_RESET = 1
RECOVERY_DRAIN_AND_RESET = 4

NVLINK_COUNT = (91,)
NVLINK_ERRORS = (214, 220)
"""For each link: recoveries that failed, and the effective bit error rate."""

PCIE_ERRORS = (94, 173, 179, 180)
"""Replays, correctable, non-fatal and fatal errors."""

THROTTLE_TIMES = (74, 75, 270, 271)
"""Nanoseconds: power, thermal, hardware thermal, hardware power brake."""

FABRIC_NOT_SUPPORTED = 0

_MANTISSA_SHIFT = 8
_MANTISSA_MASK = 0xF
_POWER_MASK = 0xFF


def bit_error_rate(value: int | float) -> float:
    """The rate that NVML packs as a mantissa (bits 8-11) and a negated power of ten (bits 0-7)."""
    if isinstance(value, float):
        return value
    power = value & _POWER_MASK
    mantissa = value >> _MANTISSA_SHIFT & _MANTISSA_MASK
    return float(mantissa / 10**power)
