"""The known traps of the official client library, each with a real client and a local server."""

from __future__ import annotations

import gc
import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
import uuid
from collections.abc import Callable

import pytest

from slurm_hooks.compute.errors import ComputeError, ErrorKind
from slurm_hooks.compute.google_client import GoogleComputeClient
from slurm_hooks.compute.model import (
    GroupReference,
    GroupSpecification,
    Operation,
    RequestReference,
    RequestSpecification,
    Scope,
    ScopeKind,
    TemplateSpecification,
    WorkloadPolicySpecification,
)
from slurm_hooks.compute.retry import RetryPolicy
from tests.fakes.canned_server import Answer, CannedServer, answer_error, answer_json
from tests.unit.compute.conftest import QUICK

pytestmark = pytest.mark.slow

ZONE = Scope(ScopeKind.ZONE, "us-west4-a")
REGION = Scope(ScopeKind.REGION, "us-west4")
GLOBAL = Scope(ScopeKind.GLOBAL, "")
RUNNING = {
    "name": "operation-1",
    "status": "RUNNING",
    "insertTime": "2026-01-05T09:15:30.250-08:00",
}

EMPTY_LIST = {"kind": "compute#instanceAggregatedList"}


def group(scope: Scope = ZONE) -> GroupReference:
    return GroupReference(scope, "g")


def request(scope: Scope = ZONE) -> RequestReference:
    return RequestReference(group(scope), "r")


def template() -> TemplateSpecification:
    return TemplateSpecification(
        "t", "a3-ultragpu-8g", "FLEX_START", "projects/p/global/images/i", "n", "", 3600
    )


def insert_request(client: GoogleComputeClient, scope: Scope = ZONE) -> Operation:
    return client.insert_resize_request(
        RequestSpecification(request(scope), ("n-0",), "d", 3600), "insert"
    )


Mutation = Callable[[GoogleComputeClient], Operation]

MUTATIONS: dict[str, Mutation] = {
    "insert_template": lambda c: c.insert_template(GLOBAL, template(), "x"),
    "insert_template-regional": lambda c: c.insert_template(REGION, template(), "x"),
    "insert_workload_policy": lambda c: c.insert_workload_policy(
        WorkloadPolicySpecification(REGION, "w", "d"), "x"
    ),
    "delete_workload_policy": lambda c: c.delete_workload_policy(REGION, "w", "x"),
    "delete_template": lambda c: c.delete_template(GLOBAL, "t", "x"),
    "delete_template-regional": lambda c: c.delete_template(REGION, "t", "x"),
}
for place in (ZONE, REGION):
    MUTATIONS |= {
        f"insert_group-{place.kind}": lambda c, s=place: c.insert_group(  # type: ignore[misc]
            GroupSpecification(group(s), "t", "d", ("us-west4-a",)), "x"
        ),
        f"delete_group-{place.kind}": lambda c, s=place: c.delete_group(  # type: ignore[misc]
            group(s), "x"
        ),
        f"insert_request-{place.kind}": lambda c, s=place: insert_request(c, s),  # type: ignore[misc]
        f"cancel_request-{place.kind}": lambda c, s=place: c.cancel_resize_request(  # type: ignore[misc]
            request(s), "x"
        ),
        f"delete_request-{place.kind}": lambda c, s=place: c.delete_resize_request(  # type: ignore[misc]
            request(s), "x"
        ),
        f"create_instances-{place.kind}": lambda c, s=place: c.create_instances(  # type: ignore[misc]
            group(s), ["n-0"], "x"
        ),
        f"delete_instances-{place.kind}": lambda c, s=place: c.delete_instances(  # type: ignore[misc]
            group(s), {"n-0": "us-west4-a"}, "x"
        ),
    }

mutations = pytest.mark.parametrize("mutate", MUTATIONS.values(), ids=MUTATIONS.keys())


