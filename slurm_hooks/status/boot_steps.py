"""What a VM that boots has last said of it on its serial console. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

_LINE = re.compile(r"slurm-hooks-boot: (\S+) (begins|done|failed|waiting)\b ?([^\r\n]*)")


@dataclass(frozen=True, slots=True)
class BootStep:
    """One step of a boot; `state` is begins, done, failed or waiting."""

    step: str
    state: str
    detail: str = ""


def last_boot_step(text: str) -> BootStep | None:
    """The last step that a console tells of; None where there is none."""
    found = list(_LINE.finditer(text))
    return BootStep(*found[-1].groups()) if found else None
