"""What we ask the service for: each body is one that the v1 API's messages allow."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_hooks.compute.batches import MOST_PER_CALL, delete_batches, is_mixed
from slurm_hooks.compute.errors import ComputeError, ErrorKind
from slurm_hooks.compute.groups import group_body, group_from, template_link
from slurm_hooks.compute.instances import create_body, delete_body
from slurm_hooks.compute.model import (
    GroupReference,
    GroupSpecification,
    RequestReference,
    RequestSpecification,
    ReservationSpecification,
    Scope,
    ScopeKind,
    TemplateSpecification,
    WorkloadPolicySpecification,
)
from slurm_hooks.compute.names import base_instance_name, group_of_link, require_name, time_utc
from slurm_hooks.compute.resize_requests import request_body
from slurm_hooks.compute.resource_policies import workload_policy_body
from slurm_hooks.compute.templates import template_body

ZONAL = GroupReference(Scope(ScopeKind.ZONE, "z"), "g")
REGIONAL = GroupReference(Scope(ScopeKind.REGION, "r"), "g")
TEMPLATE = TemplateSpecification(
    name="t",
    machine_type="a3-ultragpu-8g",
    provisioning_model="FLEX_START",
    source_image="projects/p/global/images/i",
    network="projects/p/global/networks/n",
    subnetwork="projects/p/regions/r/subnetworks/s",
    run_duration_seconds=604_800,
    accelerator_count=8,
)


def as_message(name: str, body: dict[str, Any]) -> Any:
    """The body in the official client's type, which refuses a field that it does not have."""
    from google.cloud import compute_v1

    return getattr(compute_v1, name)(body)


def refusal(call: Any) -> str:
    with pytest.raises(ComputeError) as error:
        call()
    assert error.value.kind is ErrorKind.CONFIG
    return error.value.message


def scheduling(**changes: Any) -> Any:
    body = template_body(replace(TEMPLATE, **changes))
    return as_message("InstanceTemplate", body).properties.scheduling


def test_a_flex_start_template_says_all_that_the_service_demands() -> None:
    properties = as_message("InstanceTemplate", template_body(TEMPLATE)).properties
    assert properties.scheduling.provisioning_model == "FLEX_START"
    assert properties.scheduling.max_run_duration.seconds == 604_800
    assert properties.scheduling.instance_termination_action == "DELETE"
    assert properties.scheduling.on_host_maintenance == "TERMINATE"
    assert properties.scheduling.automatic_restart is False
    assert properties.reservation_affinity.consume_reservation_type == "NO_RESERVATION"
    assert properties.machine_type == "a3-ultragpu-8g"
    assert not properties.guest_accelerators
    assert properties.disks[0].initialize_params.disk_type == "pd-ssd"
    assert not properties.network_interfaces[0].access_configs


@pytest.mark.parametrize(
    ("model", "gpus", "service_model", "maintenance", "ends"),
    [
        ("ON_DEMAND", 0, "STANDARD", "MIGRATE", ""),
        ("ON_DEMAND", 8, "STANDARD", "TERMINATE", ""),
        ("SPOT", 0, "SPOT", "TERMINATE", "DELETE"),
    ],
)
def test_other_models_say_what_suits_them(
    model: str, gpus: int, service_model: str, maintenance: str, ends: str
) -> None:
    found = scheduling(provisioning_model=model, accelerator_count=gpus, run_duration_seconds=None)
    assert found.provisioning_model == service_model
    assert found.on_host_maintenance == maintenance
    assert found.automatic_restart is False
    assert found.instance_termination_action == ends
    assert "max_run_duration" not in found


RESERVED = "projects/p/zones/z/reservations/r"
KEY = "compute.googleapis.com/reservation-name"


def reserved(reservation: ReservationSpecification | None) -> Any:
    specification = replace(
        TEMPLATE,
        provisioning_model="RESERVATION",
        run_duration_seconds=None,
        reservation=reservation,
    )
    return as_message("InstanceTemplate", template_body(specification)).properties


