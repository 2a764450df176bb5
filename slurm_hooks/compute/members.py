"""Members of groups that have no VM yet, or none any more.

The list of VMs shows no member whose VM could not be made. The group does, by
`listManagedInstances`: with what it does about the member, and with the error of its last attempt.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from slurm_hooks.compute.model import Group, GroupReference, Instance, Member, MemberAction
from slurm_hooks.compute.names import require_name, short_name
from slurm_hooks.compute.operations import first_error
from slurm_hooks.compute.ownership import is_created_by_name

_ACTIONS = {
    "NONE": MemberAction.NONE,
    "CREATING": MemberAction.CREATING,
    "CREATING_WITHOUT_RETRIES": MemberAction.CREATING,
    "RECREATING": MemberAction.CREATING,
    "DELETING": MemberAction.LEAVING,
    "ABANDONING": MemberAction.LEAVING,
}


def groups_to_list(groups: Iterable[Group], instances: Iterable[Instance]) -> list[Group]:
    """The groups created by name that may have members without a VM: those that make some, and
    those whose size is not the number of their VMs. At rest there are none, and no call is made."""
    vms = Counter(instance.group for instance in instances)
    return [
        group
        for group in groups
        if is_created_by_name(group)
        and (group.creating or group.target_size != vms[group.reference])
    ]


def lacks_vm(message: Any) -> bool:
    """Whether a managed instance has no VM, which then has no id, or one that is just being made:
    the list of VMs was read before and may not show it."""
    return not message.id or _ACTIONS.get(message.current_action) is MemberAction.CREATING


def member_from(message: Any, group: GroupReference) -> Member:
    """A member from its protobuf message. Raises CONFIG for one without a readable name."""
    return Member(
        group=group,
        name=require_name(message.name or short_name(message.instance)),
        action=_ACTIONS.get(message.current_action, MemberAction.UNKNOWN),
        last_attempt_error=first_error(message.last_attempt.errors.errors),
    )
