"""Two controllers: the one in charge acts, the other only watches and takes over in a pass."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from slurm_hooks.history.consoles import ConsolesDirectory
from slurm_hooks.reconcile.passes import Passes
from slurm_hooks.reconcile.resume_calls import CallsDirectory
from slurm_hooks.slurm.controllers import Charge
from slurm_hooks.slurm.hostlist import expand
from slurm_hooks.slurm.model import JobState
from tests.unit.reconcile.builders import CLUSTER, N0, N1
from tests.unit.reconcile.scenario import Scenario


class Pair:
    """Two daemons of one cluster, each with a spool of its own; `charge` is of the second."""

    def __init__(self, directory: Path) -> None:
        self.scenario = Scenario(directory / "one")
        self.charge = Charge.ELSEWHERE
        spool = directory / "two"
        self.second = Passes(
            CLUSTER,
            self.scenario.slurm,
            self.scenario.compute,
            CallsDirectory(spool, expand),
            ConsolesDirectory(spool / "consoles"),
            lambda: self.scenario.now,
            lambda: self.charge,
        )

    def mutations(self) -> int:
        """How often anything was changed in either system."""
        slurm = [c for c in self.scenario.slurm.calls if not c.method.startswith("read")]
        return len(slurm) + len([c for c in self.scenario.compute.calls if c.request_id])


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return Pair(tmp_path)


@pytest.mark.parametrize("charge", [Charge.ELSEWHERE, Charge.UNKNOWN, Charge.NOBODY])
def test_daemon_that_is_not_in_charge_changes_nothing(pair: Pair, charge: Charge) -> None:
    pair.charge = charge
    pair.scenario.slurm.submit([N0, N1])
    for _ in range(3):
        plan = pair.second.run()
        assert (plan.actions, plan.unsettled) == ((), False)
    assert pair.mutations() == 0
    pair.scenario.settle()
    assert len(pair.scenario.waiting()) == 1


def test_it_takes_over_in_the_first_pass_after_the_change(pair: Pair) -> None:
    job_id = pair.scenario.slurm.submit([N0])
    pair.scenario.settle()
    pair.scenario.grant_all()
    pair.scenario.settle_with_vms()
    pair.second.run()
    pair.scenario.compute.state.vanish(N0)
    pair.scenario.wait_for_second_look(pair.second.run())
    assert pair.scenario.slurm.jobs[job_id].state is JobState.RUNNING
    pair.charge = Charge.HERE
    pair.second.run()
    assert pair.scenario.slurm.jobs[job_id].state is JobState.PENDING


def test_request_of_the_first_controller_is_carried_on(pair: Pair) -> None:
    pair.scenario.slurm.submit([N0, N1])
    pair.scenario.settle()
    pair.charge = Charge.HERE
    before = len(pair.scenario.requests())
    for _ in range(3):
        pair.second.run()
    assert len(pair.scenario.requests()) == before == 1


def test_each_change_is_one_line_of_log(pair: Pair, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "slurm-hooksd")
    for charge in (Charge.ELSEWHERE, Charge.ELSEWHERE, Charge.HERE, Charge.HERE):
        pair.charge = charge
        pair.second.run()
    said = [record.getMessage() for record in caplog.records]
    assert said == ["standing by, only watching", "slurmctld of this host is in charge"]
