"""The internal addresses of VMs. A freed address is used again at once, so none is an identity."""

from __future__ import annotations

import ipaddress

from slurm_hooks.sandbox.emulator.world import World

_FIRST = int(ipaddress.IPv4Address("10.128.0.2"))


def take(world: World) -> str:
    """An unused address."""
    if world.free_addresses:
        return str(ipaddress.IPv4Address(world.free_addresses.pop()))
    world.address_count += 1
    return str(ipaddress.IPv4Address(_FIRST + world.address_count - 1))


def give_back(world: World, address: str) -> None:
    """Let an address be used again."""
    world.free_addresses.append(int(ipaddress.IPv4Address(address)))
