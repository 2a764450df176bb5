"""Who holds a role by the policies that could be read, and what they leave open."""

from __future__ import annotations

import pytest

from slurm_hooks.prerequisites.facts import Answer, Policy, PolicyBinding, Unread
from slurm_hooks.prerequisites.holding import Hold, holding

AGENT = "serviceAccount:1@cloudservices.gserviceaccount.com"
ROLES = ("roles/editor", "roles/compute.admin")


def policy(role: str, *members: str, condition: str = "") -> Policy:
    return (PolicyBinding(role, members, condition),)


@pytest.mark.parametrize(
    ("policies", "hold"),
    [
        ([()], Hold.NO),
        ([policy("roles/viewer", AGENT)], Hold.NO),
        ([policy("roles/editor", "user:a@example.com")], Hold.NO),
        ([policy("roles/editor", AGENT)], Hold.YES),
        ([policy("roles/compute.admin", "user:a@example.com", AGENT)], Hold.YES),
        ([policy("roles/editor", "allUsers")], Hold.YES),
        ([policy("roles/editor", AGENT, condition="x")], Hold.UNCERTAIN),
        ([policy("roles/editor", AGENT, condition="x"), policy("roles/editor", AGENT)], Hold.YES),
        ([policy("roles/editor", "group:g@example.com")], Hold.UNCERTAIN),
        ([policy("roles/viewer", "group:g@example.com")], Hold.NO),
        ([policy("roles/editor", "domain:example.com")], Hold.UNCERTAIN),
        ([(), Unread("no way")], Hold.UNCERTAIN),
        ([policy("roles/editor", AGENT), Unread("no way")], Hold.YES),
        ([(), policy("roles/editor", AGENT)], Hold.YES),
        ([None], Hold.NO),
        ([policy("projects/demo/roles/own", AGENT)], Hold.UNCERTAIN),
        ([policy("projects/demo/roles/own", "user:a@example.com")], Hold.NO),
        ([policy("organizations/1/roles/own", AGENT), policy("roles/editor", AGENT)], Hold.YES),
    ],
)
def test_only_what_is_seen_without_a_condition_is_certain(
    policies: list[Answer[Policy]], hold: Hold
) -> None:
    assert holding(policies, AGENT, ROLES).hold is hold


def test_a_doubt_says_what_it_is_about() -> None:
    found = holding(
        [policy("roles/editor", AGENT, "group:g@example.com", condition="x")], AGENT, ROLES
    )
    assert "roles/editor is held only if x" in found.detail
    assert "group:g@example.com has roles/editor" in found.detail
    assert holding([Unread("folders/1 is closed")], AGENT, ROLES).detail == "folders/1 is closed"
