"""Which VM and which boot of it this is: what makes a drain outlive neither.

What the metadata server said is kept on disk for the rest of the boot, so that no later run has to
ask it, and none waits for it where it does not answer.
"""

from __future__ import annotations

from typing import NamedTuple

from slurm_hooks.health import files, metadata
from slurm_hooks.health.host import Host

_FILE = "identity"
_INSTANCE_ID = r"[0-9]{1,20}"
_MACHINE_TYPE = r"[a-z][a-z0-9-]{0,62}"
_BOOT_LENGTH = 8
_HEXADECIMAL = frozenset("0123456789abcdef")


class Identity(NamedTuple):
    """`boot` are the first 8 hexadecimal digits of the kernel's boot id. Texts are empty where
    nobody could say."""

    instance_id: str
    machine_type: str
    boot: str


def read_identity(host: Host) -> Identity:
    """Who we are, from disk if it is of this boot, else from the metadata server. Never raises."""
    boot = boot_of(host)
    path = f"{host.state_directory}/{_FILE}"
    kept = files.read_text(path).split("\n")
    if len(kept) >= 3 and kept[0] == boot and boot:
        return Identity(kept[1], kept[2], boot)
    instance_id = metadata.read(host, "instance/id")
    machine_type = metadata.read(host, "instance/machine-type") if instance_id is not None else None
    identity = Identity(
        _matching(_INSTANCE_ID, instance_id or ""),
        _matching(_MACHINE_TYPE, (machine_type or "").rpartition("/")[2]),
        boot,
    )
    if identity.instance_id and machine_type is not None:
        files.write_text(path, f"{boot}\n{identity.instance_id}\n{identity.machine_type}\n")
    return identity


def boot_of(host: Host) -> str:
    """The first 8 hexadecimal digits of the boot id; empty where it cannot be read."""
    text = files.read_text(host.path("proc", "sys", "kernel", "random", "boot_id"))
    digits = text.strip().replace("-", "")[:_BOOT_LENGTH]
    return digits if len(digits) == _BOOT_LENGTH and _HEXADECIMAL.issuperset(digits) else ""


def _matching(form: str, text: str) -> str:
    import re  # once a boot

    return text if re.fullmatch(form, text) else ""
