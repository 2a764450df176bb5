"""What the client asks of which service, before a server with prepared answers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from slurm_hooks.compute.errors import ComputeError
from slurm_hooks.compute.google_session import GoogleSession
from slurm_hooks.prerequisites.google_project import GoogleProject
from tests.fakes.canned_server import CannedServer, answer_json, canned_server


@pytest.fixture
def server() -> Iterator[CannedServer]:
    with canned_server() as running:
        yield running


def project(server: CannedServer) -> GoogleProject:
    return GoogleProject("demo", GoogleSession(server.url, "anonymous"))


@pytest.mark.parametrize(
    ("email", "owner"),
    [
        ("nodes@demo.iam.gserviceaccount.com", "demo"),
        ("nodes@other.iam.gserviceaccount.com", "other"),
        ("123-compute@developer.gserviceaccount.com", "demo"),
    ],
)
def test_an_account_is_asked_for_in_its_own_project(
    server: CannedServer, email: str, owner: str
) -> None:
    server.will_answer(answer_json({"permissions": ["p"]}))
    assert project(server).account_permissions(email, ["p", "q"]) == {"p"}
    path = f"/v1/projects/{owner}/serviceAccounts/{email}:testIamPermissions"
    assert server.received[0].path == path
    assert server.received[0].json == {"permissions": ["p", "q"]}


def test_policies_are_asked_for_with_their_conditions(server: CannedServer) -> None:
    server.will_answer(answer_json({"bindings": [{"role": "r", "members": ["m"]}]}))
    project(server).policy("folders/1")
    project(server).secret_policy("projects/demo/secrets/s")
    first, second = server.received
    assert first.path == "/v3/folders/1:getIamPolicy"
    assert first.json == {"options": {"requestedPolicyVersion": 3}}
    assert second.query == {"options.requestedPolicyVersion": ["3"]}


def test_all_pages_of_services_are_read(server: CannedServer) -> None:
    page = {"services": [{"config": {"name": "a"}}], "nextPageToken": "t"}
    server.will_answer(answer_json(page), answer_json({"services": [{"config": {"name": "b"}}]}))
    assert project(server).services() == {"a", "b"}
    assert server.received[1].query["pageToken"] == ["t"]


def test_many_permissions_are_asked_about_a_hundred_at_a_time(server: CannedServer) -> None:
    server.will_answer(answer_json({"permissions": ["p0"]}), answer_json({}))
    asked = [f"p{number}" for number in range(150)]
    assert project(server).permissions(asked) == {"p0"}
    assert [len(one.json["permissions"]) for one in server.received] == [100, 50]


@pytest.mark.parametrize(
    ("email", "member"),
    [
        ("me@example.com", "user:me@example.com"),
        ("c@demo.iam.gserviceaccount.com", "serviceAccount:c@demo.iam.gserviceaccount.com"),
        ("", ""),
    ],
)
def test_the_caller_is_named_as_policies_name_members(
    server: CannedServer, email: str, member: str
) -> None:
    server.will_answer(answer_json({"email": email}))
    assert project(server).caller() == member
    assert server.received[0].path == "/tokeninfo"


def test_an_empty_answer_of_compute_engine_is_no_answer(server: CannedServer) -> None:
    server.will_answer(answer_json({}))
    with pytest.raises(ComputeError):
        project(server).network("projects/demo/global/networks/default")
