"""What came of the actions of a plan."""

from __future__ import annotations

from dataclasses import dataclass

from slurm_hooks.compute.errors import ComputeError
from slurm_hooks.compute.model import Operation
from slurm_hooks.reconcile.actions import Action


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one action: an operation on its way, an error, or neither when it is done.

    `note` tells why nothing was done where there is no operation. `is_signalled`: a job got its
    signal, whatever became of the comment that tells of it. `unanswered`: the system could not
    be asked, so the next call to it is not worth its time.
    """

    action: Action
    operation: Operation | None = None
    error: ComputeError | None = None
    note: str = ""
    is_signalled: bool = False
    unanswered: bool = False

    @property
    def is_done(self) -> bool:
        """Whether the action was carried out or is on its way."""
        if self.operation is not None:
            return True
        return self.error is None and not self.note and not self.unanswered


Outcomes = tuple[Outcome, ...]
"""What came of one call, which may carry out many actions."""
