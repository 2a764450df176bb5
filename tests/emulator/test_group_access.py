"""A group is made only where its VMs could be: what its template names, and who makes them."""

from __future__ import annotations

from copy import deepcopy

import pytest

from slurm_hooks.sandbox.emulator import groups
from slurm_hooks.sandbox.emulator.iam import Binding
from slurm_hooks.sandbox.emulator.operations import Call
from slurm_hooks.sandbox.emulator.places import GLOBAL
from slurm_hooks.sandbox.emulator.project import Image, ServiceAccount
from tests.emulator.emulated_project import TEMPLATE, ZONAL, ZONAL_GROUP, EmulatedProject

AGENT = "serviceAccount:123456789012@cloudservices.gserviceaccount.com"
AGENT_ROLE = "roles/compute.instanceGroupManagerServiceAgent"


def group_insert_code(project: EmulatedProject) -> str:
    if (GLOBAL, "t1") not in project.world.templates:
        project.add_template()
    body = deepcopy(ZONAL_GROUP)
    operation = project.finish(groups.insert(project.world, Call(), ZONAL, body))
    return operation.failure.entry.code if operation.failure else ""


def test_a_group_is_not_made_while_the_service_agent_may_make_no_vms() -> None:
    project = EmulatedProject()
    project.world.project.policy.revoke(AGENT_ROLE, AGENT)
    assert group_insert_code(project) == "PERMISSIONS_ERROR"
    assert project.world.groups == {}
    project.world.project.policy.grant(Binding("roles/editor", AGENT))
    assert group_insert_code(project) == ""


def test_the_service_agent_must_be_let_attach_the_service_account_of_the_vms() -> None:
    project = EmulatedProject()
    state, email = project.world.project, "nodes@demo.iam.gserviceaccount.com"
    state.service_accounts[email] = ServiceAccount(email, 1)
    state.policy.revoke(AGENT_ROLE, AGENT)
    state.policy.grant(Binding("roles/compute.instanceAdmin.v1", AGENT))
    template = deepcopy(TEMPLATE)
    template["properties"]["serviceAccounts"] = [{"email": email}]
    project.add_template(template)
    body = deepcopy(ZONAL_GROUP)
    refused = project.finish(groups.insert(project.world, Call(), ZONAL, body))
    assert refused.failure is not None
    assert refused.failure.entry.code == "PERMISSIONS_ERROR"
    binding = Binding("roles/iam.serviceAccountUser", AGENT)
    state.service_accounts[email].policy.grant(binding)
    made = project.finish(groups.insert(project.world, Call(), ZONAL, body))
    assert made.failure is None


@pytest.mark.parametrize("missing", ["network", "image"])
def test_a_group_is_not_made_without_what_its_template_names(missing: str) -> None:
    project = EmulatedProject()
    if missing == "network":
        del project.world.project.networks["default"]
    else:
        project.world.project.images["demo", "f"] = Image(exists=False)
    assert group_insert_code(project) == "RESOURCE_NOT_FOUND"
