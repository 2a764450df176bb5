"""How a cluster and its nodes stand, as values for people and programs.

The states are the managed service's; its documentation leaves their meanings open, so those given
here are ours. OFF is our own word: the service does not list nodes that are not there.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from slurm_hooks.boot.console import BootStep
from slurm_hooks.cluster.topology import Cluster
from slurm_hooks.compute.model import ComputeSnapshot
from slurm_hooks.history.conditions import Condition
from slurm_hooks.history.report import FaultReport
from slurm_hooks.reconcile.repairs import RepairLog
from slurm_hooks.reconcile.snapshot import ResumeCall, Unavailable
from slurm_hooks.slurm.model import SlurmSnapshot


class ClusterState(enum.StrEnum):
    """How the cluster stands; of several that fit, the one that stands first here."""

    STOPPING = "STOPPING"
    """It is being deleted."""
    ERROR = "ERROR"
    """A person must act: slurmctld does not answer, or a node that always exists cannot come."""
    UPDATING = "UPDATING"
    """Nodes move to another generation or leave, or slurm.conf does not name all nodes yet."""
    PROVISIONING = "PROVISIONING"
    """Nodes that always exist, static ones and login nodes, are still to come."""
    RUNNING = "RUNNING"
    """All nodes that always exist are there."""


class NodeState(enum.StrEnum):
    """How a node stands."""

    PREPARING = "PREPARING"
    """It is on its way: its VM is asked for, waits for capacity or boots."""
    RUNNING = "RUNNING"
    """Its VM runs and slurmd has registered; the detail says if it takes no jobs."""
    UPDATING = "UPDATING"
    """It moves to the present generation of its pool, joins the cluster or leaves it."""
    REPAIRING = "REPAIRING"
    """It is rebooted or replaced, after a fault, a lost VM or a person's report."""
    ERROR = "ERROR"
    """It does not serve, and that does not pass by itself or has failed several times."""
    OFF = "OFF"
    """It is powered down and comes when a job needs it."""


@dataclass(frozen=True, slots=True)
class VmStatus:
    """A node's VM in Compute Engine's words."""

    instance_id: str
    status: str
    zone: str
    creation_time_utc: datetime | None = None


@dataclass(frozen=True, slots=True)
class RequestStatus:
    """The resize request that is to bring a node's VM; `code` is its last error, if any."""

    name: str
    state: str
    creation_time_utc: datetime | None = None
    code: str = ""


@dataclass(frozen=True, slots=True)
class NodeStatus:
    """One node. `detail` says why it is not there, or takes no jobs; empty where all is well.

    `must_exist`: it is static or a login node. `slurm_state` has Slurm's words, empty for login
    nodes and where Slurm does not name the node. `jobs` are the raw ids of those that have it.
    """

    name: str
    pool_id: str
    is_login: bool
    must_exist: bool
    state: NodeState
    detail: str = ""
    slurm_state: str = ""
    vm: VmStatus | None = None
    request: RequestStatus | None = None
    end_of_life_utc: datetime | None = None
    jobs: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    """The whole cluster. `held_up_by` are lines for people, the gravest first; `unavailable` are
    the systems that could not be read, so that what they alone know is missing."""

    cluster_id: str
    state: ClusterState
    time_utc: datetime
    detail: str = ""
    nodes: tuple[NodeStatus, ...] = ()
    held_up_by: tuple[str, ...] = ()
    unavailable: tuple[Unavailable, ...] = ()


@dataclass(frozen=True, slots=True)
class StatusInputs:
    """What a status is derived from; `now` is aware and in UTC.

    `boot_steps` has the last word of VMs that boot, by node, `report` is a person's that is open.
    `is_deleting`: `slurm-hooks delete`
    is under way. `daemon_runs` is None where that is not known; `conditions`
    are those that it told last.
    """

    cluster: Cluster
    slurm: SlurmSnapshot | Unavailable
    compute: ComputeSnapshot | Unavailable
    now: datetime
    repairs: RepairLog | Unavailable = field(default_factory=RepairLog)
    resume_calls: tuple[ResumeCall, ...] = ()
    boot_steps: Mapping[str, BootStep] = field(default_factory=dict)
    report: FaultReport | None = None
    conditions: tuple[Condition, ...] = ()
    is_deleting: bool = False
    daemon_runs: bool | None = None
