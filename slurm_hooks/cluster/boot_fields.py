"""The kinds of values among the settings that nodes are told, see node_boot.py."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated

from pydantic import BeforeValidator

from slurm_hooks.cluster import resource_names as names
from slurm_hooks.cluster.fields import refusal, shown
from slurm_hooks.cluster.node_boot import Authentication

_CONTROLLER = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,252}(?::(?P<port>[0-9]{1,5}))?")
_SECRET = re.compile(
    r"projects/[a-z0-9][a-z0-9.:-]*/secrets/[A-Za-z0-9_-]{1,255}/versions/(?:[0-9]+|latest)"
)
_MOUNT_OPTIONS = re.compile(r"[A-Za-z0-9_=.,:/@-]*")
_MOUNT_SOURCE = re.compile(r"[A-Za-z0-9._@:\[\]/-]{3,255}")
_MOST_PORT = 65_535


def _controller(value: object) -> str:
    match = _CONTROLLER.fullmatch(value) if isinstance(value, str) else None
    if match is None or int(match["port"] or 1) not in range(1, _MOST_PORT + 1):
        raise refusal(f"{shown(value)} is no controller", "write HOST or HOST:PORT")
    return match.group()


def _authentication(value: object) -> Authentication:
    if not isinstance(value, str) or value not in list(Authentication):
        remedy = f"write one of {', '.join(Authentication)}"
        raise refusal(f"{shown(value)} is no authentication", remedy)
    return Authentication(value)


def _secret(value: object) -> str:
    if isinstance(value, str) and (not value or _SECRET.fullmatch(value)):
        return value
    remedy = "write projects/P/secrets/S/versions/V, V a number or latest"
    raise refusal(f"{shown(value)} is no version of a secret", remedy)


def _mount_options(value: object) -> str:
    if isinstance(value, str) and _MOUNT_OPTIONS.fullmatch(value):
        return value
    raise refusal(f"{shown(value)} are no mount options", "write them as mount -o takes them")


def _mount_sources(value: object) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise refusal(f"{shown(value)} is no map of addresses", 'write {"INSTANCE": "ADDRESS"}')
    for instance, source in value.items():
        if not isinstance(instance, str) or not names.STORAGE.fullmatch(instance):
            remedy = "write projects/P/locations/ZONE/instances/NAME"
            raise refusal(f"{shown(instance)} is no instance", remedy)
        if not isinstance(source, str) or not _MOUNT_SOURCE.fullmatch(source):
            remedy = "write what mount takes, such as 10.0.0.2:/share"
            raise refusal(f"{shown(source)} is no address of an instance", remedy)
    return dict(value)


ControllerAddress = Annotated[str, BeforeValidator(_controller)]
AuthenticationWord = Annotated[Authentication, BeforeValidator(_authentication)]
SecretVersion = Annotated[str, BeforeValidator(_secret)]
MountOptions = Annotated[str, BeforeValidator(_mount_options)]
MountSources = Annotated[dict[str, str], BeforeValidator(_mount_sources)]
