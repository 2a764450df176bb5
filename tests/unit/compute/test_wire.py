"""Bodies are held against the messages of the installed client, field by field."""

from __future__ import annotations

import pytest

from slurm_hooks.compute.wire import Problem, ProblemKind, problems, unknown_fields, wrong_values

RESIZE_REQUEST = "InstanceGroupManagerResizeRequest"


def test_a_full_resize_request_has_no_problems() -> None:
    body = {
        "name": "r",
        "description": "d",
        "instances": [{"name": "demo-a3u-0"}, {"name": "demo-a3u-1"}],
        "requestedRunDuration": {"seconds": "3600", "nanos": 0},
    }
    assert problems(RESIZE_REQUEST, body) == []


def test_names_are_those_of_the_json_form() -> None:
    body = {"networkInterfaces": [{"networkIP": "10.0.0.2"}], "labels": {"any_key": "v"}}
    assert problems("Instance", body) == []
    assert unknown_fields("Instance", {"network_interfaces": []}) == ["network_interfaces"]


def test_unknown_fields_are_found_at_any_depth() -> None:
    body = {
        "count": 2,
        "instances": [{"name": "a"}, {"nmae": "b"}],
        "requestedRunDuration": {"minutes": 3},
    }
    assert unknown_fields(RESIZE_REQUEST, body) == [
        "count",
        "instances[1].nmae",
        "requestedRunDuration.minutes",
    ]
    assert wrong_values(RESIZE_REQUEST, body) == []


@pytest.mark.parametrize(
    ("body", "path", "expected"),
    [
        ([], "", "object"),
        (None, "", "object"),
        ({"name": 1}, "name", "string"),
        ({"resizeBy": "2"}, "resizeBy", "int32"),
        ({"resizeBy": True}, "resizeBy", "int32"),
        ({"resizeBy": 2**31}, "resizeBy", "int32"),
        ({"resizeBy": 1.0}, "resizeBy", "int32"),
        ({"instances": {"name": "a"}}, "instances", "array"),
        ({"instances": ["a"]}, "instances[0]", "object"),
        ({"instances": [None]}, "instances[0]", "object"),
        ({"requestedRunDuration": "3600s"}, "requestedRunDuration", "object"),
        ({"requestedRunDuration": {"seconds": "1h"}}, "requestedRunDuration.seconds", "int64"),
        ({"requestedRunDuration": {"seconds": ""}}, "requestedRunDuration.seconds", "int64"),
        ({"requestedRunDuration": {"seconds": "²"}}, "requestedRunDuration.seconds", "int64"),
        (
            {"requestedRunDuration": {"seconds": "9" * 5000}},
            "requestedRunDuration.seconds",
            "int64",
        ),
        ({"id": "-1"}, "id", "uint64"),
    ],
)
def test_wrong_types_are_found(body: object, path: str, expected: str) -> None:
    assert wrong_values(RESIZE_REQUEST, body) == [Problem(path, ProblemKind.WRONG_TYPE, expected)]


def test_booleans_and_maps_are_checked() -> None:
    body = {"canIpForward": "true", "labels": {"k": 1}, "tags": {"items": "t"}}
    assert [problem.path for problem in wrong_values("InstanceProperties", body)] == [
        "canIpForward",
        "labels.k",
        "tags.items",
    ]
    assert wrong_values("InstanceProperties", {"labels": ["k"]})[0].expected == "object"


@pytest.mark.parametrize("seconds", ["3600", 3600])
def test_64_bit_integers_come_as_strings_or_numbers(seconds: object) -> None:
    assert problems("Duration", {"seconds": seconds}) == []


def test_null_counts_as_absent() -> None:
    assert problems(RESIZE_REQUEST, {"name": None}) == []


def test_words_of_an_enum_are_checked() -> None:
    assert problems("Scheduling", {"provisioningModel": "FLEX_START"}) == []
    (problem,) = problems("Scheduling", {"provisioningModel": "FLEX"})
    assert problem.kind is ProblemKind.UNKNOWN_WORD
    assert "FLEX_START" in problem.expected
    assert "UNDEFINED" not in problem.expected
    (problem,) = problems("Operation", {"status": "FINISHED"})
    assert problem.kind is ProblemKind.UNKNOWN_WORD


@pytest.mark.parametrize("name", ["NoSuchMessage", "__name__", "InstancesClient"])
def test_an_unknown_message_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        problems(name, {})
