"""Nodes, jobs, partitions and reservations from `scontrol show ...` text, with `-o` or without.

The commands must run under TZ=UTC, since the text has no time zone. For jobs this is the second
choice: a user's job name or comment can imitate the fields of a job, which JSON rules out.
Source: the same as text_fields.
"""

from __future__ import annotations

import re
from datetime import datetime

from slurm_hooks.slurm.hostlist import expand, expand_leniently
from slurm_hooks.slurm.model import Job, Node, Partition, Reservation, part_of
from slurm_hooks.slurm.records import Parsed, parse_each
from slurm_hooks.slurm.state_words import (
    job_state_from_words,
    node_state_from_text,
    resumes_after_reboot,
)
from slurm_hooks.slurm.text_fields import (
    RecordFormat,
    number_of,
    seconds_of,
    text_of,
    time_of,
    word_of,
)

_STAMP = r"\[[^\s\[\]@]+@[0-9T:-]+\]"
_REASON_END = re.compile(rf"{_STAMP}(?=\s*$|\s+[A-Z][A-Za-z]+=)")
_REASON_STAMP = re.compile(rf"\s*{_STAMP}$")
_USER = re.compile(r"(.*)\(\d+\)", re.ASCII)
_NOTHING = re.compile(r"No (?:nodes|jobs|partitions|reservations) in the system", re.IGNORECASE)


def _keys(words: str) -> tuple[str, ...]:
    return tuple(words.split())


_NODE = RecordFormat(
    keys=_keys(
        "NodeName Arch CoresPerSocket CPUAlloc CPUErr CPUEfctv CPUTot CPULoad AvailableFeatures"
        " ActiveFeatures Gres GresDrain GresUsed NodeAddr NodeHostName Port BcastAddr Version OS"
        " RealMemory AllocMem FreeMem Sockets Boards CoreSpecCount CPUSpecList MemSpecLimit"
        " RestrictedCoresPerGPU State ThreadsPerCore TmpDisk Weight Owner MCS_label NextState"
        " Partitions BootTime SlurmdStartTime LastBusyTime ResumeAfterTime SuspendTime CfgTRES"
        " AllocTRES CapWatts CurrentWatts LowestJoules ConsumedJoules AveWatts ExtSensorsJoules"
        " ExtSensorsWatts ExtSensorsTemp Reason"
    ),
    tail=_keys("Comment Extra ReservationName InstanceId InstanceType Topology Parameters"),
    closed_by={"Reason": _REASON_END},
)
_JOB = RecordFormat(
    keys=_keys(
        "JobId ArrayJobId ArrayTaskId ArrayTaskThrottle HetJobId HetJobOffset JobName HetJobIdSet"
        " UserId GroupId MCS_label Priority Nice Account QOS WCKey JobState Reason FailedNode"
        " Dependency Requeue Restarts BatchFlag Reboot ExitCode RunTime TimeLimit TimeMin"
        " SubmitTime EligibleTime AccrueTime StartTime EndTime Deadline SuspendTime Partition"
        " ReqNodeList ExcNodeList NodeList BatchHost NumNodes NumCPUs Features Reservation"
        " Licenses Network Command WorkDir"
    ),
    tail=_keys("Comment AdminComment SystemComment StdErr StdIn StdOut Power"),
    closed_by={},
)
_PARTITION = RecordFormat(
    keys=_keys("PartitionName AllowGroups AllocNodes MaxNodes Nodes PriorityJobFactor State TRES"),
    tail=(),
    closed_by={},
)
_RESERVATION = RecordFormat(
    keys=_keys(
        "ReservationName StartTime EndTime Duration Nodes NodeCnt CoreCnt Features PartitionName"
        " Flags TRES Users Groups Accounts Licenses State"
    ),
    tail=(),
    closed_by={},
)


def nodes_from_text(text: str) -> Parsed[str, Node]:
    """Nodes of `scontrol show nodes`."""
    return parse_each(_NODE.split(text), _node, lambda node: node.name, "node")


def jobs_from_text(text: str) -> Parsed[int, Job]:
    """Jobs of `scontrol show jobs`, finished ones that Slurm still lists included."""
    raw_jobs = [] if _NOTHING.match(text) else _JOB.split(text)
    return parse_each(raw_jobs, _job, lambda job: job.job_id, "job")


def partitions_from_text(text: str) -> Parsed[str, Partition]:
    """Partitions of `scontrol show partitions`."""
    return parse_each(_PARTITION.split(text), _partition, lambda part: part.name, "partition")


