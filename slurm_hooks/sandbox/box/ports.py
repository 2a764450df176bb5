"""Free TCP ports on 127.0.0.1, below the range that the kernel hands out by itself."""

from __future__ import annotations

import contextlib
import secrets
import socket

from slurm_hooks.sandbox.box.layout import BoxError

_FIRST_PORT = 20_000
_LAST_PORT = 32_000
_ATTEMPTS = 200


def free_port_block(count: int) -> int:
    """The first of `count` neighbouring ports that are all free now, at a random place.

    Two boxes that start together thus hardly choose the same; a daemon that finds its port taken
    all the same says so and the box does not come up. Raises BoxError when no block is found.
    """
    for _ in range(_ATTEMPTS):
        first = _FIRST_PORT + secrets.randbelow(_LAST_PORT - _FIRST_PORT - count)
        if _are_free(range(first, first + count)):
            return first
    raise BoxError(f"found no {count} neighbouring free ports in {_FIRST_PORT}-{_LAST_PORT}")


def _are_free(ports: range) -> bool:
    with contextlib.ExitStack() as stack:
        for port in ports:
            probe = stack.enter_context(socket.socket(socket.AF_INET))
            # As the daemons do: a closed connection of an earlier box must not block the port.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("0.0.0.0", port))
            except OSError:
                return False
    return True
