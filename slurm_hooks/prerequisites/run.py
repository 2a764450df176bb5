"""The check of a project for a cluster: read everything, then judge it."""

from __future__ import annotations

from slurm_hooks.cluster.topology import Cluster
from slurm_hooks.prerequisites.client import ProjectClient
from slurm_hooks.prerequisites.facts import ProjectFacts
from slurm_hooks.prerequisites.gather import gather
from slurm_hooks.prerequisites.model import Finding
from slurm_hooks.prerequisites.rules.accounts import check_agent, check_caller, check_node_account
from slurm_hooks.prerequisites.rules.machines import check_images, check_types
from slurm_hooks.prerequisites.rules.networks import check_network
from slurm_hooks.prerequisites.rules.quotas import check_quotas
from slurm_hooks.prerequisites.rules.reservations import check_reservations
from slurm_hooks.prerequisites.rules.secrets import check_secret
from slurm_hooks.prerequisites.rules.services import check_services
from slurm_hooks.prerequisites.rules.storage import check_node_reads, check_storage

RULES = (
    check_services,
    check_agent,
    check_caller,
    check_node_account,
    check_network,
    check_types,
    check_images,
    check_quotas,
    check_reservations,
    check_storage,
    check_node_reads,
    check_secret,
)
"""In the order in which a person would mend things."""


def judge(cluster: Cluster, facts: ProjectFacts) -> tuple[Finding, ...]:
    """What the facts mean for a cluster. Pure."""
    return tuple(finding for rule in RULES for finding in rule(cluster, facts))


def check_prerequisites(cluster: Cluster, client: ProjectClient) -> tuple[Finding, ...]:
    """Everything that must be right before the cluster can run, whether it is or not.

    Only reads, some dozens of calls with a deadline each. What could not be read is a finding
    UNKNOWN, so nothing is raised.
    """
    return judge(cluster, gather(cluster, client))
