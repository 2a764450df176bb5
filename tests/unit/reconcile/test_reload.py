"""Settings and cluster file are read again, upon SIGHUP or when another file stands there."""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from slurm_hooks.cluster.errors import ClusterFileError
from slurm_hooks.reconcile import assembly
from slurm_hooks.reconcile.assembly import Controller
from slurm_hooks.reconcile.daemon import reloaded
from slurm_hooks.reconcile.watched_file import WatchedFile
from slurm_hooks.slurm.client import SlurmUnavailable
from tests.unit.reconcile.scenario import Scenario


@pytest.fixture
def scenario(tmp_path: Path) -> Scenario:
    return Scenario(tmp_path)


def controller(scenario: Scenario) -> Controller:
    return Controller(
        "settings",
        scenario.spool,
        scenario.cluster,
        scenario.passes,
        10,
        WatchedFile.look_at(cluster_file(scenario)),
    )


def cluster_file(scenario: Scenario) -> Path:
    return scenario.spool / "cluster_config.json"


def put(path: Path, text: str) -> None:
    """Another file in the place of the one there, as one that is renamed is."""
    new = path.with_suffix(".new")
    new.write_text(text)
    new.rename(path)


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
    assert reloaded(running) == running


def test_wrong_file_is_refused_once_and_the_next_one_is_looked_at(
    scenario: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: str) -> Controller:
        raise ClusterFileError(())

    put(cluster_file(scenario), "good")
    running = controller(scenario)
    assert not running.cluster_file.is_replaced()
    put(cluster_file(scenario), "evil")
    assert running.cluster_file.is_replaced()
    monkeypatch.setattr(assembly, "assemble", refuse)
    running = reloaded(running)
    assert running.passes is scenario.passes
    assert not running.cluster_file.is_replaced()
    cluster_file(scenario).unlink()
    assert running.cluster_file.is_replaced()


def test_file_that_comes_while_another_is_read_is_seen_afterwards(
    scenario: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: str) -> Controller:
        put(cluster_file(scenario), "the one after")
        raise ClusterFileError(())

    put(cluster_file(scenario), "evil")
    monkeypatch.setattr(assembly, "assemble", refuse)
    assert reloaded(controller(scenario)).cluster_file.is_replaced()


def test_file_of_another_cluster_is_refused(
    scenario: Scenario, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    running = controller(scenario)
    other = replace(running, cluster=replace(running.cluster, cluster_id="other"))
    monkeypatch.setattr(assembly, "assemble", lambda _: other)
    assert reloaded(running).cluster.cluster_id == "flexvm"
    assert any("restart" in str(vars(record)) for record in caplog.records)
