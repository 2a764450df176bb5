"""Where everything of a box lies: one directory, short enough for Unix sockets in it.

A directory is taken only if it is new, empty or was a box before, and only its owner enters it:
whoever may write to it could run commands as the user of the box.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

from slurm_hooks import settings
from slurm_hooks.programs import spool

_LONGEST_SOCKET_BYTES = 100
"""sun_path has 108 bytes; some daemons append to what they are given."""

_LONGEST_STEP_SOCKET = "_1000000.4294967292"
"""What slurmd appends to a node's name for the socket of a job step."""


class BoxError(Exception):
    """The box cannot do what was asked; the text says why, and what to do, in a sentence."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The paths of a box below its directory."""

    directory: Path

    @property
    def state(self) -> Path:
        """The box's state, and the mark by which a directory is known to be a box's."""
        return self.directory / "box.json"

    @property
    def slurm_conf(self) -> Path:
        """The one slurm.conf of everything in the box."""
        return self.directory / "slurm.conf"

    @property
    def settings(self) -> Path:
        """The controller's settings, found by the hook programs beside slurm.conf."""
        return self.directory / settings.FILE_NAME

    @property
    def rendered(self) -> Path:
        """The rendered files that slurm.conf includes."""
        return self.directory / "slurm.conf.d"

    @property
    def cluster_file(self) -> Path:
        """The box's copy of the cluster file."""
        return self.directory / "cluster_config.json"

    @property
    def programs(self) -> Path:
        """The programs that Slurm calls."""
        return self.directory / "bin"

    @property
    def munge_key(self) -> Path:
        """The secret of the box's munged."""
        return self.directory / "munge" / "munge.key"

    @property
    def munge_socket(self) -> Path:
        """Where munged listens."""
        return self.directory / "munge" / "socket"

    @property
    def supervisor_socket(self) -> Path:
        """Where the supervisor listens."""
        return self.directory / "supervisor.sock"

    @property
    def slurmctld_state(self) -> Path:
        """slurmctld's StateSaveLocation."""
        return self.directory / "slurmctld"

    @property
    def hooks_spool(self) -> Path:
        """The spool of the hook programs."""
        return self.directory / "hooks"

    @property
    def hooks_socket(self) -> Path:
        """Where slurm-hooksd listens."""
        return Path(spool.socket_path(str(self.hooks_spool)))

    @property
    def devices(self) -> Path:
        """What stands for the GPUs' device files."""
        return self.directory / "devices"

    @property
    def node_spools(self) -> Path:
        """Parent of each slurmd's spool. Short: slurmd puts a socket a job step there."""
        return self.directory / "d"

    @property
    def guests(self) -> Path:
        """One file for each VM that runs: the identity of its guest supervisor."""
        return self.directory / "guests"

    @property
    def nodes(self) -> Path:
        """The pretended node of each VM, a directory each."""
        return self.directory / "nodes"

    @property
    def provisions(self) -> Path:
        """What the emulated project has beside VMs."""
        return self.directory / "provisions.json"

    @property
    def hardware(self) -> Path:
        """What each node has."""
        return self.directory / "hardware.json"

    @property
    def driver_library(self) -> Path:
        """The pretended driver library, from which each node with GPUs gets a copy."""
        return self.directory / "lib" / "libnvidia-ml.so.1"

    @property
    def site_scripts(self) -> tuple[Path, Path]:
        """The site's own scripts for Prolog and Epilog, as rendered from the cluster file."""
        return self.directory / "prolog.d", self.directory / "epilog.d"

    @property
    def logs(self) -> Path:
        """The log files of all daemons and nodes."""
        return self.directory / "logs"

    @property
    def serial_ports(self) -> Path:
        """What VMs write to their serial ports, a file each."""
        return self.logs / "serial"

    @property
    def jobs(self) -> Path:
        """A place for output files of jobs."""
        return self.directory / "jobs"

    def log(self, name: str) -> Path:
        """The log file of a daemon or of a node's slurmd."""
        return self.logs / f"{name}.log"

    def guest(self, node: str) -> Path:
        """The file with the identity of a VM's guest supervisor."""
        return self.guests / f"{node}.json"

    def node(self, name: str) -> Path:
        """The pretended node of a VM."""
        return self.nodes / name

    def create(self) -> None:
        """Make the directories. The top one must exist already."""
        for path in (
            self.munge_key.parent, self.rendered, self.programs, self.slurmctld_state,
            self.hooks_spool, self.devices, self.node_spools, self.guests, self.nodes, self.logs,
            self.jobs,
        ):  # fmt: skip
            path.mkdir(mode=0o700, exist_ok=True)

    def require_short_paths(self, longest_node: str) -> None:
        """Raise BoxError when a Unix socket below the directory would have too long a path."""
        step = self.node_spools / longest_node / (longest_node + _LONGEST_STEP_SOCKET)
        for path in (self.munge_socket, self.supervisor_socket, self.hooks_socket, step):
            excess = len(os.fsencode(path)) - _LONGEST_SOCKET_BYTES
            if excess > 0:
                raise BoxError(
                    f"{self.directory} is too long by {excess} bytes for the Unix sockets in it:"
                    " choose a shorter one with --dir"
                )


def default_directory() -> Path:
    """The box of this user when none is named: below XDG_RUNTIME_DIR, else below /tmp."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    parent = Path(runtime) if runtime and Path(runtime).is_dir() else Path(tempfile.gettempdir())
    return parent / f"slurm-hooks-sandbox-{os.getuid()}"


def claim_directory(directory: Path) -> Layout:
    """Make the directory, or take an empty one. Raises BoxError when it is another's."""
    layout = Layout(directory.absolute())
    try:
        layout.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        require_own_directory(layout)
        layout.directory.chmod(0o700)
        occupied = any(layout.directory.iterdir())
    except OSError as error:
        raise BoxError(f"{directory} cannot be used: {error}") from None
    if occupied:
        raise BoxError(
            f"{directory} is not empty and not a box: choose another with --dir, or empty it"
        )
    return layout


def require_own_directory(layout: Layout) -> None:
    """Raise BoxError unless the directory is a real one of this user's, OSError without one.

    Whatever lies in it decides which processes get signals and what is removed.
    """
    found = layout.directory.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise BoxError(
            f"{layout.directory} is not a directory of this user: choose another with --dir"
        )


def remove_directory(layout: Layout, *, keep_logs: bool) -> None:
    """Remove the box's directory; with `keep_logs` all of it but the logs and the mark."""
    if not keep_logs:
        shutil.rmtree(layout.directory, ignore_errors=True)
        return
    for path in layout.directory.iterdir():
        if path in (layout.logs, layout.state):
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
