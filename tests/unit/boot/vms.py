"""A VM in a directory with real programs, beside a metadata server and Google's services."""

from __future__ import annotations

import base64
import json
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from slurm_hooks.boot import keys
from slurm_hooks.boot.machine import Limits, Machine
from slurm_hooks.boot.run import boot

NODE = "cl-a3u-7"
SECRET = "projects/p/secrets/munge/versions/latest"
HOME = "projects/p/locations/us-central1-a/instances/homes"
DATA = "projects/p/locations/us-central1-a/instances/data"
SCRATCH = "projects/p/locations/us-central1-a/instances/scratch"
KEY = b"SECRET-key-of-munge-" * 6
TOKEN = "SECRET-token"

SHORT = Limits(
    metadata_seconds=0.5,
    service_seconds=0.5,
    try_seconds=0.4,
    mount_seconds=0.5,
    gpu_seconds=0.5,
    pause_seconds=0.05,
)
_METADATA = "/computeMetadata/v1/"
_MOUNT = 'echo "$3 $4 $2 rw 0 0" >> "$ROOT/proc/self/mounts"'


@dataclass(frozen=True)
class Reply:
    """What a server answers. A `slow` one lets one byte a tenth of a second through."""

    body: bytes
    status: int = 200
    slow: bool = False


@dataclass
class Servers:
    """The metadata server and all services on one port. `asked` are (path, Authorization)."""

    url: str
    attributes: dict[str, str]
    replies: dict[str, Reply] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)
    is_over: threading.Event = field(default_factory=threading.Event)
    flavor: str = "Google"

    def refuse(self, path: str, status: int, message: str) -> None:
        """Answer a path with an error of Google's."""
        self.answer(path, {"error": {"code": status, "message": message}}, status)

    def answer(self, path: str, body: Mapping[str, object], status: int = 200) -> None:
        """Answer a path with JSON."""
        self.replies[path] = Reply(json.dumps(body).encode(), status)

    def reply(self, path: str) -> Reply:
        """What is answered to a path."""
        if path == f"{_METADATA}instance/attributes/?recursive=true":
            return Reply(json.dumps(self.attributes).encode())
        return self.replies.get(path, Reply(b"not found", 404))


@dataclass
class Vm:
    """One VM. `attributes` may be changed until it boots."""

    root: Path
    servers: Servers

    @property
    def machine(self) -> Machine:
        """The VM as the boot sees it, with short patience."""
        url = self.servers.url
        return Machine(
            root=str(self.root),
            console=str(self.root / "ttyS0"),
            metadata_url=f"{url}{_METADATA}".rstrip("/"),
            secret_manager_url=url,
            filestore_url=url,
            lustre_url=f"{url}/lustre",
            limits=SHORT,
        )

    @property
    def command(self) -> tuple[str, ...]:
        """The program as this VM runs it, with the patience of a real one."""
        machine = self.machine
        return (
            *(sys.executable, "-I", "-m", "slurm_hooks.boot.program", "--root", machine.root),
            *("--console", "", "--metadata-url", machine.metadata_url),
            *("--secret-manager-url", machine.secret_manager_url),
        )

    def tell(self, key: str, value: str) -> None:
        """Put a value into the VM's metadata."""
        self.servers.attributes[key] = value

    def boot(self) -> bool:
        """Boot; whether it went well."""
        return boot(self.machine) == 0

    @property
    def console(self) -> str:
        """All that the VM has said on its serial console."""
        path = self.root / "ttyS0"
        return path.read_text() if path.exists() else ""

    @property
    def steps(self) -> list[str]:
        """The console without the beginnings of steps and without our mark."""
        lines = [line.removeprefix("slurm-hooks-boot: ") for line in self.console.splitlines()]
        return [line for line in lines if " begins" not in line]

    def add_program(self, name: str, script: str) -> None:
        """Install a program that writes down how it is called; `$ROOT` in it is the VM's root."""
        path = self.root / "usr/sbin" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            f'#!/bin/sh\nROOT={self.root}\necho "{name} $*" >> "$ROOT/calls"\n{script}\n'
        )
        path.chmod(0o755)

    def remove_program(self, name: str) -> None:
        """Take a program out of the image."""
        (self.root / "usr/sbin" / name).unlink()

    @property
    def calls(self) -> list[str]:
        """Every call of every program, with paths as the VM sees them."""
        path = self.root / "calls"
        lines = path.read_text().splitlines() if path.exists() else []
        return [line.replace(f"{self.root}/", "/") for line in lines]

    @property
    def options(self) -> str:
        """What slurmd is started with; empty where it is not to start."""
        path = self.root / "run/slurm-hooks/slurmd"
        return path.read_text() if path.exists() else ""

    def file(self, place: str, text: str = "") -> Path:
        """Write a file of the image."""
        path = self.root / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path


@contextmanager
def good_vm(root: Path) -> Iterator[Vm]:
    """A VM of a compute pool with everything that a boot needs."""
    with _servers() as servers:
        vm = Vm(root, servers)
        vm.add_program("mount", _MOUNT.replace("$3 $4 $2", "${5:-$3} ${6:-$4} $2"))
        vm.add_program("slurmd", "echo slurm-wlm 22.05.8")
        vm.file("proc/self/mounts", "/dev/sda1 / ext4 rw 0 0\n")
        yield vm


@contextmanager
def _servers() -> Iterator[Servers]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    attributes = {
        keys.CLUSTER: "cl",
        keys.POOL: "a3u",
        keys.CONTROLLERS: "ctl-0,ctl-1:6820",
        keys.KEY_SECRET: SECRET,
    }
    servers = Servers(f"http://127.0.0.1:{server.server_port}", attributes)
    _fill(servers)
    server.servers = servers  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield servers
    finally:
        servers.is_over.set()
        server.shutdown()
        server.server_close()
        thread.join()


def _fill(servers: Servers) -> None:
    for key, value in {
        "instance/name": NODE,
        "instance/id": "4711",
        "instance/machine-type": "projects/1/machineTypes/a3-ultragpu-8g",
        "instance/service-accounts/default/token": json.dumps({"access_token": TOKEN}),
    }.items():
        servers.replies[f"{_METADATA}{key}"] = Reply(value.encode())
    payload = base64.b64encode(KEY).decode()
    servers.answer(f"/v1/{SECRET}:access", {"payload": {"data": payload}})
    for instance, address, share in ((HOME, "10.0.0.2", "home"), (DATA, "10.0.0.3", "vol1")):
        networks = [{"ipAddresses": [address]}]
        servers.answer(f"/v1/{instance}", {"networks": networks, "fileShares": [{"name": share}]})
    servers.answer(f"/lustre/v1/{SCRATCH}", {"mountPoint": "10.0.0.4@tcp:/scratch"})


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        servers: Servers = self.server.servers  # type: ignore[attr-defined]
        servers.asked.append((self.path, self.headers.get("Authorization", "")))
        reply = servers.reply(self.path)
        self.send_response(reply.status)
        if self.path.startswith(_METADATA):
            self.send_header("Metadata-Flavor", servers.flavor)
        self.end_headers()
        with suppress(OSError):  # the client gave up waiting
            self._send(servers, reply)

    def _send(self, servers: Servers, reply: Reply) -> None:
        if not reply.slow:
            self.wfile.write(reply.body)
            return
        for position in range(len(reply.body)):
            self.wfile.write(reply.body[position : position + 1])
            servers.is_over.wait(0.1)

    def log_message(self, format: str, *args: object) -> None:
        """Requests are in `asked`; nothing is printed."""
