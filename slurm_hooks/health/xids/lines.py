"""One kernel log line as an Xid event.

A line counts only if the driver itself said it: `NVRM: Xid (address): number` must stand right
after one of the prefixes that logs put before kernel text. Switch faults (SXid), the Xids of
network cards and programs that quote the kernel are none. Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

LONGEST_LINE = 8192
"""Characters of a line that are looked at. The kernel's own records are not longer."""

_MICROSECONDS = 1_000_000

_DMESG_SECONDS = r"\[ *(?P<{name}>[0-9]{{1,12}}\.[0-9]{{1,9}})\] (?:\[ *[TC][0-9]+\] )?"
_PREFIX = re.compile(
    r"(?:"
    r"(?P<priority>[0-9]{1,9}),(?P<sequence>[0-9]{1,19}),(?P<stamp>[0-9]{1,19}),[^;]*;"
    rf"|(?:<[0-9]+>)?{_DMESG_SECONDS.format(name='seconds')}"
    r"|\[[A-Za-z0-9: ]+\] "
    r"|kern *:[a-z]+ *: [0-9T:,.+-]+ "
    r"|[0-9A-Fa-f.:]+: kern: [a-z]+: \[[0-9TZ:.-]+\]: "
    rf"|(?:[^\s\"]*[^\s\":] +){{0,6}}kernel: (?:{_DMESG_SECONDS.format(name='later_seconds')})?"
    r")?"
    r"(?=NVRM: Xid )",
    re.ASCII,
)
_XID = re.compile(
    r"NVRM: Xid \((?:PCI:)?(?P<pci>[0-9a-fA-F]{1,8}(?::[0-9a-fA-F]{1,4}){1,2})"
    r"(?: GPU-C?I:[0-9a-fA-F]+)*\): (?P<xid>[0-9]{1,5})(?:, ?(?P<text>.*)|\s*)",
    re.ASCII | re.DOTALL,
)
_PROCESS = re.compile(
    r"pid=(?:(?P<pid>[0-9]{1,10})|'?<unknown>'?)"
    r"(?:, name=(?:'?<unknown>'?|(?P<name>.*?))(?=,))?(?:, ?|$)",
    re.ASCII,
)
_KERNEL_FACILITY = 0


@dataclass(frozen=True, slots=True)
class XidEvent:
    """What the driver said once. `pci_address` is as printed, without the GPU instance.

    `process_id` is None and `process_name` empty where the driver named none. `boot_seconds` and
    `sequence` come from the kernel's own stamp and are None where the log has only a date: dates
    without a year or zone are not guessed at. `text` is what follows number and process.
    """

    xid: int
    pci_address: str
    process_id: int | None
    process_name: str
    text: str
    boot_seconds: float | None = None
    sequence: int | None = None


def parse_xid(line: str) -> XidEvent | None:
    """The Xid of a line, None where it is none. Never raises."""
    if "NVRM: Xid (" not in line:
        return None
    line = line[:LONGEST_LINE].rstrip()
    prefix = _PREFIX.match(line)
    if prefix is None or _is_of_a_program(prefix["priority"]):
        return None
    found = _XID.fullmatch(line, prefix.end())
    if found is None:
        return None
    text = found["text"] or ""
    process = _PROCESS.match(text)
    return XidEvent(
        xid=int(found["xid"]),
        pci_address=found["pci"].lower(),
        process_id=int(process["pid"]) if process and process["pid"] else None,
        process_name=(process["name"] or "") if process else "",
        text=text[process.end() :] if process else text,
        boot_seconds=_boot_seconds(prefix),
        sequence=int(prefix["sequence"]) if prefix["sequence"] else None,
    )


def _is_of_a_program(priority: str | None) -> bool:
    """Whether a record of /dev/kmsg was written there by a program: its facility says so."""
    return priority is not None and int(priority) >> 3 != _KERNEL_FACILITY


def _boot_seconds(prefix: re.Match[str]) -> float | None:
    if prefix["stamp"]:
        return int(prefix["stamp"]) / _MICROSECONDS
    seconds = prefix["seconds"] or prefix["later_seconds"]
    return float(seconds) if seconds else None
