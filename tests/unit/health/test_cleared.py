"""The mark after a repair by hand is written whole, read again, and never made up."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from slurm_hooks.health.cleared import Cleared, cleared_time, read_cleared, write_cleared
from slurm_hooks.health.host import Host
from tests.unit.health.node_roots import BOOT_ID, NodeRoot

NOW = datetime(2026, 12, 1, 9, 30, 15, 250_000, tzinfo=UTC)


@pytest.fixture
def host(bare_node: NodeRoot) -> Host:
    bare_node.kernel_log("4,4711,99,-;something", "4,4712,99,-;something")
    return bare_node.host()


def mark_of(host: Host) -> Path:
    return Path(host.state_directory) / "cleared"


def test_mark_has_time_name_boot_and_place_in_the_log(host: Host) -> None:
    assert write_cleared(host, NOW, "alice")
    assert read_cleared(host) == Cleared(NOW, "alice", BOOT_ID[:8], 4712)
    assert cleared_time(host) == NOW


def test_no_mark_is_none(host: Host) -> None:
    assert read_cleared(host) is None
    assert cleared_time(host) is None


def test_later_mark_takes_the_place_of_the_earlier_one(host: Host) -> None:
    write_cleared(host, NOW, "alice")
    write_cleared(host, NOW + timedelta(hours=1), "bob")
    assert read_cleared(host) == Cleared(NOW + timedelta(hours=1), "bob", BOOT_ID[:8], 4712)
    assert [path.name for path in mark_of(host).parent.iterdir()] == ["cleared"]


def test_time_is_kept_in_utc(host: Host) -> None:
    write_cleared(host, NOW.astimezone(timezone(timedelta(hours=5))), "alice")
    assert cleared_time(host) == NOW
    assert "+00:00" in mark_of(host).read_text()


def test_name_cannot_forge_another_line(host: Host) -> None:
    write_cleared(host, NOW, "alice\nsequence=9\ntime=2030-01-01T00:00:00+00:00 x=y")
    mark = read_cleared(host)
    assert mark is not None
    assert (mark.time, mark.sequence) == (NOW, 4712)
    assert mark.by.startswith("alice sequence=9")


def test_mark_without_a_kernel_log_has_the_time_alone(bare_node: NodeRoot) -> None:
    bare_node.path("dev", "kmsg").unlink()
    bare_node.path("proc", "sys", "kernel", "random", "boot_id").unlink()
    assert write_cleared(bare_node.host(), NOW, "alice")
    assert read_cleared(bare_node.host()) == Cleared(NOW, "alice", "", None)


def test_mark_that_cannot_be_written_is_told(bare_node: NodeRoot) -> None:
    bare_node.write("var/lib/slurm-hooks", "a file where a directory should be")
    assert not write_cleared(bare_node.host(), NOW, "alice")
    assert read_cleared(bare_node.host()) is None


@pytest.mark.parametrize(
    "content",
    ["", "garbage", "time=\n", "time=yesterday\n", "time=2026-12-01T09:30:15\n", "\0\xff=\n"],
)
def test_unreadable_mark_clears_nothing(host: Host, content: str) -> None:
    write_cleared(host, NOW, "alice")
    mark_of(host).write_text(content)
    assert read_cleared(host) is None


@pytest.mark.parametrize("sequence", ["", "-4", "x", "٤"])
def test_unreadable_sequence_leaves_the_time(host: Host, sequence: str) -> None:
    write_cleared(host, NOW, "alice")
    text = mark_of(host).read_text().replace("sequence=4712", f"sequence={sequence}")
    mark_of(host).write_text(text)
    assert read_cleared(host) == Cleared(NOW, "alice", BOOT_ID[:8], None)
