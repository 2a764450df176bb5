"""The log of a node's own programs: one line a call, and never more than two files of a fixed size.

Many short programs write it at once and none of them stays, so the one whose line finds the file
full puts it aside. A node has no log rotation of ours to rely on, and a full disk is no way to end.
"""

from __future__ import annotations

import os

from slurm_hooks.programs import log_line

LARGEST_BYTES = 4 * 1024 * 1024
OLD_SUFFIX = ".1"


def write(log_file: str, program: str, level: str, message: str, **fields: object) -> None:
    """Append one line, see log_line.write. A full file becomes the old one first."""
    _put_aside_if_full(log_file)
    log_line.write(log_file, program, level, message, **fields)


def _put_aside_if_full(log_file: str) -> None:
    try:
        if os.stat(log_file).st_size < LARGEST_BYTES:
            return
        descriptor = os.open(log_file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return
    try:
        _put_aside(log_file, descriptor)
    except OSError:
        return  # another one does so right now, or the disk is read-only: the line matters more
    finally:
        os.close(descriptor)


def _put_aside(log_file: str, descriptor: int) -> None:
    """Rename the file unless another program has done so meanwhile: the second rename would throw
    away what the first one kept. Who has the file open still ends its line in it."""
    import fcntl  # once in very many lines

    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    if os.path.samestat(os.fstat(descriptor), os.stat(log_file)):
        os.rename(log_file, log_file + OLD_SUFFIX)
