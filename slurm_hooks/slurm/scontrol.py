"""The client of Slurm that runs scontrol, and squeue on 22.05, whose scontrol has no JSON.

Invariant: a read is whole or raises SlurmUnavailable; a cluster without nodes is not believed.
Nodes are read before jobs, so that a job that held a node in the first answer stands in the
second one too, unless it ended in between. Source: 22.05.8 as measured, later versions from
their source.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Generic, TypeVar

from slurm_hooks.slurm import json_records, text_records
from slurm_hooks.slurm.client import (
    NodeUpdate,
    ReservationSpecification,
    SlurmRefused,
    SlurmUnavailable,
)
from slurm_hooks.slurm.commands import SlurmCommands
from slurm_hooks.slurm.controllers import Controller
from slurm_hooks.slurm.hostlist import collapse
from slurm_hooks.slurm.model import Job, Node, Partition, Reservation, SlurmSnapshot
from slurm_hooks.slurm.process import CommandRunner, SubprocessRunner
from slurm_hooks.slurm.records import Key, Parsed
from slurm_hooks.slurm.versions import ClientRules, SlurmVersion, rules_for

READ_TIMEOUT_SECONDS = 60.0
WRITE_TIMEOUT_SECONDS = 30.0
MAX_ARGUMENT_BYTES = 131_071
"""What the kernel takes as one argument of a command."""
MAX_TEXT_CHARACTERS = 1_000

_NODE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}")
_ADDRESS = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}")
_RESERVATION_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_SIGNAL = re.compile(r"[A-Z][A-Z0-9]{1,9}")
_RESERVATION_EXISTS = "Duplicate reservation name"
_RESERVATION_GONE = "Requested reservation is invalid"
_JOB_ENDED = re.compile(r"already completing or completed|Invalid job id", re.IGNORECASE)
_CONTROL_CHARACTERS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+")
_PART = re.compile(r"([_+][0-9]{1,10})?")
_NO_JSON = re.compile(r"json|serializer|data_parser|openapi", re.IGNORECASE)
_PARAMETER = re.compile(r"^(\w+) += (.*?) *$", re.MULTILINE)
_CONTROLLER_UP = re.compile(r"^Slurmctld\((?P<role>[^)]+)\) at (?P<host>\S+) is UP", re.MULTILINE)

_Record = TypeVar("_Record")


@dataclass(frozen=True)
class _Question(Generic[Key, _Record]):
    """One kind of record: scontrol's word for it and how its two forms are read."""

    what: str
    from_json: Callable[[str], Parsed[Key, _Record]]
    from_text: Callable[[str], Parsed[Key, _Record]]


_NODES = _Question[str, Node]("nodes", json_records.nodes_from_json, text_records.nodes_from_text)
_JOBS = _Question[int, Job]("jobs", json_records.jobs_from_json, text_records.jobs_from_text)
_PARTITIONS = _Question[str, Partition](
    "partitions", json_records.partitions_from_json, text_records.partitions_from_text
)
_RESERVATIONS = _Question[str, Reservation](
    "reservations", json_records.reservations_from_json, text_records.reservations_from_text
)


