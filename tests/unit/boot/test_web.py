"""One GET request: over TLS with the system's authorities, in whatever form servers answer."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from slurm_hooks.boot import web

SECONDS = 5.0
GOOD = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"


@contextmanager
def server(answer: bytes, context: ssl.SSLContext | None = None) -> Iterator[tuple[int, list[str]]]:
    """Sends the answer to each connection and closes it; gives its port and what it was asked."""
    asked: list[str] = []
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with suppress(OSError):
            while True:
                plain, _ = listener.accept()
                with suppress(OSError), plain, _secured(plain, context) as peer:
                    asked.append(peer.recv(65_536).decode())
                    peer.sendall(answer)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield listener.getsockname()[1], asked
    with suppress(OSError):
        listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join(SECONDS)


def _secured(plain: socket.socket, context: ssl.SSLContext | None) -> socket.socket:
    """Raises OSError for a client that does not trust us and breaks off."""
    return context.wrap_socket(plain, server_side=True) if context else plain


def test_request_names_path_query_host_and_headers() -> None:
    with server(GOOD) as (port, asked):
        answer = web.get(f"http://127.0.0.1:{port}/a/b?c=d", {"X-Y": "z"}, SECONDS)
    assert answer == web.Answer(200, b"hi")
    head = asked[0].split("\r\n")
    assert head[0] == "GET /a/b?c=d HTTP/1.1"
    assert {f"Host: 127.0.0.1:{port}", "X-Y: z", "Connection: close"} <= set(head)


def test_answer_in_chunks_is_put_together() -> None:
    chunks = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nh\r\n1\r\ni\r\n0\r\n\r\n"
    with server(chunks) as (port, _):
        assert web.get(f"http://127.0.0.1:{port}/", {}, SECONDS).body == b"hi"


@pytest.mark.parametrize(
    "answer", [b"", b"220 smtp\r\n", GOOD[:-1], b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 5_000_000]
)
def test_what_is_no_whole_answer_is_an_error(answer: bytes) -> None:
    with server(answer) as (port, _), pytest.raises(ValueError):
        web.get(f"http://127.0.0.1:{port}/", {}, SECONDS)


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """Key and certificate of localhost in one file."""
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl")
    path = tmp_path / "localhost.pem"
    subprocess.run(
        ("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
         "-days", "2", "-keyout", str(path), "-out", str(tmp_path / "only")),
        check=True, capture_output=True, timeout=30,
    )  # fmt: skip
    with path.open("a") as file:
        file.write((tmp_path / "only").read_text())
    return path


def test_services_are_believed_only_with_a_certificate_that_is_trusted(
    certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with server(GOOD, context) as (port, asked):
        with pytest.raises(OSError, match="CERTIFICATE_VERIFY_FAILED"):
            web.get(f"https://localhost:{port}/", {"Authorization": "Bearer x"}, SECONDS)
        assert asked == []
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        assert web.get(f"https://localhost:{port}/", {}, SECONDS).body == b"hi"
        with pytest.raises(OSError, match="IP address mismatch"):
            web.get(f"https://127.0.0.1:{port}/", {}, SECONDS)
