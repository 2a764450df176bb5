"""The metadata server of one VM: a small HTTP server on a loopback port of its own.

Requests without `Metadata-Flavor: Google` are refused, as are all methods but GET.
"""

from __future__ import annotations

import asyncio
import socket
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import parse_qs, unquote, urlsplit

from slurm_hooks.sandbox.emulator import metadata
from slurm_hooks.sandbox.emulator.records import Instance
from slurm_hooks.sandbox.emulator.world import World

_PREFIX = "/computeMetadata/v1"
_STEP_SECONDS = 0.1
_HEAD_SECONDS = 60
_MAX_HEAD_BYTES = 16 * 1024


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    text: str
    media_type: str = "application/text"
    etag: str = "0"


class MetadataServer:
    """Serves one VM; `port` is known at once, connections are answered once `serve` runs."""

    def __init__(self, world: World, instance: Instance) -> None:
        self._world = world
        self._instance = instance
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._socket.bind(("127.0.0.1", 0))
        self._socket.listen()
        self._server: asyncio.Server | None = None
        self._is_closed = False
        self._connections: set[asyncio.Task[None]] = set()
        self.port: int = self._socket.getsockname()[1]

    async def serve(self) -> None:
        """Begin to answer, unless the VM has gone meanwhile."""
        if self._is_closed:
            return
        self._server = await asyncio.start_server(
            self._connection, sock=self._socket, limit=_MAX_HEAD_BYTES
        )

    async def close(self) -> None:
        """Stop answering and drop all connections."""
        self._is_closed = True
        if self._server is not None:
            self._server.close()
        self._socket.close()
        for task in list(self._connections):
            task.cancel()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._connections.add(task)
        try:
            while await self._exchange(reader, writer):
                pass
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError):
            return
        finally:
            if task is not None:
                self._connections.discard(task)
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; whether the connection stays open."""
        async with asyncio.timeout(_HEAD_SECONDS):
            head = await reader.readuntil(b"\r\n\r\n")
        request, *lines = head.decode("latin-1").split("\r\n")
        method, _, rest = request.partition(" ")
        target = rest.rpartition(" ")[0]
        headers = {
            name.strip().lower(): value.strip()
            for name, _, value in (line.partition(":") for line in lines if line)
        }
        answer = await self._answer(method, target, headers)
        writer.write(_encoded(answer))
        await writer.drain()
        return method == "GET" and headers.get("connection", "").lower() != "close"

    async def _answer(self, method: str, target: str, headers: dict[str, str]) -> _Answer:
        if method != "GET":
            return _Answer(405, "only GET is served\n")
        parts = urlsplit(target)
        path = unquote(parts.path)
        query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        if path == "/":
            return _Answer(200, "computeMetadata/\n")
        if headers.get("metadata-flavor", "").lower() != "google":
            return _Answer(403, "the header Metadata-Flavor: Google is missing\n")
        if path.rstrip("/") == "/computeMetadata":
            return _Answer(200, "v1/\n")
        if path != _PREFIX and not path.startswith(f"{_PREFIX}/"):
            return _Answer(404, f"{path} is not found\n")
        return await self._node(path.removeprefix(_PREFIX).strip("/"), query)

    async def _node(self, path: str, query: dict[str, str]) -> _Answer:
        if query.get("wait_for_change", "").lower() == "true":
            await self._wait_for_change(path, query)
        try:
            node = self._find(path)
        except KeyError:
            return _Answer(404, f"{path} is not found\n")
        recursive = query.get("recursive", "").lower() == "true"
        as_json = query.get("alt", "") == "json" or (recursive and query.get("alt") != "text")
        text, media_type = metadata.render(node, path, recursive, as_json)
        return _Answer(200, text, media_type, metadata.etag(node))

    def _find(self, path: str) -> metadata.Node:
        return metadata.find(metadata.tree(self._world, self._instance), path)

    def _etag(self, path: str) -> str:
        try:
            return metadata.etag(self._find(path))
        except KeyError:
            return "0"

    async def _wait_for_change(self, path: str, query: dict[str, str]) -> None:
        limit = query.get("timeout_sec", "")
        loop = asyncio.get_running_loop()
        deadline = loop.time() + int(limit) if limit.isdigit() else None
        known = query.get("last_etag") or self._etag(path)
        while self._etag(path) == known and (deadline is None or loop.time() < deadline):
            await asyncio.sleep(_STEP_SECONDS)


def _encoded(answer: _Answer) -> bytes:
    body = answer.text.encode()
    head = (
        f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}\r\n"
        "Metadata-Flavor: Google\r\n"
        f"ETag: {answer.etag}\r\n"
        f"Content-Type: {answer.media_type}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode("latin-1") + body
