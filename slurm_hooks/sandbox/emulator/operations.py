"""Operations: begun by a call, done later, kept for a while.

A call's effects are given to `begin`: `accept` happens at once, `complete` when the operation is
done. Either may answer with the failure that the operation then ends with. An injected failure
skips both, so a failed operation has changed nothing. A stuck operation does neither until it is
released, when the world may have changed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from slurm_hooks.sandbox.emulator.places import Scope
from slurm_hooks.sandbox.emulator.problems import OperationFailure, not_found
from slurm_hooks.sandbox.emulator.records import Operation, OperationStatus
from slurm_hooks.sandbox.emulator.world import Replay, World

Step = Callable[[], OperationFailure | None]
_PENDING_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class Call:
    """The call that begins an operation. `key` is its method and path."""

    key: str = ""
    request_id: str = ""
    user: str = "user@example.com"


@dataclass(frozen=True, slots=True)
class Draft:
    """What an operation will say of itself. `target` is a path below the project.

    `starts_pending` is for calls on VMs, which the service first answers PENDING.
    """

    scope: Scope
    operation_type: str
    target: str
    target_id: int
    starts_pending: bool = False


def begin(
    world: World,
    call: Call,
    draft: Draft,
    accept: Step | None = None,
    complete: Step | None = None,
    seconds: float | None = None,
) -> Operation:
    """Begin an operation that is done after `seconds` (default: the usual operation time)."""
    operation = open_ended(world, call, draft)
    injected, world.next_operation_failure = world.next_operation_failure, None
    is_stuck, world.next_operation_is_stuck = world.next_operation_is_stuck, False

    def go_on(injected: OperationFailure | None) -> None:
        failure = injected or (accept() if accept else None)

        def end() -> None:
            finish(world, operation, failure or (complete() if complete else None))

        world.after(world.latency.operation_seconds if seconds is None else seconds, end)

    if is_stuck:
        world.stuck_operations.append(go_on)
    else:
        go_on(injected)
    return operation


def release_stuck(world: World, failure: OperationFailure | None) -> int:
    """Let all stuck operations go on, or fail without having changed anything; how many."""
    stuck, world.stuck_operations = world.stuck_operations, []
    for go_on in stuck:
        go_on(failure)
    return len(stuck)


def open_ended(world: World, call: Call, draft: Draft, prefix: str = "operation") -> Operation:
    """Begin an operation that someone else will `finish`."""
    operation = Operation(
        name=world.identifiers.operation_name(world.now, prefix),
        operation_id=world.identifiers.unique_id(),
        scope=draft.scope,
        operation_type=draft.operation_type,
        target=draft.target,
        target_id=draft.target_id,
        user=call.user,
        insert_time_utc=world.now,
        request_id=call.request_id,
    )
    world.operations[operation.scope, operation.name] = operation
    if call.request_id:
        world.replays[call.request_id] = Replay(call.key, operation)
    if draft.starts_pending:
        world.after(_PENDING_SECONDS, lambda: _run(world, operation))
    else:
        _run(world, operation)
    return operation


def _run(world: World, operation: Operation) -> None:
    if operation.status is OperationStatus.PENDING:
        operation.status = OperationStatus.RUNNING
        operation.start_time_utc = world.now


def finish(world: World, operation: Operation, failure: OperationFailure | None) -> None:
    """Make an operation DONE and forget it after the retention time."""
    if operation.status is OperationStatus.DONE:
        return
    _run(world, operation)
    operation.status = OperationStatus.DONE
    operation.end_time_utc = world.now
    if failure and world.behaviour.operation_errors_without_http_status:
        failure = replace(failure, http_status=0)
    operation.failure = failure
    world.after(world.behaviour.operation_retention_seconds, lambda: _forget(world, operation))


def system_event(world: World, draft: Draft, message: str) -> Operation:
    """Note something that the service did by itself: a finished operation of user `system`."""
    call = Call(user="system")
    operation = open_ended(world, call, draft, "systemevent")
    operation.status_message = message
    finish(world, operation, None)
    return operation


def find(world: World, scope: Scope, name: str) -> Operation:
    """An operation by name or id. Raises ApiError 404."""
    operation = world.operations.get((scope, name))
    if operation is not None:
        return operation
    for candidate in world.operations.values():
        if candidate.scope == scope and str(candidate.operation_id) == name:
            return candidate
    raise not_found(world.path(f"{scope}/operations/{name}"))


def delete(world: World, scope: Scope, name: str) -> None:
    """Forget an operation; what it does goes on. Raises ApiError 404."""
    operation = find(world, scope, name)
    del world.operations[operation.scope, operation.name]


def _forget(world: World, operation: Operation) -> None:
    world.operations.pop((operation.scope, operation.name), None)
    if operation.request_id:
        world.replays.pop(operation.request_id, None)
