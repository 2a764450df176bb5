"""Who acts: Google's service agent that runs the groups, the caller, the nodes' own account."""

from __future__ import annotations

from collections.abc import Iterator

from slurm_hooks.cluster.topology import Cluster
from slurm_hooks.prerequisites import commands
from slurm_hooks.prerequisites.facts import ProjectFacts, Unread
from slurm_hooks.prerequisites.holding import holding
from slurm_hooks.prerequisites.model import Finding
from slurm_hooks.prerequisites.permissions import ACT_AS, needed_permissions
from slurm_hooks.prerequisites.rules.findings import Subject

COMPLETE_ROLES = (
    "roles/editor",
    "roles/owner",
    "roles/compute.instanceGroupManagerServiceAgent",
)
"""Each lets the agent create VMs and attach service accounts to them."""
CREATE_ROLE = "roles/compute.instanceAdmin.v1"
CREATE_ROLES = (*COMPLETE_ROLES, CREATE_ROLE, "roles/compute.admin")
ATTACH_ROLE = "roles/iam.serviceAccountUser"
ATTACH_ROLES = (*COMPLETE_ROLES, ATTACH_ROLE)
LOOK_ROLE = "roles/browser"
_AGENT = "Google APIs Service Agent"


def check_agent(cluster: Cluster, facts: ProjectFacts) -> Iterator[Finding]:
    """The agent makes the VMs of all groups, and attaches the nodes' service account to them."""
    subject = Subject(_AGENT, "may create VMs")
    look = commands.grant(facts.project, facts.caller, LOOK_ROLE)
    identity = facts.identity
    if identity is None or isinstance(identity, Unread):
        why = identity or Unread(f"there is no project {facts.project}")
        yield subject.unread(why, look)
        return
    agent = f"serviceAccount:{identity.number}@cloudservices.gserviceaccount.com"
    if isinstance(facts.policy, Unread):
        yield subject.unread(facts.policy, look)
        return
    held = holding((facts.policy, facts.ancestors), agent, CREATE_ROLES)
    missing = f"{agent.partition(':')[2]} has no role that lets it create VMs"
    yield subject.held(held, missing, commands.grant(facts.project, agent, CREATE_ROLE))
    yield _agent_attaches(facts.account, agent, facts)


def _agent_attaches(account: str, agent: str, facts: ProjectFacts) -> Finding:
    subject = Subject(_AGENT, f"may attach {account}")
    policies = (facts.policy, facts.ancestors, facts.account_policy)
    held = holding(policies, agent, ATTACH_ROLES)
    missing = f"{agent.partition(':')[2]} has no role that lets it attach the account to VMs"
    return subject.held(held, missing, commands.grant(facts.project, agent, ATTACH_ROLE))


def check_caller(cluster: Cluster, facts: ProjectFacts) -> Iterator[Finding]:
    """Whoever runs the controller must be let make all of its calls."""
    subject = Subject("own permissions", facts.caller.partition(":")[2] or "these credentials")
    if facts.permissions is None or isinstance(facts.permissions, Unread):
        yield subject.unread(facts.permissions or Unread("there is no such project"))
        return
    needed = needed_permissions(cluster)
    missing = sorted(needed - facts.permissions)
    if missing:
        fix = commands.grant(facts.project, facts.caller, CREATE_ROLE)
        yield subject.fails(f"lacks {', '.join(missing)}", fix)
    else:
        yield subject.passes(f"all {len(needed)} that the controller's calls need")


def check_node_account(cluster: Cluster, facts: ProjectFacts) -> Iterator[Finding]:
    """The nodes' service account exists, and the caller may make VMs that run as it."""
    account, granted = facts.account, facts.account_permissions
    subject = Subject("node service account", account or "Compute Engine's default one")
    if not account:
        yield subject.unknown("its name has the project's number, which could not be read")
    elif granted is None:
        own = account.endswith(f"@{facts.project}.iam.gserviceaccount.com")
        fix = commands.create_account(facts.project, account) if own else ()
        yield subject.fails("does not exist: name another in runtime_spec.service_account", fix)
    elif isinstance(granted, Unread):
        yield subject.unread(granted)
    elif ACT_AS in granted:
        yield subject.passes("exists, and the caller may act as it")
    else:
        fix = commands.grant_on_account(facts.project, account, facts.caller, ATTACH_ROLE)
        yield subject.fails(f"the caller lacks {ACT_AS} on it", fix)
