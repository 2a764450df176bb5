"""Reads /etc/slurm-hooks/health.yaml: every mistake at once, each with its place and what is right.

Without a file all defaults hold, and YAML is not even imported.
"""

from __future__ import annotations

import math
import os
import stat
from collections.abc import Collection, Iterator, Mapping
from typing import Any, TypeVar

from slurm_hooks.health.host import Host
from slurm_hooks.health.model import Context, Verdict
from slurm_hooks.health.policy import Deadlines, ExpectedHardware, HealthPolicy, Thresholds
from slurm_hooks.health.registry import all_checks
from slurm_hooks.programs import node_log

_Part = TypeVar("_Part", Thresholds, Deadlines, ExpectedHardware)

KEYS = (
    "observe",
    "checks",
    "xids",
    "machine_types",
    "most_restarts",
    "disks",
    "disk_full_verdict",
    "burn_in",
    "thresholds",
    "deadlines",
)
DISK_FULL_VERDICTS = (str(Verdict.WARN), str(Verdict.MANUAL), str(Verdict.REPLACE))
BURN_IN_DEFAULT = "auto"
SWITCHES = ("on", "off", "observe")
_HIGHEST_XID = 9999
_SHORTEST_SECONDS = 1.0
_LONGEST_PROLOG_SECONDS = 10.0
_LONGEST_BACKGROUND_SECONDS = 50.0
_LONGEST_BURN_IN_SECONDS = 1500.0
"""Shorter than the default of boot_timeout_seconds, with room for the checks around it."""


class PolicyError(Exception):
    """The policy file cannot be obeyed. `mistakes` says what and where, one line each."""

    def __init__(self, path: str, mistakes: Collection[str]) -> None:
        super().__init__("\n".join(f"{path}: {mistake}" for mistake in mistakes))
        self.mistakes = tuple(mistakes)


def load_policy(host: Host) -> HealthPolicy:
    """The node's policy; the defaults where there is no file. Raises PolicyError.

    A file that others than its owner may write is refused: it is obeyed as root.
    """
    path = host.policy_file
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return HealthPolicy()
    except OSError as error:
        raise PolicyError(path, [f"cannot be read: {error.strerror}"]) from None
    if found.st_uid not in (0, os.geteuid()) or stat.S_IMODE(found.st_mode) & 0o022:
        raise PolicyError(path, ["must belong to root and be writable by nobody else: chmod 644"])
    return parse_policy(_read(path), path)


def policy_or_defaults(host: Host, context: Context) -> HealthPolicy:
    """The node's policy; where it cannot be obeyed the defaults, with a loud line of log: a slip
    in a file must neither stop every job nor switch the checks off."""
    try:
        return load_policy(host)
    except PolicyError as error:
        for mistake in error.mistakes:
            node_log.write(
                host.log_file,
                str(context),
                "ERROR",
                "policy not obeyed",
                node=host.name,
                file=host.policy_file,
                mistake=mistake,
            )
        return HealthPolicy()


def parse_policy(text: str, path: str) -> HealthPolicy:
    """A policy from the text of a file. Raises PolicyError."""
    import yaml  # a healthy run without a policy file has no use for it

    try:
        tree = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: a date that is none
        raise PolicyError(path, [" ".join(str(error).split())]) from None
    reader = _Reader({check.name for check in all_checks()})
    policy = reader.read({} if tree is None else tree)
    if reader.mistakes:
        raise PolicyError(path, reader.mistakes)
    return policy


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise PolicyError(path, [f"cannot be read: {error}"]) from None


