"""What a FakeCompute holds, and the ways in which a test makes the emulated world move."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from slurm_hooks.compute.model import (
    ErrorDetail,
    Group,
    GroupReference,
    Instance,
    InstanceStatus,
    Member,
    MemberAction,
    Operation,
    RequestReference,
    RequestState,
    ResizeRequest,
    Scope,
    ScopeKind,
    TemplateSpecification,
    WorkloadPolicy,
)

NEXT_STATUS = {
    InstanceStatus.PENDING: InstanceStatus.PROVISIONING,
    InstanceStatus.PROVISIONING: InstanceStatus.STAGING,
    InstanceStatus.STAGING: InstanceStatus.RUNNING,
}
"""The way up. STOPPING leads out of existence, every other state stays."""


def short(template: str) -> str:
    """The bare name in a template link."""
    return template.rpartition("/")[2]


@dataclass
class ComputeState:
    """The emulated project. Tests may read and change all of it.

    `now_utc` is the clock; nothing moves by itself. VMs listed in `hidden` are left out of
    `read`, as those that the service does not show yet. `members` are those without a VM, by
    group and name; while there is a `refusal`, none of them gets one.
    """

    now_utc: datetime = field(default_factory=lambda: datetime(2026, 1, 5, 12, 0, tzinfo=UTC))
    templates: dict[tuple[Scope, str], TemplateSpecification] = field(default_factory=dict)
    template_times_utc: dict[str, datetime] = field(default_factory=dict)
    groups: dict[GroupReference, Group] = field(default_factory=dict)
    workload_policies: dict[tuple[Scope, str], WorkloadPolicy] = field(default_factory=dict)
    group_zones: dict[GroupReference, tuple[str, ...]] = field(default_factory=dict)
    requests: dict[RequestReference, ResizeRequest] = field(default_factory=dict)
    instances: dict[tuple[str, str], Instance] = field(default_factory=dict)
    operations: dict[str, Operation] = field(default_factory=dict)
    serial_output: dict[str, str] = field(default_factory=dict)
    hidden: set[str] = field(default_factory=set)
    stuck: set[str] = field(default_factory=set)
    members: dict[tuple[GroupReference, str], Member] = field(default_factory=dict)
    refusal: ErrorDetail | None = None
    last_id: int = 1000

    def next_id(self) -> str:
        """A number that was not given out before."""
        self.last_id += 1
        return str(self.last_id)

    def grant(self, reference: RequestReference, zone: str = "") -> None:
        """Capacity arrives: the request SUCCEEDED and all its VMs exist, in STAGING."""
        request = self._active(reference)
        self._set_request(replace(request, state=RequestState.SUCCEEDED, last_attempt_error=None))
        for name in request.instances:
            self.add_instance(reference.group, name, InstanceStatus.STAGING, zone)

    def fail(self, reference: RequestReference, code: str, message: str = "") -> None:
        """The service gives the request up: FAILED, and the target size goes back down."""
        request = self._active(reference)
        error = ErrorDetail(code, message)
        failed = replace(request, state=RequestState.FAILED, error=error, last_attempt_error=None)
        self._set_request(failed)
        self.change_target_size(reference.group, -len(request.instances))

    def note_attempt(self, reference: RequestReference, code: str, message: str = "") -> None:
        """An attempt to serve the request failed; it goes on waiting in ACCEPTED."""
        error = ErrorDetail(code, message)
        accepted = replace(
            self._active(reference), state=RequestState.ACCEPTED, last_attempt_error=error
        )
        self._set_request(accepted)

    def accept(self, reference: RequestReference) -> None:
        """CREATING becomes ACCEPTED."""
        self._set_request(replace(self._active(reference), state=RequestState.ACCEPTED))

    def step(self) -> None:
        """Every VM goes one state further: up to RUNNING, or from STOPPING to gone. Members get
        their VMs, or the refusal as the error of their last attempt."""
        for instance in list(self.instances.values()):
            if instance.status is InstanceStatus.STOPPING:
                self.vanish(instance.name)
            elif instance.status in NEXT_STATUS:
                self.set_status(instance.name, NEXT_STATUS[instance.status])
        for key, member in list(self.members.items()):
            if self.refusal is not None:
                self.members[key] = replace(member, last_attempt_error=self.refusal)
            elif member.action is MemberAction.CREATING:
                del self.members[key]
                self.add_instance(member.group, member.name, InstanceStatus.PROVISIONING)

    def add_member(
        self, group: GroupReference, name: str, action: MemberAction = MemberAction.CREATING
    ) -> None:
        """A member that has no VM joins a group, and the target size goes up."""
        self.members[group, name] = Member(group, name, action)
        self.change_target_size(group, 1)

    def remove_member(self, group: GroupReference, name: str) -> None:
        """A member without a VM leaves its group; others and strangers stay as they are."""
        if self.members.pop((group, name), None) is not None:
            self.change_target_size(group, -1)

    def run_all(self) -> None:
        """Every VM that is on its way up becomes RUNNING."""
        for instance in list(self.instances.values()):
            if instance.status in NEXT_STATUS:
                self.set_status(instance.name, InstanceStatus.RUNNING)

    def set_status(self, name: str, status: InstanceStatus) -> None:
        """Put a VM into a state; its end of life is known from RUNNING on."""
        instance = self.instance(name)
        end = instance.termination_time_utc
        if status is InstanceStatus.RUNNING and end is None:
            end = self._end_of_life(instance)
        changed = replace(instance, status=status, termination_time_utc=end)
        self.instances[instance.zone, name] = changed

    def vanish(self, name: str) -> None:
        """A VM is gone without a trace, and the target size of its group one down.

        The target size of a VM in STOPPING went down when its deletion started.
        """
        instance = self.instance(name)
        del self.instances[instance.zone, name]
        if instance.group in self.groups and instance.status is not InstanceStatus.STOPPING:
            self.change_target_size(instance.group, -1)

    def add_instance(
        self, group: GroupReference, name: str, status: InstanceStatus, zone: str = ""
    ) -> Instance:
        """Put a VM of a group into the project, with the labels of the group's template."""
        zone = zone or self._zone_of(group)
        instance = Instance(
            name=name,
            instance_id=self.next_id(),
            zone=zone,
            status=status,
            group=group,
            labels=dict(self._template_of(group).labels),
            creation_time_utc=self.now_utc,
        )
        self.instances[zone, name] = instance
        return instance

    def instance(self, name: str) -> Instance:
        """The VM of this name; KeyError when there is none."""
        found = [instance for instance in self.instances.values() if instance.name == name]
        if not found:
            raise KeyError(name)
        return found[0]

    def change_target_size(self, reference: GroupReference, by: int) -> None:
        """Raise or lower the target size of a group."""
        group = self.groups[reference]
        self.groups[reference] = replace(group, target_size=group.target_size + by)

    def finish_operations(self) -> None:
        """Every operation is DONE, but for those that are stuck."""
        for name, operation in self.operations.items():
            if name not in self.stuck:
                self.operations[name] = replace(operation, done=True)

    def stick_operations(self) -> None:
        """Every operation that runs is stuck."""
        self.stuck |= {name for name, operation in self.operations.items() if not operation.done}

    def shown_groups(self) -> list[Group]:
        """The groups that lists show."""
        return [g for g in self.groups.values() if g.reference.name not in self.hidden]

    def shown_requests(self) -> list[ResizeRequest]:
        """The requests that lists show: those of a group come with the group."""
        return [
            r
            for r in self.requests.values()
            if self.hidden.isdisjoint((r.reference.name, r.reference.group.name))
        ]

    def shown_instances(self) -> list[Instance]:
        """The VMs that lists show."""
        return [vm for vm in self.instances.values() if vm.name not in self.hidden]

    def _active(self, reference: RequestReference) -> ResizeRequest:
        request = self.requests[reference]
        assert request.state.is_active, f"{reference} is {request.state}"
        return request

    def _set_request(self, request: ResizeRequest) -> None:
        self.requests[request.reference] = request

    def _zone_of(self, group: GroupReference) -> str:
        if group.scope.kind is ScopeKind.ZONE:
            return group.scope.name
        return self.group_zones[group][0]

    def _template_of(self, group: GroupReference) -> TemplateSpecification:
        name = self.groups[group].template
        return next(t for (_, known), t in self.templates.items() if known == name)

    def _end_of_life(self, instance: Instance) -> datetime | None:
        if instance.group is None or instance.group not in self.groups:
            return None
        seconds = self._template_of(instance.group).run_duration_seconds
        return None if seconds is None else self.now_utc + timedelta(seconds=seconds)
