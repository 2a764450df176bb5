"""Nodes, jobs, partitions and reservations from Slurm's JSON, 22.05's shape and the later ones.

Invariant: the document's `errors` are looked at before its lists are believed, since 22.05 prints
an empty list and exits 0 when slurmctld is down. Numbers come plain or as
`{set, infinite, number}`, states as one word or a list. Source: data_parser v0.0.39 to v0.0.45
and openapi v0.0.38 of Slurm; 22.05.8 as measured.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Annotated, TypeVar

from pydantic import BaseModel, BeforeValidator, Field

from slurm_hooks.slurm.hostlist import expand, expand_leniently
from slurm_hooks.slurm.model import Job, Node, Partition, Reservation, part_of
from slurm_hooks.slurm.records import Key, Parsed, parse_each
from slurm_hooks.slurm.state_words import (
    job_state_from_words,
    node_state_from_words,
    resumes_after_reboot,
)


class AnswerError(ValueError):
    """The whole answer is not to be believed: no JSON, an error in it, or no list."""


def _plain_number(value: object) -> object:
    """None for what is not set or has no limit."""
    if isinstance(value, dict):
        is_number = value.get("set", True) and not value.get("infinite", False)
        return value.get("number") if is_number else None
    return value


def _words(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _no_null(value: object) -> object:
    return "" if value is None else value


_Number = Annotated[int | None, BeforeValidator(_plain_number)]
_Words = Annotated[list[str], BeforeValidator(_words)]
_Text = Annotated[str, BeforeValidator(_no_null)]
_Nodes = Annotated[tuple[str, ...], BeforeValidator(lambda value: tuple(expand(value or "")))]
_NamedByUser = Annotated[
    tuple[str, ...], BeforeValidator(lambda value: expand_leniently(value or ""))
]


class _NodeJson(BaseModel):
    name: str = Field(min_length=1)
    state: _Words
    state_flags: list[str] = []
    partitions: list[str] = []
    reason: _Text = ""
    reason_changed_at: _Number = None
    reason_set_by_user: _Text = ""
    address: _Text = ""
    hostname: _Text = ""
    comment: _Text = ""
    extra: _Text = ""
    instance_id: _Text = ""
    boot_time: _Number = None
    next_state_after_reboot: _Words = []


class _JobJson(BaseModel):
    job_id: int
    job_state: _Words
    user_name: _Text = ""
    name: _Text = ""
    partition: _Text
    nodes: _Nodes
    state_reason: _Text = ""
    admin_comment: _Text = ""
    restart_cnt: _Number
    requeue: _Number
    batch_flag: _Number
    priority: _Number
    time_limit: _Number = None
    start_time: _Number = None
    node_count: _Number = None
    required_nodes: _NamedByUser = ()
    excluded_nodes: _NamedByUser = ()
    array_job_id: _Number = None
    array_task_id: _Number = None
    het_job_id: _Number = None
    het_job_offset: _Number = None


class _PartitionNodesJson(BaseModel):
    configured: _Nodes = ()


class _PartitionStateJson(BaseModel):
    state: _Words = Field(min_length=1)


class _PartitionJson(BaseModel):
    name: str = Field(min_length=1)
    nodes: _PartitionNodesJson
    partition: _PartitionStateJson


class _ReservationJson(BaseModel):
    name: str = Field(min_length=1)
    node_list: _Nodes = ()
    start_time: _Number = None
    end_time: _Number = None
    flags: list[str] = []


def nodes_from_json(text: str) -> Parsed[str, Node]:
    """Nodes of `scontrol show nodes --json`. Raises AnswerError."""
    return _parse(text, "nodes", _node, lambda node: node.name)


def jobs_from_json(text: str) -> Parsed[int, Job]:
    """Jobs of `scontrol show jobs --json` or `squeue --json`. Raises AnswerError."""
    return _parse(text, "jobs", _job, lambda job: job.job_id)


def partitions_from_json(text: str) -> Parsed[str, Partition]:
    """Partitions of `scontrol show partitions --json`. Raises AnswerError."""
    return _parse(text, "partitions", _partition, lambda partition: partition.name)


def reservations_from_json(text: str) -> Parsed[str, Reservation]:
    """Reservations of `scontrol show reservations --json`. Raises AnswerError."""
    return _parse(text, "reservations", _reservation, lambda reservation: reservation.name)


_Record = TypeVar("_Record")


def _parse(
    text: str, key: str, parse: Callable[[object], _Record], key_of: Callable[[_Record], Key]
) -> Parsed[Key, _Record]:
    return parse_each(_listed(text, key), parse, key_of, key.removesuffix("s"))


def _listed(text: str, key: str) -> Iterable[object]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise AnswerError(f"no JSON: {error}") from error
    if not isinstance(document, dict):
        raise AnswerError("the JSON is not an object")
    if document.get("errors"):
        raise AnswerError(f"errors: {document['errors']!r:.400}")
    listed = document.get(key)
    if not isinstance(listed, list):
        raise AnswerError(f"the JSON has no list {key!r}")
    return listed


def _node(raw: object) -> Node:
    node = _NodeJson.model_validate(raw)
    return Node(
        name=node.name,
        state=node_state_from_words([*node.state, *node.state_flags]),
        partitions=tuple(node.partitions),
        reason=node.reason,
        reason_time_utc=_time(node.reason_changed_at),
        address=node.address,
        hostname=node.hostname,
        comment=node.comment,
        extra=node.extra,
        instance_id=node.instance_id,
        boot_time_utc=_time(node.boot_time),
        resumes_after_reboot=resumes_after_reboot(node.next_state_after_reboot),
        reason_user=node.reason_set_by_user,
    )


def _job(raw: object) -> Job:
    job = _JobJson.model_validate(raw)
    return Job(
        job_id=job.job_id,
        state=job_state_from_words(job.job_state),
        user=job.user_name,
        name=job.name,
        partition=job.partition,
        nodes=job.nodes,
        reason="" if job.state_reason == "None" else job.state_reason,
        admin_comment=job.admin_comment,
        restarts=job.restart_cnt or 0,
        requeue=bool(job.requeue),
        batch=bool(job.batch_flag),
        priority=job.priority or 0,
        time_limit_seconds=None if job.time_limit is None else job.time_limit * 60,
        start_time_utc=_time(job.start_time),
        node_count=job.node_count or 0,
        part=part_of(
            job.job_id, job.array_job_id, job.array_task_id, job.het_job_id, job.het_job_offset
        ),
        required_nodes=job.required_nodes,
        excluded_nodes=job.excluded_nodes,
        het_job_id=job.het_job_id or None,
    )


def _partition(raw: object) -> Partition:
    partition = _PartitionJson.model_validate(raw)
    return Partition(
        name=partition.name,
        state=partition.partition.state[0],
        nodes=partition.nodes.configured,
    )


def _reservation(raw: object) -> Reservation:
    reservation = _ReservationJson.model_validate(raw)
    return Reservation(
        name=reservation.name,
        nodes=reservation.node_list,
        start_time_utc=_time(reservation.start_time),
        end_time_utc=_time(reservation.end_time),
        flags=frozenset(reservation.flags),
    )


def _time(seconds: int | None) -> datetime | None:
    """A time since the epoch; 0 means that there is none. Raises ValueError if out of range."""
    if not seconds:
        return None
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, OSError) as error:
        raise ValueError(f"no such time: {seconds}") from error
