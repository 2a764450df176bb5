"""`slurm-hooks events`: what happened to nodes and pools, and why."""

from __future__ import annotations

import json
import os
import re
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from slurm_hooks.cli.mistakes import printable, refuse
from slurm_hooks.cli.options import SettingsFile

if TYPE_CHECKING:
    from slurm_hooks.history.event import EventKind
    from slurm_hooks.history.events import EventHistory, Filter, Recorded

FOLLOW_SECONDS = 1.0
_AGO = re.compile(r"([0-9]{1,6})([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def events(
    nodes: Annotated[
        list[str] | None,
        typer.Option("--node", metavar="NODES", help="Only of these nodes, e.g. `demo-a3u-[0-7]`."),
    ] = None,
    pools: Annotated[
        list[str] | None, typer.Option("--pool", metavar="POOL", help="Only of this pool.")
    ] = None,
    kinds: Annotated[
        list[str] | None,
        typer.Option("--type", metavar="TYPE", help="Only of this type, e.g. `VM_REBOOT`."),
    ] = None,
    since: Annotated[
        str,
        typer.Option(metavar="TIME", help="Only since `90m`, `12h`, `7d`, `2026-05-01T12:00Z`."),
    ] = "",
    limit: Annotated[int, typer.Option(min=1, help="At most so many, the latest.")] = 100,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Then wait for new ones, until Ctrl-C.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object a line, for programs.")
    ] = False,
    settings_file: SettingsFile = "",
) -> None:
    """Show what happened to nodes and pools: errors found, drains, reboots, replacements.

    The oldest comes first; times are in UTC. Options may be given several times, which adds up.
    Events are kept for 90 days, on the controller where they happened. Reads a file alone: neither
    Slurm nor Compute Engine is asked. Runs as the Slurm user or as root.

    Types: VM_PROLOG_ERROR, VM_EPILOG_ERROR, VM_CONTINUOUS_GPU_ERROR (a health run found the node
    ill before a job, after it, between), VM_SLURM_DRAIN (condemned), VM_REBOOT,
    VM_SLURM_POWER_DOWN and VM_DELETION (replaced), VM_REPORT_AND_REPLACEMENT (reported as faulty
    by a person: ORDERED, REPORTED, REPLACING, REPLACED or FAILED), VM_RETURNED (serves
    again), REPAIR_SKIPPED (stays drained, and why), REPAIRS_STOPPED and REPAIRS_RESUMED (of a
    pool).

    Examples:

        slurm-hooks events --node demo-a3u-3 --since 7d

        slurm-hooks events --type VM_DELETION --json | jq .message
    """
    history = history_of(settings_file)
    chosen = _filter(nodes or [], pools or [], kinds or [], since)
    try:
        last = _show(_read(history, chosen, limit), as_json)
        while follow:
            time.sleep(FOLLOW_SECONDS)
            last = _show(_read(history, _later(chosen, last), -1), as_json) or last
    except KeyboardInterrupt:
        raise typer.Exit from None


def history_of(settings_file: str) -> EventHistory:
    """The history that belongs to the settings; a mistake in them ends the command."""
    from slurm_hooks import settings
    from slurm_hooks.history.events import FILE_NAME, EventHistory

    try:
        values = settings.read(settings_file or settings.find(os.environ.get("SLURM_CONF")))
    except settings.SettingsError as error:
        refuse(str(error), "name the settings file with --settings")
    return EventHistory(Path(values["SpoolDir"]) / FILE_NAME)


def _filter(nodes: list[str], pools: list[str], kinds: list[str], since: str) -> Filter:
    from slurm_hooks.history.events import Filter
    from slurm_hooks.slurm.hostlist import HostlistError, expand

    try:
        names = tuple(name for text in nodes for name in expand(text))
    except HostlistError as error:
        refuse(f"--node: {error}", "write names, or ranges as Slurm does: demo-a3u-[0-3,7]")
    return Filter(
        since_utc=_since(since) if since else None,
        nodes=names,
        pools=tuple(pools),
        kinds=tuple(_kind(text) for text in kinds),
    )


def _kind(text: str) -> EventKind:
    from slurm_hooks.history.event import EventKind

    name = text.upper()
    if name not in EventKind.__members__:
        refuse(f"--type {text}: no such type", f"write one of {', '.join(EventKind)}")
    return EventKind(name)


def _since(text: str) -> datetime:
    ago = _AGO.fullmatch(text)
    if ago is not None:
        return datetime.now(UTC) - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
    try:
        time_utc = datetime.fromisoformat(text)
    except ValueError:
        refuse(f"--since {text}: no time", "write 90m, 12h, 7d or 2026-05-01T12:00Z")
    return time_utc.replace(tzinfo=UTC) if time_utc.tzinfo is None else time_utc


def _later(chosen: Filter, last: int) -> Filter:
    from dataclasses import replace

    return replace(chosen, after_id=last)


def _read(history: EventHistory, chosen: Filter, limit: int) -> list[Recorded]:
    from slurm_hooks.history.events import HistoryUnavailable

    try:
        return history.read(chosen, limit)
    except HistoryUnavailable as error:
        refuse(str(error), "run it as the Slurm user or as root, on the controller")


def _show(found: list[Recorded], as_json: bool) -> int:
    """Print events; the number of the last one, 0 where there is none."""
    for recorded in found:
        typer.echo(_as_json(recorded) if as_json else _as_line(recorded))
    return found[-1].number if found else 0


def _as_line(recorded: Recorded) -> str:
    event = recorded.event
    time_text = event.time_utc.strftime("%Y-%m-%dT%H:%M:%SZ")
    job = f" (job {event.job_id})" if event.job_id is not None else ""
    about = event.node or f"pool {event.pool}"
    return printable(f"{time_text} {event.kind} {about}: {event.message}{job}")


def _as_json(recorded: Recorded) -> str:
    event = recorded.event
    return json.dumps(
        {
            "event_time": event.time_utc.isoformat(),
            "event_type": event.kind.value,
            "event_message": event.message,
            "node": event.node,
            "pool": event.pool,
            "instance_id": event.instance_id,
            "check": event.check,
            "verdict": event.verdict,
            "job_id": event.job_id,
        }
    )
