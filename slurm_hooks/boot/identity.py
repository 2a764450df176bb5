"""Which node this VM is, from its own name and metadata; all that is used later is checked here."""

from __future__ import annotations

import enum
import re
from typing import NamedTuple, TypeVar

from slurm_hooks.boot import keys
from slurm_hooks.boot.keys import Role
from slurm_hooks.boot.machine import BootError
from slurm_hooks.boot.metadata import Instance

_NAME = re.compile(r"[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?")
_INDEX = re.compile(r"0|[1-9][0-9]{0,5}")
_MACHINE_TYPE = re.compile(r"[a-z0-9-]{1,63}")
_INSTANCE_ID = re.compile(r"[0-9]{1,20}")
_CONTROLLER = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,252})(?::[0-9]{1,5})?")

_Words = TypeVar("_Words", bound=enum.StrEnum)


class Authentication(enum.StrEnum):
    """Slurm's way to tell friend from foe; each has a key of its own kind."""

    MUNGE = "munge"
    SLURM = "slurm"


class Identity(NamedTuple):
    """This VM as a node. Without `controllers` the image has a slurm.conf of its own."""

    node: str
    role: Role
    instance_id: str
    machine_type: str
    controllers: tuple[str, ...]
    authentication: Authentication
    gpus: int


def identify(instance: Instance) -> Identity:
    """The identity that the metadata gives. Raises BootError with the first thing that is wrong."""
    _require(_NAME, instance.name, "the VM's name")
    return Identity(
        node=_node_name(instance),
        role=_word(Role, instance, keys.ROLE, Role.COMPUTE),
        instance_id=_require(_INSTANCE_ID, instance.instance_id, "the VM's id"),
        machine_type=_require(_MACHINE_TYPE, instance.machine_type, "the machine type"),
        controllers=tuple(
            _require(_CONTROLLER, controller, keys.CONTROLLERS)
            for controller in instance.listed(keys.CONTROLLERS)
        ),
        authentication=_word(Authentication, instance, keys.AUTHENTICATION, Authentication.MUNGE),
        gpus=whole_number(instance, keys.GPUS, 0),
    )


def whole_number(instance: Instance, key: str, default: int) -> int:
    """A number of the metadata. Raises BootError for what is none."""
    text = instance.attribute(key)
    if not text:
        return default
    if not (text.isascii() and text.isdigit()) or len(text) > 9:
        raise BootError(f"{key} is no whole number: {text[:60]!r}")
    return int(text)


def _node_name(instance: Instance) -> str:
    """The VM's name, which must be CLUSTER-POOL-INDEX of the cluster and pool that it is told."""
    cluster, pool = instance.attribute(keys.CLUSTER), instance.attribute(keys.POOL)
    if not cluster or not pool:
        missing = keys.POOL if cluster else keys.CLUSTER
        raise BootError(f"no {missing} in the metadata: the VM is of another's template")
    prefix = f"{cluster}-{pool}-"
    if not instance.name.startswith(prefix) or not _INDEX.fullmatch(instance.name[len(prefix) :]):
        raise BootError(f"the VM's name {instance.name} is not {prefix}INDEX")
    return instance.name


def _require(pattern: re.Pattern[str], text: str, what: str) -> str:
    if not pattern.fullmatch(text):
        raise BootError(f"{what} cannot be {text[:60]!r}")
    return text


def _word(words: type[_Words], instance: Instance, key: str, default: _Words) -> _Words:
    text = instance.attribute(key)
    try:
        return words(text) if text else default
    except ValueError:
        raise BootError(f"{key} is {text[:60]!r}, not one of {', '.join(words)}") from None
