"""What a node tells slurmctld: little, bounded, and never over a person's word."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from slurm_hooks.health.host import Host
from slurm_hooks.health.slurmctld import NotTold, SlurmController
from tests.unit.health.scontrol import NodesScontrol

_REASON = "slurm-hooks: REPLACE row_remap gpu 3 inst=7 boot=0a1b2c3d ctx=prolog"
_MILDER = "slurm-hooks: RESET nvlink gpu 3 inst=7 boot=0a1b2c3d ctx=prolog"
_OF_AN_OLD_BOOT = "slurm-hooks: MANUAL inforom gpu 3 inst=7 boot=ffffffff"


@pytest.fixture
def scontrol(tmp_path: Path) -> NodesScontrol:
    return NodesScontrol(tmp_path)


def _controller(
    scontrol: NodesScontrol, seconds: float = 10.0, name: str = "n1"
) -> SlurmController:
    host = Host(name=name, slurm_bin_directory=str(scontrol.directory))
    return SlurmController(host, seconds)


def test_state_and_reason_are_written_in_one_call(scontrol: NodesScontrol) -> None:
    _controller(scontrol).drain(_REASON)

    assert scontrol.changes == [["update", "nodename=n1", "state=drain", f"reason={_REASON}"]]


@pytest.mark.parametrize("state", ["IDLE+DRAIN", "DOWN", "IDLE+FAIL", "MIXED+DRAIN"])
def test_a_persons_reason_is_never_replaced(scontrol: NodesScontrol, state: str) -> None:
    scontrol.knows(state, "fan replaced on Friday")

    with pytest.raises(NotTold, match="fan replaced"):
        _controller(scontrol).drain(_REASON)

    assert scontrol.changes == []


@pytest.mark.parametrize(
    "present",
    [
        f"{_MILDER} : hands off until Friday",
        "slurm-hooks: RESET hands off until Friday",
        "slurm-hooks: out of service: fan replaced on Friday",
    ],
)
def test_what_a_person_adds_to_a_reason_of_ours_is_never_replaced(
    scontrol: NodesScontrol, present: str
) -> None:
    scontrol.knows("IDLE+DRAIN", present)

    with pytest.raises(NotTold, match="Friday"):
        _controller(scontrol).drain(_REASON)

    assert scontrol.changes == []


@pytest.mark.parametrize("present", ["slurm-hooks: VM gone", "slurm-hooks: new generation"])
def test_what_the_daemon_says_of_a_node_gives_way(scontrol: NodesScontrol, present: str) -> None:
    scontrol.knows("DOWN+DRAIN", present)

    _controller(scontrol).drain(_REASON)

    assert len(scontrol.changes) == 1


def test_a_reason_that_is_left_over_on_a_node_in_service_is_replaced(
    scontrol: NodesScontrol,
) -> None:
    scontrol.knows("IDLE+CLOUD", "was slow last week")

    _controller(scontrol).drain(_REASON)

    assert len(scontrol.changes) == 1


@pytest.mark.parametrize(
    "reason",
    [
        "Prolog error",
        "Epilog error",
        "Prolog/Epilog failure",
        "Not responding",
        "Kill task failed",
        "Low RealMemory (reported:100 < 100.00% of configured:2000)",
        "gres/gpu count reported lower than configured (7 < 8)",
        "kernel : reboot issued : reboot timed out",
    ],
)
def test_a_reason_of_slurms_own_gives_way_to_ours(scontrol: NodesScontrol, reason: str) -> None:
    scontrol.knows("IDLE+DRAIN", reason)

    _controller(scontrol).drain(_REASON)

    assert len(scontrol.changes) == 1


def test_a_graver_reason_of_the_same_boot_stays(scontrol: NodesScontrol) -> None:
    for reason in (_REASON, f"{_REASON} : reboot issued"):
        scontrol.knows("IDLE+DRAIN", reason)

        _controller(scontrol).drain(_MILDER)

    assert scontrol.changes == []


@pytest.mark.parametrize("present", [_MILDER, _OF_AN_OLD_BOOT])
def test_a_milder_or_older_reason_of_ours_is_replaced(
    scontrol: NodesScontrol, present: str
) -> None:
    scontrol.knows("IDLE+DRAIN", present)

    _controller(scontrol).drain(_REASON)

    assert len(scontrol.changes) == 1


@pytest.mark.parametrize("says", ["", "slurm_load_node error: Unable to contact slurm controller"])
def test_where_the_state_cannot_be_read_nothing_is_written(
    scontrol: NodesScontrol, says: str
) -> None:
    scontrol.answers("show", says=says)

    with pytest.raises(NotTold, match="cannot be read"):
        _controller(scontrol).drain(_REASON)

    assert scontrol.changes == []


@pytest.mark.parametrize("command", ["show", "update"])
def test_a_slow_slurmctld_is_waited_for_no_longer_than_all_calls_may_take(
    scontrol: NodesScontrol, command: str
) -> None:
    if command == "show":
        scontrol.answers("show", sleeps=60)
    scontrol.answers("update", sleeps=60)
    began = time.monotonic()

    with pytest.raises(NotTold, match="does not answer"):
        _controller(scontrol, seconds=1.0).drain(_REASON)

    assert time.monotonic() - began < 5


def test_a_refusal_is_told_with_slurmctlds_words(scontrol: NodesScontrol) -> None:
    scontrol.answers("requeue", says="Job has already finished", status=1)

    with pytest.raises(NotTold, match="already finished"):
        _controller(scontrol).requeue(7)


def test_a_return_is_asked_for_only_where_the_reason_is_a_health_runs_own(
    scontrol: NodesScontrol,
) -> None:
    passed = "slurm-hooks: OK health_run passed inst=7 boot=11111111"
    for state, reason in (
        ("IDLE+DRAIN", "fan replaced on Friday"),
        ("IDLE+DRAIN", "fan replaced on Friday : reboot issued"),
        ("IDLE+DRAIN", f"{_REASON} : fan replaced on Friday"),
        ("IDLE+DRAIN", "slurm-hooks: pool held until 2026-12-01T10:00:00Z"),
        ("IDLE", _REASON),
    ):
        scontrol.knows(state, reason)
        _controller(scontrol).ask_for_return(passed)
    assert scontrol.changes == []

    for reason in (
        _REASON,
        f"{_REASON} : reboot issued",
        "gres/gpu count reported lower than configured (7 < 8) : reboot issued",
    ):
        scontrol.knows("IDLE+DRAIN", reason)
        _controller(scontrol).ask_for_return(passed)

    assert scontrol.changes == [["update", "nodename=n1", f"reason={passed}"]] * 3


def test_no_return_is_asked_for_on_the_boot_that_was_condemned(scontrol: NodesScontrol) -> None:
    scontrol.knows("IDLE+DRAIN", _REASON)

    _controller(scontrol).ask_for_return("slurm-hooks: OK health_run passed inst=7 boot=0a1b2c3d")

    assert scontrol.changes == []


@pytest.mark.parametrize("name", ["", "n1 state=idle", "n[1-9]", "-n1"])
def test_a_node_name_that_is_none_goes_nowhere(scontrol: NodesScontrol, name: str) -> None:
    with pytest.raises(NotTold, match="name"):
        _controller(scontrol, name=name).drain(_REASON)

    assert scontrol.calls == []


def test_a_missing_scontrol_is_told(tmp_path: Path) -> None:
    host = Host(name="n1", slurm_bin_directory=str(tmp_path / "nowhere"))

    with pytest.raises(NotTold, match="scontrol"):
        SlurmController(host, 5).drain(_REASON)
