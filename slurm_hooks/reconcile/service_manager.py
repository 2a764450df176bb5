"""Tells systemd that the daemon is ready and alive, if systemd started it and asks for that."""

from __future__ import annotations

import os
import socket


def notify(state: str) -> None:
    """Send one state line such as READY=1 to NOTIFY_SOCKET; without one, do nothing."""
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        channel.settimeout(1.0)
        try:
            channel.sendto(
                state.encode(), "\0" + address[1:] if address.startswith("@") else address
            )
        except OSError:
            # The service manager restarts us when its watchdog hears nothing: no harm is hidden.
            return
