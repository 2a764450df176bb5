"""Node records as operators published them, from 17.11 to 26.05, and the traps in them."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest

from slurm_hooks.slurm.model import BaseState, JobState, NodeFlag
from slurm_hooks.slurm.text_fields import number_of, seconds_of, time_of
from slurm_hooks.slurm.text_records import (
    jobs_from_text,
    nodes_from_text,
    partitions_from_text,
    reservations_from_text,
)
from tests.shared_data import shared_file

REASONS = {
    "gpu04": "deep power-off required for PSU",
    "node-1-95": "Action:Replace : Not responding",
    "compute-dy-gpu-2": "(Code:InsufficientInstanceCapacity)Failure when resuming nodes",
    "worker-gpu-4": "prolog instance=i-00000000000000003 job=88: fabric manager down",
    "node0007": "[user_problem] alloc_gpus_busy",
    "l40-2": (
        "Low socket*core*thread count, Low CPUs, Low RealMemory"
        " (reported:32010 < 100.00% of configured:96556)"
    ),
    "queue1-st-gpu-1": "Reboot ASAP : reboot issued",
    "node-h100-41": "Prolog error: 214 xid 13 errors",
    "dyn-7": "",
    "cloud-17": "",
}
LINE = (
    "NodeName=c-0 Arch=x86_64 CoresPerSocket=1  State=IDLE+DRAIN ThreadsPerCore=1 Partitions=a "
    " BootTime=None CfgTRES=cpu=1 AllocTRES= ExtSensorsTemp=n/s"
)


def published_records() -> list[str]:
    text = shared_file("data/slurm-node-records.txt").read_text()
    return [part.split("\n---\n", 1)[1] for part in re.split("^# version: ", text, flags=re.M)[1:]]


def test_every_published_record_is_read_but_the_one_without_a_name() -> None:
    records = published_records()
    assert len(records) > 30
    unreadable = [record for record in records if nodes_from_text(record).unreadable]
    assert [record.split()[0] for record in unreadable] == ["State=IDLE+DRAIN"]


def test_published_records_have_the_words_that_they_show() -> None:
    for record in published_records():
        for name, node in nodes_from_text(record).records.items():
            assert f"NodeName={name} " in record.replace("\n", " ")
            assert f"NodeHostName={node.hostname}" in record
            assert f"NodeAddr={node.address}" in record
            shown = re.search(r"\bState=(\S+)", record)
            assert shown is not None
            flags = shown.group(1).replace("*", "+NOT_RESPONDING").split("+")
            assert sorted(flags) == sorted([node.state.base, *node.state.flags])


def test_published_reasons_are_read_without_user_and_time() -> None:
    nodes = nodes_from_text("\n".join(published_records())).records
    assert {name: nodes[name].reason for name in REASONS} == REASONS


def test_reason_has_the_user_and_the_time_of_its_stamp() -> None:
    record = "NodeName=c-0 State=IDLE+DRAIN Partitions=p Reason=a [b@c] [u@2026-01-01T07:08:09]"
    node = nodes_from_text(record).records["c-0"]
    assert (node.reason, node.reason_user, node.reason_time_utc) == (
        "a [b@c]",
        "u",
        datetime(2026, 1, 1, 7, 8, 9, tzinfo=UTC),
    )
    unstamped = nodes_from_text("NodeName=c-0 State=IDLE Reason=x").records["c-0"]
    assert (unstamped.reason_user, unstamped.reason_time_utc) == ("", None)


def test_published_comment_extra_and_instance_are_read() -> None:
    nodes = nodes_from_text("\n".join(published_records())).records
    assert nodes["a3-12"].comment == '{"ticket": 4711, "gpu": [3], "note": "ECC = high"}'
    assert nodes["worker2"].comment == ""
    assert nodes["worker-gpu-4"].extra.startswith('{"lastProbe":"2026-09-14 07:12:09 +0000')
    assert nodes["cloud-17"].instance_id == "1234567890123456789"
    assert nodes["gpu04"].boot_time_utc == datetime(2020, 6, 30, 20, 33, 36, tzinfo=UTC)
    assert nodes["test-node-2"].partitions[:2] == ("unkillable", "short-unkillable")


def test_all_records_together_are_read_as_each_alone() -> None:
    parsed = nodes_from_text("\n".join(published_records()))
    names = {name for record in published_records() for name in nodes_from_text(record).records}
    assert set(parsed.records) == names


@pytest.mark.parametrize(
    ("tail", "reason", "comment"),
    [
        (
            " Reason=x State=DOWN NodeName=c-9 [u@2026-01-01T00:00:00]",
            "x State=DOWN NodeName=c-9",
            "",
        ),
        (" Reason=x Comment=y [u@2026-01-01T00:00:00] Comment=z", "x Comment=y", "z"),
        (" Reason=x\nsecond line [u@2026-01-01T00:00:00]", "x\nsecond line", ""),
        (" Comment=Reason=forged Reason=x", "", "Reason=forged Reason=x"),
        (" Reason=[a] [b@c] [u@2026-01-01T00:00:00]", "[a] [b@c]", ""),
        (" Reason=no stamp", "no stamp", ""),
        ("", "", ""),
    ],
)
def test_what_looks_like_fields_inside_a_text_is_text(tail: str, reason: str, comment: str) -> None:
    parsed = nodes_from_text(LINE + tail + "\n")
    node = parsed.records["c-0"]
    assert (node.reason, node.comment) == (reason, comment)
    assert node.state.base is BaseState.IDLE
    assert parsed.unreadable == ()


def test_one_bad_record_costs_no_other() -> None:
    text = "NodeName=c-0 State=\nNodeName=c-1 State=IDLE+CLOUD\nNodeName= State=IDLE\n"
    parsed = nodes_from_text(text)
    assert list(parsed.records) == ["c-1"]
    assert len(parsed.unreadable) == 2


def test_first_of_two_records_of_one_name_counts() -> None:
    parsed = nodes_from_text("NodeName=c-0 State=IDLE\nNodeName=c-0 State=DOWN\n")
    assert parsed.records["c-0"].state.base is BaseState.IDLE
    assert "listed twice" in parsed.unreadable[0]


def test_unknown_word_does_not_make_a_record_unreadable() -> None:
    node = nodes_from_text("NodeName=c-0 State=IDLE+CLOUD+NEW_WORD").records["c-0"]
    assert node.state.unknown == {"NEW_WORD"}
    assert node.state.has(NodeFlag.CLOUD)


def test_nodes_that_a_job_names_and_excludes() -> None:
    text = (
        "JobId=9 JobName=x UserId=u(7) Priority=1 JobState=PENDING Reason=None Requeue=0"
        " Restarts=0 BatchFlag=0 Partition=a ReqNodeList={} ExcNodeList={} NodeList=(null)"
    )
    job = jobs_from_text(text.format("c-[0-1]", "c-3")).records[9]
    assert (job.required_nodes, job.excluded_nodes) == (("c-0", "c-1"), ("c-3",))
    job = jobs_from_text(text.format("(null)", "(null)")).records[9]
    assert (job.required_nodes, job.excluded_nodes) == ((), ())
    assert jobs_from_text(text.format("c-[0-", "(null)")).records[9].required_nodes == ("c-[0-",)


def test_whether_a_node_serves_after_its_reboot() -> None:
    rebooting = "NodeName=c-0 State=DOWN+CLOUD+REBOOT_ISSUED"
    assert not nodes_from_text(rebooting).records["c-0"].resumes_after_reboot
    with_next = f"{rebooting} NextState=RESUME"
    assert nodes_from_text(with_next).records["c-0"].resumes_after_reboot


def test_no_jobs_and_no_reservations_are_empty_answers() -> None:
    assert jobs_from_text("No jobs in the system\n").unreadable == ()
    assert reservations_from_text("No reservations in the system\n").records == {}


def test_text_before_the_first_record_is_unreadable() -> None:
    parsed = partitions_from_text("something odd\nPartitionName=a Nodes=c-[0-1] State=UP\n")
    assert parsed.records["a"].nodes == ("c-0", "c-1")
    assert len(parsed.unreadable) == 1


def test_job_with_an_unknown_state_is_kept() -> None:
    text = (
        "JobId=9 JobName=x UserId=u(7) Priority=1 JobState=NEW_STATE Reason=None Requeue=0"
        " Restarts=3 BatchFlag=0 TimeLimit=UNLIMITED StartTime=Unknown Partition=a NodeList=(null)"
    )
    job = jobs_from_text(text).records[9]
    assert (job.state, job.restarts, job.nodes) == (JobState.UNKNOWN, 3, ())
    assert (job.time_limit_seconds, job.start_time_utc, job.reason) == (None, None, "")


def test_times_and_numbers() -> None:
    assert seconds_of("7-00:00:00") == 7 * 86_400
    assert seconds_of("01:02:03") == 3_723
    assert seconds_of("UNLIMITED") is None
    assert time_of("2026-12-01T05:20:44") == datetime(2026, 12, 1, 5, 20, 44, tzinfo=UTC)
    assert time_of("N/A") is None
    with pytest.raises(ValueError, match="number"):
        number_of("٣")