class _Reader:
    """Turns the file's tree into a policy and collects what is wrong."""

    def __init__(self, check_names: Collection[str]) -> None:
        self._check_names = check_names
        self.mistakes: list[str] = []

    def read(self, tree: object) -> HealthPolicy:
        if not isinstance(tree, dict):
            self.mistakes.append("must be a mapping of keys to values")
            return HealthPolicy()
        for key in tree:
            if key not in KEYS:
                self.mistakes.append(f"{key}: unknown, write one of {', '.join(KEYS)}")
        switches = self._switches(tree.get("checks"))
        return HealthPolicy(
            observe=self._observe(tree.get("observe", False)),
            observed_checks=frozenset(n for n, switch in switches.items() if switch == "observe"),
            disabled_checks=frozenset(n for n, switch in switches.items() if switch == "off"),
            xids=dict(self._xids(tree.get("xids"))),
            machine_types={
                name: self._numbers(ExpectedHardware(), f"machine_types.{name}", value)
                for name, value in self._mapping("machine_types", tree.get("machine_types"))
            },
            most_restarts=self._most_restarts(
                tree.get("most_restarts", HealthPolicy().most_restarts)
            ),
            disks=self._disks(tree.get("disks")),
            disk_full_verdict=self._disk_full_verdict(tree.get("disk_full_verdict")),
            burn_in=self._burn_in(tree.get("burn_in", BURN_IN_DEFAULT)),
            thresholds=self._numbers(Thresholds(), "thresholds", tree.get("thresholds")),
            deadlines=self._deadlines(tree.get("deadlines")),
        )

    def _observe(self, value: object) -> bool:
        if not isinstance(value, bool):
            self.mistakes.append(f"observe: {value!r} is neither true nor false")
        return value is True

    def _most_restarts(self, value: object) -> int:
        if value is None:
            return HealthPolicy().most_restarts
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            self.mistakes.append(f"most_restarts: {value!r} is no number of 0 or more")
            return HealthPolicy().most_restarts
        return value

    def _switches(self, value: object) -> dict[str, str]:
        switches = {}
        for name, switch in self._mapping("checks", value):
            is_read_so = isinstance(switch, bool)  # YAML reads on and off so
            text = SWITCHES[0 if switch else 1] if is_read_so else switch
            if name not in self._check_names:
                names = ", ".join(sorted(self._check_names))
                self.mistakes.append(f"checks.{name}: no such check, they are {names}")
            elif text not in SWITCHES:
                self.mistakes.append(f"checks.{name}: write one of {', '.join(SWITCHES)}")
            else:
                switches[name] = str(text)
        return switches

    def _xids(self, value: object) -> Iterator[tuple[int, Verdict]]:
        for number, word in self._mapping("xids", value):
            if not isinstance(number, int) or not 0 < number <= _HIGHEST_XID:
                self.mistakes.append(f"xids.{number}: an Xid is a number such as 79")
            elif not isinstance(word, str) or word not in Verdict.__members__:
                words = ", ".join(Verdict.__members__)
                self.mistakes.append(f"xids.{number}: {word!r} is no verdict, write one of {words}")
            else:
                yield number, Verdict(word)

    def _disks(self, value: object) -> tuple[str, ...]:
        if value is None:
            return HealthPolicy().disks
        paths = value if isinstance(value, list) else [value]
        for path in paths:
            if not isinstance(path, str) or not path.startswith("/"):
                self.mistakes.append(f"disks: {path!r} is no absolute path")
        return tuple(path for path in paths if isinstance(path, str))

    def _disk_full_verdict(self, value: object) -> Verdict:
        if value is None:
            return HealthPolicy().disk_full_verdict
        if not isinstance(value, str) or value not in DISK_FULL_VERDICTS:
            words = ", ".join(DISK_FULL_VERDICTS)
            self.mistakes.append(f"disk_full_verdict: {value!r} is none of {words}")
            return HealthPolicy().disk_full_verdict
        return Verdict(value)

    def _burn_in(self, value: object) -> tuple[str, ...] | None:
        if value in (None, BURN_IN_DEFAULT):
            return None
        if value is False:  # YAML reads off so
            return ()
        words = value if isinstance(value, list) else []
        are_texts = all(isinstance(word, str) and "\0" not in word for word in words)
        if not words or not are_texts or not words[0].startswith("/"):
            self.mistakes.append(
                f"burn_in: {value!r} is no command: write {BURN_IN_DEFAULT}, off, or a list such as"
                " [/usr/bin/dcgmi, diag, -r, '3'] with an absolute path first"
            )
            return None
        return tuple(words)

    def _deadlines(self, value: object) -> Deadlines:
        deadlines = self._numbers(Deadlines(), "deadlines", value)
        for name, seconds in deadlines._asdict().items():
            if seconds < _SHORTEST_SECONDS:
                self.mistakes.append(
                    f"deadlines.{name}: {seconds:g} is too short, a healthy node would pass for"
                    f" one that hangs: write {_SHORTEST_SECONDS:g} at least"
                )
        for name, longest, why in (
            ("prolog", _LONGEST_PROLOG_SECONDS, "jobs wait for it and slurmd calls it hung"),
            ("background", _LONGEST_BACKGROUND_SECONDS, "slurmd kills it after 60"),
            ("burn_in", _LONGEST_BURN_IN_SECONDS, "the daemon replaces a node that is silent"),
        ):
            seconds = getattr(deadlines, name)
            if seconds + deadlines.report > longest:
                self.mistakes.append(
                    f"deadlines.{name}: {seconds:g} and {deadlines.report:g} for the report are"
                    f" too long, {why}: write {longest:g} at most for both together"
                )
        return deadlines

    def _numbers(self, defaults: _Part, place: str, value: object) -> _Part:
        """The defaults with the numbers that the file gives."""
        known = defaults._fields
        given = {}
        for name, number in self._mapping(place, value):
            if name not in known:
                self.mistakes.append(
                    f"{place}.{name}: unknown, write one of {', '.join(sorted(known))}"
                )
            elif not _is_number(number) or number < 0:
                self.mistakes.append(f"{place}.{name}: {number!r} is no number of 0 or more")
            elif isinstance(defaults, ExpectedHardware) and not isinstance(number, int):
                self.mistakes.append(f"{place}.{name}: {number!r} is no whole number")
            else:
                given[name] = number
        return defaults._replace(**given)

    def _mapping(self, place: str, value: object) -> Iterator[tuple[Any, Any]]:
        if isinstance(value, Mapping):
            yield from value.items()
        elif value is not None:
            self.mistakes.append(f"{place}: must be a mapping of names to values")


def _is_number(value: object) -> bool:
    """YAML knows numbers without end and some that are none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return isinstance(value, int) or math.isfinite(value)
