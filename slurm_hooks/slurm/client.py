"""The one door to Slurm: what every implementation of the client must offer.

All calls have a deadline. A failed read raises `SlurmUnavailable`; it never returns less than
the whole truth, since an empty list of nodes would read as "nothing is wanted".
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from slurm_hooks.slurm.model import Node, SlurmSnapshot

UNREACHABLE_ADDRESS = "233.252.0.1"
"""An address for nodes that are off: it needs no name server, and a connection to it fails at
once. It is of the multicast range that is kept for examples, so no host can have it, which is
not so of the other ranges for examples: Compute Engine takes those for subnets."""


class NodeUpdate(enum.StrEnum):
    """State requests that we make of slurmctld (`scontrol update nodename=... state=...`)."""

    POWER_UP = "POWER_UP"
    POWER_DOWN = "POWER_DOWN"
    POWER_DOWN_FORCE = "POWER_DOWN_FORCE"
    DOWN = "DOWN"
    DRAIN = "DRAIN"
    IDLE = "IDLE"
    RESUME = "RESUME"
    UNDRAIN = "UNDRAIN"


class SlurmError(Exception):
    """Any failure of a call to Slurm; the text says which command and what it answered."""


class SlurmUnavailable(SlurmError):
    """slurmctld did not answer, or not with something believable. Look again later."""


class SlurmRefused(SlurmError):
    """slurmctld answered and refused the request, so repeating it as it is cannot help."""


@dataclass(frozen=True, slots=True)
class ReservationSpecification:
    """A reservation for maintenance: jobs that would run into it do not start on its nodes.

    Made with the flags MAINT and IGNORE_JOBS; `start_time_utc` may be in the past.
    """

    name: str
    nodes: tuple[str, ...]
    start_time_utc: datetime
    duration_seconds: int


class SlurmClient(Protocol):
    """Reads in a constant number of commands, writes in as few as the arguments allow."""

    def read(self) -> SlurmSnapshot:
        """Read all nodes, jobs, partitions and reservations. Raises SlurmUnavailable."""

    def read_nodes(self, names: Sequence[str]) -> dict[str, Node]:
        """Read the named nodes again, just before acting on them. Raises SlurmUnavailable."""

    def update_nodes(
        self, names: Sequence[str], update: NodeUpdate | None, reason: str | None = None
    ) -> None:
        """Set state, reason or both on all the named nodes. Raises SlurmError."""

    def reboot_nodes(self, names: Sequence[str], reason: str) -> None:
        """Have the nodes rebooted as soon as no job runs there; drained ones come back drained.

        Their reason becomes the one given; slurmctld appends what became of the reboot. Asked
        again while a reboot is under way, it is of no effect. Raises SlurmError.
        """

    def set_node_addresses(self, names: Sequence[str], address: str, reason: str) -> None:
        """Have slurmctld reach all the named nodes at one address. Raises SlurmError.

        `reason` is the one that they all have, empty for none: they keep it, with its stamp.
        """

    def set_admin_comment(self, job_id: int, text: str, part: str = "") -> None:
        """Write the job's admin comment; an empty text clears it. Raises SlurmError.

        `part` is the job's: the bare id of an array, or of a heterogeneous job, means all of it.
        """

    def set_node_comment(self, name: str, text: str) -> None:
        """Write a node's comment; an empty text clears it. Raises SlurmError.

        A node that is in service loses its reason by it in some versions.
        """

    def create_reservation(self, specification: ReservationSpecification) -> None:
        """Make a reservation. One of that name that exists is left as it is. Raises SlurmError."""

    def delete_reservation(self, name: str) -> None:
        """Delete a reservation; one that is gone already is no error. Raises SlurmError."""

    def signal_job(self, job_id: int, signal: str, part: str = "") -> None:
        """Send a signal such as USR1 to the steps of a running job and to its batch script.

        `part` is the job's, as for `set_admin_comment`.

        A job that has ended is no error. Raises SlurmError.
        """
