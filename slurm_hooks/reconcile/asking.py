"""The two ways in which VMs are asked for: by a resize request, or by their names.

Flex-start VMs come by a request, which waits for capacity and brings all of its VMs or none. All
others are created by name: the service makes each as soon as it can.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from slurm_hooks.compute.model import (
    GroupReference,
    GroupSpecification,
    RequestReference,
    RequestSpecification,
    Scope,
    ScopeKind,
)
from slurm_hooks.reconcile.actions import (
    CREATE_INSTANCES,
    INSERT_REQUEST,
    CreateInstances,
    InsertGroup,
    InsertRequest,
    subject_of_creation,
    subject_of_insertion,
)
from slurm_hooks.reconcile.gangs import Part
from slurm_hooks.reconcile.scene import Scene
from slurm_hooks.reconcile.specifications import (
    request_of,
    request_stem,
    run_duration_of,
    template_of,
    uses_requests,
)
from slurm_hooks.slurm.model import Job


@dataclass(frozen=True, slots=True)
class Ask:
    """One part of a gang, to be asked for in a group that may not exist yet.

    `request` is how the request is named; None in a pool without requests.
    """

    job: Job | None
    part: Part
    group: GroupSpecification
    request: RequestReference | None

    @property
    def subject(self) -> str:
        """The subject of the action that asks."""
        if self.request is not None:
            return subject_of_insertion(self.request)
        return subject_of_creation(self.group.reference, request_stem(self.part.nodes, self.job))

    def action(self, scene: Scene) -> InsertRequest | CreateInstances:
        """The action that asks for the VMs, once the group exists."""
        job_id = self.job.job_id if self.job is not None else None
        if self.request is None:
            names = self.part.nodes
            stem, pool_id = request_stem(names, self.job), self.part.pool.pool_id
            return CreateInstances(self.group.reference, names, stem, pool_id, job_id)
        return InsertRequest(self._request(scene, self.request), job_id)

    def group_insertion(self, scene: Scene) -> InsertGroup:
        """The action that creates the group, and its template first."""
        pool = self.part.pool
        template = template_of(scene.cluster, pool)
        return InsertGroup(pool, template, Scope(ScopeKind.GLOBAL, ""), self.group)

    def _request(self, scene: Scene, reference: RequestReference) -> RequestSpecification:
        cluster, part, holders = scene.cluster, self.part, scene.world.holders
        jobs = {job.job_id: job for name in part.nodes for job in holders.get(name, ())}
        margin = cluster.policy.job_duration_margin_seconds
        duration = run_duration_of(part.pool, jobs.values(), margin)
        return request_of(cluster, part.pool, reference, part.nodes, self.job, duration)


def ask_for(
    job: Job | None, part: Part, group: GroupSpecification, taken_names: frozenset[str]
) -> Ask:
    """How a part is asked for in a group. A request's name is none of those that are taken."""
    request = None
    if uses_requests(part.pool):
        request = _free_reference(group.reference, request_stem(part.nodes, job), taken_names)
    return Ask(job, part, group, request)


def _free_reference(
    group: GroupReference, stem: str, taken_names: frozenset[str]
) -> RequestReference:
    number = 0
    while f"{stem}-{number}" in taken_names:
        number += 1
    return RequestReference(group, f"{stem}-{number}")


def stems_of(subjects: Iterable[str]) -> frozenset[str]:
    """The stems of what was asked for by the actions with these subjects."""
    stems = set()
    for subject in subjects:
        name = subject.rpartition("/")[2]
        if subject.startswith(INSERT_REQUEST):
            stems.add(name.rpartition("-")[0])
        elif subject.startswith(CREATE_INSTANCES):
            stems.add(name)
    return frozenset(stems)
