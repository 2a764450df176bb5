"""A metadata server on the loopback address: a good one, or one that is slow or talks nonsense."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

_HEAD = b"HTTP/1.1 %s\r\nMetadata-Flavor: Google\r\nContent-Length: %d\r\n\r\n"


def answer(text: str, status: str = "200 OK") -> bytes:
    """What the real server sends for a value."""
    body = text.encode()
    return _HEAD % (status.encode(), len(body)) + body


NOT_FOUND = answer("<html>not found</html>", "404 Not Found")


class MetadataServer:
    """Answers each key with bytes, as they are. `asked` are the requests, head and all."""

    def __init__(self, listener: socket.socket, answers: Mapping[str, bytes]) -> None:
        self._listener = listener
        self.answers = dict(answers)
        self.pause_seconds = 0.0
        """Between one byte of an answer and the next."""
        self.is_silent = False
        self.asked: list[str] = []
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}/computeMetadata/v1"
        self.is_over = threading.Event()

    def serve(self) -> None:
        """Answer until the listener is closed."""
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            request = connection.recv(65_536).decode()
            self.asked.append(request)
            key = request.split(" ")[1].removeprefix("/computeMetadata/v1/")
            if self.is_silent:
                self.is_over.wait()
            data = self.answers.get(key, NOT_FOUND)
            if not self.pause_seconds:
                connection.sendall(data)
                return
            for position in range(len(data)):
                connection.sendall(data[position : position + 1])
                self.is_over.wait(self.pause_seconds)


@contextmanager
def metadata_server() -> Iterator[MetadataServer]:
    """A server of a VM, a3-highgpu-8g with the id 4711."""
    answers = {
        "instance/id": answer("4711"),
        "instance/machine-type": answer("projects/1/machineTypes/a3-highgpu-8g"),
    }
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = MetadataServer(listener, answers)
        thread = threading.Thread(target=server.serve, daemon=True)
        thread.start()
        yield server
        server.is_over.set()
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        thread.join(10)
