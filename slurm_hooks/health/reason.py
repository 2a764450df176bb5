"""The reason that a health run gives a drained node, and how the controller reads it again.

`slurm-hooks: VERDICT check detail inst=ID boot=ID ctx=prolog job=7 restarts=0 gpus=8/8`

The prefix says whose it is, instance and boot which VM it is about: a drain must not outlive that.
Most important first, since `sinfo` cuts reasons off. Slurm's own words that follow are no part of
it. One thing Slurm finds itself: a node that registers with too few GPUs, as one does whose reboot
did not bring them back. Its words are read as a finding like the node's own. Pure.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from slurm_hooks.health.model import Context, Verdict
from slurm_hooks.health.slurm_reasons import (
    REBOOT_COMPLETE,
    REBOOT_ISSUED,
    is_of_slurm,
    tells_missing_gpus,
)

PREFIX = "slurm-hooks: "
OUT_OF_SERVICE = f"{PREFIX}out of service: "
"""How the daemon keeps a person's reason in one of its own."""

LONGEST_DETAIL = 160
BOOT_LENGTH = 8
"""Of a boot id, its first hexadecimal digits: enough to tell the boots of one VM apart."""

MISSING_GPUS = "inventory"
"""The node's own check for what Slurm says of GPUs that are missing."""

_SEPARATOR = " : "
_OF_REBOOT = (REBOOT_ISSUED, REBOOT_COMPLETE)
"""What slurmctld appends on the way of a node through a reboot."""

_FORM = re.compile(
    r"slurm-hooks: (?P<verdict>[A-Z]+) (?P<check>[a-z][a-z0-9_]*)(?: (?P<detail>.*?))?"
    r" inst=(?P<instance>[0-9]+|\?) boot=(?P<boot>[0-9a-f]{8}|\?)"
    r"(?: ctx=(?P<context>[a-z]+))?(?: job=(?P<job>[0-9]+))?(?: restarts=(?P<restarts>[0-9]+))?"
    r"(?: gpus=(?P<used>[0-9]+)/(?P<present>[0-9]+))?"
)
_UNSAFE = re.compile(r"[^A-Za-z0-9 .,:;/_()%+*<>@-]+")


class HealthReason(NamedTuple):
    """Why a node is drained. `instance_id` and `boot` (8 hexadecimal digits) are "" if unknown.

    `gpus_used` of `gpus_present` are those that the job had; both are None without a job. A
    verdict of OK says that a run of this boot passed, and asks for the drain to be lifted.
    """

    verdict: Verdict
    check: str
    detail: str
    instance_id: str
    boot: str
    context: Context | None = None
    job_id: int | None = None
    restart_count: int | None = None
    gpus_used: int | None = None
    gpus_present: int | None = None


def format_reason(reason: HealthReason) -> str:
    """The text for Slurm: one line, no quotes, no character that a shell or Slurm would read."""
    detail = _UNSAFE.sub(" ", reason.detail)[:LONGEST_DETAIL].strip()
    parts = [
        f"{PREFIX}{reason.verdict} {reason.check}",
        *([detail] if detail else []),
        f"inst={reason.instance_id or '?'} boot={reason.boot or '?'}",
    ]
    if reason.context is not None:
        parts.append(f"ctx={reason.context}")
    if reason.job_id is not None:
        parts.append(f"job={reason.job_id}")
        parts.append(f"restarts={reason.restart_count or 0}")
    if reason.gpus_used is not None and reason.gpus_present is not None:
        parts.append(f"gpus={reason.gpus_used}/{reason.gpus_present}")
    return " ".join(parts)


def parse_reason(text: str) -> HealthReason | None:
    """Read a reason again; None for any that is not a health run's own, word for word."""
    match = _FORM.fullmatch(text.strip())
    if match is None or match["verdict"] not in Verdict.__members__:
        return None
    context = match["context"]
    if context is not None and context not in {str(known) for known in Context}:
        return None
    return HealthReason(
        verdict=Verdict(match["verdict"]),
        check=match["check"],
        detail=match["detail"] or "",
        instance_id=match["instance"].replace("?", ""),
        boot=match["boot"].replace("?", ""),
        context=Context(context) if context is not None else None,
        job_id=_number(match["job"]),
        restart_count=_number(match["restarts"]),
        gpus_used=_number(match["used"]),
        gpus_present=_number(match["present"]),
    )


def is_condemned(text: str) -> bool:
    """Whether a node's reason may tell of its health; costs nothing where it is empty."""
    return text.startswith(PREFIX) or tells_missing_gpus(text)


def is_ours_alone(text: str) -> bool:
    """Whether a node's reason is all ours, so that a health run may put its own in its place.
    People add to reasons what they have to say, and the daemon keeps theirs in one of its own."""
    if not text.startswith(PREFIX) or text.startswith(OUT_OF_SERVICE):
        return False
    verdict = text.removeprefix(PREFIX).partition(" ")[0]
    return verdict not in Verdict.__members__ or health_reason_of(text) is not None


def health_reason_of(text: str) -> HealthReason | None:
    """What a node's reason tells of its health; None for the reasons of anybody else.

    The last word counts. Slurm says nothing of VM and boot: both are unknown.
    """
    if not is_condemned(text):
        return None
    while True:
        own = parse_reason(text)
        if own is not None:
            return own
        before, _, last = text.rpartition(_SEPARATOR)
        if tells_missing_gpus(last) and is_of_slurm(last):
            return HealthReason(Verdict.REBOOT, MISSING_GPUS, last, "", "")
        if not before or not (last in _OF_REBOOT or is_of_slurm(last)):
            return None
        text = before


def _number(text: str | None) -> int | None:
    return int(text) if text is not None else None
