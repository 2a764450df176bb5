"""slurm-hooksd: the only writer. Runs passes when woken by a hook program or by its timer.

It never waits for a long operation and keeps nothing that a restart could not find again. One
process at a time runs passes (a kernel lock in the spool); a one-shot pass, which a hook program
starts when no daemon answers, does the same work with the same code and ends.
"""

from __future__ import annotations

import contextlib
import logging
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Annotated

import typer

from slurm_hooks import settings
from slurm_hooks.history.log import configure, log_event
from slurm_hooks.reconcile import assembly
from slurm_hooks.reconcile.actions import Plan
from slurm_hooks.reconcile.bell import Bell
from slurm_hooks.reconcile.by_hand import propose
from slurm_hooks.reconcile.locks import (
    Locked,
    TurnNeverCame,
    daemon_is_there,
    daemon_runner,
    next_runner,
    sole_runner,
)
from slurm_hooks.reconcile.pace import Pace
from slurm_hooks.reconcile.passes import Passes
from slurm_hooks.reconcile.report import plan_as_json, plan_as_text
from slurm_hooks.reconcile.service_manager import notify
from slurm_hooks.reconcile.watched_file import WatchedFile

LOG = logging.getLogger("slurm-hooksd")
OPERATION_POLL_SECONDS = 1.0
ONE_SHOT_LIMIT_SECONDS = 1800.0

app = typer.Typer(add_completion=False)


class Stopped(BaseException):
    """SIGTERM or SIGINT came. Not an Exception, so that nothing on its way takes it for one."""


class Signals:
    """The signals of this process: stop at once, wherever the pass is; reload when it is over.

    A pass may be cut short at any instruction, as by kill -9: what it had started, the next
    one finds. So a stop never waits for an API that does not answer.
    """

    def __init__(self, bell: Bell | None = None) -> None:
        self.reload = threading.Event()
        self._bell = bell

    def install(self) -> None:
        """Take over the signals."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_stop)
        signal.signal(signal.SIGHUP, self._on_reload)

    def _on_stop(self, number: int, _frame: object) -> None:
        signal.signal(number, signal.SIG_IGN)
        raise Stopped

    def _on_reload(self, _number: int, _frame: object) -> None:
        self.reload.set()
        if self._bell is not None:
            self._bell.rung.set()


def serve(controller: assembly.Controller) -> None:
    """Run passes until told to stop.

    SIGHUP, or another cluster file in the place of the old one, has settings and cluster file read
    again before the next pass.
    """
    bell = Bell(controller.spool_directory)
    signals, pace = Signals(bell), Pace()
    try:
        signals.install()
        log_event(LOG, logging.INFO, "started", cluster=controller.cluster.cluster_id)
        notify("READY=1")
        while True:
            if signals.reload.is_set() or controller.cluster_file.is_replaced():
                signals.reload.clear()
                controller = reloaded(controller)
            bell.rung.clear()
            plan = _guarded_pass(controller.passes, bell.take_confirmed_kills())
            notify("WATCHDOG=1")
            delay = pace.delay_after(
                plan, controller.interval_seconds, in_vain=controller.passes.acted_in_vain
            )
            _wait(controller.passes, bell, delay)
    except Stopped:
        log_event(LOG, logging.INFO, "stopped")
    finally:
        bell.close()


def _guarded_pass(passes: Passes, confirmed_kills: int) -> Plan:
    """One pass. A defect of ours costs the pass and is logged in full, not the daemon's life."""
    try:
        return passes.run(confirmed_kills)
    except Exception:
        LOG.exception("pass failed by a defect of slurm-hooks, please report it")
        return Plan()


def run_until_settled(passes: Passes, gives_way: Callable[[], bool], limit_seconds: float) -> bool:
    """Run passes until nothing of ours is on its way; whether that came within the limit.

    A request that waits for capacity counts as settled: its VMs come without us. Ends early
    when `gives_way` says that somebody else goes on from here.
    """
    end = time.monotonic() + limit_seconds
    pace = Pace()
    while not gives_way():
        plan = passes.run()
        if not plan.unsettled and not plan.actions and not passes.has_operations:
            return True
        delay = pace.delay_after(plan, 5.0, in_vain=passes.acted_in_vain)
        if time.monotonic() + delay > end:
            return False
        time.sleep(delay)
    return False


def _wait(passes: Passes, bell: Bell, delay: float) -> None:
    """Wait for the bell, the timer, or the end of an operation, whichever is first."""
    end = time.monotonic() + delay
    while (left := end - time.monotonic()) > 0:
        if bell.rung.wait(min(left, OPERATION_POLL_SECONDS)):
            return
        notify("WATCHDOG=1")
        if passes.has_operations and passes.poll_operations():
            return


