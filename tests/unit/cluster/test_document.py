"""Texts that are no JSON or YAML, and files that cannot be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from slurm_hooks.cluster.document import MAXIMUM_BYTES, Mapping, parse_json, read_document
from slurm_hooks.cluster.errors import ClusterFileError, FieldError
from slurm_hooks.cluster.load import load_cluster
from tests.unit.cluster.files import EXAMPLE


def json_errors(text: str) -> tuple[FieldError, ...]:
    with pytest.raises(ClusterFileError) as caught:
        parse_json(text)
    return caught.value.errors


@pytest.mark.parametrize(
    ("text", "place", "problem"),
    [
        ('{"a": 1,}', "line 1, column 8", "a trailing comma before '}'"),
        ('{"a": [1,\n 2,\n]}', "line 2, column 3", "a trailing comma before ']'"),
        ('{"a": 1\n "b": 2}', "line 1, column 8", "a comma is missing"),
        ('{"a": {}\n{"b": 2}}', "line 1, column 9", "a comma is missing"),
        ('{\n  // note\n  "a": 1}', "line 2, column 3", "a comment, and JSON has none"),
        ('{"a": 1 // note\n}', "line 1, column 9", "a comment, and JSON has none"),
        ('{"a": 1, # note\n "b": 1}', "line 1, column 10", "a comment, and JSON has none"),
        ('{"a": 1 /* two\nlines */}', "line 1, column 9", "a comment, and JSON has none"),
        ('{"a": MIN_NODE_COUNT}', "line 1, column 7", "'MIN_NODE_COUNT' stands here"),
        ('{"a": <zone>}', "line 1, column 7", "'<zone>' stands here"),
        ("{a: 1}", "line 1, column 2", "'a' stands here"),
        ('{"a": True}', "line 1, column 7", "'True' stands here"),
        ("{'a': 1}", "line 1, column 2", "wrong quotation mark"),
        ('{"a": \u201cx\u201d}', "line 1, column 7", "wrong quotation mark"),
        ('{"a": "x}', "line 1, column 7", "a text without its closing quote"),
        ('{"a": 1', "line 1, column 8", "the file ends too early"),
        ('{"a": 1}}', "line 1, column 9", "something follows after the end"),
    ],
)
def test_json_mistake_has_place_and_likely_cause(text: str, place: str, problem: str) -> None:
    first = json_errors(text)[0]
    assert first.path == place
    assert first.problem.startswith(problem)
    assert first.remedy


def test_all_json_mistakes_are_named_at_once_with_true_places() -> None:
    text = '{ // the cluster\n  "a": MIN_NODE_COUNT,\n  "b": [1, 2,],\n  "c": 3\n  "d": <zone>,\n}'
    assert [(error.path, error.problem.split(" ")[1]) for error in json_errors(text)] == [
        ("line 1, column 3", "comment,"),
        ("line 2, column 8", "stands"),
        ("line 3, column 13", "trailing"),
        ("line 4, column 9", "comma"),
        ("line 5, column 8", "stands"),
        ("line 5, column 14", "trailing"),
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"a": NaN}', "NaN"),
        ('{"a": ' + "9" * 5000 + "}", "4300"),
        ("[" * 100_000, "deeply"),
    ],
)
def test_json_that_python_reads_in_its_own_way_is_refused(text: str, problem: str) -> None:
    assert problem in json_errors(text)[0].problem


def test_repeated_keys_are_remembered() -> None:
    document = parse_json('{"zone": "a", "zone": "b", "x": 1}')
    assert isinstance(document, Mapping)
    assert document.repeated == ("zone",)


def test_repeated_key_of_a_file_is_a_mistake_in_both_formats(tmp_path: Path) -> None:
    json_text = EXAMPLE.read_text().replace('"zone":', '"zone": "us-central1-b", "zone":', 1)
    (tmp_path / "cluster.json").write_text(json_text)
    (tmp_path / "cluster.yaml").write_text("display_name: a\ndisplay_name: b\n")
    for name, field in (("cluster.json", "node_pools[0].zone"), ("cluster.yaml", "display_name")):
        with pytest.raises(ClusterFileError) as caught:
            load_cluster(tmp_path / name)
        assert caught.value.errors[0].path == field
        assert "more than once" in caught.value.errors[0].problem


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("empty.json", b" \n", "empty"),
        ("list.json", b"[1]", "not a mapping"),
        ("latin.json", b'{"a": "\xe9"}', "not UTF-8 at byte 7"),
        ("huge.json", b" " * (MAXIMUM_BYTES + 1), "larger than 4 MiB"),
        ("word.yaml", b"hello", "not a mapping"),
    ],
)
def test_unusable_file_is_named(tmp_path: Path, name: str, content: bytes, problem: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ClusterFileError) as caught:
        read_document(tmp_path / name)
    assert caught.value.errors[0].path == str(tmp_path / name)
    assert problem in caught.value.errors[0].problem


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("a: 1\n b: 2\n", "line 2, column 3"),
        ("a: [1, 2\n", "line 2, column 1"),
        ("a: 1\nb: 'x\n", "line 3, column 1"),
        ("a: *nowhere\n", "line 1, column 4"),
        ("? [a]\n: 1\n", "line 1, column 3"),
        ("a: &x [*x]\n", "line 1, column 4"),
    ],
)
def test_yaml_mistake_has_its_place(tmp_path: Path, text: str, place: str) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(text)
    with pytest.raises(ClusterFileError) as caught:
        read_document(path)
    assert caught.value.errors[0].path == place


def test_missing_file_and_directory_are_told_apart(tmp_path: Path) -> None:
    for path, problem in ((tmp_path / "none", "no such file"), (tmp_path, "is a directory")):
        with pytest.raises(ClusterFileError, match=problem):
            read_document(path)


def test_byte_order_mark_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "cluster.json"
    path.write_bytes(b'\xef\xbb\xbf{"a": 1}')
    assert read_document(path) == {"a": 1}
