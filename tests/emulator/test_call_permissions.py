"""Each call of the controller asks for a permission that check knows; who lacks it is refused."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from slurm_hooks.compute.errors import ComputeError, ErrorKind
from slurm_hooks.compute.google_client import GoogleComputeClient
from slurm_hooks.compute.model import (
    FaultReason,
    GroupSpecification,
    Operation,
    RequestReference,
    WorkloadPolicySpecification,
)
from slurm_hooks.prerequisites.permissions import PERMISSIONS_BY_CALL
from slurm_hooks.sandbox.emulator.control import EmulatorControl
from tests.emulator.compute_world import (
    CLUSTER,
    GLOBAL,
    REGIONAL,
    ZONAL,
    ZONE,
    ZONES,
    group_reference,
    request_specification,
    template_specification,
)
from tests.emulator.running import emulator_in_thread

pytestmark = pytest.mark.slow

CALLER = "serviceAccount:slurm-hooks@demo.iam.gserviceaccount.com"
ADMIN = "roles/compute.instanceAdmin.v1"
GROUP = group_reference(ZONAL)
REQUEST = RequestReference(GROUP, "r")
POLICY = WorkloadPolicySpecification(REGIONAL, "w", "d")
REASON = FaultReason("PERFORMANCE", "slow")
CALLS: dict[str, Callable[[GoogleComputeClient], Any]] = {
    "read": lambda c: c.read(CLUSTER),
    "read_templates": lambda c: c.read_templates(CLUSTER),
    "read_workload_policies": lambda c: c.read_workload_policies(CLUSTER),
    "get_group": lambda c: c.get_group(GROUP),
    "get_resize_request": lambda c: c.get_resize_request(REQUEST),
    "get_operation": lambda c: c.get_operation(Operation("operation-1", ZONAL)),
    "insert_template": lambda c: c.insert_template(GLOBAL, template_specification(), "x"),
    "delete_template": lambda c: c.delete_template(GLOBAL, "t", "x"),
    "insert_workload_policy": lambda c: c.insert_workload_policy(POLICY, "x"),
    "delete_workload_policy": lambda c: c.delete_workload_policy(REGIONAL, "w", "x"),
    "insert_group": lambda c: c.insert_group(GroupSpecification(GROUP, "t", "d", ZONES), "x"),
    "delete_group": lambda c: c.delete_group(GROUP, "x"),
    "insert_resize_request": lambda c: c.insert_resize_request(
        request_specification(REQUEST, "n-0"), "x"
    ),
    "cancel_resize_request": lambda c: c.cancel_resize_request(REQUEST, "x"),
    "delete_resize_request": lambda c: c.delete_resize_request(REQUEST, "x"),
    "create_instances": lambda c: c.create_instances(GROUP, ["n-0"], "x"),
    "delete_instances": lambda c: c.delete_instances(GROUP, {"n-0": ZONE}, "x"),
    "delete_instance": lambda c: c.delete_instance(ZONE, "n-0", "x"),
    "get_serial_port_output": lambda c: c.get_serial_port_output(ZONE, "n-0"),
    "report_host_as_faulty": lambda c: c.report_host_as_faulty(ZONE, "n-0", REASON, "x"),
}


@pytest.fixture(scope="module")
def emulator() -> Iterator[EmulatorControl]:
    with emulator_in_thread() as control:
        yield control


@pytest.fixture
def client(emulator: EmulatorControl) -> GoogleComputeClient:
    emulator.project.reset()
    return GoogleComputeClient("demo", emulator.url, "anonymous")


def test_every_call_is_tried_here() -> None:
    assert set(CALLS) == set(PERMISSIONS_BY_CALL)


@pytest.mark.parametrize("name", CALLS)
def test_who_lacks_its_permission_is_refused_with_one_that_check_names(
    emulator: EmulatorControl, client: GoogleComputeClient, name: str
) -> None:
    emulator.project.revoke(ADMIN, CALLER)
    with pytest.raises(ComputeError) as refused:
        CALLS[name](client)
    assert refused.value.kind is ErrorKind.PERMISSION
    asked = re.search(r"Required '([^']+)' permission", refused.value.message)
    assert asked is not None
    assert asked[1] in PERMISSIONS_BY_CALL[name]


def test_who_may_look_may_not_touch(emulator: EmulatorControl, client: GoogleComputeClient) -> None:
    emulator.project.revoke(ADMIN, CALLER)
    emulator.project.grant("roles/compute.viewer", CALLER)
    assert client.read(CLUSTER).groups == {}
    with pytest.raises(ComputeError) as refused:
        CALLS["insert_template"](client)
    assert refused.value.kind is ErrorKind.PERMISSION
    emulator.project.grant(ADMIN, CALLER)
    CALLS["insert_template"](client)
