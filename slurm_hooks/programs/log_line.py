"""One line of log a call: nothing else records that Slurm called a program.

The line goes to the log file of the settings, else to syslog: slurmctld throws a program's
output away.
"""

from __future__ import annotations

import os
import time


def format_line(program: str, level: str, message: str, **fields: object) -> str:
    """A log line in the daemon's form: time in UTC, level, program, message, key=value pairs."""
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    pairs = "".join(f" {key}={_quoted(value)}" for key, value in fields.items())
    return f"{stamp} {level} {program}[{os.getpid()}] {_plain(message)}{pairs}\n"


def write(log_file: str, program: str, level: str, message: str, **fields: object) -> None:
    """Append one line to the log file in a single write; to syslog if that is not possible.

    A directory that is not there yet is made: a node's first fault may be its first line.
    """
    line = format_line(program, level, message, **fields)
    try:
        descriptor = _open(log_file)
    except OSError as error:
        _to_syslog(f"{line.rstrip()} log_file_error={_quoted(error)}")
        return
    try:
        os.write(descriptor, line.encode("utf-8", "backslashreplace"))
    except OSError as error:
        _to_syslog(f"{line.rstrip()} log_file_error={_quoted(error)}")
    finally:
        os.close(descriptor)


def _open(log_file: str) -> int:
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
    try:
        return os.open(log_file, flags, 0o640)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(log_file) or ".", mode=0o755, exist_ok=True)
        return os.open(log_file, flags, 0o640)


def _quoted(value: object) -> str:
    text = str(value)
    if text and not any(character.isspace() or character in '"=' for character in text):
        return _plain(text)
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{_plain(escaped)}"'


def _plain(text: str) -> str:
    """With what a terminal would obey written out: users name their programs as they like."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)


def _to_syslog(text: str) -> None:
    import syslog  # only needed when the log file is unusable

    syslog.openlog("slurm-hooks", 0, syslog.LOG_DAEMON)
    syslog.syslog(syslog.LOG_ERR, text)
