"""The boot of a node, step by step. Each step may run again: a reboot and a person do that.

Invariant: Slurm's daemons are handed their options by the last step alone, so nothing of Slurm
starts on a VM whose boot failed or is not done.
"""

from __future__ import annotations

from collections.abc import Callable

from slurm_hooks.boot import keys
from slurm_hooks.boot.console import BootState, Console
from slurm_hooks.boot.gpus import wait_for_gpus
from slurm_hooks.boot.identity import Identity, identify, whole_number
from slurm_hooks.boot.key import place_key
from slurm_hooks.boot.keys import Role
from slurm_hooks.boot.machine import BootError, Machine, ToldToEnd
from slurm_hooks.boot.metadata import Instance, read_instance
from slurm_hooks.boot.mounts import mount, wanted_mounts
from slurm_hooks.boot.services import Services
from slurm_hooks.boot.slurm import forget_last_boot, prepare_clients, prepare_slurmd
from slurm_hooks.boot.startup_script import DEFAULT_SECONDS, run_startup_script


def boot(machine: Machine) -> int:
    """Make this VM a node; 0 when slurmd may start, or the clients work on a login node."""
    teller = _Teller(Console(machine.console))
    try:
        _take_steps(machine, teller)
    except (BootError, ToldToEnd) as error:
        teller.tell(BootState.FAILED, str(error))
    except OSError as error:
        where = f" {error.filename}" if error.filename else ""
        teller.tell(BootState.FAILED, f"{error.strerror or error}{where}")
    except BaseException as error:
        # Only its kind: its text could hold what nobody may read.
        teller.tell(BootState.FAILED, f"unforeseen {type(error).__name__}, see the journal")
        raise
    else:
        return 0
    return 1


class _Teller:
    """Knows at which step the boot is."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._step = "identity"

    def begin(self, step: str, detail: str = "") -> None:
        self._step = step
        self.tell(BootState.BEGINS, detail)

    def tell(self, state: BootState, detail: str = "") -> None:
        self.console.tell(self._step, state, detail)

    def wait(self, reason: str) -> None:
        self.tell(BootState.WAITING, reason)

    def take(self, step: str, action: Callable[[], str], detail: str = "") -> None:
        """Take a step, and tell how it begins and what has come of it."""
        self.begin(step, detail)
        self.tell(BootState.DONE, action())


def _take_steps(machine: Machine, teller: _Teller) -> None:
    teller.begin("identity")
    forget_last_boot(machine)
    instance = read_instance(machine, teller.wait)
    identity = identify(instance)
    teller.tell(BootState.DONE, f"{identity.node} {identity.role}")
    services = Services(machine, teller.wait)
    secret = instance.attribute(keys.KEY_SECRET)
    teller.take("key", lambda: place_key(machine, services, identity.authentication, secret))
    _mount_all(machine, teller, services, instance)
    _run_script(machine, teller, instance)
    if identity.gpus:
        teller.take("gpus", lambda: wait_for_gpus(machine, identity.gpus, teller.wait))
    _start_slurm(machine, teller, identity)


def _mount_all(machine: Machine, teller: _Teller, services: Services, instance: Instance) -> None:
    for wanted in wanted_mounts(instance):
        teller.begin("mount", f"/{wanted.target}")
        teller.tell(BootState.DONE, mount(machine, services, instance, wanted, teller.wait))


def _run_script(machine: Machine, teller: _Teller, instance: Instance) -> None:
    script = instance.attributes.get(keys.STARTUP_SCRIPT, "")
    if not script.strip():
        return
    seconds = whole_number(instance, keys.STARTUP_SCRIPT_SECONDS, DEFAULT_SECONDS)
    teller.take(
        "startup-script",
        lambda: run_startup_script(machine, teller.console, script, seconds),
        f"within {seconds} s",
    )


def _start_slurm(machine: Machine, teller: _Teller, identity: Identity) -> None:
    if identity.role is Role.LOGIN:
        teller.take("clients", lambda: prepare_clients(machine, identity))
    else:
        teller.take("slurmd", lambda: prepare_slurmd(machine, identity))
