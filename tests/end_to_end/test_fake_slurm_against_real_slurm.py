"""The fake reacts to every state request as the real slurmctld does, from every state here.

Each pair of a starting state and a request has a node of its own. The real power thread may
have passed before we look, so the fake may be as it is at once or after one such pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from slurm_hooks.slurm.client import NodeUpdate, SlurmClient, SlurmRefused
from slurm_hooks.slurm.model import JobState, NodeFlag, NodeState
from slurm_hooks.slurm.scontrol import ScontrolClient
from tests.fakes.slurm import FakeSlurm
from tests.slurm_daemons import BIN_DIRECTORY, PrivateSlurm, installed_version, require_slurm
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

SETTING_UP: dict[str, tuple[NodeUpdate, ...]] = {
    "asleep": (),
    "asleep and drained": (NodeUpdate.DRAIN,),
    "asleep and down": (NodeUpdate.DOWN,),
    "waking": (NodeUpdate.POWER_UP,),
    "waking and down": (NodeUpdate.POWER_UP, NodeUpdate.DOWN),
    "waking and drained": (NodeUpdate.POWER_UP, NodeUpdate.DRAIN),
    "waking for a job": (),
    "power down asked while waking": (NodeUpdate.POWER_UP, NodeUpdate.POWER_DOWN),
}


@dataclass(frozen=True)
class Case:
    """A request made of a node in a starting state; without an update, a reason alone."""

    start: str
    update: NodeUpdate | None


CASES = [Case(start, update) for start in SETTING_UP for update in (*NodeUpdate, None)]


@dataclass(frozen=True)
class Seen:
    """What can be seen of a node after a request."""

    state: NodeState
    has_reason: bool
    refused: bool
    job_state: JobState | None


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivateSlurm]:
    require_slurm()
    started = PrivateSlurm(tmp_path_factory.mktemp("slurm"), node_count=len(CASES))
    try:
        started.start()
        yield started
    finally:
        started.stop()


def test_fake_reacts_as_the_real_slurmctld(cluster: PrivateSlurm) -> None:
    nodes = dict(zip(CASES, cluster.node_names, strict=True))
    fake = FakeSlurm(cluster.node_names, "cpu", version=installed_version())
    real = ScontrolClient(cluster.conf, BIN_DIRECTORY)
    fake_jobs = set_up(fake, nodes, lambda name: fake.submit([name]), fake.pass_power_thread)
    real_jobs = set_up(
        real,
        nodes,
        lambda name: cluster.submit("-w", name),
        lambda: wait_until("nodes wake", lambda: all_wake(real, nodes), 30),
    )
    different = []
    for case, name in nodes.items():
        real_seen = request(real, case, name, real_jobs.get(case))
        at_once = request(fake, case, name, fake_jobs.get(case))
        fake.pass_power_thread()
        later = look(fake, name, at_once.refused, fake_jobs.get(case))
        if real_seen not in (at_once, later):
            different.append(f"{case}: real {real_seen}\n  fake {at_once}\n  later {later}")
    assert not different, "\n".join(different)


def set_up(
    slurm: SlurmClient,
    nodes: dict[Case, str],
    submit: Callable[[str], int],
    wake: Callable[[], None],
) -> dict[Case, int]:
    """Bring all nodes into their starting states; the jobs of those that have one."""
    jobs = {case: submit(name) for case, name in nodes.items() if "job" in case.start}
    for wanted in (1, 2):
        for start, updates in SETTING_UP.items():
            names = [name for case, name in nodes.items() if case.start == start]
            if len(updates) >= wanted:
                slurm.update_nodes(names, updates[wanted - 1], reason_for(updates[wanted - 1]))
        wake()
    return jobs


def all_wake(slurm: SlurmClient, nodes: dict[Case, str]) -> bool:
    present = slurm.read_nodes(list(nodes.values()))
    return all(
        present[name].state.has(NodeFlag.POWERING_UP)
        for case, name in nodes.items()
        if "waking" in case.start
    )


def request(slurm: SlurmClient, case: Case, name: str, job_id: int | None) -> Seen:
    """Make the request and look at the node at once."""
    try:
        slurm.update_nodes([name], case.update, reason_for(case.update))
    except SlurmRefused:
        return look(slurm, name, True, job_id)
    return look(slurm, name, False, job_id)


def look(slurm: SlurmClient, name: str, refused: bool, job_id: int | None) -> Seen:
    node = slurm.read_nodes([name])[name]
    job_state = slurm.read().jobs[job_id].state if job_id else None
    return Seen(node.state, bool(node.reason), refused, job_state)


def reason_for(update: NodeUpdate | None) -> str | None:
    return "a reason" if update in (NodeUpdate.DOWN, NodeUpdate.DRAIN, None) else None
