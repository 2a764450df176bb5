"""SIGHUP: settings and cluster file are read again, and what was said is not said again."""

from __future__ import annotations

import logging
from datetime import timedelta
from pathlib import Path

import pytest

from slurm_hooks.cluster.errors import ClusterFileError
from slurm_hooks.reconcile import assembly
from slurm_hooks.reconcile.assembly import Controller
from slurm_hooks.reconcile.daemon import reloaded
from slurm_hooks.slurm.client import SlurmUnavailable
from tests.unit.reconcile.scenario import Scenario


@pytest.fixture
def scenario(tmp_path: Path) -> Scenario:
    return Scenario(tmp_path)


def controller(scenario: Scenario) -> Controller:
    return Controller("settings", scenario.spool, scenario.cluster, scenario.passes, 10)


def messages(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.getMessage() != "reloaded"]


def pass_without_slurm(scenario: Scenario, running: Controller) -> None:
    scenario.slurm.fail_next(SlurmUnavailable("no answer"))
    scenario.now += timedelta(seconds=10)
    running.passes.run()


def test_condition_that_lasts_over_a_reload_is_said_once_and_its_end_too(
    scenario: Scenario, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO, logger="slurm-hooksd")
    running = controller(scenario)
    pass_without_slurm(scenario, running)
    scenario.restart()
    monkeypatch.setattr(assembly, "assemble", lambda _: controller(scenario))
    fresh = reloaded(running)
    assert fresh.passes is scenario.passes
    pass_without_slurm(scenario, fresh)
    assert messages(caplog) == ["not readable, nothing is decided until it is"]
    fresh.passes.run()
    assert messages(caplog)[1:] == ["condition over"]


def test_settings_that_are_wrong_change_nothing(
    scenario: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: str) -> Controller:
        raise ClusterFileError(())

    monkeypatch.setattr(assembly, "assemble", refuse)
    running = controller(scenario)
    assert reloaded(running) is running
