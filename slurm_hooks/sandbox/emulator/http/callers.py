"""Who makes a call: whose token it has, and the project's caller for a call without one."""

from __future__ import annotations

from starlette.requests import Request

from slurm_hooks.sandbox.emulator.metadata import TOKEN_PREFIX, service_account_of
from slurm_hooks.sandbox.emulator.world import World


def member_of(world: World, request: Request) -> str:
    """The member, as policies name it; empty for the token of a VM that is not there."""
    token = request.headers.get("authorization", "").removeprefix("Bearer ")
    if not token.startswith(TOKEN_PREFIX):
        return world.project.caller
    name = token.removeprefix(TOKEN_PREFIX)
    for instance in world.instances.values():
        if instance.name == name:
            return f"serviceAccount:{service_account_of(world, instance)}"
    return ""