def reloaded(controller: assembly.Controller) -> assembly.Controller:
    """The controller of settings and cluster file as they are now; the old one if they are wrong.

    What people were told already is not said again, nor that a file is wrong until it is another.
    """
    found = WatchedFile.look_at(controller.cluster_file.path)
    try:
        fresh = assembly.assemble(controller.settings_file)
        _require_same_cluster(controller, fresh)
    except assembly.ERRORS as error:
        log_event(LOG, logging.ERROR, "not reloaded, going on as before", error=error)
        return replace(controller, cluster_file=found)
    fresh.passes.go_on_from(controller.passes)
    log_event(LOG, logging.INFO, "reloaded", settings=controller.settings_file)
    return fresh


def _require_same_cluster(before: assembly.Controller, after: assembly.Controller) -> None:
    """Else nobody would look after the VMs of the one before. Raises ValueError."""
    old, new = before.cluster.cluster_id, after.cluster.cluster_id
    if old != new:
        raise ValueError(
            f"the cluster file is of cluster {new} and not {old}: to serve that one, restart "
            f"slurm-hooksd"
        )


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"slurm-hooksd {metadata.version('slurm-hooks')}")
        raise typer.Exit


@app.command()
def command(
    once: Annotated[bool, typer.Option("--once", help="Run a single pass and end.")] = False,
    until_settled: Annotated[
        bool,
        typer.Option(
            "--until-settled",
            help="Run passes until nothing is on its way, then end. Hook programs start this "
            "when no daemon answers.",
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what one pass would do and why; do nothing.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="With --dry-run: JSON.")] = False,
    settings_file: Annotated[
        str,
        typer.Option(
            "--settings",
            help="Settings file. Default: slurm-hooks.conf beside $SLURM_CONF, else in "
            "/etc/slurm-hooks.",
        ),
    ] = "",
    foreground: Annotated[
        bool, typer.Option("--foreground", help="Log to stderr instead of the log file.")
    ] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Version.")
    ] = False,
) -> None:
    """Keep Compute Engine in step with what Slurm wants.

    Without options it runs for ever: systemd starts it as slurm-hooksd.service. Example:

        slurm-hooksd --dry-run --settings /etc/slurm-hooks/slurm-hooks.conf
    """
    with _friendly_errors():
        path = settings_file or assembly.find_settings()
        values = settings.read(path)
        log_file = None if foreground or dry_run else Path(values["LogFile"])
        configure(values["LogLevel"], log_file)
        spool_directory = assembly.prepare_spool(values)
        if dry_run:
            passes = assembly.assemble(path).passes
            plan = propose(passes, force_kills=False, tell=_tell_on_stderr).plan
            typer.echo(plan_as_json(plan) if as_json else plan_as_text(plan))
            return
        if until_settled:
            _one_shot(path, spool_directory)
            return
        if once:
            with sole_runner(spool_directory):
                assembly.assemble(path).passes.run()
            return
        with daemon_runner(spool_directory):
            assembly.serve_metrics(values)
            serve(assembly.assemble(path))


def _one_shot(settings_file: str, spool_directory: Path) -> None:
    try:
        Signals().install()
        with next_runner(spool_directory):
            controller = assembly.assemble(settings_file)
            log_event(LOG, logging.INFO, "one-shot pass started")
            settled = run_until_settled(
                controller.passes,
                lambda: daemon_is_there(spool_directory),
                ONE_SHOT_LIMIT_SECONDS,
            )
            log_event(LOG, logging.INFO, "one-shot pass ended", settled=settled)
    except TurnNeverCame as error:
        log_event(LOG, logging.WARNING, "one-shot pass not run, another process holds", lock=error)
    except Locked:
        log_event(LOG, logging.DEBUG, "another one-shot pass will see to it")
    except Stopped:
        log_event(LOG, logging.INFO, "one-shot pass stopped")


@contextlib.contextmanager
def _friendly_errors() -> Iterator[None]:
    """A user's mistake ends with one line that says what to do, and exit status 2."""
    try:
        yield
    except Locked as error:
        raise SystemExit(_complain(f"another slurm-hooksd holds {error}")) from None
    except assembly.ERRORS as error:
        log_event(LOG, logging.ERROR, "not started", error=error)
        raise SystemExit(_complain(str(error))) from None


def _tell_on_stderr(line: str) -> None:
    typer.echo(line, err=True)


def _complain(text: str) -> int:
    sys.stderr.write(f"slurm-hooksd: {text}\n")
    return 2


def main() -> None:
    """Entry point of `slurm-hooksd`."""
    app(prog_name="slurm-hooksd")


if __name__ == "__main__":
    main()
