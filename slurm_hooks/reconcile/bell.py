"""The bell: a unix socket on which hook programs wake the daemon and get a short answer.

The answer comes from a thread of its own, so that a caller never waits for a pass.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import socket
import threading
from pathlib import Path

from slurm_hooks.history.log import log_event
from slurm_hooks.programs import spool

LOG = logging.getLogger("slurm-hooksd")
CALLER_DEADLINE_SECONDS = 1.0
BACKLOG = 256
PAUSE_SECONDS = 0.2
"""After a call that could not be taken: a lack of descriptors must not keep a core busy."""


class Bell:
    """Listens until closed. `rung` is set at each call and cleared by whoever waits for it."""

    def __init__(self, spool_directory: Path) -> None:
        """Raises OSError when the socket cannot be bound."""
        self.rung = threading.Event()
        self._confirmed_kills = 0
        self._closed = threading.Event()
        self._path = Path(spool.socket_path(str(spool_directory)))
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        # Only the holder of the pass lock rings here, so an old socket file is a dead daemon's.
        self._path.unlink(missing_ok=True)
        mask = os.umask(0o177)
        try:
            self._socket.bind(str(self._path))
        finally:
            os.umask(mask)
        self._socket.listen(BACKLOG)
        threading.Thread(target=self._answer_all, name="bell", daemon=True).start()

    def take_confirmed_kills(self) -> int:
        """How many kills an operator has allowed for the next pass; asked for once each."""
        confirmed, self._confirmed_kills = self._confirmed_kills, 0
        return confirmed

    def close(self) -> None:
        """Stop listening and remove the socket."""
        self._closed.set()
        self._path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _answer_all(self) -> None:
        # Signals are the main thread's alone: only there they can be held back.
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        is_deaf = False
        while not self._closed.is_set():
            try:
                caller, _ = self._socket.accept()
            except OSError as error:
                if not is_deaf and not self._closed.is_set():
                    log_event(LOG, logging.WARNING, "calls of hooks not heard", error=error)
                is_deaf = True
                self._closed.wait(PAUSE_SECONDS)
                continue
            is_deaf = False
            with caller:
                self._answer(caller)

    def _answer(self, caller: socket.socket) -> None:
        try:
            caller.settimeout(CALLER_DEADLINE_SECONDS)
            words = caller.recv(32).split()
            if words[:1] == [b"wake"]:
                if len(words) > 1 and words[1].isdigit():
                    self._confirmed_kills = int(words[1])
                self.rung.set()
                caller.sendall(b"ok\n")
        except OSError as error:
            log_event(LOG, logging.DEBUG, "caller went away", error=error)


def ring(spool_directory: Path, confirmed_kills: int = 0) -> bool:
    """Wake the daemon for a pass that may kill so many; whether it answered."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(CALLER_DEADLINE_SECONDS)
        try:
            connection.connect(spool.socket_path(str(spool_directory)))
            connection.sendall(b"wake %d\n" % confirmed_kills)
            return connection.recv(16).startswith(b"ok")
        except OSError:
            return False


def daemon_listens(spool_directory: Path) -> bool | None:
    """Whether a daemon would hear the bell, which does not ring for this; None where this user
    may not know."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(CALLER_DEADLINE_SECONDS)
        try:
            connection.connect(spool.socket_path(str(spool_directory)))
        except PermissionError:
            return None
        except OSError:
            return False
    return True
