"""The emulator's REST API over plain urllib: any method, any body, the status and the JSON."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any

from tests.emulator.emulated_project import TEMPLATE, ZONAL_GROUP, ZONE
from tests.waiting import eventually

PROJECT = "/compute/v1/projects/demo"
ZONE_PATH = f"{PROJECT}/zones/{ZONE}"
GROUPS = f"{ZONE_PATH}/instanceGroupManagers"
GROUP = f"{GROUPS}/g1"
REQUESTS = f"{GROUP}/resizeRequests"
TEMPLATES = f"{PROJECT}/global/instanceTemplates"
_DEADLINE_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP answer; `body` is {} when there was none."""

    status: int
    body: Any

    @property
    def reason(self) -> str:
        """The reason of the first error."""
        return str(self.body["error"]["errors"][0]["reason"])


class Api:
    """Calls one emulator."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def call(self, method: str, path: str, body: Any = None, token: str = "") -> Answer:
        """Make a call; `body` is sent as JSON, or as it is when it is bytes."""
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        try:
            with self._opener.open(request, timeout=_DEADLINE_SECONDS) as answer:
                return Answer(answer.status, json.loads(answer.read() or b"{}"))
        except urllib.error.HTTPError as error:
            with error:
                return Answer(error.code, json.loads(error.read() or b"{}"))

    def get(self, path: str) -> Answer:
        """GET."""
        return self.call("GET", path)

    def do(self, method: str, path: str, body: Any = None) -> Any:
        """Make a call that begins an operation, and wait until that is DONE; the operation."""
        answer = self.call(method, path, body)
        assert answer.status == 200, answer
        own_path = answer.body["selfLink"].removeprefix("https://www.googleapis.com")
        return eventually(
            lambda: self.get(own_path).body, lambda operation: operation["status"] == "DONE"
        )

    def make_group(self) -> None:
        """Insert the template `t1` and the zonal group `g1`."""
        for path, body in ((TEMPLATES, TEMPLATE), (GROUPS, ZONAL_GROUP)):
            assert "error" not in self.do("POST", path, body)

    def make_vms(self, *names: str, request: str = "r1") -> None:
        """Get VMs of these names RUNNING by a resize request."""
        body = {"name": request, "instances": [{"name": name} for name in names]}
        assert "error" not in self.do("POST", REQUESTS, body)
        for name in names:
            self.wait_until_running(name)

    def wait_until_running(self, name: str) -> None:
        """Wait for a VM to run."""
        path = f"{ZONE_PATH}/instances/{name}"
        eventually(lambda: self.get(path).body, lambda vm: vm.get("status") == "RUNNING")
