"""What a project has beside VMs: who may do what, APIs, networks, images, storage, secrets.

A `Project` begins as a healthy, fairly new one; the control surface breaks and mends it.
Images exist in every project until one is said to be missing, and so do machine, disk and
accelerator types of a zone; all other things exist when they were made.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from slurm_hooks.sandbox.emulator.iam import Policy
from slurm_hooks.sandbox.emulator.identifiers import Identifiers
from slurm_hooks.sandbox.emulator.places import Places

CLOUD_QUOTAS = "cloudquotas.googleapis.com"
COMPUTE = "compute.googleapis.com"
FILESTORE = "file.googleapis.com"
IAM = "iam.googleapis.com"
LUSTRE = "lustre.googleapis.com"
RESOURCE_MANAGER = "cloudresourcemanager.googleapis.com"
SECRET_MANAGER = "secretmanager.googleapis.com"
SERVICE_USAGE = "serviceusage.googleapis.com"
SERVICES = (
    CLOUD_QUOTAS,
    COMPUTE,
    FILESTORE,
    IAM,
    LUSTRE,
    RESOURCE_MANAGER,
    SECRET_MANAGER,
    SERVICE_USAGE,
    "logging.googleapis.com",
    "monitoring.googleapis.com",
    "storage.googleapis.com",
)
"""The services that this project can enable; all of them are at the beginning."""
_CALLER_ROLES = (
    "roles/browser",
    "roles/cloudquotas.viewer",
    "roles/compute.instanceAdmin.v1",
    "roles/file.viewer",
    "roles/iam.serviceAccountUser",
    "roles/iam.serviceAccountViewer",
    "roles/lustre.viewer",
    "roles/secretmanager.viewer",
    "roles/serviceusage.serviceUsageViewer",
)
_AUTO_RANGES = "10.{}.0.0/20"


@dataclass(slots=True)
class Network:
    """A VPC network."""

    name: str
    auto_create_subnetworks: bool = True


@dataclass(slots=True)
class Subnetwork:
    """A subnetwork of a region; `network` is the name of a network of the project."""

    region: str
    name: str
    network: str
    ip_cidr_range: str


@dataclass(slots=True)
class Image:
    """What is special about an image or an image family. `deprecated` is a state of the service
    (DEPRECATED, OBSOLETE, DELETED), empty for an image in use."""

    exists: bool = True
    architecture: str = ""
    deprecated: str = ""


@dataclass(slots=True)
class Reservation:
    """A reservation of VMs in a zone."""

    zone: str
    name: str
    machine_type: str
    count: int = 1
    in_use_count: int = 0
    status: str = "READY"
    specific_reservation_required: bool = True


@dataclass(slots=True)
class FileSystem:
    """A Filestore or Lustre instance. `network` is as the instance was given it; `share` is a
    Filestore share or the Lustre file system."""

    location: str
    name: str
    network: str
    address: str
    share: str
    state: str = "READY"


@dataclass(slots=True)
class Secret:
    """A secret; `versions` are payloads by number from 1."""

    name: str
    versions: list[bytes] = field(default_factory=list)
    disabled: set[int] = field(default_factory=set)
    policy: Policy = field(default_factory=Policy)


@dataclass(slots=True)
class ServiceAccount:
    """A service account with the policy on itself."""

    email: str
    unique_id: int
    policy: Policy = field(default_factory=Policy)


@dataclass(slots=True)
class Project:
    """The state of one project. `caller` is the member whose calls come without a token."""

    caller: str
    policy: Policy
    enabled_services: set[str]
    service_accounts: dict[str, ServiceAccount]
    networks: dict[str, Network]
    subnetworks: dict[tuple[str, str], Subnetwork]
    images: dict[tuple[str, str], Image] = field(default_factory=dict)
    withheld: set[tuple[str, str, str]] = field(default_factory=set)
    """(zone, collection, name) of types that a zone does not offer."""
    reservations: dict[tuple[str, str], Reservation] = field(default_factory=dict)
    filestores: dict[tuple[str, str], FileSystem] = field(default_factory=dict)
    lustres: dict[tuple[str, str], FileSystem] = field(default_factory=dict)
    secrets: dict[str, Secret] = field(default_factory=dict)
    parent: str = ""
    """The organisation above, `organizations/1`; inherited roles are those of its policy."""

    def allows(self, member: str, permission: str, now: datetime, *policies: Policy) -> bool:
        """Whether a member may do something on the project, or on a resource with a policy."""
        return any(one.allows(member, permission, now) for one in (self.policy, *policies))


def healthy(identifiers: Identifiers, places: Places) -> Project:
    """A project as a cluster finds it when everything is right."""
    number = identifiers.project_number
    agent = f"serviceAccount:{number}@cloudservices.gserviceaccount.com"
    controller = f"slurm-hooks@{identifiers.project}.iam.gserviceaccount.com"
    default_account = f"{number}-compute@developer.gserviceaccount.com"
    caller = f"serviceAccount:{controller}"
    return Project(
        caller=caller,
        policy=Policy.of(
            ("roles/compute.instanceGroupManagerServiceAgent", agent),
            *((role, caller) for role in _CALLER_ROLES),
        ),
        enabled_services=set(SERVICES),
        service_accounts={
            email: ServiceAccount(email, identifiers.unique_id())
            for email in (controller, default_account)
        },
        networks={"default": Network("default")},
        subnetworks={
            (region, "default"): Subnetwork(
                region, "default", "default", _AUTO_RANGES.format(128 + index)
            )
            for index, region in enumerate(places.regions)
        },
    )
