"""The secret with the key of munge or Slurm, which each node reads when it boots."""

from __future__ import annotations

from collections.abc import Iterator

from slurm_hooks.cluster.node_boot import Authentication
from slurm_hooks.cluster.topology import Cluster
from slurm_hooks.prerequisites import commands
from slurm_hooks.prerequisites.facts import ProjectFacts, SecretVersion, Unread
from slurm_hooks.prerequisites.holding import holding
from slurm_hooks.prerequisites.model import Finding
from slurm_hooks.prerequisites.rules.findings import Subject

READ_ROLE = "roles/secretmanager.secretAccessor"
READ_ROLES = (READ_ROLE, "roles/secretmanager.admin", "roles/owner")
LOOK_ROLE = "roles/secretmanager.viewer"
_KEY_FILES = {
    Authentication.MUNGE: "/etc/munge/munge.key",
    Authentication.SLURM: "/etc/slurm/slurm.key",
}


def secret_of(version: str) -> str:
    """The secret (`projects/P/secrets/S`) of a version."""
    return version.rpartition("/versions/")[0]


def check_secret(cluster: Cluster, facts: ProjectFacts) -> Iterator[Finding]:
    """The version is there, and the nodes' service account may read it."""
    version = cluster.node_boot.key_secret
    if not version:
        return
    yield _version(version, cluster, facts)
    subject = Subject("key secret", f"{secret_of(version)}, read by nodes")
    account = facts.account
    if facts.secret is None or not account:
        return
    member = f"serviceAccount:{account}"
    fix = commands.grant_on_secret(secret_of(version), member, READ_ROLE)
    held = holding((facts.secret_policy, facts.policy, facts.ancestors), member, READ_ROLES)
    yield subject.held(held, f"{account} may not read it", fix)


def _version(version: str, cluster: Cluster, facts: ProjectFacts) -> Finding:
    subject = Subject("key secret", version)
    key_file = _KEY_FILES[cluster.node_boot.authentication]
    match facts.secret:
        case Unread() as why:
            owner = commands.part(version, "projects")
            return subject.unread(why, commands.grant(owner, facts.caller, LOOK_ROLE))
        case None if facts.secret_policy is None:
            return subject.fails("does not exist", commands.create_secret(version, key_file))
        case None:
            fix = commands.add_secret_version(version, key_file)
            return subject.fails("the secret has no such version", fix)
        case SecretVersion(state="ENABLED"):
            return subject.passes()
        case SecretVersion(state="DISABLED"):
            return subject.fails("is disabled", commands.enable_secret_version(version))
        case SecretVersion(state=state):
            fix = commands.add_secret_version(version, key_file)
            return subject.fails(f"is {state}", fix)
