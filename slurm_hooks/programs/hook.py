"""What the three power-save programs share: leave word in the spool, ring the daemon, go.

slurmctld has no time limit for its programs in some versions and blocks its shutdown and
`scontrol reconfigure` on them, so a program never waits for anything but the daemon's short
answer. It always exits 0: Slurm could do nothing useful with a failure, and every one is in the
log. If no daemon answers, a detached one-shot pass does the same work with the same code.
"""

from __future__ import annotations

import os
import sys

from slurm_hooks import settings
from slurm_hooks.programs import log_line, spool, surroundings

ANSWER_DEADLINE_SECONDS = 1.0
LARGEST_RESUME_FILE_BYTES = 64 * 1024 * 1024
HOSTLIST_CHARACTERS = frozenset(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.,[]"
)
HELP = """usage: {name} [--settings FILE] HOSTLIST

Slurm's {role}. slurmctld calls it with a hostlist; it tells slurm-hooksd and exits at once.
Settings: slurm-hooks.conf beside $SLURM_CONF, else /etc/slurm-hooks/slurm-hooks.conf.
In slurm.conf: {role}={path}
"""


def run(program: str, role: str, arguments: list[str]) -> int:
    """Handle one call of a power-save program and return its exit status, always 0.

    `program` is resume, suspend or resume-fail; `role` is the slurm.conf parameter.
    """
    surroundings.mend()
    if "--help" in arguments[1:] or "-h" in arguments[1:]:
        path = os.path.abspath(arguments[0])
        sys.stdout.write(HELP.format(name=os.path.basename(path), role=role, path=path))
        return 0
    settings_file, hostlist = _read_arguments(arguments[1:])
    try:
        path = settings_file or settings.find(os.environ.get("SLURM_CONF"))
        values = settings.read(path)
    except settings.SettingsError as error:
        log_line.write(settings.DEFAULTS["LogFile"], program, "ERROR", str(error))
        return 0
    _handle(program, hostlist, path, values)
    return 0


def _read_arguments(arguments: list[str]) -> tuple[str, str]:
    """Settings file and hostlist. Slurm 26.05 puts configured arguments before the hostlist;
    earlier versions may put a feature list behind it."""
    settings_file, rest = "", list(arguments)
    if rest[:1] == ["--settings"]:
        settings_file, rest = "".join(rest[1:2]), rest[2:]
    return settings_file, "".join(rest[:1])


def _handle(program: str, hostlist: str, settings_file: str, values: dict[str, str]) -> None:
    log_file = values["LogFile"]
    if not hostlist or not HOSTLIST_CHARACTERS.issuperset(hostlist):
        log_line.write(log_file, program, "ERROR", "not a hostlist", argument=hostlist[:200])
        hostlist = ""
    resume_text = _read_resume_file(program, log_file)
    call = _leave_word(program, hostlist, resume_text, values["SpoolDir"], log_file)
    answered = _ring(spool.socket_path(values["SpoolDir"]))
    if not answered:
        _start_one_shot(program, settings_file, log_file)
    log_line.write(
        log_file,
        program,
        "INFO",
        "called",
        nodes=hostlist[:2000],
        call=call or "none",
        resume_file="read" if resume_text is not None else "none",
        daemon="answered" if answered else "silent, one-shot pass started",
    )


def _read_resume_file(program: str, log_file: str) -> str | None:
    """The text of SLURM_RESUME_FILE. It lives only while this program runs, so it is copied."""
    path = os.environ.get("SLURM_RESUME_FILE")
    if not path:
        return None
    try:
        with open(path, encoding="utf-8") as file:
            return file.read(LARGEST_RESUME_FILE_BYTES)
    except (OSError, UnicodeDecodeError) as error:
        log_line.write(log_file, program, "WARNING", "resume file unreadable", error=error)
        return None


def _leave_word(
    program: str, hostlist: str, resume_text: str | None, spool_directory: str, log_file: str
) -> str | None:
    try:
        return spool.write_call(spool_directory, program, hostlist, resume_text)
    except OSError as error:
        log_line.write(
            log_file,
            program,
            "ERROR",
            "spool unusable, Slurm's node states will do",
            spool=spool_directory,
            error=error,
        )
        return None


def _ring(path: str) -> bool:
    """Wake the daemon; whether it answered."""
    import socket  # costs more than the rest of the program's imports together

    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as bell:
        bell.settimeout(ANSWER_DEADLINE_SECONDS)
        try:
            bell.connect(path)
            bell.sendall(b"wake\n")
            return bell.recv(16).startswith(b"ok")
        except OSError:
            return False


def _start_one_shot(program: str, settings_file: str, log_file: str) -> None:
    """Start a pass of its own session: slurmctld kills the program's process group."""
    interpreter = sys.executable or os.path.join(sys.prefix, "bin", "python3")
    arguments = [interpreter, "-m", "slurm_hooks.reconcile.daemon"]
    arguments += ["--until-settled", "--settings", os.path.abspath(settings_file)]
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "HOME": "/"}
    if "SLURM_CONF" in os.environ:
        environment["SLURM_CONF"] = os.environ["SLURM_CONF"]
    quiet = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (0, 1, 2)]
    try:
        os.posix_spawn(interpreter, arguments, environment, file_actions=quiet, setsid=True)
    except OSError as error:
        log_line.write(log_file, program, "ERROR", "one-shot pass not started", error=error)