@mutations
def test_a_mutation_is_one_call_with_a_request_id_and_waits_for_nothing(
    client: GoogleComputeClient, server: CannedServer, mutate: Mutation
) -> None:
    server.will_answer(answer_json(RUNNING))
    operation = mutate(client)
    assert not operation.done
    (received,) = server.received
    assert uuid.UUID(received.query["requestId"][0]).int
    assert set(received.query) == {"requestId"}


@mutations
def test_a_mutation_is_repeated_with_the_same_request_id(
    client: GoogleComputeClient, server: CannedServer, mutate: Mutation
) -> None:
    server.will_answer(Answer(drops=True), answer_error(503, "backendError"), answer_json(RUNNING))
    assert mutate(client).name == "operation-1"
    assert len(server.received) == 3
    assert len({tuple(received.query["requestId"]) for received in server.received}) == 1
    assert len({received.body for received in server.received}) == 1


def test_the_same_text_gives_the_same_request_id_and_another_text_another(
    client: GoogleComputeClient, server: CannedServer
) -> None:
    server.will_answer(answer_json(RUNNING))
    for text in ("a", "a", "b"):
        client.delete_group(group(), text)
    first, second, third = [received.query["requestId"] for received in server.received]
    assert first == second != third


NOT_THE_SERVICE = """
    import socket
    import sys

    def no_lookup(host, *rest, **more):
        if host != "127.0.0.1":
            print(f"looked up {host}")
            sys.stdout.flush()
            import os; os._exit(3)
        return real(host, *rest, **more)

    real = socket.getaddrinfo
    socket.getaddrinfo = no_lookup
"""


def test_no_client_knows_another_host_than_the_configured_one(
    client: GoogleComputeClient, server: CannedServer
) -> None:
    """Also the library's hidden operation clients would be found here, had they been made."""
    server.will_answer(answer_json(RUNNING))
    for mutate in MUTATIONS.values():
        mutate(client)
    for scope in (ZONE, REGION, GLOBAL):
        client.get_operation(Operation("operation-1", scope))
    server.will_answer(answer_json(EMPTY_LIST))
    client.read("demo")
    hosts = {
        thing._host
        for thing in gc.get_objects()
        if str(type(thing).__module__).startswith("google.cloud.compute_v1.services")
        and "Transport" in type(thing).__name__
        and hasattr(thing, "_host")
    }
    assert server.url in hosts
    assert not [host for host in hosts if "googleapis" in host]


def test_no_other_host_is_looked_up(server: CannedServer, tmp_path: object) -> None:
    """In a process of its own without settings of the cloud, every other lookup ends it."""
    server.will_answer(answer_json(EMPTY_LIST | RUNNING))
    script = textwrap.dedent(NOT_THE_SERVICE) + textwrap.dedent(f"""
        from slurm_hooks.compute.google_client import GoogleComputeClient
        from slurm_hooks.compute.model import GroupReference, Operation, Scope, ScopeKind

        client = GoogleComputeClient("demo", "{server.url}", "anonymous")
        client.read("demo")
        zone = Scope(ScopeKind.ZONE, "z")
        client.delete_group(GroupReference(zone, "g"), "x")
        client.get_operation(Operation("o", zone))
        print("done")
    """)
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    run = subprocess.run(
        [sys.executable, "-c", script],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "done\n", "")
    assert len(server.received) == 4


def test_importing_the_client_imports_nothing_of_google() -> None:
    script = "import sys, slurm_hooks.compute.google_client; print('google' in sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert run.stdout == "False\n"


ERRORS = {"errors": [{"code": "ZONE_RESOURCE_POOL_EXHAUSTED", "message": "text"}]}


@pytest.mark.parametrize(
    "members",
    [
        {"status": "DONE", "error": ERRORS},
        {"status": "RUNNING", "error": ERRORS},
        {"status": "PENDING", "error": ERRORS},
        {"status": "DONE", "error": ERRORS, "httpErrorStatusCode": 503},
        {"status": "DONE", "error": ERRORS, "httpErrorMessage": "SERVICE UNAVAILABLE"},
    ],
)
@pytest.mark.parametrize("scope", [ZONE, REGION, GLOBAL], ids=str)
def test_an_operation_with_an_error_has_failed(
    client: GoogleComputeClient, server: CannedServer, members: dict[str, object], scope: Scope
) -> None:
    server.will_answer(answer_json({"name": "operation-1"} | members))
    operation = client.get_operation(Operation("operation-1", scope))
    assert operation.error is not None
    assert operation.error.code == "ZONE_RESOURCE_POOL_EXHAUSTED"
    assert operation.done is (members["status"] == "DONE")


