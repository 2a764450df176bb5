"""The emulator's faults of operations and lists, over HTTP and as the real client meets them."""

from __future__ import annotations

from typing import Any

import pytest

from slurm_hooks.compute.errors import ComputeError, ErrorKind
from slurm_hooks.compute.google_client import GoogleComputeClient
from slurm_hooks.compute.retry import RetryPolicy
from slurm_hooks.sandbox.emulator.control import EmulatorControl
from tests.emulator.emulated_project import MACHINE_TYPE, ZONE
from tests.emulator.http_api import GROUPS, PROJECT, REQUESTS, TEMPLATES, Api
from tests.waiting import eventually

pytestmark = pytest.mark.slow

QUICK = RetryPolicy(attempts=2, transient_pause_seconds=0.01)
REQUEST = {"name": "r1", "instances": [{"name": "n-0"}]}


@pytest.fixture
def api(emulator: EmulatorControl) -> Api:
    """An emulator with the group `g1` and no capacity."""
    made = Api(emulator.url)
    made.make_group()
    emulator.set_capacity(ZONE, MACHINE_TYPE, 0)
    return made


def status_of(api: Api, operation: dict[str, Any]) -> dict[str, Any]:
    body: dict[str, Any] = api.get(
        operation["selfLink"].removeprefix("https://www.googleapis.com")
    ).body
    return body


def begin_stuck(api: Api, emulator: EmulatorControl) -> dict[str, Any]:
    emulator.add_fault("*", "resizeRequests$", kind="stuck")
    assert api.get(REQUESTS).status == 200, "reads are not hit"
    operation: dict[str, Any] = api.call("POST", REQUESTS, REQUEST).body
    emulator.advance_clock(3600)
    assert status_of(api, operation)["status"] == "RUNNING"
    assert "items" not in api.get(REQUESTS).body
    return operation


def test_stuck_operation_goes_on_when_released(api: Api, emulator: EmulatorControl) -> None:
    operation = begin_stuck(api, emulator)
    assert emulator.release_stuck_operations() == 1
    done = eventually(lambda: status_of(api, operation), lambda now: now["status"] == "DONE")
    assert "error" not in done
    assert [request["name"] for request in api.get(REQUESTS).body["items"]] == ["r1"]
    assert emulator.release_stuck_operations() == 0


def test_stuck_operation_that_fails_has_changed_nothing(
    api: Api, emulator: EmulatorControl
) -> None:
    operation = begin_stuck(api, emulator)
    emulator.release_stuck_operations("QUOTA_EXCEEDED", "no")
    done = eventually(lambda: status_of(api, operation), lambda now: now["status"] == "DONE")
    assert done["error"]["errors"][0]["code"] == "QUOTA_EXCEEDED"
    assert "items" not in api.get(REQUESTS).body


def test_stuck_operation_that_comes_after_another_one_finds_the_name_taken(
    api: Api, emulator: EmulatorControl
) -> None:
    operation = begin_stuck(api, emulator)
    assert "error" not in api.do("POST", REQUESTS, REQUEST)
    emulator.release_stuck_operations()
    done = eventually(lambda: status_of(api, operation), lambda now: now["status"] == "DONE")
    assert done["error"]["errors"][0]["code"] == "ALREADY_EXISTS"


@pytest.mark.parametrize("path", [GROUPS, f"{PROJECT}/aggregated/instanceGroupManagers"])
@pytest.mark.parametrize("kind", ["partial", "truncated"])
def test_cut_list_lacks_items_and_only_a_partial_one_says_so(
    api: Api, emulator: EmulatorControl, path: str, kind: str
) -> None:
    emulator.add_fault("GET", path, kind=kind)
    cut, whole = api.get(path).body, api.get(path).body
    assert "g1" in str(whole)
    assert "g1" not in str(cut)
    assert cut.get("warning", {}).get("code") == ("PARTIAL_SUCCESS" if kind == "partial" else None)


def test_cut_list_has_no_further_page(api: Api, emulator: EmulatorControl) -> None:
    for name in ("a", "b", "c"):
        api.do("POST", REQUESTS, {"name": name, "instances": [{"name": f"n-{name}"}]})
    emulator.add_fault("GET", "resizeRequests$", kind="truncated")
    cut, page = (api.get(f"{REQUESTS}?maxResults=2").body for _ in range(2))
    assert ("nextPageToken" in cut, "nextPageToken" in page) == (False, True)
    assert (len(cut["items"]), len(page["items"])) == (1, 2)


@pytest.mark.parametrize("path", ["aggregated/instances$", "aggregated/instanceGroupManagers$"])
def test_real_client_takes_no_partial_list(emulator: EmulatorControl, path: str) -> None:
    client = GoogleComputeClient("demo", emulator.url, "anonymous", QUICK)
    emulator.add_fault("GET", path, kind="partial", count=2)
    with pytest.raises(ComputeError) as error:
        client.read("flexvm")
    assert (error.value.kind, error.value.code) == (ErrorKind.TRANSIENT, "PARTIAL_SUCCESS")


def test_template_of_a_live_group_cannot_be_deleted(api: Api) -> None:
    operation = api.do("DELETE", f"{TEMPLATES}/t1")
    assert operation["error"]["errors"][0]["code"] == "RESOURCE_IN_USE_BY_ANOTHER_RESOURCE"
    assert api.get(f"{TEMPLATES}/t1").status == 200
