"""One GET request with a deadline for the whole of it, over HTTP or HTTPS.

A library's timeout is for each read, so a server that dribbles would hold up a boot for ever. The
bytes are therefore read here, and only taken apart by the library. No proxy is used.
"""

from __future__ import annotations

import http.client
import io
import socket
import time
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

_LARGEST_BYTES = 4 * 1024 * 1024
_PORTS = {"http": 80, "https": 443}


class Answer(NamedTuple):
    """What a server said. `flavor` is the header by which a metadata server is known."""

    status: int
    body: bytes
    flavor: str = ""


def get(url: str, headers: Mapping[str, str], seconds: float) -> Answer:
    """Fetch a URL. Raises OSError (TimeoutError is one), and ValueError for what is no HTTP."""
    deadline = time.monotonic() + seconds
    place = urlsplit(url)
    name, port = place.hostname or "", place.port or _PORTS[place.scheme]
    target = f"{place.path}?{place.query}" if place.query else place.path
    lines = [f"GET {target} HTTP/1.1", f"Host: {place.netloc}", "Connection: close"]
    lines += [f"{key}: {value}" for key, value in headers.items()]
    request = "\r\n".join([*lines, "", ""])
    with (
        socket.create_connection((name, port), timeout=_left(deadline)) as plain,
        _secured(plain, name) if place.scheme == "https" else plain as connection,
    ):
        connection.sendall(request.encode("ascii"))
        return _parsed(_read(connection, deadline))


def _secured(connection: socket.socket, name: str) -> socket.socket:
    import ssl  # costs more than all else here, and an emulated service has none

    return ssl.create_default_context().wrap_socket(connection, server_hostname=name)


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError("timed out")
    return left


def _read(connection: socket.socket, deadline: float) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        connection.settimeout(_left(deadline))
        data = connection.recv(65_536)
        if not data:
            return b"".join(parts)
        parts.append(data)
        size += len(data)
        if size > _LARGEST_BYTES:
            raise ValueError("the answer is too large")


class _Bytes:
    """Stands for a socket from which all has been read."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def makefile(self, *_: Any, **__: Any) -> io.BytesIO:
        return io.BytesIO(self._data)


def _parsed(data: bytes) -> Answer:
    response = http.client.HTTPResponse(_Bytes(data))  # type: ignore[arg-type]
    try:
        response.begin()
        body = response.read()
    except http.client.HTTPException as error:
        raise ValueError(f"no HTTP answer: {type(error).__name__}") from None
    return Answer(response.status, body, response.getheader("Metadata-Flavor", ""))