def test_vms_of_a_named_reservation_name_it() -> None:
    properties = reserved(ReservationSpecification("SPECIFIC_RESERVATION", KEY, (RESERVED,)))
    affinity = properties.reservation_affinity
    assert affinity.consume_reservation_type == "SPECIFIC_RESERVATION"
    assert (affinity.key, list(affinity.values)) == (KEY, [RESERVED])
    assert properties.scheduling.provisioning_model == "STANDARD"
    assert properties.scheduling.on_host_maintenance == "TERMINATE"
    assert properties.scheduling.instance_termination_action == ""


def test_vms_bound_to_their_reservation_are_deleted_at_its_end() -> None:
    bound = ReservationSpecification("SPECIFIC_RESERVATION", KEY, (RESERVED,), bound=True)
    scheduled = reserved(bound).scheduling
    assert scheduled.provisioning_model == "RESERVATION_BOUND"
    assert scheduled.instance_termination_action == "DELETE"
    assert scheduled.on_host_maintenance == "TERMINATE"


def test_vms_of_any_reservation_name_none() -> None:
    affinity = reserved(ReservationSpecification("ANY_RESERVATION")).reservation_affinity
    assert affinity.consume_reservation_type == "ANY_RESERVATION"
    assert not affinity.key


def test_reservation_and_model_belong_together() -> None:
    any_one = ReservationSpecification("ANY_RESERVATION")
    assert "RESERVATION" in refusal(lambda: reserved(None))
    for model in ("SPOT", "ON_DEMAND", "FLEX_START"):
        wrong = replace(TEMPLATE, provisioning_model=model, reservation=any_one)
        assert "RESERVATION" in refusal(lambda wrong=wrong: template_body(wrong))


def test_confidential_vm_is_encrypted_and_not_migrated() -> None:
    specification = replace(
        TEMPLATE,
        provisioning_model="ON_DEMAND",
        run_duration_seconds=None,
        accelerator_count=0,
        confidential_instance_type="SEV_SNP",
    )
    properties = as_message("InstanceTemplate", template_body(specification)).properties
    assert properties.confidential_instance_config.confidential_instance_type == "SEV_SNP"
    assert properties.scheduling.on_host_maintenance == "TERMINATE"


@pytest.mark.parametrize("seconds", [None, 29, 604_801])
def test_a_flex_start_template_needs_a_possible_life(seconds: int | None) -> None:
    assert "run duration" in refusal(lambda: scheduling(run_duration_seconds=seconds))


def test_an_unknown_model_is_refused() -> None:
    assert "FLEX_START" in refusal(lambda: scheduling(provisioning_model="FLEX"))


def test_only_n1_machines_have_gpus_attached() -> None:
    n1 = replace(TEMPLATE, machine_type="n1-standard-8", accelerator_count=2)
    with_type = replace(n1, accelerator_type="nvidia-tesla-t4")
    (attached,) = as_message(
        "InstanceTemplate", template_body(with_type)
    ).properties.guest_accelerators
    assert (attached.accelerator_type, attached.accelerator_count) == ("nvidia-tesla-t4", 2)
    assert "accelerator type" in refusal(lambda: template_body(n1))


def test_machine_and_disk_types_are_bare_names() -> None:
    for changes in ({"machine_type": "zones/z/machineTypes/m"}, {"boot_disk_type": "a/b"}):
        assert "resource name" in refusal(lambda c=changes: template_body(replace(TEMPLATE, **c)))