def test_an_operation_with_only_a_status_has_failed(
    client: GoogleComputeClient, server: CannedServer
) -> None:
    failed = {"name": "o", "status": "DONE", "httpErrorStatusCode": 400, "httpErrorMessage": "BAD"}
    server.will_answer(answer_json(failed))
    operation = client.get_operation(Operation("o", ZONE))
    assert operation.error is not None
    assert (operation.error.code, operation.http_status) == ("400", 400)


@pytest.mark.parametrize("status", ["FINISHED", "", None])
def test_an_operation_in_an_unknown_state_is_not_done(
    client: GoogleComputeClient, server: CannedServer, status: object
) -> None:
    server.will_answer(answer_json({"name": "o", "status": status}))
    assert not client.get_operation(Operation("o", ZONE)).done


def test_an_operation_without_a_name_is_no_answer(
    client: GoogleComputeClient, server: CannedServer
) -> None:
    server.will_answer(answer_json({"kind": "compute#operation", "status": "DONE"}))
    assert error_of(lambda: insert_request(client)).kind is ErrorKind.TRANSIENT


def error_of(call: Callable[[], object]) -> ComputeError:
    with pytest.raises(ComputeError) as error:
        call()
    return error.value


def test_a_rate_limit_is_tried_again(client: GoogleComputeClient, server: CannedServer) -> None:
    server.will_answer(answer_error(403, "rateLimitExceeded"), answer_json(RUNNING))
    assert insert_request(client).name == "operation-1"
    assert len(server.received) == 2


@pytest.mark.parametrize(
    ("status", "reason", "kind"),
    [
        (403, "quotaExceeded", ErrorKind.QUOTA),
        (403, "forbidden", ErrorKind.PERMISSION),
        (400, "invalid", ErrorKind.CONFIG),
        (404, "notFound", ErrorKind.GONE),
        (409, "alreadyExists", ErrorKind.CONFLICT),
        (412, "conditionNotMet", ErrorKind.CONFLICT),
    ],
)
def test_what_would_not_help_is_not_tried_again(
    client: GoogleComputeClient, server: CannedServer, status: int, reason: str, kind: ErrorKind
) -> None:
    server.will_answer(answer_error(status, reason, "the service's words"))
    error = error_of(lambda: insert_request(client))
    assert (error.kind, error.code, error.http_status) == (kind, reason, status)
    assert error.message == "the service's words"
    assert len(server.received) == 1


@pytest.mark.parametrize(
    ("status", "reason", "kind"),
    [
        (403, "rateLimitExceeded", ErrorKind.RATE),
        (429, "rateLimitExceeded", ErrorKind.RATE),
        (413, "rateLimitExceeded", ErrorKind.RATE),
        (500, "internalError", ErrorKind.TRANSIENT),
        (502, "", ErrorKind.TRANSIENT),
        (503, "backendError", ErrorKind.TRANSIENT),
        (504, "", ErrorKind.TRANSIENT),
    ],
)
def test_attempts_are_bounded(
    client: GoogleComputeClient, server: CannedServer, status: int, reason: str, kind: ErrorKind
) -> None:
    server.will_answer(answer_error(status, reason))
    assert error_of(lambda: client.read("demo")).kind is kind
    assert len(server.received) == QUICK.attempts


def test_credentials_that_are_refused_are_a_matter_of_permission(
    client: GoogleComputeClient, server: CannedServer
) -> None:
    server.will_answer(answer_error(401, "authError"))
    assert error_of(lambda: client.read("demo")).kind is ErrorKind.PERMISSION


