"""box.json: what a box is made of, so that any shell can look after it.

Written whole and renamed into place. The command that makes the box writes it first; from then
on only the supervisor does.
"""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from slurm_hooks.sandbox.box.layout import BoxError, Layout, require_own_directory
from slurm_hooks.sandbox.box.processes import ProcessIdentity


class DaemonName(enum.StrEnum):
    """The daemons of a box, in the order in which they start."""

    MUNGED = "munged"
    EMULATOR = "emulator"
    SLURMCTLD = "slurmctld"
    HOOKSD = "slurm-hooksd"


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Ports(_Model):
    """TCP ports on 127.0.0.1. Nodes have `first_node` and those after it."""

    slurmctld: int
    emulator: int
    first_node: int


class DaemonState(_Model):
    """One daemon: the process that runs it, or how the last one ended."""

    process: ProcessIdentity | None = None
    exit_status: int | None = None

    @property
    def is_running(self) -> bool:
        """Whether the recorded process runs."""
        return self.process is not None and self.process.is_alive()


class BoxState(_Model):
    """A box. `supervisor` is None before it has started and after the box was taken down."""

    format: Literal[1] = 1
    directory: Path
    python: str
    ports: Ports
    project: str
    zones: tuple[str, ...]
    with_daemon: bool
    supervisor: ProcessIdentity | None = None
    daemons: dict[DaemonName, DaemonState] = {}

    @property
    def is_running(self) -> bool:
        """Whether a supervisor looks after the box."""
        return self.supervisor is not None and self.supervisor.is_alive()

    def daemon(self, name: DaemonName) -> DaemonState:
        """The state of a daemon, started or not."""
        return self.daemons.get(name, DaemonState())


def write_state(state: BoxState) -> None:
    """Replace box.json."""
    path = Layout(state.directory).state
    temporary = path.with_suffix(".new")
    temporary.write_text(state.model_dump_json(indent=2) + "\n", encoding="utf-8")
    temporary.replace(path)


def read_state(layout: Layout) -> BoxState | None:
    """Read box.json; None when there is none. Raises BoxError when it is not this user's box."""
    try:
        require_own_directory(layout)
        text = layout.state.read_text(encoding="utf-8")
        return BoxState.model_validate_json(text)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValidationError as error:
        fields = ", ".join(str(detail["loc"][0]) for detail in error.errors() if detail["loc"])
        raise BoxError(
            f"{layout.state} is not of this version ({fields or 'no JSON'}): take the box down with"
            f" the version that made it, or remove {layout.directory} if nothing of it runs"
        ) from None
    except OSError as error:
        raise BoxError(f"{layout.state} cannot be read: {error}") from None
