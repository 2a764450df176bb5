"""A box takes no directory that could be somebody's, and ends no process that is not its own."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from slurm_hooks.sandbox.box.box import Box
from slurm_hooks.sandbox.box.layout import BoxError, Layout, claim_directory
from slurm_hooks.sandbox.box.processes import identify
from slurm_hooks.sandbox.box.state import (
    BoxState,
    DaemonName,
    DaemonState,
    Ports,
    read_state,
    write_state,
)


def a_state(directory: Path, **changes: object) -> BoxState:
    state = BoxState(
        directory=directory,
        python=sys.executable,
        ports=Ports(slurmctld=1, emulator=2, first_node=3),
        project="example-project",
        zones=("us-central1-a",),
        with_daemon=True,
    )
    return state.model_copy(update=changes)


def test_a_directory_with_files_of_others_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(BoxError, match="not empty and not a box"):
        claim_directory(tmp_path)


def test_a_symbolic_link_is_not_taken_for_a_directory(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "there")
    with pytest.raises(BoxError, match="not a directory of this user"):
        claim_directory(tmp_path / "link")


def test_a_new_directory_is_closed_to_other_users(tmp_path: Path) -> None:
    layout = claim_directory(tmp_path / "new")
    assert layout.directory.stat().st_mode & 0o077 == 0


def test_a_path_too_long_for_sockets_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    directory = tmp_path / ("long" * 25)
    with pytest.raises(BoxError, match=r"too long by [0-9]+ bytes"):
        Layout(directory).require_short_paths("flexvm-a3u-0")
    assert not directory.exists()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
def test_a_box_of_another_user_is_not_believed(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as victim:
        daemons = {DaemonName.MUNGED: DaemonState(process=identify(victim.pid))}
        write_state(a_state(tmp_path, daemons=daemons))
        os.chown(tmp_path, 65534, 65534)
        try:
            with pytest.raises(BoxError, match="not a directory of this user"):
                Box(Layout(tmp_path)).stop()
            assert victim.poll() is None
        finally:
            victim.kill()


def test_a_box_without_a_state_file_is_said_not_to_exist(tmp_path: Path) -> None:
    with pytest.raises(BoxError, match="no box in"):
        Box.open(tmp_path)


def test_a_state_file_of_something_else_is_not_believed(tmp_path: Path) -> None:
    (tmp_path / "box.json").write_text('{"name": "shoes"}')
    with pytest.raises(BoxError, match="not of this version"):
        Box.open(tmp_path)
    with pytest.raises(BoxError):
        Box(Layout(tmp_path)).stop()
    assert (tmp_path / "box.json").exists()


def test_the_state_survives_being_written_and_read(tmp_path: Path) -> None:
    state = a_state(tmp_path, supervisor=identify(1))
    write_state(state)
    assert read_state(Layout(tmp_path)) == state


def test_down_spares_a_stranger_that_got_the_pid_of_a_daemon(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as stranger:
        try:
            identity = identify(stranger.pid)
            assert identity is not None
            earlier = replace(identity, start_ticks=identity.start_ticks - 1)
            daemons = {DaemonName.MUNGED: DaemonState(process=earlier)}
            write_state(a_state(tmp_path, supervisor=earlier, daemons=daemons))

            Box.open(tmp_path).stop()

            assert stranger.poll() is None
            assert not tmp_path.exists()
        finally:
            stranger.kill()


def test_down_ends_a_recorded_daemon_that_outlived_its_supervisor(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as daemon:
        process = identify(daemon.pid)
        write_state(a_state(tmp_path, daemons={DaemonName.SLURMCTLD: DaemonState(process=process)}))

        Box.open(tmp_path).stop()

        assert daemon.wait(timeout=5) != 0
