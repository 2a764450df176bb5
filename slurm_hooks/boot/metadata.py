"""What the VM's metadata server says of it, and the token of its service account."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import NamedTuple

from slurm_hooks.boot import web
from slurm_hooks.boot.machine import BootError, Machine, NotYet, try_until_done

_HEADERS = {"Metadata-Flavor": "Google"}
_TRY_SECONDS = 10.0
_OK, _NOT_FOUND = 200, 404


class Instance(NamedTuple):
    """This VM. `attributes` is its own metadata, by key."""

    name: str
    instance_id: str
    machine_type: str
    attributes: Mapping[str, str]

    def attribute(self, key: str) -> str:
        """A value of the metadata without blanks around it; empty where there is none."""
        return self.attributes.get(key, "").strip()

    def listed(self, key: str) -> tuple[str, ...]:
        """The items of a value with commas between them."""
        items = (item.strip() for item in self.attribute(key).split(","))
        return tuple(item for item in items if item)


def read_instance(machine: Machine, waiting: Callable[[str], None]) -> Instance:
    """What this VM is. Raises BootError when the metadata server does not say it in time."""
    limits = machine.limits

    def attempt() -> Instance:
        return Instance(
            name=_value(machine, "instance/name"),
            instance_id=_value(machine, "instance/id"),
            machine_type=_value(machine, "instance/machine-type").rpartition("/")[2],
            attributes=_attributes(_value(machine, "instance/attributes/?recursive=true")),
        )

    return try_until_done(attempt, limits.metadata_seconds, limits.pause_seconds, waiting)


def read_token(machine: Machine, waiting: Callable[[str], None]) -> str:
    """An access token of the VM's service account. Raises BootError where it has none."""
    limits = machine.limits

    def attempt() -> str:
        text = _value(machine, "instance/service-accounts/default/token", missing="")
        if not text:
            raise BootError("the VM has no service account: set runtime_spec.service_account")
        try:
            return str(json.loads(text)["access_token"])
        except (ValueError, KeyError, TypeError):
            raise NotYet("the metadata server gives no token") from None

    return try_until_done(attempt, limits.metadata_seconds, limits.pause_seconds, waiting)


def _value(machine: Machine, key: str, missing: str | None = None) -> str:
    """The value of a key; `missing` where there is no such key, if that may be."""
    url = machine.metadata_url
    try:
        answer = web.get(f"{url}/{key}", _HEADERS, min(_TRY_SECONDS, machine.limits.try_seconds))
    except (OSError, ValueError) as error:
        raise NotYet(f"the metadata server {_host(url)} does not answer: {error}") from None
    if answer.flavor != "Google":
        raise NotYet(f"{_host(url)} is no metadata server")
    if answer.status == _NOT_FOUND and missing is not None:
        return missing
    if answer.status != _OK:
        raise NotYet(f"the metadata server answers {answer.status} for {key}")
    return answer.body.decode("utf-8", "replace")


def _attributes(text: str) -> Mapping[str, str]:
    try:
        found = json.loads(text)
        return {str(key): str(value) for key, value in found.items()}
    except (ValueError, AttributeError):
        raise NotYet("the metadata server gives no attributes") from None


def _host(url: str) -> str:
    return url.partition("//")[2].partition("/")[0]