def reservations_from_text(text: str) -> Parsed[str, Reservation]:
    """Reservations of `scontrol show reservations`."""
    raw_reservations = [] if _NOTHING.match(text) else _RESERVATION.split(text)
    return parse_each(raw_reservations, _reservation, lambda res: res.name, "reservation")


def _node(record: str) -> Node:
    fields = _NODE.fields(record)
    return Node(
        name=_required(fields, "NodeName"),
        state=node_state_from_text(word_of(fields["State"])),
        partitions=_split_commas(fields.get("Partitions", "")),
        reason=text_of(_REASON_STAMP.sub("", fields.get("Reason", ""))),
        reason_time_utc=_reason_time(fields.get("Reason", "")),
        address=word_of(fields.get("NodeAddr", "")),
        hostname=word_of(fields.get("NodeHostName", "")),
        comment=text_of(fields.get("Comment", "")),
        extra=text_of(fields.get("Extra", "")),
        instance_id=word_of(fields.get("InstanceId", "")),
        boot_time_utc=time_of(fields.get("BootTime", "")),
        resumes_after_reboot=resumes_after_reboot([word_of(fields.get("NextState", ""))]),
        reason_user=_reason_stamp(fields.get("Reason", ""))[0],
    )


def _reason_time(text: str) -> datetime | None:
    """When the reason was given."""
    time_text = _reason_stamp(text)[1]
    return time_of(time_text) if time_text else None


def _reason_stamp(text: str) -> tuple[str, str]:
    """By whom and when the reason was given: Slurm stamps each so."""
    stamp = _REASON_STAMP.search(text)
    user, _, time_text = stamp[0].strip(" []").rpartition("@") if stamp else ("", "", "")
    return user, time_text


def _job(record: str) -> Job:
    fields = _JOB.fields(record)
    user = _USER.fullmatch(word_of(fields["UserId"]))
    return Job(
        job_id=number_of(fields["JobId"]),
        state=job_state_from_words([word_of(fields["JobState"])]),
        user=user.group(1) if user else "",
        name=text_of(fields.get("JobName", "")),
        partition=word_of(fields["Partition"]),
        nodes=tuple(expand(word_of(fields["NodeList"]))),
        reason=word_of(fields.get("Reason", "")),
        admin_comment=text_of(fields.get("AdminComment", "")),
        restarts=number_of(fields["Restarts"]),
        requeue=number_of(fields["Requeue"]) != 0,
        batch=number_of(fields["BatchFlag"]) != 0,
        priority=number_of(fields["Priority"]),
        time_limit_seconds=seconds_of(fields.get("TimeLimit", "")),
        start_time_utc=time_of(fields.get("StartTime", "")),
        node_count=_least_of_range(fields.get("NumNodes", "")),
        part=part_of(
            number_of(fields["JobId"]),
            _id(fields, "ArrayJobId"),
            _id(fields, "ArrayTaskId"),
            _id(fields, "HetJobId"),
            _id(fields, "HetJobOffset"),
        ),
        required_nodes=expand_leniently(word_of(fields.get("ReqNodeList", ""))),
        excluded_nodes=expand_leniently(word_of(fields.get("ExcNodeList", ""))),
        het_job_id=_id(fields, "HetJobId"),
    )


def _id(fields: dict[str, str], key: str) -> int | None:
    """A number that not every job has. A list of tasks, as of an array's rest, is none."""
    word = word_of(fields.get(key, ""))
    return int(word) if word.isascii() and word.isdigit() else None


def _partition(record: str) -> Partition:
    fields = _PARTITION.fields(record)
    return Partition(
        name=_required(fields, "PartitionName"),
        state=_required(fields, "State"),
        nodes=tuple(expand(word_of(fields.get("Nodes", "")))),
    )


def _reservation(record: str) -> Reservation:
    fields = _RESERVATION.fields(record)
    return Reservation(
        name=_required(fields, "ReservationName"),
        nodes=tuple(expand(word_of(fields.get("Nodes", "")))),
        start_time_utc=time_of(fields.get("StartTime", "")),
        end_time_utc=time_of(fields.get("EndTime", "")),
        flags=frozenset(_split_commas(fields.get("Flags", ""))),
    )


def _required(fields: dict[str, str], key: str) -> str:
    value = word_of(fields[key])
    if not value:
        raise ValueError(f"{key} is empty")
    return value


def _least_of_range(value: str) -> int:
    """The lower bound of `4` or `2-4`; 0 where there is none, and for counts such as `1K`."""
    word = word_of(value).partition("-")[0]
    return int(word) if word.isascii() and word.isdigit() else 0


def _split_commas(value: str) -> tuple[str, ...]:
    return tuple(part for part in word_of(value).split(",") if part)
