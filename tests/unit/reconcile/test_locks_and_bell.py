"""One runner, at most one waiter, and a bell that answers while a pass is under way."""

from __future__ import annotations

import logging
import multiprocessing
import resource
import socket
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest

from slurm_hooks.programs import spool
from slurm_hooks.reconcile.bell import Bell
from slurm_hooks.reconcile.locks import (
    Locked,
    TurnNeverCame,
    daemon_is_there,
    daemon_runner,
    next_runner,
    sole_runner,
)
from tests.waiting import wait_until

SPAWN = multiprocessing.get_context("spawn")
DEADLINE_SECONDS = 30


def run_next(directory: Path, ran: Event) -> None:
    with next_runner(directory):
        ran.set()


def test_second_runner_is_refused_at_once(tmp_path: Path) -> None:
    with sole_runner(tmp_path), pytest.raises(Locked), sole_runner(tmp_path):
        pass
    with sole_runner(tmp_path):
        pass


def test_one_process_waits_for_its_turn_and_a_third_goes_away(tmp_path: Path) -> None:
    ran = SPAWN.Event()
    waiter = SPAWN.Process(target=run_next, args=(tmp_path, ran))
    with sole_runner(tmp_path):
        waiter.start()
        wait_until("the waiter to wait", lambda: is_waited_for(tmp_path), DEADLINE_SECONDS)
        with pytest.raises(Locked), next_runner(tmp_path):
            pass
        assert not ran.is_set()
    assert ran.wait(DEADLINE_SECONDS)
    waiter.join(DEADLINE_SECONDS)
    assert waiter.exitcode == 0


def test_one_whose_turn_never_comes_gives_up_and_leaves_the_place_of_the_waiter(
    tmp_path: Path,
) -> None:
    with sole_runner(tmp_path):
        with pytest.raises(TurnNeverCame, match=r"pass\.lock"), next_runner(tmp_path, 0.1):
            raise AssertionError("two runners at once")
        assert not is_waited_for(tmp_path)
    with next_runner(tmp_path, 0.1):
        pass


def is_waited_for(directory: Path) -> bool:
    """Whether another process holds the waiter's place; asked while we hold the runner's."""
    import fcntl

    with (directory / "waiter.lock").open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def test_killed_runner_leaves_no_lock(tmp_path: Path) -> None:
    holding = SPAWN.Event()
    holder = SPAWN.Process(target=hold_for_ever, args=(tmp_path, holding))
    holder.start()
    assert holding.wait(DEADLINE_SECONDS)
    with pytest.raises(Locked), sole_runner(tmp_path):
        pass
    holder.kill()
    holder.join(DEADLINE_SECONDS)
    with sole_runner(tmp_path):
        pass


def hold_for_ever(directory: Path, holding: Event) -> None:
    import signal

    with sole_runner(directory):
        holding.set()
        signal.pause()


def be_the_daemon(directory: Path, ran: Event) -> None:
    with daemon_runner(directory):
        ran.set()


def test_daemon_is_seen_while_it_waits_for_a_one_shot_to_give_way(tmp_path: Path) -> None:
    ran = SPAWN.Event()
    daemon = SPAWN.Process(target=be_the_daemon, args=(tmp_path, ran))
    with next_runner(tmp_path):
        assert not daemon_is_there(tmp_path)
        daemon.start()
        wait_until("the daemon to wait", lambda: daemon_is_there(tmp_path), DEADLINE_SECONDS)
        assert not ran.is_set()
    assert ran.wait(DEADLINE_SECONDS)
    daemon.join(DEADLINE_SECONDS)


def test_second_daemon_is_refused_at_once(tmp_path: Path) -> None:
    with daemon_runner(tmp_path), pytest.raises(Locked), daemon_runner(tmp_path):
        pass


def test_bell_answers_and_survives_callers_that_hang_up(tmp_path: Path) -> None:
    bell = Bell(tmp_path)
    try:
        with caller(tmp_path) as rude:
            rude.sendall(b"wake")
        assert bell.rung.wait(DEADLINE_SECONDS)
        bell.rung.clear()
        with caller(tmp_path) as polite:
            polite.sendall(b"wake\n")
            assert polite.recv(16) == b"ok\n"
        assert bell.rung.is_set()
    finally:
        bell.close()
    with pytest.raises(OSError, match=r"No such file|refused"):
        caller(tmp_path)


def test_bell_hears_again_after_the_daemon_had_no_descriptor_left(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bell = Bell(tmp_path)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    with (
        caplog.at_level(logging.WARNING, "slurm-hooksd"),
        socket.socket(socket.AF_UNIX) as before,
        socket.socket(socket.AF_UNIX) as after,
    ):
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (1, limits[1]))
            before.connect(spool.socket_path(str(tmp_path)))
            before.shutdown(socket.SHUT_RDWR)
            wait_until("a refused call", lambda: "not heard" in caplog.text, DEADLINE_SECONDS)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        after.settimeout(DEADLINE_SECONDS)
        after.connect(spool.socket_path(str(tmp_path)))
        after.sendall(b"wake\n")
        assert after.recv(16) == b"ok\n"
    bell.close()


def test_bell_of_a_dead_daemon_is_replaced(tmp_path: Path) -> None:
    path = spool.socket_path(str(tmp_path))
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as dead:
        dead.bind(path)
    bell = Bell(tmp_path)
    try:
        caller(tmp_path).close()
    finally:
        bell.close()


def caller(directory: Path) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(DEADLINE_SECONDS)
    try:
        connection.connect(spool.socket_path(str(directory)))
    except OSError:
        connection.close()
        raise
    return connection
