"""The key by which Slurm's daemons know each other, from Secret Manager to the one file for it.

Invariant: the key is in memory and in that file alone, which nobody but its owner reads from its
first moment on. No error text, console line or argument vector has any of it.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import os
import pwd
import re
from typing import NamedTuple

from slurm_hooks.boot.identity import Authentication
from slurm_hooks.boot.machine import BootError, Machine
from slurm_hooks.boot.services import Services

_SECRET = re.compile(
    r"projects/[a-z0-9][a-z0-9.:-]*/secrets/[A-Za-z0-9_-]{1,255}/versions/(?:[0-9]+|latest)"
)
_SHORTEST_BYTES, _LONGEST_BYTES = 32, 1024
"""What munged takes. auth/slurm asks for less, which would be a weak key."""


class _Place(NamedTuple):
    """Where a kind of key lies, and the users of whom the first that exists owns it."""

    directory: tuple[str, ...]
    file: str
    owners: tuple[str, ...]


_PLACES = {
    Authentication.MUNGE: _Place(("etc", "munge"), "munge.key", ("munge",)),
    Authentication.SLURM: _Place(("etc", "slurm"), "slurm.key", ("slurm", "root")),
}


def place_key(
    machine: Machine, services: Services, authentication: Authentication, secret: str
) -> str:
    """Put the key in its place; returns what to tell. Raises BootError and OSError."""
    place = _PLACES[authentication]
    path = machine.path(*place.directory, place.file)
    if not secret:
        if not os.path.exists(path):
            raise BootError(f"no {path} in the image and no key secret in the metadata")
        return f"{path} of the image"
    if not _SECRET.fullmatch(secret):
        raise BootError("the key secret is not projects/P/secrets/S/versions/V")
    changed = _write(path, _fetch(machine, services, secret), _owner(place))
    return f"{path} {'written' if changed else 'is as before'}, from {secret}"


def _fetch(machine: Machine, services: Services, secret: str) -> bytes:
    answer = services.get(f"{machine.secret_manager_url}/v1/{secret}:access", secret)
    payload = answer.get("payload")
    data = payload.get("data") if isinstance(payload, dict) else None
    try:
        key = base64.b64decode(data or "", validate=True)
    except (binascii.Error, TypeError, ValueError):
        raise BootError(f"{secret} has no payload that can be read") from None
    if not _SHORTEST_BYTES <= len(key) <= _LONGEST_BYTES:
        raise BootError(
            f"{secret} has {len(key)} bytes: a key has {_SHORTEST_BYTES} to {_LONGEST_BYTES}"
        )
    return key


def _owner(place: _Place) -> pwd.struct_passwd | None:
    """Who is to own the key; None where we are not root and can give nothing away."""
    if os.geteuid() != 0:
        return None
    for name in place.owners:
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    raise BootError(f"no user {place.owners[0]}: its package is not installed in the image")


def _write(path: str, key: bytes, owner: pwd.struct_passwd | None) -> bool:
    """Put the key into its file as a whole, or leave a file that has it; whether it was written."""
    directory = os.path.dirname(path)
    if not os.path.isdir(directory):
        os.makedirs(directory, mode=0o755 if owner and owner.pw_uid == 0 else 0o700)
        _give(directory, owner)
    if _is_there(path, key, owner):
        return False
    temporary = f"{path}.new"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(temporary)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o400)
    with os.fdopen(descriptor, "wb") as file:
        file.write(key)
        file.flush()
        os.fsync(file.fileno())
    _give(temporary, owner)
    os.replace(temporary, path)
    return True


def _is_there(path: str, key: bytes, owner: pwd.struct_passwd | None) -> bool:
    try:
        status = os.lstat(path)
        is_private = status.st_mode & 0o7777 == 0o400
        is_owned = owner is None or status.st_uid == owner.pw_uid
        with open(path, "rb") as file:
            return is_private and is_owned and file.read(_LONGEST_BYTES + 1) == key
    except OSError:
        return False


def _give(path: str, owner: pwd.struct_passwd | None) -> None:
    if owner is not None:
        os.chown(path, owner.pw_uid, owner.pw_gid)
