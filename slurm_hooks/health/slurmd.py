"""What slurmd tells a Prolog or Epilog: which node, which job. Every word is checked here.

Only Slurm's own variables are read: a job can neither skip a check nor name other GPUs.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from slurm_hooks.health.host import METADATA_URL, Host
from slurm_hooks.health.model import JobOnNode

USAGE = """usage: {name} [--root DIR] [--node NAME] [--metadata-url URL] [--slurm-bin-dir DIR]

Slurm's {role}: {purpose}
Policy: /etc/slurm-hooks/health.yaml. Log: /var/log/slurm-hooks/health.log.
`slurm-hooks-health list` names the checks, `slurm-hooks-health run` makes them by hand.
In slurm.conf: {role}=/path/to/{name}
"""

_NAME_BEGINS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
_NAME_CHARACTERS = _NAME_BEGINS | frozenset("._-")
_LONGEST_NAME = 253
_LONGEST_NUMBER = 10
_OPTIONS = ("--root", "--node", "--metadata-url", "--slurm-bin-dir")


class UsageError(Exception):
    """The program was called with arguments that it does not take."""


def host_of(arguments: Sequence[str], environment: Mapping[str, str]) -> Host:
    """The node that a program runs on. Raises UsageError."""
    given = dict(_pairs(arguments))
    name = given.get("--node") or environment.get("SLURMD_NODENAME") or _short_hostname()
    if not _is_node_name(name):
        raise UsageError(f"not a node name: {name[:80]!r}")
    return Host(
        root=given.get("--root", "/"),
        name=name,
        metadata_url=given.get("--metadata-url", METADATA_URL).rstrip("/"),
        slurm_bin_directory=given.get("--slurm-bin-dir", ""),
        slurm_conf=environment.get("SLURM_CONF", ""),
    )


def _is_node_name(text: str) -> bool:
    """Without a regular expression: compiling one takes longer than all else here."""
    return (
        0 < len(text) <= _LONGEST_NAME
        and text[0] in _NAME_BEGINS
        and _NAME_CHARACTERS.issuperset(text)
    )


def job_of(environment: Mapping[str, str]) -> JobOnNode | None:
    """The job that slurmd calls about; None where it names none."""
    job_id = _number(environment.get("SLURM_JOB_ID", ""))
    if job_id is None:
        return None
    return JobOnNode(
        job_id,
        user_id=_number(environment.get("SLURM_JOB_UID", "")),
        gpus=_minor_numbers(environment.get("SLURM_JOB_GPUS", "")),
        restart_count=_number(environment.get("SLURM_JOB_RESTART_COUNT", "")) or 0,
        exit_code=_number(environment.get("SLURM_JOB_EXIT_CODE", "")),
    )


def _pairs(arguments: Sequence[str]) -> list[tuple[str, str]]:
    pairs = []
    for position in range(0, len(arguments), 2):
        option, value = arguments[position], "".join(arguments[position + 1 : position + 2])
        if option not in _OPTIONS or not value:
            raise UsageError(f"{option}: write {' VALUE, '.join(_OPTIONS)} VALUE")
        pairs.append((option, value))
    return pairs


def _minor_numbers(text: str) -> tuple[int, ...]:
    """`0,1,4-7` as numbers; parts that are none are left out."""
    numbers: list[int] = []
    for part in text.split(","):
        low, hyphen, high = part.strip().partition("-")
        first, last = _number(low), _number(high if hyphen else low)
        if first is not None and last is not None and first <= last < 1024:
            numbers.extend(range(first, last + 1))
    return tuple(numbers)


def _number(text: str) -> int | None:
    is_number = text.isascii() and text.isdigit() and len(text) <= _LONGEST_NUMBER
    return int(text) if is_number else None


def _short_hostname() -> str:
    return os.uname().nodename.partition(".")[0]
