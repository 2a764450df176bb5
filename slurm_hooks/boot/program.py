"""`slurm-hooks-boot`: what a VM runs at each boot before slurmd."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Sequence

from slurm_hooks.boot.machine import Machine, ToldToEnd
from slurm_hooks.boot.run import boot

NAME = "slurm-hooks-boot"
USAGE = """usage: slurm-hooks-boot [options]

Makes this VM a node of its cluster, from its instance metadata alone: key, shared storage, the
pool's startup script, GPUs, slurmd's options. Its unit runs it at each boot, before slurmd. To run
it again by hand, slurmd included:

  systemctl restart slurm-hooks-boot.service munge.service slurmd.service

Each step is told on standard output and on the serial console:

  slurm-hooks-boot: mount done /home 10.0.0.2:/home

Exit status: 0 done, 1 a step failed, 2 called wrongly.

options:
  --root DIR                 a whole VM in a directory; default /
  --console PATH             the serial console; empty for none; default /dev/ttyS0
  --metadata-url URL         the metadata server
  --secret-manager-url URL   other addresses of Google's services
  --filestore-url URL
  --lustre-url URL
  --gpu-seconds N            how long to wait for GPUs; default 120
"""

_MOST_SECONDS = 3600


def main() -> int:
    """Entry point of `slurm-hooks-boot`."""
    arguments = sys.argv[1:]
    if "--help" in arguments or "-h" in arguments:
        sys.stdout.write(USAGE)
        return 0
    try:
        machine = understood(arguments)
    except ValueError as error:
        sys.stderr.write(f"{NAME}: {error}\nTry {NAME} --help\n")
        return 2
    signal.signal(signal.SIGTERM, _end)
    return boot(machine)


def _end(*_: object) -> None:
    raise ToldToEnd("told to end")


def understood(arguments: Sequence[str]) -> Machine:
    """The machine that the arguments describe. Raises ValueError."""
    machine = Machine()
    words = list(arguments)
    while words:
        name = words.pop(0)
        if name not in _OPTIONS:
            raise ValueError(f"unknown option {name}")
        if not words:
            raise ValueError(f"{name} needs a value")
        machine = _OPTIONS[name](machine, words.pop(0))
    return machine


def _url(text: str) -> str:
    if not text.startswith(("http://", "https://")):
        raise ValueError(f"{text} is no URL")
    return text.rstrip("/")


def _seconds(text: str) -> float:
    if not (text.isascii() and text.isdigit()) or int(text) > _MOST_SECONDS:
        raise ValueError(f"{text} is no number of seconds up to {_MOST_SECONDS}")
    return float(text)


_OPTIONS: dict[str, Callable[[Machine, str], Machine]] = {
    "--root": lambda machine, text: machine._replace(root=text),
    "--console": lambda machine, text: machine._replace(console=text),
    "--metadata-url": lambda machine, text: machine._replace(metadata_url=_url(text)),
    "--secret-manager-url": lambda machine, text: machine._replace(secret_manager_url=_url(text)),
    "--filestore-url": lambda machine, text: machine._replace(filestore_url=_url(text)),
    "--lustre-url": lambda machine, text: machine._replace(lustre_url=_url(text)),
    "--gpu-seconds": lambda machine, text: machine._replace(
        limits=machine.limits._replace(gpu_seconds=_seconds(text))
    ),
}


if __name__ == "__main__":
    sys.exit(main())
