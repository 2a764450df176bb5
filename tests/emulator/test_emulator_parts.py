"""The small pure parts: filters, pages, metadata trees, schedule, options, references."""

from __future__ import annotations

import random
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from slurm_hooks.sandbox.emulator import (
    faults,
    machine_types,
    metadata,
    options,
    quotas,
    settings,
)
from slurm_hooks.sandbox.emulator.http import filters
from slurm_hooks.sandbox.emulator.http.paging import Listable, page_of, read_query
from slurm_hooks.sandbox.emulator.identifiers import Identifiers, timestamp
from slurm_hooks.sandbox.emulator.options import EmulatorError
from slurm_hooks.sandbox.emulator.problems import ApiError
from slurm_hooks.sandbox.emulator.resource_names import parse_reference
from slurm_hooks.sandbox.emulator.schedule import Effect, Schedule
from tests.emulator.emulated_project import EmulatedProject

NOW_UTC = datetime(2026, 1, 5, 17, 15, 30, 250_000, UTC)
ITEM: dict[str, Any] = {
    "name": "n-0",
    "status": "RUNNING",
    "targetSize": 3,
    "startRestricted": False,
    "labels": {"cluster": "demo", "pool": "a3u"},
    "disks": [{"boot": True, "type": "PERSISTENT"}],
}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "name = n-0",
        "name=n-0",
        'name = "n-0"',
        "name eq n-0",
        'name eq ".*\\bn\\-0\\b.*"',
        "name ne other",
        "name != other",
        "name = n-*",
        "labels.pool:*",
        "labels.pool = a3u AND labels.cluster = demo",
        "(labels.pool = a3u) (labels.cluster = demo)",
        "name = x OR status = RUNNING",
        "NOT name = x",
        "name = x OR status = RUNNING AND labels.pool = a3u",
        "targetSize > 2",
        "targetSize <= 3",
        "startRestricted = false",
        "disks.type = PERSISTENT",
        "name : n-",
    ],
)
def test_filter_keeps_the_item(text: str) -> None:
    assert filters.parse(text)(ITEM)


@pytest.mark.parametrize(
    "text",
    [
        "name = n-1",
        "name eq n",
        "name ne n-0",
        "labels.missing:*",
        "labels.pool = a3u AND labels.cluster = other",
        "(labels.pool = a3u) (labels.cluster = other)",
        "NOT name = n-0",
        "name = n-0 OR status = RUNNING AND labels.pool = other",
        "targetSize < 3",
        "name = x OR (status = RUNNING AND targetSize = 4)",
    ],
)
def test_filter_drops_the_item(text: str) -> None:
    assert not filters.parse(text)(ITEM)


@pytest.mark.parametrize(
    "text", ["name", "name =", "= x", "(name = x", "name = x )", "name eq (", '"']
)
def test_malformed_filter_is_refused(text: str) -> None:
    with pytest.raises(ApiError) as refused:
        filters.parse(text)
    assert refused.value.status == 400


def read_all(names: list[str], size: int, change: Any = None) -> list[str]:
    """Read a list of names page by page; `change` alters it after the first page."""
    seen: list[str] = []
    token = ""
    while True:
        query = {"maxResults": str(size), "pageToken": token}
        items = [Listable(name, name) for name in names]
        page = page_of(items, read_query(query), lambda name: {"name": name})
        seen += [name for name, _ in page.entries]
        token = page.next_token
        if not token:
            return seen
        if change is not None:
            change(names)
            change = None


@pytest.mark.parametrize("size", [1, 2, 3, 5, 500])
def test_pages_together_are_the_list(size: int) -> None:
    assert read_all(["c", "a", "e", "b", "d"], size) == ["a", "b", "c", "d", "e"]


def test_item_deleted_between_pages_makes_no_other_item_missing() -> None:
    assert read_all(["a", "b", "c", "d"], 2, lambda names: names.remove("b")) == [
        "a",
        "b",
        "c",
        "d",
    ]


