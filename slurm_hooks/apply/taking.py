"""How slurmctld takes what was rendered: it has it, by reconfigure, or by a restart. Pure.

What it runs with is asked of itself, so that an apply that was cut short goes on from there.
"""

from __future__ import annotations

import enum
import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

LOADED_AT_START = frozenset(
    {
        "accountingstoragetype",
        "burstbuffertype",
        "jobacctgathertype",
        "jobcomptype",
        "mcsplugin",
        "prioritytype",
        "proctracktype",
        "schedulertype",
        "selecttype",
        "switchtype",
        "taskplugin",
        "topologyplugin",
    }
)
"""Parameters that name plugins, in lower case: a running slurmctld keeps those it has loaded.
22.05.8 refuses to be reconfigured with another scheduler or selector, and says yes to the others
without effect."""

_SETTING = re.compile(r"^(?P<key>[A-Za-z]\w*)=(?P<value>\S+)$", re.MULTILINE)


class Way(enum.StrEnum):
    """What slurmctld needs."""

    KEEP = "keep"
    RECONFIGURE = "reconfigure"
    RESTART = "restart"


@dataclass(frozen=True, slots=True)
class Taking:
    """The way, and why it is no lesser one."""

    way: Way
    why: str = ""


@dataclass(frozen=True, slots=True)
class Running:
    """What a slurmctld that answers runs with: its nodes of our cluster, and its parameters."""

    nodes: frozenset[str]
    parameters: Mapping[str, str]


def taking_of(
    texts: Mapping[str, str],
    nodes: frozenset[str],
    running: Running | None,
    taken_digest: str,
    *,
    restarts_for_nodes: bool,
) -> Taking:
    """How slurmctld takes these texts, which give it these nodes; None is one that does not answer.

    `taken_digest` is `digest_of` the texts that it took last, as far as is known.
    `restarts_for_nodes`: see slurm/versions.py.
    """
    if running is None:
        return Taking(Way.RESTART, "slurmctld does not answer")
    if restarts_for_nodes:
        if running.nodes != nodes:
            return Taking(Way.RESTART, "this version takes changed nodes at its start alone")
        for key, value in _changed_plugins(texts, running.parameters):
            return Taking(Way.RESTART, f"this version takes {key}={value} at its start alone")
    if running.nodes == nodes and taken_digest == digest_of(texts):
        return Taking(Way.KEEP)
    return Taking(Way.RECONFIGURE)


def _changed_plugins(
    texts: Mapping[str, str], parameters: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    known = {key.lower(): value for key, value in parameters.items()}
    for text in texts.values():
        for key, value in _SETTING.findall(text):
            name = key.lower()
            if name in LOADED_AT_START and known.get(name, value).lower() != value.lower():
                yield key, value


def digest_of(texts: Mapping[str, str]) -> str:
    """A short text that is the same for the same files."""
    whole = "\0".join(f"{name}\0{text}" for name, text in sorted(texts.items()))
    return hashlib.sha256(whole.encode()).hexdigest()[:32]
