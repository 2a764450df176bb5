"""JSON in the shapes of 23.02 to 26.05; an answer with errors is never an empty list."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from slurm_hooks.slurm.json_records import (
    AnswerError,
    jobs_from_json,
    nodes_from_json,
    partitions_from_json,
    reservations_from_json,
)
from slurm_hooks.slurm.model import BaseState, JobState, NodeFlag
from tests.unit.slurm.recorded import recorded


def answer(key: str, *records: object, errors: list[object] | None = None) -> str:
    return json.dumps({key: records, "errors": errors or [], "warnings": [], "meta": {}})


def job(**changes: object) -> dict[str, object]:
    plain: dict[str, object] = {
        "job_id": 1,
        "job_state": "PENDING",
        "partition": "a",
        "nodes": "",
        "restart_cnt": 0,
        "requeue": True,
        "batch_flag": True,
        "priority": 5,
    }
    return plain | changes


def number(value: int, is_set: bool = True, infinite: bool = False) -> dict[str, object]:
    return {"set": is_set, "infinite": infinite, "number": value}


def test_controller_down_in_22_05_is_an_error_not_an_empty_queue() -> None:
    with pytest.raises(AnswerError, match="Failed while looking for jobs"):
        jobs_from_json(recorded("22.05", "jobs-controller-down.json"))


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", '{"errors": []}', '{"nodes": null}', '{"nodes": {}}', "[" * 9999],
)
def test_answer_without_a_list_of_nodes_is_an_error(text: str) -> None:
    with pytest.raises(AnswerError):
        nodes_from_json(text)


@pytest.mark.parametrize(
    "state",
    [
        {"state": ["IDLE", "CLOUD", "POWERED_DOWN"]},
        {"state": "idle", "state_flags": ["CLOUD", "POWERED_DOWN"]},
    ],
)
def test_node_state_is_a_list_or_a_word_with_flags(state: dict[str, object]) -> None:
    node = nodes_from_json(answer("nodes", {"name": "c-0", **state})).records["c-0"]
    assert node.state.base is BaseState.IDLE
    assert node.state.flags == {NodeFlag.CLOUD, NodeFlag.POWERED_DOWN}


@pytest.mark.parametrize("boot_time", [1_700_000_000, number(1_700_000_000)])
def test_numbers_come_plain_or_as_objects(boot_time: object) -> None:
    text = answer("nodes", {"name": "c-0", "state": ["IDLE"], "boot_time": boot_time})
    boot_time_utc = nodes_from_json(text).records["c-0"].boot_time_utc
    assert boot_time_utc is not None
    assert boot_time_utc.timestamp() == 1_700_000_000


@pytest.mark.parametrize(
    ("limit", "seconds"),
    [
        (None, None),
        (90, 5_400),
        (number(90), 5_400),
        (number(0, is_set=False, infinite=True), None),
        (number(0, is_set=False), None),
    ],
)
def test_time_limit_is_minutes_or_none(limit: object, seconds: int | None) -> None:
    text = answer("jobs", job(time_limit=limit))
    assert jobs_from_json(text).records[1].time_limit_seconds == seconds


def test_job_state_is_a_list_with_flags() -> None:
    text = answer("jobs", job(job_state=["RUNNING", "CONFIGURING"], nodes="c-[0-1]"))
    parsed = jobs_from_json(text).records[1]
    assert (parsed.state, parsed.nodes) == (JobState.CONFIGURING, ("c-0", "c-1"))


def test_one_bad_record_costs_no_other() -> None:
    text = answer(
        "nodes",
        {"name": "c-0", "state": []},
        {"name": "c-1", "state": ["IDLE"], "boot_time": number(10**30)},
        "not an object",
        {"state": ["IDLE"]},
        {"name": "c-2", "state": ["IDLE"], "reason": None},
    )
    parsed = nodes_from_json(text)
    assert list(parsed.records) == ["c-2"]
    assert len(parsed.unreadable) == 4


def test_reason_of_a_node_has_its_user_and_the_time_at_which_it_was_given() -> None:
    given, none = (
        {"name": f"c-{index}", "state": ["IDLE"], "reason": "x", "reason_changed_at": number(at)}
        for index, at in enumerate((1767251289, 0))
    )
    nodes = nodes_from_json(answer("nodes", given, none)).records
    assert nodes["c-0"].reason_time_utc == datetime(2026, 1, 1, 7, 8, 9, tzinfo=UTC)
    assert nodes["c-1"].reason_time_utc is None
    stamped = {"name": "c-2", "state": ["IDLE"], "reason": "x", "reason_set_by_user": "root"}
    assert nodes_from_json(answer("nodes", stamped)).records["c-2"].reason_user == "root"


def test_job_whose_nodes_cannot_be_read_is_unreadable_not_without_nodes() -> None:
    parsed = jobs_from_json(answer("jobs", job(nodes="c-[0-"), job(job_id=2)))
    assert list(parsed.records) == [2]
    assert len(parsed.unreadable) == 1


def test_nodes_that_a_job_names_and_excludes() -> None:
    text = answer("jobs", job(required_nodes="c-[0-1]", excluded_nodes="c-3"))
    parsed = jobs_from_json(text).records[1]
    assert (parsed.required_nodes, parsed.excluded_nodes) == (("c-0", "c-1"), ("c-3",))


def test_odd_text_of_a_user_makes_no_job_unreadable() -> None:
    parsed = jobs_from_json(answer("jobs", job(required_nodes="c-[0-", excluded_nodes=None)))
    assert parsed.records[1].required_nodes == ("c-[0-",)
    assert parsed.records[1].excluded_nodes == ()


@pytest.mark.parametrize(
    ("words", "resumes"), [(["RESUME"], True), (["UNDRAIN"], True), (["INVALID"], False)]
)
def test_whether_a_node_serves_after_its_reboot(words: list[str], resumes: bool) -> None:
    text = answer("nodes", {"name": "c-0", "state": ["IDLE"], "next_state_after_reboot": words})
    assert nodes_from_json(text).records["c-0"].resumes_after_reboot is resumes


def test_no_reservations_is_an_empty_answer() -> None:
    assert reservations_from_json(answer("reservations")).records == {}


def test_partition_state_may_be_one_word() -> None:
    text = answer(
        "partitions",
        {"name": "a", "nodes": {"configured": "c-[0-1]"}, "partition": {"state": "UP"}},
    )
    assert partitions_from_json(text).records["a"].state == "UP"
