"""Making a box: its directory, its files, then its daemons one after the other.

A daemon counts as started when it answers in its own way, not when its process exists.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

from slurm_hooks.sandbox.box import supervision
from slurm_hooks.sandbox.box.configuration import (
    BoxOptions,
    example_cluster_file,
    read_cluster,
    write_configuration,
)
from slurm_hooks.sandbox.box.daemons import box_environment, find_program, require_programs
from slurm_hooks.sandbox.box.layout import (
    BoxError,
    Layout,
    claim_directory,
    remove_directory,
)
from slurm_hooks.sandbox.box.ports import free_port_block
from slurm_hooks.sandbox.box.provisions import Provisions, provide
from slurm_hooks.sandbox.box.state import BoxState, DaemonName, Ports, read_state, write_state
from slurm_hooks.sandbox.box.waiting import wait_until
from slurm_hooks.sandbox.emulator.control import EmulatorControl, EmulatorControlError

_START_SECONDS = 45.0
_ANSWER_SECONDS = 10.0
_OF_THE_CLUSTER = (DaemonName.SLURMCTLD, DaemonName.HOOKSD)
"""Daemons that cannot run before a cluster file was applied."""


def prepare(
    directory: Path, cluster_file: Path | None, options: BoxOptions, python: str
) -> BoxState:
    """Take the directory and write all files of a new box into it; nothing runs yet.

    Raises BoxError when the directory is another's, a box already runs there, a program is not
    installed or the cluster file is wrong.
    """
    require_programs()
    cluster_file = cluster_file or example_cluster_file()
    cluster = read_cluster(cluster_file)
    names = [name for pool in cluster.pools for name in cluster.node_names(pool)]
    Layout(directory.absolute()).require_short_paths(max(names, key=len))
    _clear_old_box(directory)
    layout = claim_directory(directory)
    first = free_port_block(2 + len(names))
    ports = Ports(slurmctld=first, emulator=first + 1, first_node=first + 2)
    state = BoxState(
        directory=layout.directory,
        python=python,
        ports=ports,
        project=cluster.project,
        zones=tuple(sorted({zone for pool in cluster.pools.values() for zone in pool.zones})),
        with_daemon=options.with_daemon,
    )
    try:
        write_state(state)
        layout.create()
        write_configuration(state, cluster, cluster_file, options)
    except BaseException:
        remove_directory(layout, keep_logs=False)
        raise
    return state


def _clear_old_box(directory: Path) -> None:
    """Remove what a box that has ended left: its logs, or all of it after a crash."""
    layout = Layout(directory.absolute())
    old = read_state(layout)
    if old is None:
        return
    if old.is_running:
        raise BoxError(
            f"a box runs in {directory}: use it, take it down with `slurm-hooks sandbox down`,"
            " or choose another directory with --dir"
        )
    supervision.take_down(layout, old, keep_logs=False)


def start_box(state: BoxState, options: BoxOptions, progress: Callable[[str], None]) -> None:
    """Start the supervisor and every daemon. Raises BoxError when one does not come up."""
    supervision.start_supervisor(state)
    for daemon in DaemonName:
        if daemon is DaemonName.HOOKSD and not state.with_daemon:
            continue
        if daemon in _OF_THE_CLUSTER and not options.applied:
            continue
        progress(f"starting {daemon}")
        start_daemon(state, daemon)
        if daemon is DaemonName.EMULATOR:
            _set_up_emulator(state, options)


def start_daemon(state: BoxState, daemon: DaemonName) -> None:
    """Start one daemon and wait until it answers. Raises BoxError."""
    layout = Layout(state.directory)
    supervision.request_start(layout, daemon)

    def answers() -> bool:
        if _answers(state, daemon):
            return True
        now = read_state(layout)
        if now is None or not now.daemon(daemon).is_running:
            raise BoxError(f"{daemon} ended at once")
        return False

    wait_until(f"{daemon} answers", answers, _START_SECONDS)
    if daemon is DaemonName.EMULATOR:
        _provide(layout, state)


def _provide(layout: Layout, state: BoxState) -> None:
    """Make in the project what no emulator has of itself."""
    text = layout.provisions.read_text(encoding="utf-8")
    try:
        provide(_control(state), Provisions.model_validate_json(text), layout.munge_key)
    except EmulatorControlError as error:
        raise BoxError(f"the emulated project cannot be set up: {error}") from None


def _answers(state: BoxState, daemon: DaemonName) -> bool:
    layout = Layout(state.directory)
    match daemon:
        case DaemonName.MUNGED:
            return supervision.is_answering(layout.munge_socket)
        case DaemonName.EMULATOR:
            return _emulator_answers(state)
        case DaemonName.SLURMCTLD:
            return _slurmctld_answers(state)
        case DaemonName.HOOKSD:
            return supervision.is_answering(layout.hooks_socket)


def _emulator_answers(state: BoxState) -> bool:
    try:
        return _control(state).status().ready
    except EmulatorControlError:
        return False


def _slurmctld_answers(state: BoxState) -> bool:
    try:
        ping = subprocess.run(
            (find_program("scontrol"), "ping"),
            env=box_environment(Layout(state.directory), state.python, {}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_ANSWER_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return False
    return ping.returncode == 0 and " UP" in ping.stdout


def _set_up_emulator(state: BoxState, options: BoxOptions) -> None:
    control = _control(state)
    if options.latency:
        control.set_latency(**options.latency)
    if options.capacity is not None:
        cluster = read_cluster(Layout(state.directory).cluster_file)
        for pool in cluster.pools.values():
            for zone in pool.zones if not pool.is_login else ():
                control.set_capacity(zone, pool.machine_type, options.capacity)


def _control(state: BoxState) -> EmulatorControl:
    return EmulatorControl(f"http://127.0.0.1:{state.ports.emulator}")
