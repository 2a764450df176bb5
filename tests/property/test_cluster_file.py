"""Cluster files of any content: read, or refused in words; and laws of names and durations."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic_core import PydanticCustomError

from slurm_hooks.cluster.document import Mapping, parse_json, parse_yaml
from slurm_hooks.cluster.errors import ClusterFileError
from slurm_hooks.cluster.fields import parse_duration_seconds
from slurm_hooks.cluster.json_mistakes import find_json_mistakes
from slurm_hooks.cluster.load import build_cluster
from slurm_hooks.cluster.machine_types import standard_catalogue
from slurm_hooks.cluster.slurm_parameters import all_parameters
from slurm_hooks.cluster.spec import ClusterSpec
from slurm_hooks.cluster.spelling import to_snake_case
from slurm_hooks.cluster.topology import Cluster, NodeName, parse_node_name
from slurm_hooks.slurm.render import RenderOptions, render

EXAMPLE_TEXT = (
    Path(__file__).resolve().parents[2] / "etc" / "slurm-hooks" / "cluster_config.json"
).read_text()

CLUSTER_IDS = st.from_regex(r"[a-z][a-z0-9]{0,9}", fullmatch=True)
POOL_IDS = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,20}[a-z0-9])?", fullmatch=True)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20)
)
JSON_VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=12,
)


def build(document: object) -> Cluster:
    parsed = parse_json(json.dumps(document))
    return build_cluster(parsed if isinstance(parsed, Mapping) else Mapping(), standard_catalogue())


def places(value: object, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """The path of every value inside a document."""
    items: list[tuple[str | int, object]] = []
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list):
        items = list(enumerate(value))
    return [path, *(place for key, inner in items for place in places(inner, (*path, key)))]


def put(document: Any, path: tuple[str | int, ...], value: object) -> Any:
    """The document with the value at a path replaced."""
    if not path:
        return value
    copy = document.copy()
    copy[path[0]] = put(document[path[0]], path[1:], value)
    return copy


@given(CLUSTER_IDS, POOL_IDS, st.integers(0, 10**6))
def test_node_name_survives_the_round_trip(cluster: str, pool: str, index: int) -> None:
    name = NodeName(cluster, pool, index)
    assert parse_node_name(str(name)) == name


@given(st.text(max_size=40))
@example("a--0")
@example("a-b-00")
@example("a-b-\u0661")
def test_text_is_a_node_name_only_in_its_one_spelling(text: str) -> None:
    name = parse_node_name(text)
    assert name is None or str(name) == text


@given(st.integers(30, 604_800))
def test_durations_in_range_are_read(seconds: int) -> None:
    assert parse_duration_seconds(f"{seconds}s") == seconds


@given(st.integers().filter(lambda seconds: not 30 <= seconds <= 604_800) | st.text(max_size=8))
@example("\u0663\u0660s")
def test_any_other_duration_is_refused(value: int | str) -> None:
    text = f"{value}s" if isinstance(value, int) else value
    try:
        seconds = parse_duration_seconds(text)
    except PydanticCustomError:
        return
    assert 30 <= seconds <= 604_800
    assert int(text.removesuffix("s")) == seconds


@given(st.dictionaries(st.sampled_from([*ClusterSpec.model_fields, "x"]), JSON_VALUES))
def test_any_document_is_refused_in_words(document: dict[str, object]) -> None:
    with pytest.raises(ClusterFileError) as caught:
        build(document)
    assert caught.value.errors
    for error in caught.value.errors:
        assert error.path
        assert error.problem
        assert error.remedy
        assert len(str(error)) < 1000, "an error must not carry the file's contents"


@given(st.data())
def test_example_with_any_one_value_replaced_is_read_or_refused_in_words(data: Any) -> None:
    example_document = json.loads(EXAMPLE_TEXT)
    path = data.draw(st.sampled_from(places(example_document)[1:]))
    try:
        cluster = build(put(example_document, path, data.draw(JSON_VALUES)))
    except ClusterFileError as error:
        paths = [found.path for found in error.errors]
        assert len(paths) == len(set(paths)), "one mistake per field"
    else:
        assert cluster.project
        assert set(cluster.partitions[cluster.default_partition]) <= set(cluster.pools)


FULL: dict[str, Any] = json.loads(EXAMPLE_TEXT)
FULL["labels"] = {"team": "a"}
FULL["node_pools"][1] |= {
    "labels": {"kind": "gpu"},
    "filestores": ["projects/p/locations/us-central1-a/instances/data"],
    "lustres": ["projects/p/locations/us-central1-a/instances/fast"],
    "startup_script": "true",
}
FULL["node_pools"].append(
    {
        "id": "held",
        "machine_spec": {
            "machine_type": "a3-highgpu-8g",
            "reservation_affinity": {
                "reservation_affinity_type": "SPECIFIC_RESERVATION",
                "key": "compute.googleapis.com/reservation-name",
                "values": ["projects/p/zones/us-central1-a/reservations/r"],
            },
        },
        "scaling_spec": {"min_node_count": 0, "max_node_count": 1},
        "zone": "us-central1-a",
    }
)
FULL["node_pools"][0] |= {
    "machine_spec": {"machine_type": "n2d-standard-8"},
    "confidential_instance_config": {"confidential_instance_type": "SEV"},
}
FULL["orchestrator_spec"]["slurm_spec"] |= {
    "default_partition_id": "a3u",
    "prolog_bash_scripts": ["true"],
    "config": {"PreemptType": "preempt/qos", "PreemptMode": "CANCEL", "KillWait": "60"},
    "node_sets": [{"node_pool_id": "held", "config": {"Features": "fast", "Weight": "3"}}],
}
FULL["orchestrator_spec"]["slurm_spec"]["partitions"][0]["config"] = {
    "MaxTime": "1:00:00",
    "OverSubscribe": "NO",
}
FULL["slurm_hooks"] = {"hold_seconds": 60, "end_of_life_signal": "USR1"}


def test_document_with_every_kind_of_field_is_good() -> None:
    assert build(FULL).pools["held"].reservations is not None


@given(st.data())
def test_any_one_value_replaced_is_read_and_rendered_or_refused_in_words(data: Any) -> None:
    path = data.draw(st.sampled_from(places(FULL)[1:]))
    try:
        cluster = build(put(FULL, path, data.draw(JSON_VALUES)))
    except ClusterFileError as error:
        paths = [found.path for found in error.errors]
        assert len(paths) == len(set(paths)), "one mistake per field"
        assert all(len(str(found)) < 1000 for found in error.errors)
    else:
        for text in render(cluster, RenderOptions(slurm_version=(25, 11))).values():
            text.encode()


CONFIG_KEYS = st.sampled_from([found.name for found in all_parameters()]) | st.text(max_size=12)
CONFIG_VALUES = st.text(max_size=12) | st.sampled_from(["1", "YES", "SUSPEND,GANG", "a=1", '"a b"'])


@given(st.dictionaries(CONFIG_KEYS, CONFIG_VALUES, min_size=1, max_size=3))
@example({"LaunchParameters": "\ud800"})
@example({"LaunchParameters": "a\u2028b"})
@example({"PriorityWeightTRES": "x" * 5000 + "=1"})
def test_a_config_map_adds_its_own_settings_to_the_files_and_nothing_else(
    config: dict[str, str],
) -> None:
    document = put(FULL, ("orchestrator_spec", "slurm_spec", "config"), config)
    try:
        cluster = build(document)
    except ClusterFileError as error:
        assert all(len(str(found)) < 1000 for found in error.errors)
        return
    options = RenderOptions(slurm_version=(26, 5))
    keys = _keys(render(cluster, options))
    plain = _keys(render(dataclasses.replace(cluster, slurm_config=()), options))
    assert keys == plain | {name for name, _ in cluster.slurm_config}
    assert len(cluster.slurm_config) == len(config)


def _keys(texts: dict[str, str]) -> set[str]:
    lines = (line for text in texts.values() for line in text.split("\n"))
    return {line.partition("=")[0] for line in lines if line and line[0] != "#"}


@given(st.text(max_size=60))
def test_any_text_is_json_or_yaml_or_refused_in_words(text: str) -> None:
    for parse in (parse_json, parse_yaml):
        try:
            parse(text)
        except ClusterFileError as error:
            assert error.errors
            assert all(found.path.startswith("line ") for found in error.errors)


@given(st.integers(0, len(EXAMPLE_TEXT)), st.sampled_from([*'{}[]",:x<>/# \n\u201c', "//", "X_Y"]))
def test_example_with_text_put_anywhere_is_read_or_every_place_is_in_it(
    position: int, text: str
) -> None:
    changed = EXAMPLE_TEXT[:position] + text + EXAMPLE_TEXT[position:]
    lines = changed.split("\n")
    for error in find_json_mistakes(changed):
        line, column = (int(word) for word in error.path.replace(",", "").split()[1::2])
        assert 1 <= line <= len(lines)
        assert 1 <= column <= len(lines[line - 1]) + 1


@given(st.sampled_from(sorted(ClusterSpec.model_fields)))
def test_both_spellings_of_a_field_are_one(name: str) -> None:
    first, *rest = name.split("_")
    assert to_snake_case(first + "".join(word.title() for word in rest)) == name
