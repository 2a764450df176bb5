"""A local HTTP server that answers what a test tells it to, and remembers what it was asked."""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit


@dataclass(frozen=True)
class Received:
    """One request: its path without the query, the query, and the body as it came."""

    method: str
    path: str
    query: dict[str, list[str]]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


@dataclass(frozen=True)
class Answer:
    """What to answer. `drops` closes the connection instead; `waits` holds the answer back."""

    body: bytes = b"{}"
    status: int = 200
    drops: bool = False
    waits: bool = False


def answer_json(value: object, status: int = 200) -> Answer:
    """An answer with a JSON body."""
    return Answer(json.dumps(value).encode(), status)


def answer_error(status: int, reason: str, message: str = "text") -> Answer:
    """An error answer in the form of the service."""
    entry = {"message": message, "domain": "global", "reason": reason}
    error = {"code": status, "message": message, "errors": [entry]}
    return answer_json({"error": error}, status)


@dataclass
class CannedServer:
    """Answers in order; the last answer is given again and again.

    `released` lets go of the answers that wait.
    """

    url: str
    answers: deque[Answer] = field(default_factory=deque)
    received: list[Received] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)

    def will_answer(self, *answers: Answer) -> None:
        """What the next requests get."""
        self.answers = deque(answers)

    def next_answer(self) -> Answer:
        """The answer to the request at hand."""
        return self.answers.popleft() if len(self.answers) > 1 else self.answers[0]


@contextmanager
def canned_server() -> Iterator[CannedServer]:
    """A server on a free port of the loopback address, for as long as the block lasts."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    canned = CannedServer(f"http://127.0.0.1:{server.server_port}")
    server.canned = canned  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield canned
    finally:
        canned.released.set()
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _handle(self) -> None:
        canned: CannedServer = self.server.canned  # type: ignore[attr-defined]
        parts = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        canned.received.append(Received(self.command, parts.path, parse_qs(parts.query), body))
        answer = canned.next_answer()
        if answer.drops:
            self.close_connection = True
            return
        if answer.waits:
            canned.released.wait()
        with suppress(BrokenPipeError, ConnectionResetError):  # the client gave up waiting
            self._send(answer)

    def _send(self, answer: Answer) -> None:
        self.send_response(answer.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body)

    do_GET = do_POST = do_DELETE = _handle

    def log_message(self, format: str, *args: object) -> None:
        """Requests are in `received`; nothing is printed."""
