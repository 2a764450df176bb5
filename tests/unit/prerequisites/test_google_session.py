"""Plain calls of Google's services: their two forms of errors, retries, silence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from slurm_hooks.compute.errors import ComputeError, ErrorKind
from slurm_hooks.compute.google_session import SERVICE_DISABLED, GoogleSession, Place, error_of
from slurm_hooks.compute.retry import RetryPolicy
from tests.fakes.canned_server import Answer, CannedServer, answer_json, canned_server

HERE = Place("here.googleapis.com", "/here")
THERE = Place("there.googleapis.com")
QUICK = RetryPolicy(
    request_timeout_seconds=5.0,
    attempts=2,
    total_seconds=5.0,
    transient_pause_seconds=0.01,
    rate_pause_seconds=0.01,
)


def rpc_error(status: int, word: str, reason: str = "") -> dict[str, Any]:
    """The form of all services but Compute Engine."""
    error: dict[str, Any] = {"code": status, "message": "text", "status": word}
    if reason:
        error["details"] = [{"@type": "x"}, {"reason": reason, "domain": "googleapis.com"}]
    return {"error": error}


def compute_error(status: int, reason: str) -> dict[str, Any]:
    return {"error": {"code": status, "message": "text", "errors": [{"reason": reason}]}}


@pytest.mark.parametrize(
    ("status", "body", "kind", "code"),
    [
        (404, rpc_error(404, "NOT_FOUND"), ErrorKind.GONE, "NOT_FOUND"),
        (404, compute_error(404, "notFound"), ErrorKind.GONE, "notFound"),
        (404, None, ErrorKind.CONFIG, "404"),
        (403, rpc_error(403, "PERMISSION_DENIED"), ErrorKind.PERMISSION, "PERMISSION_DENIED"),
        (
            403,
            rpc_error(403, "PERMISSION_DENIED", "SERVICE_DISABLED"),
            ErrorKind.PERMISSION,
            SERVICE_DISABLED,
        ),
        (403, compute_error(403, "accessNotConfigured"), ErrorKind.PERMISSION, SERVICE_DISABLED),
        (403, compute_error(403, "rateLimitExceeded"), ErrorKind.RATE, "rateLimitExceeded"),
        (429, rpc_error(429, "RESOURCE_EXHAUSTED"), ErrorKind.RATE, "RESOURCE_EXHAUSTED"),
        (503, None, ErrorKind.TRANSIENT, "503"),
        (400, {"error": "invalid_token"}, ErrorKind.CONFIG, "400"),
    ],
)
def test_errors_of_both_forms_are_told_apart(
    status: int, body: dict[str, Any] | None, kind: ErrorKind, code: str
) -> None:
    error = error_of(status, body)
    assert (error.kind, error.code, error.http_status) == (kind, code, status)


@pytest.fixture
def server() -> Iterator[CannedServer]:
    with canned_server() as running:
        yield running


def session_of(url: str) -> GoogleSession:
    return GoogleSession(url, "anonymous", QUICK)


def test_a_path_follows_the_prefix_of_its_service(server: CannedServer) -> None:
    server.will_answer(answer_json({"name": "x"}))
    session = session_of(server.url)
    assert session.get(HERE, "/v1/x", {"a": "b"}) == {"name": "x"}
    session.post(THERE, "/v1/x:test", {"permissions": ["p"]})
    first, second = server.received
    assert (first.method, first.path, first.query) == ("GET", "/here/v1/x", {"a": ["b"]})
    assert (second.path, second.json) == ("/v1/x:test", {"permissions": ["p"]})


def test_a_stumble_is_tried_again_and_a_refusal_is_not(server: CannedServer) -> None:
    server.will_answer(Answer(b"oops", 503), answer_json({"a": 1}))
    assert session_of(server.url).get(HERE, "/x") == {"a": 1}
    server.will_answer(answer_json(rpc_error(403, "PERMISSION_DENIED"), 403))
    with pytest.raises(ComputeError):
        session_of(server.url).get(HERE, "/x")
    assert len(server.received) == 3


def test_an_answer_that_is_no_object_is_no_answer(server: CannedServer) -> None:
    server.will_answer(Answer(b"[1]"))
    with pytest.raises(ComputeError) as refused:
        session_of(server.url).get(HERE, "/x")
    assert refused.value.kind is ErrorKind.TRANSIENT


def test_a_service_that_dropped_a_call_is_not_asked_again_and_others_are(
    server: CannedServer,
) -> None:
    session = session_of(server.url)
    server.will_answer(Answer(drops=True))
    with pytest.raises(ComputeError):
        session.get(HERE, "/one")
    asked = len(server.received)
    with pytest.raises(ComputeError):
        session.get(HERE, "/two")
    assert len(server.received) == asked == 2
    server.will_answer(answer_json({"a": 1}))
    assert session.get(THERE, "/two") == {"a": 1}
