"""Batch calls: several API calls in one multipart body, as gcloud sends them.

Source: Google's description of global HTTP batching. Each part is served as a call of its own,
faults and log included; the parts are answered in order.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from email.message import Message
from email.parser import BytesParser
from http import HTTPStatus
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.types import Message as AsgiMessage

from slurm_hooks.sandbox.emulator.http.dispatch import error_answer
from slurm_hooks.sandbox.emulator.problems import ApiError, invalid

_PATH = re.compile(r"/batch(?:/compute/[a-z0-9]+)?/?")
_BOUNDARY = "batch_emulated_answer"
_MAX_PARTS = 1000


@dataclass(frozen=True, slots=True)
class _Part:
    """One call of a batch."""

    content_id: str
    method: str
    path: str
    query: str
    body: bytes


@dataclass(slots=True)
class _Answer:
    """What a part was answered."""

    status: int = 500
    media_type: str = "application/json"
    body: bytearray = field(default_factory=bytearray)

    async def take(self, message: AsgiMessage) -> None:
        """The ASGI `send` of the part's call."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = dict(message.get("headers", []))
            self.media_type = headers.get(b"content-type", b"application/json").decode()
        elif message["type"] == "http.response.body":
            self.body += message.get("body", b"")


class Batches:
    """An ASGI layer that takes batches apart; everything else passes through."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not _PATH.fullmatch(scope["path"]):
            await self._app(scope, receive, send)
            return
        try:
            parts = await _parts(Request(scope, receive))
        except ApiError as error:
            await error_answer(error)(scope, receive, send)
            return
        answers = [(part, await self._perform(scope, receive, part)) for part in parts]
        media_type = f"multipart/mixed; boundary={_BOUNDARY}"
        content = b"".join(_encoded(part, answer) for part, answer in answers)
        content += f"--{_BOUNDARY}--\r\n".encode()
        await Response(content, media_type=media_type)(scope, receive, send)

    async def _perform(self, scope: Scope, outer_receive: Receive, part: _Part) -> _Answer:
        own = {
            **scope,
            "method": part.method,
            "path": unquote(part.path),
            "raw_path": part.path.encode(),
            "query_string": part.query.encode(),
            "headers": [(b"content-type", b"application/json")],
        }
        answer = _Answer()

        unread = [part.body]

        async def receive() -> AsgiMessage:
            if unread:
                return {"type": "http.request", "body": unread.pop(), "more_body": False}
            return await outer_receive()

        await self._app(own, receive, answer.take)
        return answer


async def _parts(request: Request) -> list[_Part]:
    media_type = request.headers.get("content-type", "")
    head = f"Content-Type: {media_type}\r\n\r\n".encode()
    message = BytesParser().parsebytes(head + await request.body())
    payload = message.get_payload()
    if request.method != "POST" or not message.is_multipart() or not isinstance(payload, list):
        raise invalid("A batch is a POST with a multipart/mixed body.")
    if len(payload) > _MAX_PARTS:
        raise invalid(f"A batch takes at most {_MAX_PARTS} calls.")
    return [_part(one) for one in payload if isinstance(one, Message)]


def _part(message: Message) -> _Part:
    raw = message.get_payload(decode=True)
    text = raw if isinstance(raw, bytes) else b""
    request_line, _, rest = text.lstrip().partition(b"\n")
    method, _, target = request_line.decode("latin-1").strip().partition(" ")
    path, _, query = target.partition(" ")[0].partition("?")
    inner = BytesParser().parsebytes(rest)
    body = inner.get_payload(decode=True)
    if not method.isalpha() or not path.startswith("/"):
        raise invalid("A part of the batch is not an HTTP request.")
    return _Part(
        content_id=str(message.get("Content-ID", "")),
        method=method.upper(),
        path=path,
        query=query,
        body=body if isinstance(body, bytes) else b"",
    )


def _encoded(part: _Part, answer: _Answer) -> bytes:
    phrase = HTTPStatus(answer.status).phrase
    head = (
        f"--{_BOUNDARY}\r\n"
        "Content-Type: application/http\r\n"
        f"Content-ID: {part.content_id.replace('<', '<response-', 1)}\r\n\r\n"
        f"HTTP/1.1 {answer.status} {phrase}\r\n"
        f"Content-Type: {answer.media_type}\r\n"
        f"Content-Length: {len(answer.body)}\r\n\r\n"
    )
    return head.encode("latin-1") + bytes(answer.body) + b"\r\n"
