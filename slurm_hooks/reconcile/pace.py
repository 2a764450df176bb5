"""How soon a pass follows the one before, if nobody wakes us first. Pure."""

from __future__ import annotations

from slurm_hooks.reconcile.actions import Plan
from slurm_hooks.reconcile.node_table import Step

SHORTEST_DELAY_SECONDS = 1.0
WAITING_DELAY_SECONDS = 5.0
"""How often we look while jobs wait: Slurm tells nobody when a waiting job is cancelled."""

_WAITING_STEPS = frozenset({Step.AWAIT_CAPACITY, Step.AWAIT_BOOT})


class Pace:
    """The delays of a row of passes.

    After a pass that did something we look again soon. While something is on its way, or nothing
    can be done, the delay doubles up to the interval, so that a stuck deletion or a refusal does
    not cost a pass each second. What was sighted is looked at again when it may be believed; looks
    before that are of use, since each may show otherwise.
    """

    def __init__(self) -> None:
        self._doubled_seconds = 0.0

    def delay_after(self, plan: Plan, interval_seconds: float, *, in_vain: bool) -> float:
        """Seconds until the next pass. `in_vain`: none of the plan's actions was carried out."""
        doubled, self._doubled_seconds = self._doubled_seconds * 2, 0.0
        if plan.actions and not in_vain:
            delay = SHORTEST_DELAY_SECONDS
        elif plan.actions or plan.unsettled:
            delay = min(max(doubled, SHORTEST_DELAY_SECONDS), interval_seconds)
            self._doubled_seconds = delay
        elif any(step in _WAITING_STEPS for step in plan.steps.values()):
            delay = WAITING_DELAY_SECONDS
        else:
            delay = interval_seconds
        if plan.second_look_seconds is not None:
            delay = min(delay, max(plan.second_look_seconds, SHORTEST_DELAY_SECONDS))
        return min(delay, interval_seconds)
