"""Tasks that hang in the kernel are told from those that only wait for a moment."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from slurm_hooks.health.model import Context, Finding, Verdict
from tests.unit.health.node_roots import NodeRoot
from tests.unit.health.runs import evidence_of, run_check

_SIGKILL = 1 << 8


def _add_task(
    node: NodeRoot,
    place: str,
    name: str = "python3",
    state: str = "D",
    *,
    pending: int = 0,
    switches: int = 10,
    user_id: int = 0,
) -> None:
    number = place.rpartition("/")[2]
    fields = " ".join(["1"] * 18 + ["4711"] + ["0"] * 20)
    node.write(f"proc/{place}/stat", f"{number} ({name}) {state} {fields}\n")
    node.write(
        f"proc/{place}/status",
        f"Name:\t{name}\nUid:\t{user_id}\t{user_id}\t{user_id}\t{user_id}\nSigPnd:\t0000000000000000\nShdPnd:\t{pending:016x}\n"
        f"voluntary_ctxt_switches:\t{switches}\nnonvoluntary_ctxt_switches:\t3\n",
    )


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], None]], None]:
    """What happens between the two looks."""

    def set_work(work: Callable[[], None]) -> None:
        monkeypatch.setattr(time, "sleep", lambda _: work())

    set_work(lambda: None)
    return set_work


def _found(node: NodeRoot) -> list[Finding]:
    return run_check("stuck_tasks", evidence_of(node, Context.EPILOG))


@pytest.mark.usefixtures("meanwhile")
def test_a_task_beyond_sigkill_asks_for_a_reboot(bare_node: NodeRoot) -> None:
    _add_task(bare_node, "4711", "train (v2)", pending=_SIGKILL)

    (finding,) = _found(bare_node)

    assert finding.verdict is Verdict.REBOOT
    assert finding.detail == "1 tasks hang: train (v2) (4711)"


@pytest.mark.usefixtures("meanwhile")
@pytest.mark.parametrize("name", ["nvidia-smi", "nv-hostengine", "nvidia-persiste"])
def test_a_tool_of_the_driver_that_hangs_asks_for_a_reboot(bare_node: NodeRoot, name: str) -> None:
    _add_task(bare_node, "4711", name)

    assert [finding.verdict for finding in _found(bare_node)] == [Verdict.REBOOT]


@pytest.mark.usefixtures("meanwhile")
def test_a_program_of_a_user_that_has_the_name_of_a_tool_condemns_no_node(
    bare_node: NodeRoot,
) -> None:
    _add_task(bare_node, "4711", "nvidia-smi", user_id=1000)

    assert _found(bare_node) == []


@pytest.mark.usefixtures("meanwhile")
def test_a_thread_that_outlives_its_killed_process_is_seen(bare_node: NodeRoot) -> None:
    _add_task(bare_node, "4711", state="Z")
    _add_task(bare_node, "4711/task/4711", state="Z")
    _add_task(bare_node, "4711/task/4712", "cuda-worker", pending=_SIGKILL)

    (finding,) = _found(bare_node)

    assert finding.detail == "1 tasks hang: cuda-worker (4712)"


@pytest.mark.usefixtures("meanwhile")
@pytest.mark.parametrize(("state", "pending"), [("D", 0), ("S", _SIGKILL), ("R", _SIGKILL)])
def test_a_task_that_sleeps_or_runs_is_left_alone(
    bare_node: NodeRoot, state: str, pending: int
) -> None:
    _add_task(bare_node, "4711", state=state, pending=pending)

    assert _found(bare_node) == []


def test_a_tool_that_ran_between_the_looks_does_not_hang(
    bare_node: NodeRoot, meanwhile: Callable[[Callable[[], None]], None]
) -> None:
    _add_task(bare_node, "4711", "nvidia-smi", switches=10)
    meanwhile(lambda: _add_task(bare_node, "4711", "nvidia-smi", switches=11))

    assert _found(bare_node) == []


def test_another_process_of_the_same_number_does_not_hang(
    bare_node: NodeRoot, meanwhile: Callable[[Callable[[], None]], None]
) -> None:
    _add_task(bare_node, "4711", pending=_SIGKILL)
    meanwhile(
        lambda: _add_task(bare_node, "4711", "other", pending=_SIGKILL)  # took its place
    )

    assert _found(bare_node) == []


@pytest.mark.usefixtures("meanwhile")
@pytest.mark.parametrize("stat", ["", "garbage", "4711 (x) D", "4711 (x) D " + "y " * 40])
def test_tasks_that_cannot_be_read_are_no_fault(bare_node: NodeRoot, stat: str) -> None:
    bare_node.write("proc/4711/stat", stat)
    bare_node.write("proc/4712/status", "ShdPnd: zz\n")

    assert _found(bare_node) == []


@pytest.mark.parametrize(("zombies", "is_told"), [(5, False), (6, True)])
def test_zombies_beyond_half_of_all_numbers_are_a_warning(
    bare_node: NodeRoot, zombies: int, is_told: bool
) -> None:
    bare_node.write("proc/sys/kernel/pid_max", "10\n")
    for number in range(zombies):
        _add_task(bare_node, str(100 + number), state="Z")

    assert [finding.verdict for finding in _found(bare_node)] == [Verdict.WARN] * is_told
