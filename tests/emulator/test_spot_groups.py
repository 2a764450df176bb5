"""Groups of Spot VMs as the controller makes them, seen by the real client before the emulator."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable
from dataclasses import replace

import pytest

from slurm_hooks.compute.google_client import GoogleComputeClient
from slurm_hooks.compute.model import (
    GroupReference,
    GroupSpecification,
    Instance,
    InstanceStatus,
    MemberAction,
    Operation,
)
from slurm_hooks.compute.ownership import encode
from slurm_hooks.sandbox.emulator.control import EmulatorControl
from tests.emulator.compute_world import (
    CLUSTER,
    GLOBAL,
    MARK,
    ZONAL,
    group_reference,
    template_specification,
)
from tests.waiting import eventually

pytestmark = pytest.mark.slow

NAME = "demo-a3u-0"


class SpotGroup:
    """A group with one Spot VM that runs."""

    def __init__(self, control: EmulatorControl) -> None:
        self.control = control
        self.client = GoogleComputeClient("demo", control.url, "anonymous")
        template = replace(
            template_specification("spot"), provisioning_model="SPOT", run_duration_seconds=None
        )
        self.finish(self.client.insert_template(GLOBAL, template, "template"))
        mark = encode(replace(MARK, provisioning_model="SPOT"))
        self.reference: GroupReference = group_reference(ZONAL)
        group = GroupSpecification(self.reference, "spot", mark)
        self.finish(self.client.insert_group(group, "group"))
        self.finish(self.client.create_instances(self.reference, [NAME], "create"))
        eventually(self.vms, lambda vms: [vm.status for vm in vms] == [InstanceStatus.RUNNING])

    def vms(self) -> list[Instance]:
        """All VMs that the controller sees."""
        return list(self.client.read(CLUSTER).instances.values())

    def size(self) -> int:
        """The group's target size."""
        return self.client.read(CLUSTER).groups[self.reference].target_size

    def wait_until_no_vm(self) -> None:
        """Wait until the VM is gone."""
        eventually(self.vms, lambda vms: not vms)

    def finish(self, operation: Operation) -> None:
        """Wait until the operation has ended well."""
        ended = eventually(lambda: self.client.get_operation(operation), lambda now: now.done)
        assert ended.error is None


def end_by_preemption(group: SpotGroup) -> None:
    group.control.preempt_instance(NAME)


def end_without_a_trace(group: SpotGroup) -> None:
    group.control.vanish_instance(NAME)


def end_by_a_person(group: SpotGroup) -> None:
    group.finish(group.client.delete_instance(ZONAL.name, NAME, "a person's wish"))


every_end = pytest.mark.parametrize(
    "end", [end_by_preemption, end_without_a_trace, end_by_a_person]
)


@every_end
def test_lost_vm_is_not_made_anew_behind_our_back(
    emulator: EmulatorControl, end: Callable[[SpotGroup], None]
) -> None:
    group = SpotGroup(emulator)
    end(group)
    eventually(group.size, lambda size: size == 0)
    group.wait_until_no_vm()
    assert group.client.read(CLUSTER).members == {}
    emulator.advance_clock(600)
    assert group.vms() == []


@every_end
def test_member_that_is_kept_without_its_vm_is_read_and_holds_its_name_until_it_is_deleted(
    emulator: EmulatorControl, end: Callable[[SpotGroup], None]
) -> None:
    emulator.set_behaviour(keepsLostMembers=True)
    group = SpotGroup(emulator)
    end(group)
    group.wait_until_no_vm()
    members = eventually(lambda: group.client.read(CLUSTER).members, lambda found: NAME in found)
    assert members[NAME].action is MemberAction.NONE
    group.finish(group.client.delete_instances(group.reference, {NAME: ""}, "delete"))
    assert group.client.read(CLUSTER).members == {}
    group.finish(group.client.create_instances(group.reference, [NAME], "again"))
    eventually(group.vms, lambda vms: [vm.status for vm in vms] == [InstanceStatus.RUNNING])


def test_group_at_rest_costs_no_call_for_its_members(emulator: EmulatorControl) -> None:
    group = SpotGroup(emulator)
    eventually(lambda: group.client.read(CLUSTER).groups[group.reference].creating, lambda n: not n)
    emulator.clear_calls()
    group.client.read(CLUSTER)
    assert [call.path.rpartition("/")[2] for call in emulator.calls()] == [
        "instanceGroupManagers",
        "instances",
    ]


def test_spot_vm_says_on_the_wire_what_it_is(emulator: EmulatorControl) -> None:
    group = SpotGroup(emulator)
    url = f"{emulator.url}/compute/v1/projects/demo/zones/{ZONAL.name}/instances/{NAME}"
    with urllib.request.urlopen(url, timeout=10) as answer:
        scheduling = json.load(answer)["scheduling"]
    assert (scheduling["provisioningModel"], scheduling["preemptible"]) == ("SPOT", True)
    assert scheduling["instanceTerminationAction"] == "DELETE"
    assert scheduling["automaticRestart"] is False
    assert scheduling["onHostMaintenance"] == "TERMINATE"
    assert group.vms()[0].termination_time_utc is None