class ScontrolClient:
    """Talks to slurmctld through Slurm's own commands."""

    def __init__(
        self,
        slurm_conf: Path,
        bin_directory: str = "",
        runner: CommandRunner | None = None,
        read_timeout_seconds: float = READ_TIMEOUT_SECONDS,
        write_timeout_seconds: float = WRITE_TIMEOUT_SECONDS,
    ) -> None:
        self._commands = SlurmCommands(
            slurm_conf,
            bin_directory,
            runner or SubprocessRunner(),
            read_timeout_seconds,
            write_timeout_seconds,
        )
        self._known_rules: ClientRules | None = None
        self._has_json = True

    def version(self) -> SlurmVersion:
        """The version of the commands. Raises SlurmUnavailable."""
        answer = self._commands.read("scontrol", "--version")
        try:
            return SlurmVersion.parse(answer)
        except ValueError as error:
            raise SlurmUnavailable(f"scontrol --version: {error}") from error

    def read(self) -> SlurmSnapshot:
        """Read all nodes, jobs, partitions and reservations. Raises SlurmUnavailable."""
        nodes = self._read_all_nodes()
        jobs = self._ask(_JOBS)
        partitions = self._ask(_PARTITIONS)
        reservations = self._ask(_RESERVATIONS)
        return SlurmSnapshot(
            nodes=nodes.records,
            jobs=jobs.records,
            partitions=partitions.records,
            reservations=reservations.records,
            unreadable=nodes.unreadable
            + jobs.unreadable
            + partitions.unreadable
            + reservations.unreadable,
            keeps_lone_reason=self._rules().keeps_lone_reason,
        )

    def read_nodes(self, names: Sequence[str]) -> dict[str, Node]:
        """Read the named nodes again; those that Slurm does not have are left out.

        The whole node table is read, as Slurm's commands do for a single name too. Raises
        SlurmUnavailable.
        """
        if not names:
            return {}
        nodes = self._read_all_nodes().records
        return {name: nodes[name] for name in names if name in nodes}

    def update_nodes(
        self, names: Sequence[str], update: NodeUpdate | None, reason: str | None = None
    ) -> None:
        """Set state, reason or both on all the named nodes, in as few commands as possible.

        Control characters of the reason become blanks. If one of the nodes cannot take the
        state, Slurm refuses with the others possibly changed already. 22.05 and 26.05 drop a
        reason that comes alone to a node that is not DOWN, DRAIN or FAIL, and the one it had.
        Raises SlurmError; ValueError if there is nothing to set.
        """
        if update is None and reason is None:
            raise ValueError("neither a state nor a reason to set")
        _check_names(names)
        settings = [f"state={update}"] if update else []
        if reason is not None:
            # scontrol takes one pair of quotes off, so that a reason may begin with one itself.
            settings.append(f'reason="{_one_line(reason)}"')
        for nodename, _ in _node_batches(names):
            self._commands.write("scontrol", "update", nodename, *settings)

    def reboot_nodes(self, names: Sequence[str], reason: str) -> None:
        """Have the nodes rebooted as soon as no job runs there; drained ones come back drained.

        With ASAP slurmctld would lift the drain by itself, also of a node that was drained before
        (22.05, measured). It refuses all without a RebootProgram. Raises SlurmError.
        """
        _check_names(names)
        for nodename, _ in _node_batches(names):
            nodes = nodename.removeprefix("nodename=")
            self._commands.write("scontrol", "reboot", f"reason={_one_line(reason)}", nodes)

    def set_node_addresses(self, names: Sequence[str], address: str, reason: str) -> None:
        """Have slurmctld reach all the named nodes at one address. Raises SlurmError.

        `reason` is the one that they all have, empty for none. 22.05 drops the reason of a node
        in service with each change, but not when it is told the same one again (measured).
        slurmctld wants as many addresses as nodes. It forgets them when a node has slept, and
        when it reads its configuration again.
        """
        _check_names(names)
        if not _ADDRESS.fullmatch(address):
            raise SlurmRefused(f"not an address: {address[:80]!r}")
        if reason != _one_line(reason):
            raise SlurmRefused(f"not a reason that can be kept: {reason[:80]!r}")
        kept = [f'reason="{reason}"'] if reason else []
        most = (MAX_ARGUMENT_BYTES - len("nodeaddr=")) // (len(address) + 1)
        for start in range(0, len(names), most):
            for nodename, members in _node_batches(names[start : start + most]):
                addresses = ",".join([address] * len(members))
                self._commands.write("scontrol", "update", nodename, f"nodeaddr={addresses}", *kept)

    def set_admin_comment(self, job_id: int, text: str, part: str = "") -> None:
        """Write the job's admin comment; an empty text clears it. Raises SlurmError.

        `part` is the job's: the bare id of an array, or of a heterogeneous job, means all of it.
        """
        comment = f"admincomment={_one_line(text)}"
        self._commands.write("scontrol", "update", f"jobid={_address(job_id, part)}", comment)

    def set_node_comment(self, name: str, text: str) -> None:
        """Write a node's comment; an empty text clears it. Raises SlurmError.

        22.05 drops the reason of a node that is not DOWN, DRAIN or FAIL.
        """
        _check_names([name])
        comment = f"comment={_one_line(text)}"
        self._commands.write("scontrol", "update", f"nodename={name}", comment)

    def create_reservation(self, specification: ReservationSpecification) -> None:
        """Make a reservation. One of that name that exists is left as it is. Raises SlurmError.

        slurmctld refuses a start of some minutes ago, so one in the past becomes now.
        """
        _check_names([specification.name], _RESERVATION_NAME, "reservation")
        _check_names(specification.nodes)
        starts_later = specification.start_time_utc > datetime.now(UTC)
        start = f"{specification.start_time_utc.astimezone(UTC):%Y-%m-%dT%H:%M:%S}"
        minutes = max(1, math.ceil(specification.duration_seconds / 60))
        try:
            self._commands.write(
                "scontrol",
                "create",
                "reservation",
                f"reservationname={specification.name}",
                f"starttime={start if starts_later else 'now'}",
                f"duration={minutes:d}",
                f"nodes={collapse(specification.nodes)}",
                "flags=maint,ignore_jobs",
                "users=root",
            )
        except SlurmRefused as error:
            if _RESERVATION_EXISTS not in str(error):
                raise

    def delete_reservation(self, name: str) -> None:
        """Delete a reservation; one that is gone already is no error. Raises SlurmError."""
        _check_names([name], _RESERVATION_NAME, "reservation")
        try:
            self._commands.write("scontrol", "delete", f"reservationname={name}")
        except SlurmRefused as error:
            if _RESERVATION_GONE not in str(error):
                raise

    def signal_job(self, job_id: int, signal: str, part: str = "") -> None:
        """Send a signal such as USR1 to the steps of a running job and to its batch script.

        A job that has ended is no error. For one that does not run yet scancel tries again until
        our deadline. Raises SlurmError.
        """
        if not _SIGNAL.fullmatch(signal):
            raise SlurmRefused(f"not a signal: {signal[:80]!r}")
        try:
            self._commands.write("scancel", "--full", f"--signal={signal}", _address(job_id, part))
        except SlurmRefused as error:
            if not _JOB_ENDED.search(str(error)):
                raise

    def reconfigure(self) -> None:
        """Have slurmctld, and through it the slurmds, read the configuration. Raises SlurmError."""
        self._commands.write("scontrol", "reconfigure")

    def parameters(self) -> dict[str, str]:
        """The parameters of slurm.conf that slurmctld runs with. Raises SlurmUnavailable."""
        text = self._commands.read("scontrol", "show", "config")
        return dict(_PARAMETER.findall(text))

    def responding_controller(self) -> Controller | None:
        """The first slurmctld of slurm.conf that answers a ping. Raises SlurmUnavailable."""
        # The exit status only tells whether the primary one answers.
        found = _CONTROLLER_UP.search(self._commands.run_read("scontrol", "ping").stdout)
        return Controller(found["role"], found["host"]) if found else None

    def _read_all_nodes(self) -> Parsed[str, Node]:
        nodes = self._ask(_NODES)
        if not nodes.records:
            raise SlurmUnavailable(f"Slurm shows no nodes: {' '.join(nodes.unreadable)[:400]}")
        return nodes

    def _ask(self, question: _Question[Key, _Record]) -> Parsed[Key, _Record]:
        command = self._json_command(question.what) if self._has_json else ()
        if not command:
            return question.from_text(
                self._commands.read("scontrol", "--all", "-o", "show", question.what)
            )
        try:
            return question.from_json(self._commands.read(*command))
        except json_records.AnswerError as error:
            raise SlurmUnavailable(f"{' '.join(command)}: {error}") from error
        except SlurmUnavailable as error:
            self._known_rules = None  # Slurm may have been upgraded since they were looked up
            answer = str(error).removeprefix(" ".join(command))
            if not _NO_JSON.search(answer):
                raise
            self._has_json = False
            return self._ask(question)

    def _rules(self) -> ClientRules:
        if self._known_rules is None:
            self._known_rules = rules_for(self.version())
        return self._known_rules

    def _json_command(self, what: str) -> Sequence[str]:
        rules = self._rules()
        if rules.scontrol_json_flag:
            return ("scontrol", "--all", "show", what, rules.scontrol_json_flag)
        return rules.jobs_json_command if what == "jobs" else ()


def _check_names(
    names: Sequence[str], form: re.Pattern[str] = _NODE_NAME, what: str = "node"
) -> None:
    for name in names:
        if not form.fullmatch(name):
            raise SlurmRefused(f"not a {what} name: {name[:80]!r}")


def _node_batches(names: Sequence[str]) -> Iterator[tuple[str, Sequence[str]]]:
    """`nodename=HOSTLIST` arguments that each fit into a command, with the names in each."""
    if not names:
        return
    argument = f"nodename={collapse(names)}"
    if len(argument) <= MAX_ARGUMENT_BYTES:
        yield argument, names
        return
    middle = len(names) // 2
    yield from _node_batches(names[:middle])
    yield from _node_batches(names[middle:])


def _address(job_id: int, part: str) -> str:
    if not _PART.fullmatch(part):
        raise SlurmRefused(f"not a part of a job: {part[:80]!r}")
    return f"{job_id:d}{part}"


def _one_line(text: str) -> str:
    """Bounded text without control characters, which would forge lines in Slurm's output."""
    return _CONTROL_CHARACTERS.sub(" ", text).strip()[:MAX_TEXT_CHARACTERS].rstrip()
