"""What the emulated project holds, asked over its API as any stranger would.

Plain HTTP on purpose: the box and its tests must not see Compute Engine through our own client.
"""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from slurm_hooks.compute.names import short_name
from slurm_hooks.sandbox.box.layout import BoxError

_DEADLINE_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Instance:
    """A VM. The next VM of the same name has another id."""

    name: str
    zone: str
    status: str
    instance_id: str


@dataclass(frozen=True, slots=True)
class Group:
    """A managed instance group; `place` is `zones/ZONE` or `regions/REGION`."""

    name: str
    place: str
    target_size: int
    workload_policy: str = ""


@dataclass(frozen=True, slots=True)
class Request:
    """A resize request: the names of its VMs, the code of its last failed attempt, if any, and
    how long its VMs are to run, if not as long as the template says."""

    name: str
    group: str
    state: str
    instances: tuple[str, ...]
    last_error_code: str
    run_seconds: int | None = None


class EmulatedProject:
    """Read access to one project. Every method raises BoxError when the API does not answer."""

    def __init__(self, url: str, project: str) -> None:
        self._base = f"{url}/compute/v1/projects/{quote(project)}"
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def instances(self) -> list[Instance]:
        """All VMs of all zones."""
        return [
            Instance(item["name"], short_name(item["zone"]), item["status"], item["id"])
            for item in self._aggregated("instances")
        ]

    def serial_output(self, name: str) -> str:
        """What a VM has written to its serial console; empty where there is no such VM."""
        for found in self.instances():
            if found.name == name:
                page = self._get(f"zones/{found.zone}/instances/{quote(name)}/serialPort")
                return str(page.get("contents", ""))
        return ""

    def templates(self) -> list[str]:
        """The names of all instance templates, global and regional."""
        return [item["name"] for item in self._aggregated("instanceTemplates")]

    def groups(self) -> list[Group]:
        """All managed instance groups, zonal and regional."""
        return [
            Group(
                item["name"],
                _place(item),
                item["targetSize"],
                short_name(item.get("resourcePolicies", {}).get("workloadPolicy", "")),
            )
            for item in self._aggregated("instanceGroupManagers")
        ]

    def workload_policies(self) -> list[str]:
        """The names of the resource policies that place VMs of groups, of all regions."""
        items = self._aggregated("resourcePolicies")
        return [item["name"] for item in items if "workloadPolicy" in item]

    def requests(self) -> list[Request]:
        """All resize requests of all groups, final ones too."""
        return [
            Request(
                item["name"],
                group.name,
                item["state"],
                tuple(instance["name"] for instance in item.get("instances", [])),
                _last_error_code(item),
                _run_seconds(item),
            )
            for group in self.groups()
            for item in self._list(
                f"{group.place}/instanceGroupManagers/{quote(group.name)}/resizeRequests"
            )
        ]

    def _aggregated(self, kind: str) -> Iterator[dict[str, Any]]:
        for page in self._pages(f"aggregated/{kind}"):
            for scope in page.get("items", {}).values():
                yield from scope.get(kind, [])

    def _list(self, path: str) -> Iterator[dict[str, Any]]:
        for page in self._pages(path):
            yield from page.get("items", [])

    def _pages(self, path: str) -> Iterator[dict[str, Any]]:
        token = ""
        while True:
            query = f"?{urlencode({'pageToken': token})}" if token else ""
            page = self._get(path + query)
            yield page
            token = page.get("nextPageToken", "")
            if not token:
                return

    def _get(self, path: str) -> dict[str, Any]:
        url = f"{self._base}/{path}"
        try:
            with self._opener.open(url, timeout=_DEADLINE_SECONDS) as answer:
                page = json.loads(answer.read())
        except (OSError, ValueError) as error:
            raise BoxError(f"GET {url}: {error}") from None
        if not isinstance(page, dict):
            raise BoxError(f"GET {url}: the answer is not a JSON object")
        return page


def _place(item: dict[str, Any]) -> str:
    if "zone" in item:
        return f"zones/{short_name(item['zone'])}"
    return f"regions/{short_name(item['region'])}"


def _last_error_code(item: dict[str, Any]) -> str:
    errors = item.get("status", {}).get("lastAttempt", {}).get("error", {}).get("errors", [])
    return errors[0].get("code", "") if errors else ""


def _run_seconds(item: dict[str, Any]) -> int | None:
    duration = item.get("requestedRunDuration")
    return int(duration["seconds"]) if duration else None
