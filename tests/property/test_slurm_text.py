"""Whatever Slurm's output holds, its parsers answer; names survive the way there and back."""

from __future__ import annotations

import json

from ClusterShell.NodeSet import NodeSet
from hypothesis import given, settings
from hypothesis import strategies as st

from slurm_hooks.slurm.hostlist import HostlistError, collapse, expand
from slurm_hooks.slurm.json_records import AnswerError, jobs_from_json, nodes_from_json
from slurm_hooks.slurm.text_records import (
    jobs_from_text,
    nodes_from_text,
    partitions_from_text,
    reservations_from_text,
)

NAMES = st.from_regex(r"[a-z]{1,4}(-[a-z0-9]{1,3}){0,2}-?[0-9]{0,5}", fullmatch=True)
KEYS = st.sampled_from(
    ["NodeName", "JobId", "PartitionName", "ReservationName", "State", "Reason", "Comment"]
)
WORDS = st.text(max_size=12) | st.sampled_from(["IDLE", "c-[0-", "[root@2026-01-01T00:00:00]"])
JUNK_RECORDS = st.lists(
    st.tuples(KEYS, WORDS, st.sampled_from([" ", "\n", "\n   ", ""])), max_size=12
).map(lambda parts: "".join(f"{key}={word}{gap}" for key, word, gap in parts))
FREE_TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Zl", "Zp"]))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["nodes", "jobs", "name", "state", "job_id", "errors", "number"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.lists(NAMES))
def test_names_survive_collapse_and_expand(names: list[str]) -> None:
    assert expand(collapse(names)) == names


@given(st.lists(st.integers(0, 120).map(lambda number: f"c-{number}")))
def test_neighbours_survive_collapse_and_expand(names: list[str]) -> None:
    assert expand(collapse(names)) == names


@given(st.lists(st.integers(0, 120).map(lambda number: f"c-{number}-{number % 7}"), min_size=1))
def test_an_independent_reader_finds_the_same_set_of_names(names: list[str]) -> None:
    assert set(NodeSet(collapse(names))) == set(names)


@given(st.text(alphabet="n01[]-,{ \t", max_size=20))
def test_any_text_is_a_hostlist_or_an_error(text: str) -> None:
    try:
        names = expand(text)
    except HostlistError:
        return
    assert expand(collapse(names)) == names


@given(JUNK_RECORDS | st.text())
def test_junk_text_is_unreadable_never_an_exception(text: str) -> None:
    for parse in (nodes_from_text, partitions_from_text, reservations_from_text):
        parse(text)
    jobs = jobs_from_text(text)
    assert not jobs.records


@given(JSON)
def test_junk_json_is_an_answer_error_or_unreadable_records(document: object) -> None:
    for parse in (nodes_from_json, jobs_from_json):
        try:
            parse(json.dumps(document))
        except AnswerError:
            continue


@settings(max_examples=200)
@given(FREE_TEXT, JUNK_RECORDS)
def test_reason_comes_back_whole_and_junk_costs_no_other_node(reason: str, junk: str) -> None:
    reason = " ".join(reason.split())
    text = (
        f"NodeName=c-0 Arch=x86_64 OS=Linux  State=IDLE+DRAIN ThreadsPerCore=1 Partitions=a \n"
        f"   Reason={reason} [root@2026-01-01T00:00:00]\n   Comment=x\n"
        f"{junk}\n"
        f"NodeName=c-1 State=DOWN\n"
    )
    nodes = nodes_from_text(text).records
    assert nodes["c-1"].state.base == "DOWN"
    if reason not in ("(null)", "None", "NONE", "N/A", "Unknown"):
        assert nodes["c-0"].reason == reason
