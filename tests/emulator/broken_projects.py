"""Ways to break a project that the rich cluster needs whole, and what check then says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from slurm_hooks.prerequisites.model import Outcome
from slurm_hooks.sandbox.emulator.control import EmulatorControl
from tests.unit.prerequisites.cluster_files import ACCOUNT, RESERVATION

ZONE = "us-central1-a"
AGENT = "serviceAccount:123456789012@cloudservices.gserviceaccount.com"
AGENT_ROLE = "roles/compute.instanceGroupManagerServiceAgent"
CALLER = "serviceAccount:slurm-hooks@demo.iam.gserviceaccount.com"
USER_ROLE = "roles/iam.serviceAccountUser"
READER_ROLE = "roles/secretmanager.secretAccessor"
Break = Callable[[EmulatorControl], object]


@dataclass(frozen=True)
class Case:
    """Something broken: the finding that names it, how it stands, and if the command mends it."""

    name: str
    breaks: tuple[Break, ...]
    finding: str
    outcome: Outcome = Outcome.FAIL
    mends: bool = True
    others: frozenset[str] = frozenset()
    """Findings that cannot be right either."""


def case(name: str, breaks: Break | tuple[Break, ...], finding: str, **more: Any) -> Case:
    """A case; one way to break is as good as a tuple of one."""
    return Case(name, breaks if isinstance(breaks, tuple) else (breaks,), finding, **more)


FILESTORE = "Filestore instance: projects/demo/locations/us-central1-a/instances/home"
LUSTRE = "Lustre instance: projects/demo/locations/us-central1-a/instances/scratch"
SECRET = "key secret: projects/demo/secrets/munge/versions/1"
SECRET_READ = "key secret: projects/demo/secrets/munge, read by nodes"
IMAGE = "image: projects/demo/global/images/node"
CREATES = "Google APIs Service Agent: may create VMs"
ATTACHES = f"Google APIs Service Agent: may attach {ACCOUNT}"
CASES = [
    case(
        "agent without a role",
        lambda c: c.project.revoke(AGENT_ROLE, AGENT),
        CREATES,
        others=frozenset({ATTACHES}),
    ),
    case(
        "agent that may create and not attach",
        (
            lambda c: c.project.revoke(AGENT_ROLE, AGENT),
            lambda c: c.project.grant("roles/compute.instanceAdmin.v1", AGENT),
        ),
        ATTACHES,
    ),
    case(
        "agent with a condition",
        (
            lambda c: c.project.revoke(AGENT_ROLE, AGENT),
            lambda c: c.project.grant("roles/editor", AGENT, condition="resource.type == 'x'"),
        ),
        CREATES,
        outcome=Outcome.UNKNOWN,
        others=frozenset({ATTACHES}),
    ),
    case(
        "agent whose role may be inherited",
        (
            lambda c: c.project.revoke(AGENT_ROLE, AGENT),
            lambda c: c.project.grant("roles/editor", AGENT, inherited=True),
            lambda c: c.project.set_parent("organizations/1"),
        ),
        CREATES,
        outcome=Outcome.UNKNOWN,
        others=frozenset({ATTACHES}),
    ),
    case(
        "policy that the caller may not see",
        lambda c: c.project.revoke("roles/browser", CALLER),
        CREATES,
        outcome=Outcome.UNKNOWN,
    ),
    case(
        "caller without its role",
        lambda c: c.project.revoke("roles/compute.instanceAdmin.v1", CALLER),
        "own permissions: slurm-hooks@demo.iam.gserviceaccount.com",
    ),
    case(
        "caller that may not act as the node account",
        lambda c: c.project.revoke(USER_ROLE, CALLER),
        f"node service account: {ACCOUNT}",
    ),
    case(
        "node account that is gone",
        lambda c: c.project.remove(f"serviceAccounts/{ACCOUNT}"),
        f"node service account: {ACCOUNT}",
    ),
    case(
        "API that is disabled",
        lambda c: c.project.set_service("lustre.googleapis.com", enabled=False),
        "enabled API: lustre.googleapis.com",
        others=frozenset({LUSTRE}),
    ),
    case(
        "network that is gone",
        lambda c: c.project.remove("networks/default"),
        "network: projects/demo/global/networks/default",
    ),
    case(
        "subnetwork that is gone",
        lambda c: c.project.remove("subnetworks/us-central1/default"),
        "subnetwork: projects/demo/regions/us-central1/subnetworks/default",
    ),
    case(
        "subnetwork of another network",
        (
            lambda c: c.project.put_network("other"),
            lambda c: c.project.put_subnetwork("us-central1", "default", "other"),
        ),
        "subnetwork: projects/demo/regions/us-central1/subnetworks/default",
        mends=False,
    ),
    case(
        "image that is missing",
        lambda c: c.project.put_image("demo", "node", exists=False),
        IMAGE,
        mends=False,
    ),
    case(
        "image that is withdrawn",
        lambda c: c.project.put_image("demo", "node", deprecated="OBSOLETE"),
        IMAGE,
    ),
    case(
        "image that is deprecated",
        lambda c: c.project.put_image("demo", "node", deprecated="DEPRECATED"),
        IMAGE,
        outcome=Outcome.WARN,
        mends=False,
    ),
    case(
        "image of another architecture",
        lambda c: c.project.put_image("demo", "node", architecture="ARM64"),
        IMAGE,
        mends=False,
    ),
    case(
        "machine type that the zone lacks",
        lambda c: c.project.offer(ZONE, "machineTypes", "a3-ultragpu-8g", offered=False),
        f"machine type: a3-ultragpu-8g in {ZONE}",
        mends=False,
    ),
    case(
        "disk type that the zone lacks",
        lambda c: c.project.offer(ZONE, "diskTypes", "hyperdisk-balanced", offered=False),
        f"disk type: hyperdisk-balanced in {ZONE}",
        mends=False,
    ),
    case(
        "accelerator type that the zone lacks",
        lambda c: c.project.offer(ZONE, "acceleratorTypes", "nvidia-h200-141gb", offered=False),
        f"accelerator type: nvidia-h200-141gb in {ZONE}",
        mends=False,
    ),
    case(
        "no quota of preemptible GPUs",
        lambda c: c.set_quota("us-central1", "PREEMPTIBLE_NVIDIA_H200_GPUS", 0),
        "quota: PREEMPTIBLE_NVIDIA_H200_GPUS in us-central1",
    ),
    case(
        "less quota than all nodes use",
        lambda c: c.set_quota("us-central1", "PREEMPTIBLE_NVIDIA_H200_GPUS", 8),
        "quota: PREEMPTIBLE_NVIDIA_H200_GPUS in us-central1",
        outcome=Outcome.WARN,
    ),
    case(
        "no quota of resize requests",
        lambda c: c.set_quota("us-central1", "ACTIVE_RESIZE_REQUESTS", 0),
        "quota: ACTIVE_RESIZE_REQUESTS in us-central1",
    ),
    case(
        "reservation that is gone",
        lambda c: c.project.remove(f"reservations/{ZONE}/r1"),
        f"reservation: {RESERVATION}",
    ),
    case(
        "reservation that is too small",
        lambda c: c.project.put_reservation(ZONE, "r1", "a4-highgpu-8g", count=1),
        "reservation size: pool a4r",
        outcome=Outcome.WARN,
    ),
    case(
        "reservation of another machine type",
        lambda c: c.project.put_reservation(ZONE, "r1", "a3-ultragpu-8g", count=3),
        f"reservation: {RESERVATION}",
        mends=False,
    ),
    case("home that is gone", lambda c: c.project.remove(f"filestores/{ZONE}/home"), FILESTORE),
    case(
        "home in another network",
        lambda c: c.project.put_filestore(ZONE, "home", network="other"),
        FILESTORE,
        mends=False,
    ),
    case(
        "home that is not ready",
        lambda c: c.project.put_filestore(ZONE, "home", state="REPAIRING"),
        FILESTORE,
        mends=False,
    ),
    case(
        "nodes that may not read where storage is",
        lambda c: c.project.revoke("roles/file.viewer", f"serviceAccount:{ACCOUNT}"),
        "node service account: may read Filestore instances of demo",
    ),
    case("Lustre that is gone", lambda c: c.project.remove(f"lustres/{ZONE}/scratch"), LUSTRE),
    case(
        "secret that is gone",
        lambda c: c.project.remove("secrets/munge"),
        SECRET,
        others=frozenset({SECRET_READ}),
    ),
    case(
        "secret version that is disabled",
        lambda c: c.project.disable_secret_version("munge", 1),
        SECRET,
    ),
    case(
        "secret that nodes may not read",
        lambda c: c.project.revoke(
            READER_ROLE, f"serviceAccount:{ACCOUNT}", resource="secrets/munge"
        ),
        SECRET_READ,
    ),
]
