"""Reads everything that the rules look at: each thing once, one after another.

What cannot be read is a fact, too. So no error of one service hides what the others say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import TypeVar

from slurm_hooks.cluster.topology import Cluster
from slurm_hooks.compute.errors import ComputeError, ErrorKind
from slurm_hooks.prerequisites.client import ProjectClient
from slurm_hooks.prerequisites.facts import (
    Answer,
    Policy,
    ProjectFacts,
    ProjectIdentity,
    Quota,
    QuotaName,
    Unread,
)
from slurm_hooks.prerequisites.permissions import ACT_AS, needed_permissions
from slurm_hooks.prerequisites.rules import machines, reservations, storage
from slurm_hooks.prerequisites.rules.quotas import quotas_by_region
from slurm_hooks.prerequisites.rules.secrets import secret_of

_Found = TypeVar("_Found")
_Name = TypeVar("_Name")
_DEEPEST_FOLDER = 10
"""Folders may be nested so far."""


def read(call: Callable[[], _Found]) -> Answer[_Found]:
    """What a call finds, None for what does not exist, or why there was no answer."""
    try:
        return call()
    except ComputeError as error:
        if error.kind is ErrorKind.GONE:
            return None
        return Unread(str(error), denied=error.kind is ErrorKind.PERMISSION)


def read_all(
    names: Iterable[_Name], call: Callable[[_Name], _Found]
) -> Mapping[_Name, Answer[_Found]]:
    """The same for each name, once."""
    return {name: _read_one(call, name) for name in dict.fromkeys(names)}


def _read_one(call: Callable[[_Name], _Found], name: _Name) -> Answer[_Found]:
    return read(lambda: call(name))


def gather(cluster: Cluster, client: ProjectClient) -> ProjectFacts:
    """Everything about one cluster's project."""
    facts = ProjectFacts(client.project, _caller(client), identity=read(client.identity))
    for reading in (_with_accounts, _with_machines, _with_places, _with_storage):
        facts = reading(facts, cluster, client)
    return facts


def _with_accounts(facts: ProjectFacts, cluster: Cluster, client: ProjectClient) -> ProjectFacts:
    """Who may do what, and which APIs are there."""
    account = _account(cluster, facts.identity)
    return replace(
        facts,
        account=account,
        policy=read(lambda: client.policy(f"projects/{client.project}")),
        ancestors=_ancestors(facts.identity, client),
        permissions=read(lambda: client.permissions(sorted(needed_permissions(cluster)))),
        account_policy=read(lambda: client.account_policy(account)) if account else (),
        account_permissions=(
            read(lambda: client.account_permissions(account, [ACT_AS])) if account else frozenset()
        ),
        services=read(client.services),
    )


def _with_machines(facts: ProjectFacts, cluster: Cluster, client: ProjectClient) -> ProjectFacts:
    """What VMs are made of."""
    pools = cluster.pools.values()
    return replace(
        facts,
        images=read_all((pool.source_image for pool in pools), client.image),
        machine_types=read_all(
            (name for pool in pools for name in machines.machine_types_of(pool)),
            client.machine_type,
        ),
        disk_types=read_all(
            (name for pool in pools for name in machines.disk_types_of(pool)),
            lambda name: client.require_type("diskTypes", name),
        ),
        accelerator_types=read_all(
            (name for pool in pools for name in machines.accelerator_types_of(pool)),
            lambda name: client.require_type("acceleratorTypes", name),
        ),
    )


def _with_places(facts: ProjectFacts, cluster: Cluster, client: ProjectClient) -> ProjectFacts:
    """Where VMs are, and how many may be there."""
    named = [cluster.subnetwork] if cluster.subnetwork else []
    reserved = (
        name for pool in cluster.pools.values() for name in reservations.reservations_of(pool)
    )
    return replace(
        facts,
        network=read(lambda: client.network(cluster.network)),
        subnetworks=read_all(named, client.subnetwork),
        quotas={
            region: _quotas(region, names, client)
            for region, names in quotas_by_region(cluster).items()
        },
        reservations=read_all(reserved, client.reservation),
    )


def _with_storage(facts: ProjectFacts, cluster: Cluster, client: ProjectClient) -> ProjectFacts:
    """What VMs mount and read."""
    version = cluster.node_boot.key_secret
    return replace(
        facts,
        filestores=read_all(storage.filestores_of(cluster), client.filestore),
        lustres=read_all(storage.lustres_of(cluster), client.lustre),
        secret=read(lambda: client.secret_version(version)) if version else None,
        secret_policy=read(lambda: client.secret_policy(secret_of(version))) if version else (),
    )


def _quotas(
    region: str, names: Iterable[QuotaName], client: ProjectClient
) -> Answer[Mapping[QuotaName, Quota]]:
    """What the region lists, and what Cloud Quotas says of the names that it does not."""
    listed = read(lambda: client.quotas(region))
    if listed is None or isinstance(listed, Unread):
        return listed
    found = dict(listed)
    for name in names:
        told = found.get(name) or read(partial(client.quota, region, name))
        if isinstance(told, Quota):
            found[name] = told
    return found


def _caller(client: ProjectClient) -> str:
    """Who asks; only commands need it, so not to know it is no failure."""
    try:
        return client.caller()
    except ComputeError:
        return ""


def _account(cluster: Cluster, identity: Answer[ProjectIdentity]) -> str:
    """What nodes run as: the account of the file, else Compute Engine's default one."""
    if cluster.service_account or not isinstance(identity, ProjectIdentity):
        return cluster.service_account
    return f"{identity.number}-compute@developer.gserviceaccount.com"


def _ancestors(identity: Answer[ProjectIdentity], client: ProjectClient) -> Answer[Policy]:
    """The policies of all folders and the organisation above; together, or why not."""
    if identity is None or isinstance(identity, Unread):
        return ()
    bindings: Policy = ()
    above: Answer[str] = identity.parent
    for _ in range(_DEEPEST_FOLDER + 1):
        if not above:
            return bindings
        if isinstance(above, Unread):
            return above
        found = _read_one(client.policy, above)
        if found is None or isinstance(found, Unread):
            return _unseen(above)
        bindings += found
        above = _above(above, client)
    return bindings


def _above(resource: str, client: ProjectClient) -> Answer[str]:
    """What a folder lies in; nothing is above an organisation."""
    if not resource.startswith("folders/"):
        return ""
    found = _read_one(client.parent_of, resource)
    return _unseen(f"what is above {resource}") if isinstance(found, Unread) else found


def _unseen(resource: str) -> Unread:
    return Unread(f"the role may be inherited from {resource}, whose policy may not be read")