def test_newest_first_is_by_time_of_creation() -> None:
    items = [Listable(name, name, created) for name, created in (("a", 1), ("b", 3), ("c", 2))]
    query = read_query({"orderBy": "creationTimestamp desc"})
    page = page_of(items, query, lambda name: {"name": name})
    assert [name for name, _ in page.entries] == ["b", "c", "a"]


def test_effects_happen_in_order_of_time_and_then_of_entry() -> None:
    schedule = Schedule()
    seen: list[str] = []

    def note(name: str) -> Effect:
        return lambda: seen.append(name)

    for name, seconds in (("late", 2), ("first", 1), ("second", 1)):
        schedule.at(NOW_UTC + timedelta(seconds=seconds), note(name))
    while (due := schedule.pop_due(NOW_UTC + timedelta(seconds=1))) is not None:
        due[1]()
    assert seen == ["first", "second"]
    assert schedule.next_time_utc() == NOW_UTC + timedelta(seconds=2)


def test_time_has_milliseconds_and_an_offset() -> None:
    assert timestamp(NOW_UTC) == "2026-01-05T09:15:30.250-08:00"


def test_operation_name_has_the_services_form() -> None:
    name = Identifiers("p", 1, random.Random(3)).operation_name(NOW_UTC)
    assert re.fullmatch(r"operation-1767633330250-[0-9a-f]{13}-[0-9a-f]{8}-[0-9a-f]{8}", name)


def test_ids_are_never_given_twice() -> None:
    identifiers = Identifiers("p", 1, random.Random(3))
    ids = {identifiers.unique_id() for _ in range(10_000)}
    assert len(ids) == 10_000


@pytest.mark.parametrize(
    ("text", "link"),
    [
        ("global/instanceTemplates/t", "projects/demo/global/instanceTemplates/t"),
        ("projects/other/global/instanceTemplates/t", "projects/other/global/instanceTemplates/t"),
        (
            "https://www.googleapis.com/compute/v1/projects/p/regions/r/instanceTemplates/t",
            "projects/p/regions/r/instanceTemplates/t",
        ),
        (
            "http://127.0.0.1:80/compute/v1/projects/p/global/instanceTemplates/t",
            "projects/p/global/instanceTemplates/t",
        ),
    ],
)
def test_reference_becomes_a_full_link(text: str, link: str) -> None:
    reference = parse_reference(text, "instanceTemplates")
    assert reference is not None
    assert reference.link("demo") == f"https://www.googleapis.com/compute/v1/{link}"


@pytest.mark.parametrize("text", ["t", "instanceTemplates/t", "global/images/t", "https://x/t", ""])
def test_malformed_reference_is_none(text: str) -> None:
    assert parse_reference(text, "instanceTemplates") is None


@pytest.mark.parametrize("text", ["127.0.0.1:0", "localhost:80", "127.1.2.3:65535", "[::1]:8080"])
def test_loopback_addresses_may_be_served(text: str) -> None:
    host, port = options.parse_listen(text)
    assert host in ("127.0.0.1", "127.1.2.3", "::1")
    assert 0 <= port <= 65535


