"""What was read of a project, as values: the rules compare them with the cluster file.

Each answer is what was found, or None when the thing does not exist, or why it could not be read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar


@dataclass(frozen=True, slots=True)
class Unread:
    """Why something could not be read. `denied` when the caller may not read it."""

    why: str
    denied: bool = False


_Found = TypeVar("_Found")
Answer: TypeAlias = _Found | Unread | None


@dataclass(frozen=True, slots=True)
class ProjectIdentity:
    """A project's number, and the folder or organisation it lies in (`folders/1`); "" for none."""

    number: str
    parent: str = ""


@dataclass(frozen=True, slots=True)
class PolicyBinding:
    """Who has a role, and the expression of its condition; "" for a role without one."""

    role: str
    members: tuple[str, ...]
    condition: str = ""


Policy = tuple[PolicyBinding, ...]


@dataclass(frozen=True, slots=True)
class Network:
    """A VPC network. Of an automatic one every region has a subnetwork of its name."""

    is_automatic: bool


@dataclass(frozen=True, slots=True)
class Subnetwork:
    """A subnetwork; `network` is the partial URL of the one it belongs to."""

    network: str


@dataclass(frozen=True, slots=True)
class Image:
    """An image. `architecture` is empty where the image does not tell; `deprecated` is
    DEPRECATED, OBSOLETE or DELETED, or empty."""

    architecture: str = ""
    deprecated: str = ""


@dataclass(frozen=True, slots=True)
class MachineType:
    """A machine type of a zone."""

    architecture: str = ""


@dataclass(frozen=True, slots=True)
class QuotaName:
    """A quota by its metric, and by the family where GPUs of all families share the metric."""

    metric: str
    gpu_family: str = ""

    def __str__(self) -> str:
        return f"{self.metric} {self.gpu_family}".rstrip()


@dataclass(frozen=True, slots=True)
class Quota:
    """A quota of a region, or of the whole project. A limit below 0 is none."""

    limit: float
    usage: float = 0.0

    @property
    def is_unlimited(self) -> bool:
        """Whether there is no limit."""
        return self.limit < 0


@dataclass(frozen=True, slots=True)
class Reservation:
    """A reservation of `count` VMs. Only who names a `specific` one gets its VMs."""

    machine_type: str
    count: int
    in_use: int
    status: str
    specific: bool


@dataclass(frozen=True, slots=True)
class FileSystem:
    """A Filestore or Lustre instance. `network` is a name or a partial URL."""

    network: str
    state: str


@dataclass(frozen=True, slots=True)
class SecretVersion:
    """A version of a secret: ENABLED, DISABLED or DESTROYED."""

    state: str


@dataclass(frozen=True, slots=True)
class ZonalName:
    """A type of a zone."""

    zone: str
    name: str

    def __str__(self) -> str:
        return f"{self.name} in {self.zone}"


@dataclass(frozen=True, slots=True)
class ProjectFacts:
    """Everything that the rules look at. Paths are partial URLs (`projects/P/...`).

    `caller` is who asked, as policies name members (`user:...`); empty when that is not known.
    `account` is the address of the service account that nodes run as, empty likewise.
    `ancestors` are the policies of the folders and the organisation above the project.
    """

    project: str
    caller: str = ""
    account: str = ""
    identity: Answer[ProjectIdentity] = None
    policy: Answer[Policy] = ()
    ancestors: Answer[Policy] = ()
    permissions: Answer[frozenset[str]] = frozenset()
    account_policy: Answer[Policy] = ()
    account_permissions: Answer[frozenset[str]] = frozenset()
    services: Answer[frozenset[str]] = frozenset()
    network: Answer[Network] = None
    subnetworks: Mapping[str, Answer[Subnetwork]] = field(default_factory=dict)
    images: Mapping[str, Answer[Image]] = field(default_factory=dict)
    machine_types: Mapping[ZonalName, Answer[MachineType]] = field(default_factory=dict)
    disk_types: Mapping[ZonalName, Answer[bool]] = field(default_factory=dict)
    accelerator_types: Mapping[ZonalName, Answer[bool]] = field(default_factory=dict)
    quotas: Mapping[str, Answer[Mapping[QuotaName, Quota]]] = field(default_factory=dict)
    """By region; those of the whole project under the empty name."""
    reservations: Mapping[str, Answer[Reservation]] = field(default_factory=dict)
    filestores: Mapping[str, Answer[FileSystem]] = field(default_factory=dict)
    lustres: Mapping[str, Answer[FileSystem]] = field(default_factory=dict)
    secret: Answer[SecretVersion] = None
    secret_policy: Answer[Policy] = ()