def test_optional_parts_of_a_template_come_only_when_given() -> None:
    bare = template_body(replace(TEMPLATE, subnetwork=""))["properties"]
    assert not {"labels", "metadata", "tags", "service_accounts"} & bare.keys()
    full = template_body(
        replace(
            TEMPLATE,
            labels=(("l", "v"),),
            metadata=(("k", "v"),),
            tags=("t",),
            service_account="s@p",
            public_ip=True,
        )
    )
    properties = as_message("InstanceTemplate", full).properties
    assert dict(properties.labels) == {"l": "v"}
    assert [(item.key, item.value) for item in properties.metadata.items] == [("k", "v")]
    assert list(properties.tags.items) == ["t"]
    assert properties.service_accounts[0].email == "s@p"
    assert properties.network_interfaces[0].access_configs[0].type_ == "ONE_TO_ONE_NAT"


def test_a_zonal_group_starts_empty_and_repairs_nothing() -> None:
    body = group_body(GroupSpecification(ZONAL, "t", "d", ("ignored",)), "p")
    group = as_message("InstanceGroupManager", body)
    assert "target_size" in group
    assert group.target_size == 0
    assert group.instance_lifecycle_policy.default_action_on_failure == "DO_NOTHING"
    assert group.update_policy.type_ == "OPPORTUNISTIC"
    assert group.versions[0].instance_template == "projects/p/global/instanceTemplates/t"
    assert "distribution_policy" not in group
    assert group.update_policy.instance_redistribution_type == ""


def test_a_regional_group_puts_all_vms_into_one_zone() -> None:
    body = group_body(GroupSpecification(REGIONAL, "t", "d", ("r-a", "r-b")), "p")
    group = as_message("InstanceGroupManager", body)
    assert group.distribution_policy.target_shape == "ANY_SINGLE_ZONE"
    assert [zone.zone for zone in group.distribution_policy.zones] == ["zones/r-a", "zones/r-b"]
    assert group.update_policy.instance_redistribution_type == "NONE"
    assert "zones" in refusal(lambda: group_body(GroupSpecification(REGIONAL, "t", "d"), "p"))


def test_a_group_names_its_workload_policy_by_link() -> None:
    policy = WorkloadPolicySpecification(Scope(ScopeKind.REGION, "us-west4"), "w", "d")
    specification = GroupSpecification(ZONAL, "t", "d", workload_policy=policy)
    group = as_message("InstanceGroupManager", group_body(specification, "p"))
    link = "projects/p/regions/us-west4/resourcePolicies/w"
    assert group.resource_policies.workload_policy == link
    assert workload_policy_body(policy) == {
        "name": "w",
        "description": "d",
        "workload_policy": {"type_": "HIGH_THROUGHPUT"},
    }
    plain = as_message("InstanceGroupManager", group_body(GroupSpecification(ZONAL, "t", "d"), "p"))
    assert "resource_policies" not in plain


@pytest.mark.parametrize(
    ("given", "link"),
    [
        ("t", "projects/p/global/instanceTemplates/t"),
        ("regions/r/instanceTemplates/t", "projects/p/regions/r/instanceTemplates/t"),
        ("global/instanceTemplates/t", "projects/p/global/instanceTemplates/t"),
        ("projects/q/global/instanceTemplates/t", "projects/q/global/instanceTemplates/t"),
    ],
)
def test_templates_are_named_by_link(given: str, link: str) -> None:
    assert template_link(given, "p") == link


def test_the_base_instance_name_is_cut_to_58_characters() -> None:
    assert base_instance_name("g") == "g"
    assert base_instance_name("g" * 63) == "g" * 58
    assert base_instance_name("g" * 57 + "-abc") == "g" * 57


def test_a_group_without_template_takes_that_of_its_version() -> None:
    message = as_message("InstanceGroupManager", {"name": "g", "zone": "x/z"})
    assert group_from(type(message).pb(message)).template == ""
    message.versions = [{"instance_template": "x/t"}]
    assert group_from(type(message).pb(message)).template == "t"


def request(**changes: Any) -> dict[str, Any]:
    base = RequestSpecification(RequestReference(ZONAL, "r"), ("n-0", "n-1"), "d", 3600)
    return request_body(replace(base, **changes))


