"""The engine: one project whose time moves only when `advance` is called.

Everything the emulator knows about Compute Engine's behaviour is reached through here, without
input or output: calls come as plain arguments, time as `now`, guests behind a protocol.
"""

from __future__ import annotations

from datetime import datetime

from slurm_hooks.sandbox.emulator import deletions, memberships, request_states, waiting
from slurm_hooks.sandbox.emulator.records import Group, Instance
from slurm_hooks.sandbox.emulator.world import World


class Engine:
    """Runs a world's scheduled effects and wires its parts to each other."""

    def __init__(self, world: World) -> None:
        self.world = world
        world.gone_listeners.append(self._instance_is_gone)
        world.settled_listeners.append(self._request_has_ended)

    def advance(self, now: datetime) -> None:
        """Let everything happen that is due by `now`, each at its own time."""
        while (due := self.world.schedule.pop_due(now)) is not None:
            time_utc, effect = due
            self.world.now = max(self.world.now, time_utc)
            effect()
        self.world.now = max(self.world.now, now)

    def _instance_is_gone(self, instance: Instance) -> None:
        group = instance.group
        request_states.on_gone(self.world, instance)
        memberships.on_gone(self.world, instance)
        if group is not None:
            deletions.proceed(self.world, group)
        waiting.request_round(self.world)

    def _request_has_ended(self, group: Group) -> None:
        deletions.proceed(self.world, group)
