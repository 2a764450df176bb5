"""Typed access to the emulator's control surface for tests, demonstrations and the sandbox.

Standard library only. Every call has a deadline. The paths and bodies are documented in
docs/emulator.md; this module is their one client.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any
from urllib.parse import quote

from slurm_hooks.sandbox.emulator.project_control import ProjectControl


class EmulatorControlError(Exception):
    """The emulator refused a control call or did not answer in time. `status` is None then.

    `reason` is what the emulator said, without the call.
    """

    def __init__(self, message: str, status: int | None = None, reason: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason or message


@dataclass(frozen=True, slots=True)
class EmulatorStatus:
    """What an emulator holds. `now_utc` is its own, adjustable time in RFC 3339."""

    ready: bool
    project: str
    project_number: int
    now_utc: str
    instances: int
    resize_requests: int
    groups: int
    templates: int


@dataclass(frozen=True, slots=True)
class Capacity:
    """How many VMs of a machine type a zone can hold in all; None is without limit."""

    zone: str
    machine_type: str
    vms: int | None
    used: int = 0


@dataclass(frozen=True, slots=True)
class InjectedFault:
    """A fault that is waiting for its calls. `hits` calls have met it already."""

    method: str
    path: str
    kind: str
    status: int
    reason: str
    count: int
    hits: int


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """One call that the API answered. `seconds` is how long the answer took."""

    method: str
    path: str
    status: int
    seconds: float
    time: str


class EmulatorControl:
    """The control surface of one emulator, e.g. `EmulatorControl("http://127.0.0.1:8080")`.

    Every method raises EmulatorControlError when the emulator refuses or does not answer.
    """

    def __init__(self, url: str, timeout_seconds: float = 10.0) -> None:
        self.url = url.rstrip("/")
        self._timeout_seconds = timeout_seconds
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    @property
    def project(self) -> ProjectControl:
        """What the project has beside VMs: roles, APIs, networks, images, storage, secrets."""
        return ProjectControl(self._call)

    def status(self) -> EmulatorStatus:
        """Whether the emulator is ready, its project, its time and how much it holds."""
        body = self._call("GET", "status")
        return EmulatorStatus(
            ready=bool(body["ready"]),
            project=body["project"],
            project_number=int(body["projectNumber"]),
            now_utc=body["now"],
            instances=body["instances"],
            resize_requests=body["resizeRequests"],
            groups=body["groups"],
            templates=body["templates"],
        )

    def set_capacity(self, zone: str, machine_type: str, vms: int | None) -> None:
        """Let a zone hold this many VMs of a machine type in all; None is without limit."""
        self._call("PUT", "capacity", {"zone": zone, "machineType": machine_type, "vms": vms})

    def capacities(self) -> list[Capacity]:
        """Every capacity that was set, with the number of VMs in use."""
        items = self._call("GET", "capacity")["capacity"]
        return [
            Capacity(item["zone"], item["machineType"], item["vms"], item["used"]) for item in items
        ]

    def set_latency(self, **seconds: float) -> None:
        """Change latencies by their JSON names, e.g. `set_latency(operationSeconds=0.1)`."""
        self._call("PUT", "latency", seconds)

    def latency(self) -> dict[str, float]:
        """All latencies in seconds by their JSON names."""
        return dict(self._call("GET", "latency"))

    def set_behaviour(self, **members: float | bool | str) -> None:
        """Change behaviours by their JSON names, e.g. `set_behaviour(lateCancel="operation")`."""
        self._call("PUT", "behaviour", members)

    def add_fault(
        self,
        method: str = "*",
        path: str = ".*",
        *,
        status: int = 503,
        reason: str = "backendError",
        message: str = "",
        count: int = 1,
        delay_seconds: float = 0.0,
        kind: str = "http",
        code: str = "",
    ) -> None:
        """Make the next `count` calls fail whose method and path (a regular expression) match.

        `kind` is `http` (answer `status` and `reason`), `drop` (close the connection), `garbage`
        (answer `status` with a body that is not JSON), `operation` (accept the call; its
        operation fails with `code`), `stuck` (accept the call; its operation does and becomes
        nothing until `release_stuck_operations`), `partial` (a list lacks half of its items, and
        says so), `truncated` (it does not say so) or `delay` (answer normally after
        `delay_seconds`).
        """
        body = {
            "method": method,
            "path": path,
            "status": status,
            "reason": reason,
            "message": message,
            "count": count,
            "delaySeconds": delay_seconds,
            "kind": kind,
            "code": code,
        }
        self._call("POST", "faults", body)

    def faults(self) -> list[InjectedFault]:
        """Every fault that was set and not cleared, used up or not."""
        names = [field.name for field in fields(InjectedFault)]
        return [
            InjectedFault(**{name: item[name] for name in names})
            for item in self._call("GET", "faults")["faults"]
        ]

    def clear_faults(self) -> None:
        """Remove all faults."""
        self._call("DELETE", "faults")

    def release_stuck_operations(self, code: str = "", message: str = "") -> int:
        """Let stuck operations go on, or with a code fail without effect; how many there were."""
        body = {"code": code, "message": message}
        return int(self._call("POST", "stuckOperations/release", body)["released"])

    def fail_resize_request(self, name: str, code: str, message: str = "") -> None:
        """Move an active resize request to FAILED with rollback."""
        self._call("POST", f"resizeRequests/{quote(name)}/fail", {"code": code, "message": message})

    def grant_resize_request(self, name: str) -> None:
        """Give a waiting resize request its VMs, whatever the capacity and the quota."""
        self._call("POST", f"resizeRequests/{quote(name)}/grant")

    def terminate_instance(self, name: str) -> None:
        """Let a VM's end of life be now: it stops in order and is deleted."""
        self._instance(name, "terminate")

    def vanish_instance(self, name: str) -> None:
        """Remove a VM at once, without a shutdown and without a trace."""
        self._instance(name, "vanish")

    def host_error(self, name: str) -> None:
        """Let a VM's host fail: the guest dies at once, the VM is TERMINATED or repaired."""
        self._instance(name, "hostError")

    def preempt_instance(self, name: str) -> None:
        """Preempt a Spot VM."""
        self._instance(name, "preempt")

    def gpu_fault(
        self, name: str, kind: str, *, gpu: int = 0, number: int = 0, lasting: bool = False
    ) -> None:
        """Break a GPU of a VM whose guest is a pretended node, as a box's are.

        `kind` is a value of sandbox.node.faults.GpuFaultKind, `gpu` a minor number, `number` the
        Xid or recovery action of these kinds. A reboot cures what is not `lasting`.
        """
        body = {"kind": kind, "gpu": gpu, "number": number, "lasting": lasting}
        self._call("POST", f"instances/{quote(name)}/gpuFault", body)

    def set_gpu_state(self, name: str, values: Mapping[str, str | None]) -> None:
        """Change what the pretended driver of a VM says, by the keys of its state file.

        E.g. `{"gpu.0.field.230": "uint:2"}`; None removes a key. sandbox/gpu/state_file.h lists
        them.
        """
        self._call("PUT", f"instances/{quote(name)}/gpuState", dict(values))

    def kill_guest(self, name: str) -> None:
        """Kill a VM's guest only; the VM stays RUNNING."""
        self._instance(name, "guestKill")

    def shut_down_guest(self, name: str) -> None:
        """Let a VM's guest power itself off: the VM stops, is TERMINATED and stays listed."""
        self._instance(name, "guestShutdown")

    def set_quota(self, region: str, metric: str, limit: float) -> None:
        """Set the limit of a regional quota metric."""
        self._call("PUT", "quotas", {"region": region, "metric": metric, "limit": limit})

    def set_unreachable_zones(self, *zones: str) -> None:
        """Let these zones not answer, and all others answer: 503, or a partial aggregated list."""
        self._call("PUT", "unreachable", {"zones": list(zones)})

    def advance_clock(self, seconds: float) -> None:
        """Move the emulator's time forward; all that falls due happens before this returns."""
        self._call("POST", "clock", {"advanceSeconds": seconds})

    def calls(self) -> list[RecordedCall]:
        """The calls that the API has answered, oldest first."""
        return [
            RecordedCall(
                item["method"], item["path"], item["status"], item["seconds"], item["time"]
            )
            for item in self._call("GET", "calls")["calls"]
        ]

    def clear_calls(self) -> None:
        """Forget the recorded calls."""
        self._call("DELETE", "calls")

    def shutdown(self) -> None:
        """Ask the emulator to stop its guests and exit."""
        self._call("POST", "shutdown")

    def _instance(self, name: str, event: str) -> None:
        self._call("POST", f"instances/{quote(name)}/{event}")

    def _call(
        self, method: str, path: str, body: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        url = f"{self.url}/emulator/v1/{path}"
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"} if data is not None else {}
        request = urllib.request.Request(url, data, headers, method=method)
        try:
            with self._opener.open(request, timeout=self._timeout_seconds) as answer:
                text = answer.read()
        except urllib.error.HTTPError as error:
            with error:
                detail = error.read().decode(errors="replace")
            message = f"{method} {url}: {detail}"
            raise EmulatorControlError(message, error.code, _reason_in(detail)) from None
        except OSError as error:
            raise EmulatorControlError(f"{method} {url}: {error}") from error
        parsed = json.loads(text or b"{}")
        if not isinstance(parsed, dict):
            raise EmulatorControlError(f"{method} {url}: the answer is not a JSON object")
        return parsed


def _reason_in(detail: str) -> str:
    """The text of an error's JSON; all of it where it is none."""
    try:
        return str(json.loads(detail)["error"])
    except (ValueError, KeyError, TypeError):
        return detail
