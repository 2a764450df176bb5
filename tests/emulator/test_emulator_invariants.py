"""Whatever is called in whatever order, the engine's books balance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from slurm_hooks.sandbox.emulator import (
    groups,
    instances,
    member_calls,
    quotas,
    request_states,
    resize_requests,
)
from slurm_hooks.sandbox.emulator.operations import Call
from slurm_hooks.sandbox.emulator.places import region_of
from slurm_hooks.sandbox.emulator.problems import ApiError, ErrorEntry
from slurm_hooks.sandbox.emulator.records import InstanceStatus, OperationStatus, RequestState
from tests.emulator.emulated_project import ZONAL, ZONAL_GROUP, ZONE, EmulatedProject

NAMES = ("n-0", "n-1", "n-2")
ROLLED_BACK = (RequestState.FAILED, RequestState.CANCELLED)
Step = Callable[[EmulatedProject], None]


def insert_request(project: EmulatedProject, request: str, names: list[str]) -> None:
    group = groups.find(project.world, ZONAL, "g1")
    body = {"name": request, "instances": [{"name": name} for name in names]}
    resize_requests.insert(project.world, Call(), group, body)


def cancel_request(project: EmulatedProject, request: str) -> None:
    group = groups.find(project.world, ZONAL, "g1")
    resize_requests.cancel(project.world, Call(), group, request)


def delete_request(project: EmulatedProject, request: str) -> None:
    group = groups.find(project.world, ZONAL, "g1")
    resize_requests.delete(project.world, Call(), group, request)


def fail_request(project: EmulatedProject, request: str) -> None:
    group = groups.find(project.world, ZONAL, "g1")
    found = resize_requests.find(project.world, group, request)
    request_states.fail(project.world, found, ErrorEntry("INTERNAL_ERROR", ""))


def delete_members(project: EmulatedProject, names: list[str]) -> None:
    group = groups.ready(project.world, ZONAL, "g1")
    entries = [f"zones/{ZONE}/instances/{name}" for name in names]
    body = {"instances": entries, "skipInstancesOnValidationError": True}
    member_calls.delete_instances(project.world, Call(), group, body)


def create_members(project: EmulatedProject, names: list[str]) -> None:
    group = groups.ready(project.world, ZONAL, "g1")
    body = {"instances": [{"name": name} for name in names]}
    member_calls.create_instances(project.world, Call(), group, body)


def delete_group(project: EmulatedProject) -> None:
    groups.delete(project.world, Call(), ZONAL, "g1")


def insert_group(project: EmulatedProject) -> None:
    groups.insert(project.world, Call(), ZONAL, dict(ZONAL_GROUP))


def lose_vm(project: EmulatedProject, name: str) -> None:
    if (ZONE, name) in project.world.instances:
        instances.vanish(project.world, project.instance(name))


def break_host(project: EmulatedProject, name: str) -> None:
    vm = project.world.instances.get((ZONE, name))
    if vm is not None and vm.status is InstanceStatus.RUNNING:
        instances.host_error(project.world, vm)


requests = st.sampled_from(("r1", "r2"))
some_names = st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True)
one_name = st.sampled_from(NAMES)


def _step(
    call: Callable[..., None], *arguments: st.SearchStrategy[object]
) -> st.SearchStrategy[Step]:
    def bound(values: tuple[object, ...]) -> Step:
        return lambda project: call(project, *values)

    return st.tuples(*arguments).map(bound)


steps = st.one_of(
    _step(insert_request, requests, some_names),
    _step(cancel_request, requests),
    _step(delete_request, requests),
    _step(fail_request, requests),
    _step(delete_members, some_names),
    _step(create_members, some_names),
    _step(delete_group),
    _step(insert_group),
    _step(lose_vm, one_name),
    _step(break_host, one_name),
    _step(EmulatedProject.set_capacity, st.integers(0, 3)),
    _step(EmulatedProject.pass_time, st.sampled_from((0.0, 0.5, 2.0, 6.0, 30.0))),
)


def check_books(project: EmulatedProject) -> None:
    """Capacity, quota, memberships and requests agree with the VMs that there are."""
    world = project.world
    held = [vm for vm in world.instances.values() if vm.status is not InstanceStatus.PENDING]
    assert +world.capacity.used == Counter((vm.zone, vm.machine_type) for vm in held)
    used: Counter[tuple[str, str]] = Counter()
    for vm in held:
        for metric, amount in quotas.needs_of(vm.properties).items():
            used[region_of(vm.zone), metric] += amount
    for group in world.groups.values():
        for name, member in group.members.items():
            assert member.name == name
            assert member.instance is None or not member.instance.gone
        for request in group.requests.values():
            check_request(request.state, [group.members.get(m.name) is m for m in request.members])
            if request.state.is_active:
                used["us-central1", quotas.ACTIVE_RESIZE_REQUESTS] += 1
    assert +world.quotas.used == +used
    addresses = [vm.network_ip for vm in world.instances.values()]
    assert len(set(addresses)) == len(addresses)


def check_request(state: RequestState, belongs: list[bool]) -> None:
    """An active request has all of its members."""
    if state.is_active:
        assert all(belongs)


def check_rest(project: EmulatedProject) -> None:
    """Once all is quiet nothing is on its way, and no rolled back request has a member."""
    world = project.world
    project.set_capacity(100)
    project.pass_time(200)
    assert all(item.status is OperationStatus.DONE for item in world.operations.values())
    for group in world.groups.values():
        for request in group.requests.values():
            assert not request.state.is_active
            if request.state in ROLLED_BACK:
                assert not any(group.members.get(m.name) is m for m in request.members)
        assert group.target_size == len(group.members)
    members = {m.name for group in world.groups.values() for m in group.members.values()}
    assert set(project.names()) == members


@settings(max_examples=150, deadline=None)
@given(st.lists(steps, max_size=25))
def test_books_balance_after_every_step(sequence: list[Step]) -> None:
    project = EmulatedProject()
    project.add_group()
    for step in sequence:
        try:
            step(project)
        except ApiError:
            check_books(project)  # a refused call has changed nothing that matters
        project.pass_time(0)
        check_books(project)
    check_rest(project)
    check_books(project)
