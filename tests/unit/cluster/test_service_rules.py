"""The managed service's documentation held against what we do: its fields, rules, examples."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from slurm_hooks.cluster.errors import ClusterFileError, FieldError
from slurm_hooks.cluster.fields import parse_duration_seconds
from slurm_hooks.cluster.load import load_cluster
from slurm_hooks.cluster.machine_types import standard_catalogue
from slurm_hooks.cluster.slurm_parameters import Place, find_parameter
from slurm_hooks.cluster.spec import ClusterSpec, NodePoolSpec, SlurmSpec, Spec
from slurm_hooks.cluster.spelling import part_of
from tests.shared_data import shared_file
from tests.unit.cluster.files import ABSENT, SLURM, build, changed, mistakes

VALUES = {
    "<project-id>": "example-project",
    "<region>": "us-central1",
    "<zone>": "us-central1-a",
    "<filestore-id>": "home",
}


def section(title: str) -> str:
    """One section of the facts, from its heading to the next of any level."""
    text = shared_file("facts/managed-service.md").read_text()
    found = re.search(rf"^#+ {re.escape(title)}.*?$(.*?)(?=^#|\Z)", text, re.DOTALL | re.MULTILINE)
    assert found, title
    return found.group(1)


def rows(title: str) -> list[list[str]]:
    """The rows of a section's table, without its head."""
    lines = [line for line in section(title).splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def example(**values: str) -> str:
    """The user's own configuration, with its placeholders replaced as far as given."""
    text = section("8. Example").partition("```json\n")[2].partition("```")[0]
    for placeholder, value in values.items():
        text = text.replace(placeholder, value)
    return text


def mistakes_in(directory: Path, text: str) -> list[FieldError]:
    """What is said about a file of this text."""
    path = directory / "cluster_config.json"
    path.write_text(text)
    try:
        load_cluster(path)
    except ClusterFileError as error:
        return list(error.errors)
    return []


def is_known(model: type[Spec], path: str) -> bool:
    """Whether a part has the field of a path such as `boot_disk.boot_disk_size_gb`, or refuses it
    by name."""
    name, _, rest = path.partition(".")
    name = name.removesuffix("[]")
    if name in model.not_read:
        return True
    field = model.model_fields.get(name)
    if field is None:
        return False
    part = part_of(field.annotation)
    return not rest or (part is not None and is_known(part, rest))


@pytest.mark.parametrize(
    ("title", "model"),
    [("2.1 Cluster", ClusterSpec), ("2.2 ", NodePoolSpec), ("2.3 ", SlurmSpec)],
)
def test_every_field_of_the_service_is_known_by_name(title: str, model: type[Spec]) -> None:
    names = [name for row in rows(title) for name in re.findall(r"`([a-z_.\[\]]+)`", row[0])]
    assert len(names) > 8
    parents = {name.rpartition(".")[0] + "." for name in names if "." in name} | {""}
    unknown = [
        name for name in names if not any(is_known(model, parent + name) for parent in parents)
    ]
    assert unknown == []


def test_users_own_configuration_is_taken_once_its_placeholders_are_replaced(
    tmp_path: Path,
) -> None:
    assert mistakes_in(tmp_path, example(**VALUES)) == []


def test_every_placeholder_of_the_example_is_told_with_its_place(tmp_path: Path) -> None:
    found = {error.path: error.problem for error in mistakes_in(tmp_path, example())}
    expected = {
        "name",
        "network.network",
        "network.subnetwork",
        "node_pools[0].zone",
        "node_pools[1].zone",
        f"{SLURM}.home_directory_storage",
    }
    assert {path for path, problem in found.items() if "placeholder" in problem} == expected


@pytest.mark.parametrize(
    ("old", "new", "cause"),
    [
        ('"zone": "us-central1-a",\n', '"zone": "us-central1-a"\n', "comma"),
        ('"boot_disk_size_gb": 120 }', '"boot_disk_size_gb": 120, }', "comma"),
        ('"min_node_count": 0', '"min_node_count": MIN_NODE_COUNT', "MIN_NODE_COUNT"),
        ('{ "id": "login",', '{ "id": "login", // the login nodes\n', "comment"),
    ],
)
def test_mistakes_of_other_published_examples_are_told_with_line_and_cause(
    tmp_path: Path, old: str, new: str, cause: str
) -> None:
    good = example(**VALUES)
    assert old in good
    line = good[: good.index(old)].count("\n") + 1
    first = mistakes_in(tmp_path, good.replace(old, new, 1))[0]
    place = re.fullmatch(r"line (\d+), column \d+", first.path)
    assert place and int(place.group(1)) in (line, line + 1)
    assert cause in first.problem + first.remedy


def test_every_machine_of_the_service_is_known_with_its_gpus() -> None:
    text = section("2.4 Machines")
    named = re.findall(r"`(a[0-9a-z-]+g)` \((NVIDIA_[A-Z0-9_]+)\)", text)
    assert len(named) == 4
    for name, accelerator in named:
        machine = standard_catalogue().machine_types[name]
        assert (machine.accelerator_type, machine.accelerator_count) == (accelerator, 8)
    assert standard_catalogue().machine_types["a4x-highgpu-4g"].accelerator_count == 4


def pool_of(model: object, *, has_affinity: bool, is_gpu: bool) -> dict[str, Any]:
    machine: dict[str, Any] = {"machine_type": "a3-ultragpu-8g" if is_gpu else "n2-standard-8"}
    if has_affinity:
        machine["reservation_affinity"] = {
            "reservationAffinityType": "SPECIFIC_RESERVATION",
            "key": "compute.googleapis.com/reservation-name",
            "values": ["projects/p/zones/us-central1-a/reservations/r"],
        }
    return changed(
        node_pools__1__machine_spec=machine,
        node_pools__1__boot_disk=ABSENT,
        node_pools__1__provisioning_model=model,
        node_pools__1__flex_start_max_duration=ABSENT,
    )


def test_provisioning_models_and_affinities_go_together_as_the_service_says() -> None:
    for value, rule in rows("2.5 Provisioning"):
        if "unset" not in value:
            for model in value.split(", "):
                for has_affinity in (True, False):
                    document = pool_of(model, has_affinity=has_affinity, is_gpu=True)
                    assert bool(mistakes(document)) == (has_affinity == ("absent" in rule)), model
            continue
        is_gpu, has_affinity = "GPU" in value, value.endswith("with affinity")
        document = pool_of(ABSENT, has_affinity=has_affinity, is_gpu=is_gpu)
        if "rejected" in rule:
            assert list(mistakes(document)) == ["node_pools[1].provisioning_model"]
        else:
            assert build(document).pools["a3u"].provisioning_model == rule.rpartition(" ")[2]


def test_standard_is_no_provisioning_model() -> None:
    assert "`STANDARD` is no value" in section("2.5 Provisioning")
    assert mistakes(pool_of("STANDARD", has_affinity=False, is_gpu=True))


def test_keys_that_the_service_refuses_are_refused_by_name() -> None:
    (line,) = (line for line in section("2.3 ").splitlines() if line.startswith("- Refused:"))
    names = re.findall(r"`([A-Za-z]+)`", line)
    assert {"HealthCheckProgram", "Prolog", "StorageHost", "Default"} <= set(names)
    for name in names:
        path = f"{SLURM}.partitions.0.config" if name == "Default" else f"{SLURM}.config"
        found = mistakes(changed(**{path: {name: "x"}}))
        (error,) = found.values()
        assert error.path.endswith(f".{name}")
        is_of_slurmdbd = find_parameter(Place.SLURMDBD, name) is not None
        assert ("slurmdbd.conf" if is_of_slurmdbd else "reserved") in error.problem


def test_pair_that_passes_at_the_service_is_refused_here() -> None:
    pair = re.findall(r"`(Preempt\w+)=([\w/,]+)`", section("2.3 "))
    assert len(pair) == 2
    assert mistakes(changed(**{f"{SLURM}.config": dict(pair)}))


def test_values_that_the_service_gives_as_examples_are_taken() -> None:
    text = section("2.3 ")
    weights = re.search(r"`priority_weight_tres` \(`([^`]+)`\)", text)
    options = re.search(r"`(bf_window=[^`]+)`", text)
    assert weights and options
    config = {
        "SchedulerParameters": options.group(1),
        "priority_weight_tres": weights.group(1),
        "def_mem_per_cpu": "100",
        "PreemptType": "preempt/partition_prio",
        "PreemptMode": "SUSPEND,GANG",
    }
    assert mistakes(changed(**{f"{SLURM}.config": config})) == {}


def test_run_durations_have_the_services_range_and_default() -> None:
    (row,) = (row for row in rows("2.2 ") if row[0] == "`flex_start_max_duration`")
    limits = re.search(r"(\d+) s to ([\d ]+) s", row[2])
    assert limits
    shortest, longest = (int(text.replace(" ", "")) for text in limits.groups())
    assert parse_duration_seconds(f"{shortest}s") == shortest
    default = json.loads(row[1].partition("`")[2].partition("`")[0])
    assert parse_duration_seconds(default) == longest
    for seconds in (shortest - 1, longest + 1):
        assert mistakes(changed(node_pools__1__flex_start_max_duration=f"{seconds}s"))
