"""What the metadata server says is believed only in time and whole, and never waited for long."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest

from slurm_hooks.health import metadata
from slurm_hooks.health.host import METADATA_URL, Host
from slurm_hooks.health.identity import Identity, read_identity
from slurm_hooks.health.model import Context, Finding, Verdict
from tests.unit.health.metadata_server import NOT_FOUND, MetadataServer, answer, metadata_server
from tests.unit.health.node_roots import BOOT_ID, NodeRoot
from tests.unit.health.runs import evidence_of, run_check

_NOTICE_KEY = "instance/upcoming-maintenance?alt=json"
_FAILURE = {"type": "UNSCHEDULED", "maintenanceReasons": ["PLANNED_UPDATE", "FAILURE_GPU_XID"]}


@pytest.fixture
def server() -> Iterator[MetadataServer]:
    with metadata_server() as started:
        yield started


def _host(node: NodeRoot, server: MetadataServer) -> Host:
    return node.host()._replace(metadata_url=server.url)


def test_a_value_is_asked_for_with_the_header_that_the_server_wants(
    bare_node: NodeRoot, server: MetadataServer
) -> None:
    assert metadata.read(_host(bare_node, server), "instance/id") == "4711"
    assert "\r\nMetadata-Flavor: Google\r\n" in server.asked[0]


def test_a_key_that_is_not_there_is_empty(bare_node: NodeRoot, server: MetadataServer) -> None:
    assert metadata.read(_host(bare_node, server), "instance/nothing") == ""


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"garbage",
        b"\xff\xfe\r\n\r\n",
        b"HTTP/1.1\r\nMetadata-Flavor: Google\r\n\r\n4711",
        b"HTTP/1.1 200 OK\r\n\r\n4711",
        b"HTTP/1.1 404 Not Found\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nMetadata-Flavor: Google\r\nContent-Length: 9\r\n\r\n47",
        answer("try again later", "503 Service Unavailable"),
        answer("busy", "429 Too Many Requests"),
    ],
)
def test_an_answer_that_is_none_or_not_whole_or_of_somebody_else_is_no_answer(
    bare_node: NodeRoot, server: MetadataServer, data: bytes
) -> None:
    server.answers["instance/id"] = data

    assert metadata.read(_host(bare_node, server), "instance/id") is None


@pytest.mark.parametrize("trouble", ["silent", "dribbling", "endless"])
def test_a_slow_server_is_not_waited_for(
    bare_node: NodeRoot, server: MetadataServer, trouble: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metadata, "DEADLINE_SECONDS", 0.3)
    server.is_silent = trouble == "silent"
    server.pause_seconds = 0.05 if trouble == "dribbling" else 0.0
    if trouble == "endless":
        server.answers["instance/id"] = answer("x" * 100_000_000)
    began = time.monotonic()

    assert metadata.read(_host(bare_node, server), "instance/id") is None
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:1/x", "http://127.0.0.1:port/x", "http://127.0.0.1:99999/x", "", "x:"]
)
def test_a_server_that_is_not_there_is_no_answer(bare_node: NodeRoot, url: str) -> None:
    assert metadata.read(bare_node.host()._replace(metadata_url=url), "instance/id") is None


def test_the_server_is_known_by_its_address_so_that_no_name_is_looked_up() -> None:
    assert METADATA_URL.startswith("http://169.254.169.254/")


def test_who_the_node_is_is_asked_once_a_boot(bare_node: NodeRoot, server: MetadataServer) -> None:
    host = _host(bare_node, server)
    expected = Identity("4711", "a3-highgpu-8g", BOOT_ID[:8])

    assert [read_identity(host) for _ in range(3)] == [expected] * 3
    assert len(server.asked) == 2

    bare_node.write("proc/sys/kernel/random/boot_id", f"ffffffff{BOOT_ID[8:]}\n")
    server.answers["instance/id"] = answer("4712")
    assert read_identity(host) == Identity("4712", "a3-highgpu-8g", "ffffffff")


def test_a_node_that_nobody_can_name_is_asked_about_again(
    bare_node: NodeRoot, server: MetadataServer
) -> None:
    server.answers = {"instance/id": b"", "instance/machine-type": b""}
    assert read_identity(_host(bare_node, server)).instance_id == ""

    server.answers["instance/id"] = answer("4711")
    assert read_identity(_host(bare_node, server)).instance_id == "4711"


def test_a_node_whose_machine_type_was_not_told_asks_again(
    bare_node: NodeRoot, server: MetadataServer
) -> None:
    known, server.answers["instance/machine-type"] = server.answers["instance/machine-type"], b""
    assert read_identity(_host(bare_node, server)).machine_type == ""

    server.answers["instance/machine-type"] = known
    assert read_identity(_host(bare_node, server)).machine_type == "a3-highgpu-8g"


@pytest.mark.parametrize("name", ["4711; rm -rf /", "x", "9" * 30, "47 11", "\uff14\uff17"])
def test_an_identity_that_is_none_is_not_believed(
    bare_node: NodeRoot, server: MetadataServer, name: str
) -> None:
    server.answers["instance/id"] = answer(name)

    assert read_identity(_host(bare_node, server)).instance_id == ""


def _notice(
    node: NodeRoot, server: MetadataServer, context: Context, minutes: float = 0
) -> list[Finding]:
    before = evidence_of(node)
    evidence = evidence_of(node, context, before=before, minutes=minutes)
    evidence.host = _host(node, server)
    return run_check("maintenance_notice", evidence)


def _announce(server: MetadataServer, notice: object) -> None:
    server.answers[_NOTICE_KEY] = answer(json.dumps(notice))


def test_a_failure_of_the_host_replaces_the_vm(node: NodeRoot, server: MetadataServer) -> None:
    _announce(server, _FAILURE)

    (finding,) = _notice(node, server, Context.BACKGROUND)

    assert finding.verdict is Verdict.REPLACE
    assert finding.detail == "host failure announced: FAILURE_GPU_XID"


@pytest.mark.parametrize(
    "notice",
    [
        {"type": "SCHEDULED", "maintenanceReasons": ["FAILURE_DISK"]},
        {"type": "UNSCHEDULED", "maintenanceReasons": ["PLANNED_UPDATE"]},
        {"type": "UNSCHEDULED", "maintenanceReasons": None},
        {"type": "MULTIPLE"},
    ],
)
def test_other_maintenance_is_a_warning(
    node: NodeRoot, server: MetadataServer, notice: dict[str, object]
) -> None:
    _announce(server, notice)

    assert [f.verdict for f in _notice(node, server, Context.BACKGROUND)] == [Verdict.WARN]


@pytest.mark.parametrize("data", [NOT_FOUND, answer(""), answer("{}"), b"", b"garbage"])
def test_where_nothing_is_announced_nothing_is_wrong(
    node: NodeRoot, server: MetadataServer, data: bytes
) -> None:
    server.answers[_NOTICE_KEY] = data

    assert _notice(node, server, Context.BACKGROUND) == []


@pytest.mark.parametrize("text", ["<html>", "[1]", "7", "[" * 10_000])
def test_a_notice_that_nobody_understands_is_unknown(
    node: NodeRoot, server: MetadataServer, text: str
) -> None:
    server.answers[_NOTICE_KEY] = answer(text)

    assert [f.verdict for f in _notice(node, server, Context.BACKGROUND)] == [Verdict.UNKNOWN]


def test_a_prolog_recalls_the_notice_and_asks_nobody(
    node: NodeRoot, server: MetadataServer
) -> None:
    _announce(server, _FAILURE)
    _notice(node, server, Context.BACKGROUND)
    server.asked.clear()

    assert [f.verdict for f in _notice(node, server, Context.PROLOG)] == [Verdict.REPLACE]
    assert server.asked == []


def test_a_notice_that_is_withdrawn_is_forgotten(node: NodeRoot, server: MetadataServer) -> None:
    _announce(server, _FAILURE)
    _notice(node, server, Context.BACKGROUND)
    del server.answers[_NOTICE_KEY]
    _notice(node, server, Context.BACKGROUND)

    assert _notice(node, server, Context.PROLOG) == []


def test_a_notice_is_kept_for_an_hour_and_no_longer(node: NodeRoot, server: MetadataServer) -> None:
    _announce(server, _FAILURE)
    _notice(node, server, Context.BACKGROUND)

    assert len(_notice(node, server, Context.PROLOG, minutes=59)) == 1
    assert _notice(node, server, Context.PROLOG, minutes=61) == []


def test_a_notice_does_not_outlive_the_boot(node: NodeRoot, server: MetadataServer) -> None:
    _announce(server, _FAILURE)
    _notice(node, server, Context.BACKGROUND)
    node.write("proc/sys/kernel/random/boot_id", f"ffffffff{BOOT_ID[8:]}\n")

    assert _notice(node, server, Context.PROLOG) == []


@pytest.mark.parametrize("kept", ["", "garbage", "1f6c3a52 x\n{}", "1f6c3a52\n{}", "\0\n\0"])
def test_a_kept_notice_that_cannot_be_read_says_nothing(
    node: NodeRoot, server: MetadataServer, kept: str
) -> None:
    node.write("var/lib/slurm-hooks/health/maintenance-notice", kept)

    assert _notice(node, server, Context.PROLOG) == []
