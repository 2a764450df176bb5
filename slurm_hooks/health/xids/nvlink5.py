"""What the text of the Xids 144 to 150 (NVLink 5) says besides the number.

`NETIR_LINK_EVT  Fatal   XC0 i0 Link 03 (0x021465c6 0x00000000 ...)`: unit, severity, link, then
intrinfo, error status and more registers. Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

NVLINK5_XIDS = range(144, 151)

_FORM = re.compile(
    r"\s*(?P<unit>[A-Z0-9_/]{1,64})\s+(?P<severity>Fatal|Nonfatal)\s+(?:XC[01]\s+)?(?:i[0-9]+\s+)?"
    r"Link\s+(?P<link>-?[0-9]{1,3})\s+\(0x(?P<intrinfo>[0-9a-fA-F]{1,8})\b",
    re.ASCII,
)
_SUB_CODE_SHIFT = 20
_SUB_CODE_MASK = 0x3F


@dataclass(frozen=True, slots=True)
class NvlinkReport:
    """One NVLink 5 report. `link` is None where the driver names none. `sub_code` are bits 20 to
    25 of intrinfo, by which NVIDIA's workflow tells events of one unit apart."""

    unit: str
    is_fatal: bool
    link: int | None
    sub_code: int

    @property
    def is_bit_error_rate(self) -> bool:
        """Whether it only tells of a bit error rate, which NVIDIA's workflow ignores."""
        return "BER_EVENT" in self.unit


def parse_nvlink_report(text: str) -> NvlinkReport | None:
    """Read the text of an NVLink 5 Xid; None where it has another form."""
    found = _FORM.match(text)
    if found is None:
        return None
    link = int(found["link"])
    return NvlinkReport(
        unit=found["unit"],
        is_fatal=found["severity"] == "Fatal",
        link=link if link >= 0 else None,
        sub_code=int(found["intrinfo"], 16) >> _SUB_CODE_SHIFT & _SUB_CODE_MASK,
    )
