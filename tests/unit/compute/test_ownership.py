"""What counts as ours: a whole mark of this cluster, and nothing else."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_hooks.compute.model import (
    Group,
    GroupReference,
    Instance,
    InstanceStatus,
    RequestReference,
    RequestState,
    ResizeRequest,
    Scope,
    ScopeKind,
)
from slurm_hooks.compute.ownership import (
    Mark,
    decode,
    encode,
    hash_of_nodes,
    instances_filter,
    is_ours,
    labels_of,
)

GROUP = GroupReference(Scope(ScopeKind.ZONE, "z"), "g")
WHOLE = {"slurm-hooks": 1, "cluster": "demo", "pool": "a3u"}

names = st.text(min_size=1, max_size=20)
numbers = st.none() | st.integers(min_value=0, max_value=2**32)
marks = st.builds(
    Mark,
    cluster=names,
    pool=names,
    generation=st.text(max_size=20),
    job_id=numbers,
    restarts=numbers,
    nodes_hash=st.text(max_size=20),
)


@given(marks)
def test_a_mark_reads_back_as_it_was_written(mark: Mark) -> None:
    assert decode(encode(mark)) == mark


def test_a_mark_is_compact_json_with_its_version() -> None:
    text = encode(Mark("demo", "a3u", "g1", 12, 0, "ab"))
    assert text == (
        '{"slurm-hooks":1,"cluster":"demo","pool":"a3u","generation":"g1",'
        '"job_id":12,"restarts":0,"nodes_hash":"ab"}'
    )


@pytest.mark.parametrize(
    "members",
    [
        {},
        WHOLE | {"slurm-hooks": 2},
        WHOLE | {"slurm-hooks": "1"},
        WHOLE | {"slurm-hooks": True},
        WHOLE | {"cluster": ""},
        WHOLE | {"cluster": 7},
        WHOLE | {"pool": None},
        WHOLE | {"job_id": "12"},
        WHOLE | {"job_id": -1},
        WHOLE | {"job_id": True},
        WHOLE | {"restarts": 1.0},
        WHOLE | {"owner": "someone"},
        {"cluster": "demo", "pool": "a3u"},
        {"slurm-hooks": 1, "cluster": "demo"},
    ],
)
def test_an_odd_mark_is_no_mark(members: dict[str, object]) -> None:
    assert decode(json.dumps(members)) is None


@pytest.mark.parametrize("text", ["", "made by hand", "[]", "1", "null", "{", "[" * 100_000])
def test_other_text_is_no_mark(text: str) -> None:
    assert decode(text) is None


def test_the_hash_of_nodes_ignores_order_and_repetition() -> None:
    assert hash_of_nodes(["n-1", "n-0"]) == hash_of_nodes(["n-0", "n-1", "n-0"])
    assert hash_of_nodes(["n-1", "n-0"]) != hash_of_nodes(["n-1"])
    assert hash_of_nodes(["ab"]) != hash_of_nodes(["a", "b"])


def test_groups_and_requests_are_ours_by_their_mark() -> None:
    ours, other = encode(Mark("demo", "a3u")), encode(Mark("demo2", "a3u"))
    for text, expected in ((ours, True), (other, False), ("demo", False), ("", False)):
        assert is_ours(Group(GROUP, description=text), "demo") is expected
        request = ResizeRequest(
            RequestReference(GROUP, "r"), RequestState.ACCEPTED, description=text
        )
        assert is_ours(request, "demo") is expected


def test_instances_are_ours_by_their_label() -> None:
    def instance(labels: dict[str, str]) -> Instance:
        return Instance("demo-a3u-0", "1", "z", InstanceStatus.RUNNING, labels=labels)

    assert is_ours(instance(labels_of(Mark("demo", "a3u"))), "demo")
    assert not is_ours(instance(labels_of(Mark("demo2", "a3u"))), "demo")
    assert not is_ours(instance({}), "demo")


def test_the_filter_names_the_cluster() -> None:
    assert instances_filter("demo") == "labels.slurm-hooks-cluster=demo"


@pytest.mark.parametrize("cluster", ["", "Demo", "a b", "a.b", "x" * 64, "demo OR labels.a=b"])
def test_an_id_that_cannot_be_a_label_is_refused(cluster: str) -> None:
    with pytest.raises(ValueError, match="label"):
        labels_of(Mark(cluster, "a3u"))
    with pytest.raises(ValueError, match="label"):
        instances_filter(cluster)