@pytest.mark.parametrize(
    "answer",
    [
        Answer(b"<html>not JSON</html>"),
        Answer(b"[]"),
        Answer(b"{}"),
        Answer(b"\xff\xfe"),
        Answer(b'{"name": 7'),
        Answer(b'{"name": {"a": 1}}'),
        Answer(drops=True),
        Answer(b"<html>busy</html>", 503),
        Answer(b'{"error": "busy"}', 503),
        Answer(b"[1]", 503),
        Answer(b"null", 503),
        Answer(b'{"error": {"errors": ["busy"]}}', 503),
    ],
    ids=lambda answer: str(answer.body) if not answer.drops else "dropped",
)
def test_an_answer_that_is_none_is_transient(
    client: GoogleComputeClient, server: CannedServer, answer: Answer
) -> None:
    server.will_answer(answer)
    assert error_of(lambda: insert_request(client)).kind is ErrorKind.TRANSIENT
    assert len(server.received) == QUICK.attempts


def test_a_page_of_a_gateway_is_no_proof_that_a_thing_is_gone(
    client: GoogleComputeClient, server: CannedServer
) -> None:
    server.will_answer(Answer(b"<html>no such page</html>", 404))
    assert error_of(lambda: client.get_resize_request(request())).kind is ErrorKind.CONFIG


def test_a_refused_connection_is_transient() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        client = GoogleComputeClient("demo", f"http://127.0.0.1:{port}", "anonymous", QUICK)
        error = error_of(lambda: client.read("demo"))
    assert (error.kind, error.http_status) == (ErrorKind.TRANSIENT, None)


def test_a_slow_answer_is_given_up(server: CannedServer) -> None:
    policy = RetryPolicy(request_timeout_seconds=0.2, attempts=2, transient_pause_seconds=0.001)
    client = GoogleComputeClient("demo", server.url, "anonymous", policy)
    server.will_answer(Answer(waits=True))
    start = time.monotonic()
    assert error_of(lambda: insert_request(client)).kind is ErrorKind.TRANSIENT
    assert time.monotonic() - start < 5
    assert len(server.received) == 2


class StopAsked(BaseException):
    """What a daemon's signal handler raises."""


def raise_stop(number: int, frame: object) -> None:
    raise StopAsked


@pytest.mark.parametrize(
    "answer", [answer_error(403, "rateLimitExceeded"), Answer(waits=True)], ids=["pause", "wait"]
)
def test_a_signal_ends_a_call_at_once(server: CannedServer, answer: Answer) -> None:
    """Whether it comes in the long pause after a rate limit or while an answer is awaited."""
    client = GoogleComputeClient("demo", server.url, "anonymous")
    server.will_answer(answer_json(RUNNING))
    insert_request(client)
    server.will_answer(answer)
    before = signal.signal(signal.SIGUSR1, raise_stop)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGUSR1))
    start = time.monotonic()
    try:
        timer.start()
        with pytest.raises(StopAsked):
            insert_request(client)
    finally:
        timer.join()
        signal.signal(signal.SIGUSR1, before)
    assert time.monotonic() - start < 5


def test_no_attempt_starts_after_the_total_time(server: CannedServer) -> None:
    policy = RetryPolicy(attempts=100, total_seconds=0.3, transient_pause_seconds=0.1, jitter=0)
    client = GoogleComputeClient("demo", server.url, "anonymous", policy)
    server.will_answer(answer_error(503, "backendError"))
    error_of(lambda: insert_request(client))
    assert 1 < len(server.received) < 6


@pytest.mark.parametrize("endpoint", ["127.0.0.1:1", "nonsense://127.0.0.1:1"])
def test_an_endpoint_without_a_scheme_or_with_a_wrong_one_is_refused(endpoint: str) -> None:
    with pytest.raises(ValueError, match="http"):
        GoogleComputeClient("demo", endpoint, "anonymous")


def test_unknown_credentials_are_refused() -> None:
    with pytest.raises(ValueError, match="anonymous"):
        GoogleComputeClient("demo", "", "mine")
