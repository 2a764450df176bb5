"""Who has which role, by the policies that could be read; and what they cannot tell.

A role may be held under a condition, through a group, or from a folder or the organisation above,
and a custom role may allow the same. What of this cannot be seen is no proof that the role is
missing.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from slurm_hooks.prerequisites.facts import Answer, Policy, PolicyBinding, Unread

_EVERYBODY = frozenset({"allUsers", "allAuthenticatedUsers"})
_GROUPS = ("group:", "domain:", "principalSet:")
_CUSTOM_ROLES = ("projects/", "organizations/")


class Hold(enum.Enum):
    """Whether a member holds one of some roles."""

    YES = enum.auto()
    NO = enum.auto()
    UNCERTAIN = enum.auto()


@dataclass(frozen=True, slots=True)
class Holding:
    """The answer, with the role that is held or what keeps it uncertain."""

    hold: Hold
    detail: str = ""


def holding(policies: Collection[Answer[Policy]], member: str, roles: Collection[str]) -> Holding:
    """Whether a member has one of the roles by any of these policies, which add up."""
    doubts = [policy.why for policy in policies if isinstance(policy, Unread)]
    for binding in _bindings(policies):
        if binding.role in roles:
            if _names(binding, member) and not binding.condition:
                return Holding(Hold.YES, f"has {binding.role}")
            doubts += _doubts(binding, member)
        elif binding.role.startswith(_CUSTOM_ROLES) and _names(binding, member):
            doubts.append(f"has the custom role {binding.role}, which is not looked into")
    return Holding(Hold.UNCERTAIN, "; ".join(doubts)) if doubts else Holding(Hold.NO)


def _bindings(policies: Collection[Answer[Policy]]) -> Iterator[PolicyBinding]:
    for policy in policies:
        if policy is not None and not isinstance(policy, Unread):
            yield from policy


def _names(binding: PolicyBinding, member: str) -> bool:
    return member in binding.members or bool(_EVERYBODY & set(binding.members))


def _doubts(binding: PolicyBinding, member: str) -> Iterator[str]:
    if _names(binding, member):
        yield f"{binding.role} is held only if {binding.condition}"
    for group in binding.members:
        if group.startswith(_GROUPS):
            yield f"{group} has {binding.role}; its members cannot be seen"