def test_a_request_names_exactly_its_vms() -> None:
    message = as_message("InstanceGroupManagerResizeRequest", request())
    assert [instance.name for instance in message.instances] == ["n-0", "n-1"]
    assert message.requested_run_duration.seconds == 3600
    assert message.description == "d"
    assert "resize_by" not in message


@pytest.mark.parametrize(
    ("seconds", "sent"),
    [(None, None), (30, None), (599, None), (600, 600), (604_800, 604_800)],
)
def test_a_life_below_the_least_of_requests_stands_in_the_template_alone(
    seconds: int | None, sent: int | None
) -> None:
    duration = request(run_duration_seconds=seconds).get("requested_run_duration")
    assert duration == (None if sent is None else {"seconds": sent})


@pytest.mark.parametrize(
    "changes",
    [
        {"instances": ()},
        {"instances": ("n", "n")},
        {"instances": tuple(f"n-{i}" for i in range(1001))},
        {"instances": ("N",)},
        {"run_duration_seconds": 604_801},
        {"reference": RequestReference(ZONAL, "a/b")},
    ],
)
def test_an_impossible_request_is_refused(changes: dict[str, Any]) -> None:
    refusal(lambda: request(**changes))


def test_members_with_a_vm_are_named_by_link_and_others_by_name() -> None:
    assert delete_body({"n-0": "z"})["instances"] == ["zones/z/instances/n-0"]
    assert delete_body({"n-0": ""})["instances"] == ["n-0"]
    assert delete_body({"n-0": ""})["skip_instances_on_validation_error"] is True


@pytest.mark.parametrize(
    "members",
    [{}, {"a": "z", "b": ""}, {"a/b": "z"}, {"a": "x/y"}, {f"n-{i}": "z" for i in range(1001)}],
)
def test_an_impossible_deletion_is_refused(members: dict[str, str]) -> None:
    refusal(lambda: delete_body(members))


@pytest.mark.parametrize("names", [[], ["A"], [f"n-{i}" for i in range(1001)]])
def test_an_impossible_creation_is_refused(names: list[str]) -> None:
    refusal(lambda: create_body(names))


@given(st.dictionaries(st.text("abc", min_size=1), st.sampled_from(["", "y", "z"]), max_size=20))
def test_batches_hold_everything_once_and_are_never_mixed(members: dict[str, str]) -> None:
    batches = delete_batches(members)
    assert {k: v for batch in batches for k, v in batch.items()} == members
    assert sum(map(len, batches)) == len(members)
    assert not any(is_mixed(batch) for batch in batches)
    assert all(batches)


def test_batches_are_as_large_as_a_call_may_be() -> None:
    members = {f"n-{i}": "z" for i in range(2 * MOST_PER_CALL + 1)}
    assert [len(batch) for batch in delete_batches(members)] == [MOST_PER_CALL, MOST_PER_CALL, 1]


@pytest.mark.parametrize("name", ["", "A", "a_b", "-a", "a-", "0a", "a" * 64, "a/b", "a?b", "a\n"])
def test_a_name_that_the_service_cannot_have_is_refused(name: str) -> None:
    refusal(lambda: require_name(name))


@pytest.mark.parametrize(
    ("link", "group"),
    [
        ("projects/123/zones/z/instanceGroupManagers/g", ZONAL),
        ("projects/123/regions/r/instanceGroupManagers/g", REGIONAL),
        ("https://www.googleapis.com/compute/v1/projects/p/zones/z/instanceGroupManagers/g", ZONAL),
        ("projects/123/zones/z/instanceGroups/g", None),
        ("", None),
    ],
)
def test_groups_are_known_by_their_links(link: str, group: GroupReference | None) -> None:
    assert group_of_link(link) == group


@pytest.mark.parametrize("text", ["", "yesterday", "2025-02-05T01:24:02.564"])
def test_a_time_that_cannot_be_read_is_none(text: str) -> None:
    assert time_utc(text) is None
