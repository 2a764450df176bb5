"""Typed access to the part of the control surface that breaks and mends the project itself.

`EmulatorControl(url).project` gives one. Paths and bodies are documented in docs/emulator.md.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

Call = Callable[[str, str, Mapping[str, Any] | None], dict[str, Any]]
PROJECT = "project"
"""The resource of a role that is held on the whole project."""


class ProjectControl:
    """Changes roles, services, networks, images, types, reservations, storage and secrets.

    Every method raises EmulatorControlError when the emulator refuses or does not answer.
    """

    def __init__(self, call: Call) -> None:
        self._call = call

    def reset(self) -> None:
        """Let the project and its quotas be as at the beginning; VMs and groups stay."""
        self._call("POST", "project/reset", {})

    def grant(
        self,
        role: str,
        member: str,
        *,
        resource: str = PROJECT,
        condition: str = "",
        inherited: bool = False,
    ) -> None:
        """Give a member a role on `project`, `serviceAccounts/EMAIL` or `secrets/NAME`.

        `condition` is an expression; an `inherited` role works without being in the policy.
        """
        body = {
            "role": role,
            "member": member,
            "resource": resource,
            "condition": condition,
            "title": "condition" if condition else "",
            "inherited": inherited,
        }
        self._call("POST", "iam/grant", body)

    def revoke(self, role: str, member: str, *, resource: str = PROJECT) -> int:
        """Take a role from a member, whatever its condition; how many bindings there were."""
        body = {"role": role, "member": member, "resource": resource}
        return int(self._call("POST", "iam/revoke", body)["removed"])

    def set_caller(self, member: str) -> None:
        """Let calls without a token be this member's, e.g. `user:somebody@example.com`."""
        self._call("PUT", "caller", {"member": member})

    def set_parent(self, name: str) -> None:
        """Put the project into an organisation (`organizations/1`), or into none with ""."""
        self._call("PUT", "parent", {"name": name})

    def set_service(self, name: str, enabled: bool) -> None:
        """Enable or disable an API, e.g. `file.googleapis.com`."""
        self._call("PUT", f"services/{quote(name)}", {"enabled": enabled})

    def put_service_account(self, email: str) -> None:
        """Make a service account."""
        self._call("PUT", f"serviceAccounts/{quote(email)}", {})

    def put_network(self, name: str, *, auto_create_subnetworks: bool = False) -> None:
        """Make a VPC network; its subnetworks are made one by one all the same."""
        body = {"autoCreateSubnetworks": auto_create_subnetworks}
        self._call("PUT", f"networks/{quote(name)}", body)

    def put_subnetwork(self, region: str, name: str, network: str) -> None:
        """Make a subnetwork of a network that is there."""
        self._call("PUT", f"subnetworks/{quote(region)}/{quote(name)}", {"network": network})

    def put_image(
        self,
        project: str,
        name: str,
        *,
        exists: bool = True,
        architecture: str = "",
        deprecated: str = "",
    ) -> None:
        """Say what is special about an image or family of that name in a project."""
        body = {"exists": exists, "architecture": architecture, "deprecated": deprecated}
        self._call("PUT", f"images/{quote(project)}/{quote(name)}", body)

    def offer(self, zone: str, collection: str, name: str, offered: bool) -> None:
        """Let a zone offer a type or not; `collection` is e.g. `machineTypes`."""
        path = f"offers/{quote(zone)}/{quote(collection)}/{quote(name)}"
        self._call("PUT", path, {"offered": offered})

    def put_reservation(
        self,
        zone: str,
        name: str,
        machine_type: str,
        *,
        count: int = 1,
        in_use_count: int = 0,
        status: str = "READY",
    ) -> None:
        """Make or change a reservation."""
        body = {
            "machineType": machine_type,
            "count": count,
            "inUseCount": in_use_count,
            "status": status,
        }
        self._call("PUT", f"reservations/{quote(zone)}/{quote(name)}", body)

    def put_filestore(
        self,
        location: str,
        name: str,
        *,
        network: str = "default",
        address: str = "10.0.0.2",
        share: str = "share",
        state: str = "READY",
    ) -> None:
        """Make or change a Filestore instance; `network` is a name or a partial URL."""
        body = {"network": network, "address": address, "share": share, "state": state}
        self._call("PUT", f"filestores/{quote(location)}/{quote(name)}", body)

    def put_lustre(
        self,
        location: str,
        name: str,
        *,
        network: str,
        address: str = "10.0.1.2",
        share: str = "lustre",
        state: str = "READY",
    ) -> None:
        """Make or change a Lustre instance; `network` is a partial URL."""
        body = {"network": network, "address": address, "share": share, "state": state}
        self._call("PUT", f"lustres/{quote(location)}/{quote(name)}", body)

    def put_secret(self, name: str, payload: bytes, readers: Sequence[str] = ()) -> int:
        """Add a version to a secret, made if needed, and let members read it; its number."""
        body = {"payload": base64.b64encode(payload).decode(), "readers": list(readers)}
        return int(self._call("PUT", f"secrets/{quote(name)}", body)["version"])

    def disable_secret_version(self, name: str, version: int) -> None:
        """Disable a version of a secret."""
        self._call("PUT", f"secrets/{quote(name)}/versions/{version}", {"enabled": False})

    def enable_secret_version(self, name: str, version: int) -> None:
        """Enable a version of a secret again."""
        self._call("PUT", f"secrets/{quote(name)}/versions/{version}", {"enabled": True})

    def remove(self, path: str) -> None:
        """Remove a thing by its path here, e.g. `networks/default` or `filestores/Z/home`."""
        self._call("DELETE", quote(path), None)
