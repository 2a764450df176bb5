"""The spool: how a hook program leaves word for the daemon, and how the daemon finds it.

One file a call, written beside its place and renamed into it, so a reader never sees half a
file and two concurrent calls never meet. A file is a hint only (which job asked for which
nodes): Slurm's node states say what must exist, so a lost file costs no VM and no job. Standard
library only, since hook programs import this.
"""

from __future__ import annotations

import json
import os
import time

REQUESTS_DIRECTORY = "requests"
SOCKET_NAME = "slurm-hooksd.sock"
FORMAT_VERSION = 1
SUFFIX = ".json"


def requests_directory(spool: str) -> str:
    """Where the calls of hook programs lie."""
    return os.path.join(spool, REQUESTS_DIRECTORY)


def socket_path(spool: str) -> str:
    """The unix socket on which the daemon listens."""
    return os.path.join(spool, SOCKET_NAME)


def write_call(spool: str, program: str, hostlist: str, resume_file: str | None) -> str:
    """Leave one call in the spool and return its file name.

    `resume_file` is the text of SLURM_RESUME_FILE as it was, or None. Raises OSError when the
    spool cannot take it (missing, full, not ours).
    """
    directory = requests_directory(spool)
    os.makedirs(directory, mode=0o700, exist_ok=True)
    now = time.time()
    name = f"{int(now * 1_000_000):017d}-{os.getpid()}-{program}{SUFFIX}"
    text = json.dumps(
        {
            "version": FORMAT_VERSION,
            "program": program,
            "time": now,
            "hostlist": hostlist,
            "resume_file": resume_file,
        }
    )
    place = os.path.join(directory, name)
    unfinished = os.path.join(directory, "." + name)
    try:
        _write_new_file(unfinished, text.encode())
        os.rename(unfinished, place)
    except OSError:
        _remove_if_there(unfinished)
        raise
    return name


def _write_new_file(path: str, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(descriptor, view) :]
    finally:
        os.close(descriptor)


def _remove_if_there(path: str) -> None:
    if os.path.lexists(path):
        os.unlink(path)
