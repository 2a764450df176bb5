"""The network that the VMs are in, and its subnetworks."""

from __future__ import annotations

from collections.abc import Iterator

from slurm_hooks.cluster.topology import Cluster
from slurm_hooks.prerequisites import commands
from slurm_hooks.prerequisites.facts import Network, ProjectFacts, Subnetwork, Unread
from slurm_hooks.prerequisites.model import Finding
from slurm_hooks.prerequisites.rules.findings import Subject

LOOK_ROLE = "roles/compute.networkViewer"


def check_network(cluster: Cluster, facts: ProjectFacts) -> Iterator[Finding]:
    """Both exist, and belong to each other."""
    subject, project = Subject("network", cluster.network), _project(cluster.network, facts)
    match facts.network:
        case Unread() as why:
            yield subject.unread(why, commands.grant(project, facts.caller, LOOK_ROLE))
        case None:
            fix = commands.create_network(cluster.network, not cluster.subnetwork)
            yield subject.fails("does not exist", fix)
        case Network(is_automatic=is_automatic):
            yield subject.passes()
            if not (cluster.subnetwork or is_automatic):
                yield _unnamed_subnetwork(cluster)
    for name, found in facts.subnetworks.items():
        yield _subnetwork(name, found, cluster, facts)


def _unnamed_subnetwork(cluster: Cluster) -> Finding:
    """A network in custom mode has no subnetwork of its own accord, so the file must name one."""
    project = commands.part(cluster.network, "projects")
    name = f"projects/{project}/regions/{cluster.region}/subnetworks/{cluster.cluster_id}"
    subject = Subject("subnetwork", f"of {cluster.region}")
    detail = "the network makes none by itself: name one in network.subnetwork"
    return subject.fails(detail, commands.create_subnetwork(name, cluster.network))


def _subnetwork(
    name: str, found: Subnetwork | Unread | None, cluster: Cluster, facts: ProjectFacts
) -> Finding:
    subject, project = Subject("subnetwork", name), _project(name, facts)
    if isinstance(found, Unread):
        return subject.unread(found, commands.grant(project, facts.caller, LOOK_ROLE))
    fix = commands.create_subnetwork(name, cluster.network)
    if found is None:
        return subject.fails("does not exist", fix)
    if not is_same_network(found.network, cluster.network, facts):
        return subject.fails(f"belongs to {found.network}, not to {cluster.network}")
    return subject.passes()


def is_same_network(one: str, other: str, facts: ProjectFacts) -> bool:
    """Whether two names of networks mean the same; a project may stand there by its number."""
    return _canonical(one, facts) == _canonical(other, facts)


def _canonical(network: str, facts: ProjectFacts) -> tuple[str, str]:
    project = _project(network, facts)
    identity = facts.identity
    if identity is not None and not isinstance(identity, Unread) and project == identity.number:
        project = facts.project
    return project, commands.last(network)


def _project(path: str, facts: ProjectFacts) -> str:
    return commands.part(path, "projects") or facts.project
