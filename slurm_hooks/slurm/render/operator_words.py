"""What the operator's own settings make of ours: theirs win, and ours that they must keep stay.

A setting that is a list of options keeps those of ours that theirs do not name: without them nodes
would not be woken, found or checked. Settings that would break slurm-hooks never come this far
(cluster/reserved_parameters.tsv). Facts: the managed service's config maps beat its own values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from slurm_hooks.cluster.slurm_parameters import Place, find_parameter
from slurm_hooks.slurm.render.lines import Line
from slurm_hooks.slurm.render.options import RenderError, RenderOptions, SlurmVersion

Settings = tuple[tuple[str, str], ...]

OPTION_LISTS = frozenset(
    {
        "AuthInfo",
        "Features",
        "GresTypes",
        "PrivateData",
        "PrologFlags",
        "SchedulerParameters",
        "SlurmctldParameters",
        "SlurmdParameters",
        "SuspendExcStates",
    }
)

_SAME_MATTER = {
    "DefMemPerNode": ("DefMemPerCPU",),
    "DefMemPerGPU": ("DefMemPerCPU",),
}
"""Parameters of ours that one of theirs replaces though it has another name."""

THEIRS = "As the cluster file says."


def check_versions(place: Place, settings: Settings, version: SlurmVersion) -> None:
    """Raises RenderError for a parameter that this Slurm does not know and would not start with."""
    for name, _ in settings:
        parameter = find_parameter(place, name)
        if parameter is not None and parameter.since > version:
            since, here = (f"{major}.{minor:02}" for major, minor in (parameter.since, version))
            raise RenderError(f"{name} of the cluster file needs Slurm {since}, this is {here}")


def with_settings(lines: Iterable[Line], settings: Settings) -> tuple[Line, ...]:
    """Our lines of one file, each with what the operator says about it."""
    theirs = dict(settings)
    return tuple(_with_theirs(line, theirs) for line in lines)


def with_their_times(options: RenderOptions, settings: Settings) -> RenderOptions:
    """Options in which a Prolog may last as long as the operator says, so that what follows from
    it, such as how long a batch job may take to start, follows from theirs."""
    theirs = dict(settings)
    both = theirs.get("PrologEpilogTimeout")
    prolog, epilog = theirs.get("PrologTimeout", both), theirs.get("EpilogTimeout", both)
    if prolog is not None:
        options = replace(options, prolog_timeout_seconds=int(prolog))
    if epilog is not None:
        options = replace(options, epilog_timeout_seconds=int(epilog))
    return options


def remaining_lines(settings: Settings, rendered: Iterable[Line]) -> Iterator[Line]:
    """Lines for the settings that no line of ours stands for."""
    ours = {line.text.partition("=")[0] for line in rendered}
    for name, value in settings:
        if name not in ours:
            yield Line(f"{name}={value}", (THEIRS,))


def with_words(words: Sequence[str], settings: Settings) -> list[str]:
    """The `Key=Value` words of one NodeName or PartitionName line, with the operator's."""
    theirs = dict(settings)
    gone = {old for name in theirs for old in _SAME_MATTER.get(name, ())}
    kept = [word for word in words if word.partition("=")[0] not in gone]
    result = [_joined(word, theirs) for word in kept]
    named = {word.partition("=")[0] for word in kept}
    return [*result, *(f"{name}={value}" for name, value in settings if name not in named)]


def _with_theirs(line: Line, theirs: dict[str, str]) -> Line:
    name = line.text.partition("=")[0]
    if name not in theirs:
        return line
    text = _joined(line.text, theirs)
    return Line(text, (*line.reasons, THEIRS) if name in OPTION_LISTS else (THEIRS,))


def _joined(word: str, theirs: dict[str, str]) -> str:
    name, _, ours = word.partition("=")
    if name not in theirs:
        return word
    if name not in OPTION_LISTS:
        return f"{name}={theirs[name]}"
    given = [option for option in theirs[name].strip('"').split(",") if option]
    named = {_option_name(option) for option in given}
    kept = [option for option in ours.split(",") if _option_name(option) not in named]
    return f"{name}={','.join([*kept, *given])}"


def _option_name(option: str) -> str:
    return option.partition("=")[0].strip().lower()