@pytest.mark.parametrize(
    "text",
    ["0.0.0.0:80", "10.0.0.1:80", "host:80", ":80", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:65536"],
)
def test_other_addresses_may_not(text: str) -> None:
    with pytest.raises(EmulatorError):
        options.parse_listen(text)


def test_capacities_are_read_from_the_command_line() -> None:
    texts = ["3", "us-central1-a/a3-ultragpu-8g=2"]
    assert options.parse_capacities(texts) == (3, (("us-central1-a", "a3-ultragpu-8g", 2),))
    assert options.parse_capacities([]) == (None, ())
    with pytest.raises(EmulatorError):
        options.parse_capacities(["a=b"])


def test_settings_change_by_their_json_names() -> None:
    changed = settings.changed(settings.Latency(), {"operationSeconds": 3})
    assert changed.operation_seconds == 3
    for bad in ({"nonsense": 1}, {"operationSeconds": "1"}, {"operationSeconds": -1}):
        with pytest.raises(ValueError):
            settings.changed(settings.Latency(), bad)


def test_every_latency_is_smaller_when_fast() -> None:
    usual = settings.to_json(settings.Latency())
    assert all(seconds < usual[name] for name, seconds in settings.to_json(settings.FAST).items())


def test_first_matching_fault_hits_until_it_is_used_up() -> None:
    table = faults.FaultTable()
    table.faults = [
        faults.parse({"method": "GET", "path": "instances$", "count": 1}),
        faults.parse({"method": "*", "status": 500, "count": 1}),
    ]
    statuses = [table.take("GET", "/x/instances") for _ in range(3)]
    assert [fault.status if fault else None for fault in statuses] == [503, 500, None]


@pytest.mark.parametrize(
    ("name", "cpus", "gpus"),
    [("a3-ultragpu-8g", 224, 8), ("n2-standard-8", 8, 0), ("e2-medium", 2, 0)],
)
def test_machine_type_is_known(name: str, cpus: int, gpus: int) -> None:
    machine = machine_types.find(name)
    assert machine is not None
    assert (machine.guest_cpus, machine.accelerator_count) == (cpus, gpus)


@pytest.mark.parametrize("name", ["", "a3-ultragpu-9g", "n2-standard-7", "n2-standard-8x"])
def test_other_machine_types_are_not(name: str) -> None:
    assert machine_types.find(name) is None


def test_every_gpu_of_the_catalogue_has_a_quota() -> None:
    for machine in machine_types.listed():
        if machine.accelerator_type:
            metric = machine_types.GPU_METRICS[machine.accelerator_type]
            assert metric in quotas.DEFAULT_LIMITS


def test_flex_start_vms_use_preemptible_quotas() -> None:
    properties = {
        "machineType": "a3-ultragpu-8g",
        "scheduling": {"provisioningModel": "FLEX_START"},
    }
    assert quotas.needs_of(properties, 2) == {
        "INSTANCES": 2,
        "PREEMPTIBLE_CPUS": 448,
        "PREEMPTIBLE_NVIDIA_H200_GPUS": 16,
    }


@pytest.fixture
def tree() -> dict[str, Any]:
    project = EmulatedProject()
    project.ask(project.add_group(), "n-0")
    project.pass_time(60)
    return metadata.tree(project.world, project.instance("n-0"))


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("instance/name", "n-0"),
        ("instance/zone", "projects/123456789012/zones/us-central1-a"),
        ("instance/machine-type", "projects/123456789012/machineTypes/a3-ultragpu-8g"),
        ("instance/hostname", "n-0.us-central1-a.c.demo.internal"),
        ("instance/attributes/k", "v"),
        ("instance/preempted", "FALSE"),
        ("instance/maintenance-event", "NONE"),
        ("instance/scheduling/on-host-maintenance", "TERMINATE"),
        ("instance/scheduling/automatic-restart", "FALSE"),
        ("instance/network-interfaces/0/ip", "10.128.0.2"),
        ("project/numeric-project-id", "123456789012"),
        ("instance/network-interfaces/", "0/\n"),
        ("project/", "attributes/\nnumeric-project-id\nproject-id\n"),
    ],
)
def test_metadata_says(tree: dict[str, Any], path: str, text: str) -> None:
    node = metadata.find(tree, path)
    assert metadata.render(node, path, recursive=False, as_json=False)[0] == text


@pytest.mark.parametrize(
    "path",
    [
        "nothing",
        "instance/attributes/none",
        "instance/name/x",
        "instance/network-interfaces/1",
        "instance/shutdown-details/stop-state",
    ],
)
def test_metadata_has_no(tree: dict[str, Any], path: str) -> None:
    with pytest.raises(KeyError):
        metadata.find(tree, path)
