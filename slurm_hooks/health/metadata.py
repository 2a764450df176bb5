"""What the VM's metadata server says, in time or not at all.

Source: the metadata server answers plain HTTP, and only with the header Metadata-Flavor, which its
answers carry, too. A client library's timeout is for each read: a server that dribbles would hold
a Prolog for ever, so the whole exchange has one deadline here.
"""

from __future__ import annotations

import time

from slurm_hooks.health.host import Host

DEADLINE_SECONDS = 1.0
_HOST_NAME = "metadata.google.internal"
_HTTP_PORT = 80
_LARGEST_BYTES = 64 * 1024
_OK, _NOT_FOUND = b"200", b"404"


def read(host: Host, key: str) -> str | None:
    """The value of a key such as `instance/id`; "" where the server has no such key, None where it
    does not answer, or somebody else answers in its place."""
    try:
        answer = _exchange(host.metadata_url, key, time.monotonic() + DEADLINE_SECONDS)
    except (OSError, ValueError, OverflowError):
        return None
    head, blank_line, body = answer.partition(b"\r\n\r\n")
    status_line, *headers = head.split(b"\r\n")
    fields = dict(_field(line) for line in headers)
    if not blank_line or fields.get(b"metadata-flavor") != b"Google":
        return None
    if len(body) != _length(fields, body):
        return None
    status = status_line.split(b" ")[1:2]
    if status == [_NOT_FOUND]:
        return ""
    return body.decode("utf-8", "replace").strip() if status == [_OK] else None


def _exchange(url: str, key: str, deadline: float) -> bytes:
    """The whole answer, headers included. Raises OSError (TimeoutError is one), and ValueError or
    OverflowError for a port that is none."""
    import socket  # once a boot: the identity is kept

    place, _, path = url.removeprefix("http://").partition("/")
    name, _, port = place.partition(":")
    request = f"GET /{path}/{key} HTTP/1.0\r\nHost: {_HOST_NAME}\r\nMetadata-Flavor: Google\r\n\r\n"
    answer = b""
    with socket.socket() as connection:
        connection.settimeout(_left(deadline))
        connection.connect((name, int(port) if port else _HTTP_PORT))
        connection.sendall(request.encode("ascii"))
        while len(answer) < _LARGEST_BYTES:
            connection.settimeout(_left(deadline))
            data = connection.recv(_LARGEST_BYTES)
            if not data or _is_whole(answer := answer + data):
                break
    return answer


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _is_whole(answer: bytes) -> bool:
    head, blank_line, body = answer.partition(b"\r\n\r\n")
    fields = dict(_field(line) for line in head.split(b"\r\n")[1:])
    return bool(blank_line) and b"content-length" in fields and len(body) >= _length(fields, body)


def _field(line: bytes) -> tuple[bytes, bytes]:
    name, _, value = line.partition(b":")
    return name.strip().lower(), value.strip()


def _length(fields: dict[bytes, bytes], body: bytes) -> int:
    """How long the body must be; as long as it is where the server does not say."""
    told = fields.get(b"content-length", b"")
    return int(told) if told.isdigit() else len(body)
