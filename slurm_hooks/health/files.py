"""Small files of a health run: read without raising, written whole or not at all.

A full or read-only disk must not end a run: it is a finding of the check `disks`.
"""

from __future__ import annotations

import os

LARGEST_BYTES = 256 * 1024


def read_text(path: str) -> str:
    """The beginning of a file; empty where it cannot be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return ""
    try:
        return os.read(descriptor, LARGEST_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
    finally:
        os.close(descriptor)


def read_all(path: str) -> str:
    """A whole file of the kernel's, which comes in pieces; empty where it cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read(LARGEST_BYTES * 16).decode("utf-8", "replace")
    except OSError:
        return ""


def write_text(path: str, text: str) -> bool:
    """Put a file in place by rename, readable by root alone; whether that worked."""
    unfinished = f"{path}.{os.getpid()}"
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(unfinished, flags, 0o600)
        try:
            os.write(descriptor, text.encode())
        finally:
            os.close(descriptor)
        os.rename(unfinished, path)
    except OSError:
        remove(unfinished)
        return False
    return True


def remove(path: str) -> None:
    """Remove a file that may not be there."""
    try:
        os.unlink(path)
    except OSError:
        return
