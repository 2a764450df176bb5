"""What this node remembers of a drain that a health run made, on its own disk.

A VM that comes back with its disk, but with another boot, was rebooted since: when its run passes
it may ask to be let back. Whether it is heard is for the reason to say that slurmctld has. A
replaced VM has no such memory and needs none.
"""

from __future__ import annotations

from typing import NamedTuple

from slurm_hooks.health import files
from slurm_hooks.health.host import Host
from slurm_hooks.health.identity import boot_of
from slurm_hooks.health.model import Verdict

_FILE = "drained"


class OwnDrain(NamedTuple):
    """The verdict and the boot for which this node was drained. `untold` is the reason, where
    slurmctld has not heard it: then the node is drained by its exit status alone."""

    verdict: Verdict
    boot: str
    untold: str = ""

    def may_be_over(self, boot: str) -> bool:
        """Whether a run that passes on this boot may ask for the drain to be lifted."""
        return self.verdict is Verdict.REQUEUE or (bool(boot) and boot != self.boot)


def remember_drain(host: Host, drain: OwnDrain) -> None:
    """Write down that a run of this boot drained the node."""
    files.write_text(_path(host), f"{drain.verdict} {drain.boot}\n{drain.untold}\n")


def remember_reboot(host: Host) -> None:
    """Write down that the node reboots: the first run after it asks to be let back, also where
    somebody else than a health run has drained the node."""
    if read_drain(host) is None:
        remember_drain(host, OwnDrain(Verdict.REBOOT, boot_of(host)))


def read_drain(host: Host) -> OwnDrain | None:
    """The drain that is written down, if any."""
    first, _, rest = files.read_text(_path(host)).partition("\n")
    verdict, _, boot = first.strip().partition(" ")
    if verdict not in Verdict.__members__:
        return None
    return OwnDrain(Verdict(verdict), boot, rest.strip())


def forget_drain(host: Host) -> None:
    """The drain is over."""
    files.remove(_path(host))


def _path(host: Host) -> str:
    return f"{host.state_directory}/{_FILE}"
