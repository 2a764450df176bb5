"""How a box is: its daemons, its nodes as Slurm says, its VMs as the emulator says."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict

from slurm_hooks.sandbox.box.box import Box
from slurm_hooks.sandbox.box.layout import BoxError
from slurm_hooks.sandbox.box.project import EmulatedProject
from slurm_hooks.sandbox.box.state import DaemonName


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True)


class DaemonStatus(_Model):
    """A daemon: its pid while it runs, its exit status after it has ended."""

    name: str
    running: bool
    pid: int | None
    exit_status: int | None
    wanted: bool

    @property
    def summary(self) -> str:
        """Its state in a few words."""
        if self.running:
            return f"running, pid {self.pid}"
        if self.exit_status is not None:
            return f"ended with status {self.exit_status}"
        return "not started" if self.wanted else "not wanted"


class NodeStatus(_Model):
    """A node and its state in Slurm's short form, e.g. `idle~`."""

    name: str
    state: str


class InstanceStatus(_Model):
    """A VM of the emulated project."""

    name: str
    zone: str
    status: str


class BoxStatus(_Model):
    """A whole box. `problems` says what could not be read, so empty lists mean what they say."""

    directory: Path
    running: bool
    slurm_conf: Path
    emulator_url: str
    daemons: tuple[DaemonStatus, ...]
    nodes: tuple[NodeStatus, ...]
    instances: tuple[InstanceStatus, ...]
    problems: tuple[str, ...]

    @property
    def healthy(self) -> bool:
        """Whether every daemon that belongs to the box runs and everything could be read."""
        return not self.problems and all(d.running for d in self.daemons if d.wanted)


def read_status(box: Box) -> BoxStatus:
    """Look at the box. What does not answer becomes a problem, never an error."""
    state = box.state
    problems: list[str] = []
    return BoxStatus(
        directory=state.directory,
        running=state.is_running,
        slurm_conf=box.layout.slurm_conf,
        emulator_url=box.emulator_url,
        daemons=tuple(_daemon_status(box, name) for name in DaemonName),
        nodes=_nodes(box, problems) if state.is_running else (),
        instances=_instances(box, problems) if state.is_running else (),
        problems=tuple(problems),
    )


def _daemon_status(box: Box, name: DaemonName) -> DaemonStatus:
    daemon = box.state.daemon(name)
    running = daemon.is_running
    pid = daemon.process.pid if running and daemon.process is not None else None
    return DaemonStatus(
        name=name,
        running=running,
        pid=pid,
        exit_status=daemon.exit_status,
        wanted=box.state.with_daemon or name is not DaemonName.HOOKSD,
    )


def read_nodes(box: Box) -> dict[str, str]:
    """Every node's state in sinfo's short form. Raises BoxError when slurmctld does not answer."""
    answer = box.run(["sinfo", "--noheader", "--Node", "--all", "--format=%N %t"])
    if answer.returncode != 0:
        raise BoxError(f"sinfo: {answer.stderr.strip()}")
    pairs = (line.split() for line in answer.stdout.splitlines())
    return {words[0]: words[1] for words in pairs if len(words) == 2}


def _nodes(box: Box, problems: list[str]) -> tuple[NodeStatus, ...]:
    try:
        return tuple(NodeStatus(name=n, state=s) for n, s in read_nodes(box).items())
    except BoxError as error:
        problems.append(str(error))
        return ()


def _instances(box: Box, problems: list[str]) -> tuple[InstanceStatus, ...]:
    try:
        found = EmulatedProject(box.emulator_url, box.state.project).instances()
    except BoxError as error:
        problems.append(str(error))
        return ()
    return tuple(InstanceStatus(name=vm.name, zone=vm.zone, status=vm.status) for vm in found)
