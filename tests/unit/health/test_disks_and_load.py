"""Disks that are full, without inodes or read-only, and load: what the checks make of them."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable

import pytest

from slurm_hooks.health.job_files import forget_job, keep_baseline
from slurm_hooks.health.model import Context, Finding, Verdict
from slurm_hooks.health.policy import HealthPolicy
from tests.unit.health.node_roots import NodeRoot
from tests.unit.health.runs import BEGAN, evidence_of, run_check

Pretend = Callable[..., None]


@pytest.fixture
def disk(bare_node: NodeRoot, monkeypatch: pytest.MonkeyPatch) -> Pretend:
    """Says how the file system at one path is; all others keep as they are."""
    real_statvfs, real_ismount = os.statvfs, os.path.ismount

    def pretend(path: str, used: int = 50, inodes: int = 50, *, read_only: bool = False) -> None:
        place = bare_node.host().path(path.lstrip("/"))
        found = os.statvfs_result(
            (4096, 4096, 110, 110 - used, 100 - used, 100, 100 - inodes, 100 - inodes,
             os.ST_RDONLY if read_only else 0, 255)
        )  # fmt: skip
        monkeypatch.setattr(
            os, "statvfs", lambda name: found if name == place else real_statvfs(name)
        )
        monkeypatch.setattr(os.path, "ismount", lambda name: name == place or real_ismount(name))

    return pretend


_SSD = "/mnt/localssd"
_SSD_ALONE = HealthPolicy(disks=(_SSD,))
_REPLACING = _SSD_ALONE._replace(disk_full_verdict=Verdict.REPLACE)


def _found(
    node: NodeRoot,
    policy: HealthPolicy = _SSD_ALONE,
    check: str = "disk_space",
    context: Context = Context.PROLOG,
) -> list[Finding]:
    return run_check(check, evidence_of(node, context, policy=policy))


def test_a_disk_with_room_is_well(bare_node: NodeRoot, disk: Pretend) -> None:
    disk(_SSD, used=89, inodes=97)

    assert _found(bare_node) == []
    assert _found(bare_node, check="disks") == []


@pytest.mark.parametrize(
    ("used", "verdict"), [(90, Verdict.WARN), (97, Verdict.WARN), (98, Verdict.MANUAL)]
)
@pytest.mark.parametrize("path", ["/", _SSD, "/mnt/localdisk"])
def test_a_full_disk_is_told_by_its_path(
    bare_node: NodeRoot, disk: Pretend, path: str, used: int, verdict: Verdict
) -> None:
    disk(path, used=used)

    found = _found(bare_node, HealthPolicy())
    (finding,) = [finding for finding in found if f"{path} is" in finding.detail]

    assert (finding.verdict, finding.detail) == (verdict, f"{path} is {used}% full")


def test_a_disk_without_inodes_is_full(bare_node: NodeRoot, disk: Pretend) -> None:
    disk(_SSD, inodes=98)

    (finding,) = _found(bare_node)

    assert finding.verdict is Verdict.MANUAL
    assert "98% of inodes" in finding.detail


@pytest.mark.parametrize("verdict", [Verdict.WARN, Verdict.MANUAL, Verdict.REPLACE])
def test_a_site_says_what_becomes_of_a_disk_that_a_job_has_filled(
    bare_node: NodeRoot, disk: Pretend, verdict: Verdict
) -> None:
    policy = _SSD_ALONE._replace(disk_full_verdict=verdict)
    disk(_SSD)
    assert _found(bare_node, policy) == []

    disk(_SSD, used=99)

    assert [finding.verdict for finding in _found(bare_node, policy)] == [verdict]


def test_a_disk_that_never_had_room_is_not_replaced_by_another_one(
    bare_node: NodeRoot, disk: Pretend
) -> None:
    """Its threshold or its image is wrong, and the next VM would be as full."""
    disk(_SSD, used=99)

    (finding,) = _found(bare_node, _REPLACING)

    assert finding.verdict is Verdict.MANUAL
    assert "never seen otherwise" in finding.detail


def test_that_one_disk_had_room_says_nothing_of_another(bare_node: NodeRoot, disk: Pretend) -> None:
    disk("/mnt/localdisk")
    _found(bare_node, _REPLACING._replace(disks=("/mnt/localdisk",)))
    disk(_SSD, used=99)

    assert [finding.verdict for finding in _found(bare_node, _REPLACING)] == [Verdict.MANUAL]


def test_a_disk_is_only_told_while_the_job_that_fills_it_runs(
    bare_node: NodeRoot, disk: Pretend
) -> None:
    disk(_SSD, used=99)
    keep_baseline(bare_node.host(), 7, BEGAN, {})

    (finding,) = _found(bare_node, context=Context.BACKGROUND)
    assert finding.verdict is Verdict.WARN

    forget_job(bare_node.host(), 7)
    (finding,) = _found(bare_node, context=Context.BACKGROUND)
    assert finding.verdict is Verdict.MANUAL


def test_a_read_only_disk_is_a_persons_business(bare_node: NodeRoot, disk: Pretend) -> None:
    disk("/", read_only=True)

    (finding,) = _found(bare_node, HealthPolicy(disks=("/",)), "disks")

    assert (finding.verdict, finding.detail) == (Verdict.MANUAL, "/ is read-only")


def test_a_disk_that_is_not_mounted_is_left_out(bare_node: NodeRoot) -> None:
    bare_node.path("mnt/localssd").mkdir(parents=True)

    assert _found(bare_node, HealthPolicy(disks=("/mnt/localssd", "/mnt/nowhere"))) == []


def test_a_disk_that_fails_to_answer_is_told(
    bare_node: NodeRoot, disk: Pretend, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: str) -> os.statvfs_result:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    disk("/")
    monkeypatch.setattr(os, "statvfs", fail)

    (finding,) = _found(bare_node, HealthPolicy(disks=("/",)), "disks")

    assert finding.verdict is Verdict.MANUAL
    assert "Input/output error" in finding.detail


def test_a_file_system_without_limits_is_never_full(
    bare_node: NodeRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        os, "statvfs", lambda _: os.statvfs_result((4096, 4096, 0, 0, 0, 0, 0, 0, 0, 255))
    )

    assert _found(bare_node, HealthPolicy(disks=("/",))) == []


@pytest.mark.parametrize("text", ["", "garbage", "nan and more", "\0"])
def test_a_load_that_cannot_be_read_says_nothing(bare_node: NodeRoot, text: str) -> None:
    bare_node.write("proc/loadavg", text)

    assert run_check("load", evidence_of(bare_node)) == []


def test_load_is_a_warning_and_no_more(bare_node: NodeRoot) -> None:
    bare_node.write("proc/loadavg", "0.10 0.20 0.30 1/100 4711\n")
    assert run_check("load", evidence_of(bare_node)) == []

    bare_node.write("proc/loadavg", "99999.00 0.20 0.30 1/100 4711\n")
    (finding,) = run_check("load", evidence_of(bare_node))

    assert finding.verdict is Verdict.WARN
