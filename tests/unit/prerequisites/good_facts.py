"""Facts of a project in which everything is right, for tests that change one of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from slurm_hooks.cluster.topology import Cluster
from slurm_hooks.prerequisites.facts import (
    FileSystem,
    Image,
    MachineType,
    Network,
    PolicyBinding,
    ProjectFacts,
    ProjectIdentity,
    Quota,
    QuotaName,
    Reservation,
    SecretVersion,
    Subnetwork,
    Unread,
    ZonalName,
)
from slurm_hooks.prerequisites.model import Finding, Outcome
from slurm_hooks.prerequisites.permissions import ACT_AS, needed_permissions
from slurm_hooks.prerequisites.rules.services import LOOKED_WITH, needed_services
from slurm_hooks.prerequisites.run import judge
from tests.unit.cluster.files import build
from tests.unit.prerequisites.cluster_files import (
    ACCOUNT,
    IMAGE,
    INSTANCES,
    RESERVATION,
    rich_document,
)

VMS, H200 = QuotaName("INSTANCES"), QuotaName("GPUS_PER_GPU_FAMILY", "NVIDIA_H200")
ZONE, REGION = "us-central1-a", "us-central1"
NETWORK = "projects/demo/global/networks/default"
SUBNETWORK = f"projects/demo/regions/{REGION}/subnetworks/default"
AGENT = "serviceAccount:123@cloudservices.gserviceaccount.com"
CLOSED = Unread("closed", denied=True)
SILENT = Unread("no answer")
READER = PolicyBinding("roles/secretmanager.secretAccessor", (f"serviceAccount:{ACCOUNT}",))


def cluster(**changes: Any) -> Cluster:
    """The rich cluster with parts of its file replaced."""
    return build({**rich_document(), **changes})


def good_facts(of: Cluster) -> ProjectFacts:
    """Facts in which everything is right."""
    account = f"serviceAccount:{ACCOUNT}"
    looks = tuple(PolicyBinding(role, (account,)) for role in ("roles/viewer",))
    return ProjectFacts(
        project="demo",
        caller="user:me@example.com",
        account=ACCOUNT,
        identity=ProjectIdentity("123"),
        policy=(PolicyBinding("roles/editor", (AGENT,)), *looks),
        permissions=needed_permissions(of),
        account_permissions=frozenset({ACT_AS}),
        services=frozenset({*needed_services(of), *LOOKED_WITH}),
        network=Network(is_automatic=True),
        subnetworks={SUBNETWORK: Subnetwork(NETWORK)},
        images={IMAGE: Image("X86_64")},
        machine_types={
            ZonalName(ZONE, name): MachineType("X86_64")
            for name in ("n2-standard-8", "a3-ultragpu-8g", "a4-highgpu-8g")
        },
        disk_types={ZonalName(ZONE, "pd-ssd"): True},
        accelerator_types={ZonalName(ZONE, "nvidia-b200"): True},
        quotas={REGION: good_quotas()},
        reservations={RESERVATION: Reservation("a4-highgpu-8g", 3, 0, "READY", True)},
        filestores={f"{INSTANCES}/home": FileSystem("default", "READY")},
        lustres={f"{INSTANCES}/scratch": FileSystem(NETWORK, "ACTIVE")},
        secret=SecretVersion("ENABLED"),
        secret_policy=(READER,),
    )


def good_quotas() -> dict[QuotaName, Quota]:
    """Quotas that are just enough."""
    return {
        QuotaName("INSTANCES"): Quota(100),
        QuotaName("PREEMPTIBLE_NVIDIA_H200_GPUS"): Quota(16),
        QuotaName("ACTIVE_RESIZE_REQUESTS"): Quota(100),
    }


def bad(of: Cluster | None = None, **changes: Any) -> list[Finding]:
    """What is not right when facts are changed."""
    of = of or cluster()
    findings = judge(of, replace(good_facts(of), **changes))
    return [one for one in findings if one.outcome is not Outcome.PASS]
