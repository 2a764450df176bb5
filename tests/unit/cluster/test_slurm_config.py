"""The config maps of the cluster file: what may be set where, and what is said otherwise."""

from __future__ import annotations

import json

import pytest

from slurm_hooks.cluster.document import Mapping, parse_json
from slurm_hooks.cluster.errors import ClusterFileError
from slurm_hooks.cluster.load import build_cluster
from slurm_hooks.cluster.machine_types import standard_catalogue
from slurm_hooks.cluster.slurm_parameters import (
    Parameter,
    Place,
    all_parameters,
    find_parameter,
    nearest_parameter,
)
from slurm_hooks.cluster.slurm_values import what_is_right
from tests.unit.cluster.files import SLURM, build, changed, mistakes

CONFIG = f"{SLURM}.config"
PARTITION = f"{SLURM}.partitions[0].config"
NODES = f"{SLURM}.node_sets[0].config"


def with_config(config: object, *, path: str = CONFIG) -> dict[str, object]:
    if path == NODES:
        entry = {"node_pool_id": "a3u", "config": config}
        return changed(**{f"{SLURM}.node_sets": [entry]})
    return changed(**{path.replace("[0]", ".0"): config})


def test_keys_are_read_without_regard_to_case_and_underscores() -> None:
    config = {"def_mem_per_cpu": "100", "KILLWAIT": "60", "SchedulerParameters": "bf_window=1440"}
    assert build(with_config(config)).slurm_config == (
        ("DefMemPerCPU", "100"),
        ("KillWait", "60"),
        ("SchedulerParameters", "bf_window=1440"),
    )


def test_maps_of_partitions_and_nodes_are_kept_with_theirs() -> None:
    cluster = build(with_config({"over_subscribe": "FORCE:4"}, path=PARTITION))
    assert cluster.partition_config == {"a3u": (("OverSubscribe", "FORCE:4"),)}
    pools = build(with_config({"mem_spec_limit": "1000"}, path=NODES)).pools
    assert pools["a3u"].slurm_config == (("MemSpecLimit", "1000"),)
    assert pools["login"].slurm_config == ()


@pytest.mark.parametrize(
    ("path", "key", "value", "problem", "remedy"),
    [
        (CONFIG, "PreemptMod", "OFF", "unknown parameter", "did you mean PreemptMode?"),
        (CONFIG, "qqqq", "1", "unknown parameter", "manual"),
        (CONFIG, "MaxNodes", "3", "no parameter of slurm_spec.config", "config of a partition"),
        (PARTITION, "KillWait", "3", "no parameter of", "move it to slurm_spec.config"),
        (NODES, "OverSubscribe", "NO", "no parameter of", "config of a partition"),
        (CONFIG, "PurgeJobAfter", "1month", "slurmdbd.conf", "set it in slurmdbd.conf"),
        (PARTITION, "StorageHost", "db", "slurmdbd.conf", "set it in slurmdbd.conf"),
        (CONFIG, "prolog", "/x", "reserved", "use prolog_bash_scripts"),
        (CONFIG, "Epilog", "/x", "reserved", "use epilog_bash_scripts"),
        (CONFIG, "ResumeProgram", "/x", "VMs are created and deleted", "remove it"),
        (CONFIG, "ClusterName", "x", "who and where the controller is", "own slurm.conf"),
        (PARTITION, "default", "YES", "reserved", "use default_partition_id"),
        (PARTITION, "Nodes", "n1", "reserved", "use node_pool_ids"),
        (NODES, "CPUs", "8", "follows from the machine type", "machine_types.json"),
        (CONFIG, "KillWait", 30, "30 is no text", "in quotes"),
        (CONFIG, "KillWait", None, "is no text", "in quotes"),
        (CONFIG, "KillWait", "70000", "no value of KillWait", "65535"),
        (CONFIG, "DisableRootJobs", "maybe", "no value of", "YES"),
        (CONFIG, "PriorityMaxAge", "abc", "no value of", "1-00:00:00"),
        (CONFIG, "PreemptMode", "CHECKPOINT", "no value of", "SUSPEND"),
        (CONFIG, "SelectType", "select/linear", "no value of", "select/cons_tres"),
        (CONFIG, "ResumeTimeout", "65535", "no value of", "65534"),
        (CONFIG, "SuspendTime", "INFINITE", "no value of", "power saving"),
        (CONFIG, "MaxDBDMsgs", "1", "no value of", "10000"),
        (CONFIG, "LaunchParameters", "a b", "no value of", "blanks"),
        (CONFIG, "LaunchParameters", "a\nResumeProgram=/x", "no value of", "blanks"),
        (CONFIG, "LaunchParameters", "a#b", "no value of", "#"),
        (CONFIG, "LaunchParameters", "", "no value of", "one word"),
        (CONFIG, "SlurmctldParameters", "cloud_dns", "do not resolve", "remove it"),
        (CONFIG, "SlurmctldParameters", "a,reboot_from_controller", "reboot itself", "remove"),
        (PARTITION, "OverSubscribe", "MAYBE", "no value of", "FORCE:4"),
        (PARTITION, "MaxTime", "long", "no value of", "days"),
        (PARTITION, "PreemptMode", "GANG", "no value of", "REQUEUE"),
    ],
)
def test_what_a_map_may_not_say_is_told_at_its_place(
    path: str, key: str, value: object, problem: str, remedy: str
) -> None:
    found = mistakes(with_config({key: value}, path=path))
    assert list(found) == [f"{path}.{key}"]
    assert problem in found[f"{path}.{key}"].problem
    assert remedy in found[f"{path}.{key}"].remedy


@pytest.mark.parametrize(
    "config",
    [
        {"PreemptType": "preempt/none", "PreemptMode": "SUSPEND,GANG"},
        {"PreemptMode": "REQUEUE"},
        {"PreemptType": "preempt/partition_prio", "PreemptMode": "OFF"},
        {"PreemptType": "preempt/partition_prio", "PreemptMode": "GANG"},
        {"PreemptType": "preempt/partition_prio", "PreemptMode": "SUSPEND"},
        {"PreemptType": "preempt/partition_prio", "PreemptMode": "CANCEL,REQUEUE"},
        {"PreemptType": "preempt/qos", "PreemptMode": "OFF"},
    ],
)
def test_preemption_with_which_slurmctld_would_not_start_is_refused(
    config: dict[str, str],
) -> None:
    assert list(mistakes(with_config(config))) == [f"{CONFIG}.PreemptMode"]


def test_preemption_type_alone_is_refused_at_its_own_place() -> None:
    found = mistakes(with_config({"preempt_type": "preempt/qos"}))
    assert list(found) == [f"{CONFIG}.preempt_type"]


@pytest.mark.parametrize(
    "config",
    [
        {"PreemptMode": "GANG"},
        {"PreemptType": "preempt/partition_prio", "PreemptMode": "SUSPEND,GANG"},
        {"PreemptType": "preempt/qos", "PreemptMode": "requeue"},
        {"PreemptType": "preempt/qos", "PreemptMode": "WITHIN,CANCEL"},
        {"PriorityWeightTRES": "cpu=100,mem=150"},
        {"PriorityWeightTRES": "GRES/gpu=9", "AccountingStorageTRES": "gres/gpu,fs/lustre"},
    ],
)
def test_pairs_with_which_slurmctld_starts_are_taken(config: dict[str, str]) -> None:
    assert not mistakes(with_config(config))


@pytest.mark.parametrize(
    ("path", "config", "named"),
    [
        (CONFIG, {"DefMemPerCPU": "1", "DefMemPerNode": "1"}, "DefMemPerNode"),
        (PARTITION, {"MaxMemPerCPU": "1", "max_mem_per_node": "1"}, "max_mem_per_node"),
        (PARTITION, {"AllowAccounts": "a", "DenyAccounts": "b"}, "DenyAccounts"),
        (NODES, {"CoreSpecCount": "1", "CpuSpecList": "0"}, "CpuSpecList"),
        (CONFIG, {"MCSParameters": "ondemand"}, "MCSParameters"),
        (CONFIG, {"PriorityWeightTRES": "cpu=1,gres/gpu=2"}, "PriorityWeightTRES"),
    ],
)
def test_settings_that_exclude_or_need_another_are_told(
    path: str, config: dict[str, str], named: str
) -> None:
    assert list(mistakes(with_config(config, path=path))) == [f"{path}.{named}"]


def test_parameter_in_two_spellings_is_refused() -> None:
    found = mistakes(with_config({"KillWait": "1", "kill_wait": "2"}))
    assert list(found) == [f"{CONFIG}.kill_wait"]


@pytest.mark.parametrize("path", ["orchestrator_spec.slurm_spec.config", "labels"])
def test_key_that_is_written_twice_is_refused(path: str) -> None:
    field = path.rpartition(".")[2]
    text = json.dumps(changed(**{path: {"key": "1"}}))
    text = text.replace(
        f'"{field}": {{"key": "1"}}', f'"{field}": {{"killwait":"1","killwait":"2"}}'
    )
    parsed = parse_json(text)
    assert isinstance(parsed, Mapping)
    with pytest.raises(ClusterFileError) as caught:
        build_cluster(parsed, standard_catalogue())
    assert [error.path for error in caught.value.errors] == [f"{path}.killwait"]


def test_all_mistakes_of_all_maps_are_told_at_once() -> None:
    document = changed(
        **{
            CONFIG: {"Prolog": "/x", "PreemptMode": "REQUEUE", "KillWait": 5, "nope": "x"},
            f"{SLURM}.partitions.0.config": {"Default": "YES", "MaxNodes": "many"},
            f"{SLURM}.node_sets": [
                {"node_pool_id": "a3u", "config": {"State": "DOWN"}},
                {"node_pool_id": "a3u", "config": {"Weight": "x"}},
                {"node_pool_id": "login"},
                {"node_pool_id": "none"},
            ],
        }
    )
    sets = f"{SLURM}.node_sets"
    assert set(mistakes(document)) == {
        *(f"{CONFIG}.{key}" for key in ("Prolog", "PreemptMode", "KillWait", "nope")),
        *(f"{PARTITION}.{key}" for key in ("Default", "MaxNodes")),
        f"{sets}[0].config.State",
        f"{sets}[1].config.Weight",
        f"{sets}[1].node_pool_id",
        f"{sets}[2].node_pool_id",
        f"{sets}[3].node_pool_id",
    }


def test_older_fields_mean_the_parameters_of_their_names() -> None:
    document = changed(
        **{
            f"{SLURM}.scheduling": {
                "priority_type": "priority/multifactor",
                "priority_weight_job_size": "30",
                "priority_weight_tres": "cpu=100,mem=150",
                "preempt_type": "preempt/partition_prio",
                "preempt_mode": "SUSPEND,GANG",
                "preempt_exempt_time": "00:00:00",
            },
            f"{SLURM}.accounting": {"accounting_storage_enforce": "associations,limits"},
        }
    )
    assert dict(build(document).slurm_config) == {
        "PriorityType": "priority/multifactor",
        "PriorityWeightJobSize": "30",
        "PriorityWeightTRES": "cpu=100,mem=150",
        "PreemptType": "preempt/partition_prio",
        "PreemptMode": "SUSPEND,GANG",
        "PreemptExemptTime": "00:00:00",
        "AccountingStorageEnforce": "associations,limits",
    }


@pytest.mark.parametrize(
    ("field", "section"),
    [
        ("scheduling", {"priority_type": "priority/basic"}),
        ("accounting", {"accounting_storage_enforce": "limits"}),
    ],
)
def test_older_fields_may_not_stand_beside_the_map(field: str, section: dict[str, str]) -> None:
    document = changed(**{CONFIG: {"KillWait": "60"}, f"{SLURM}.{field}": section})
    found = mistakes(document)
    assert list(found) == [f"{SLURM}.{field}"]
    assert found[f"{SLURM}.{field}"].remedy == "move its settings into config"


def test_older_fields_stand_beside_the_maps_of_partitions_and_nodes() -> None:
    document = changed(
        **{
            f"{SLURM}.scheduling": {"priority_type": "priority/basic"},
            f"{SLURM}.partitions.0.config": {"MaxNodes": "2"},
            f"{SLURM}.node_sets": [{"node_pool_id": "a3u", "config": {"Weight": "3"}}],
        }
    )
    assert not mistakes(document)


def test_mistakes_in_older_fields_are_told_in_their_own_words() -> None:
    section = {"preempt_mode": "SUSPEND", "priority_weight_age": "-1"}
    found = mistakes(changed(**{f"{SLURM}.scheduling": section}))
    assert list(found) == [f"{SLURM}.scheduling.priority_weight_age"]
    found = mistakes(changed(**{f"{SLURM}.scheduling": {"preempt_mode": "SUSPEND"}}))
    assert list(found) == [f"{SLURM}.scheduling.preempt_mode"]


def test_nearest_parameter_is_never_one_that_is_refused() -> None:
    assert nearest_parameter(Place.GLOBAL, "HealthCheckProgramm") != "HealthCheckProgram"
    assert nearest_parameter(Place.PARTITION, "max_tim") == "MaxTime"


@pytest.mark.parametrize("parameter", all_parameters(), ids=lambda found: found.name)
def test_every_kind_of_the_table_can_judge_values(parameter: Parameter) -> None:
    assert what_is_right(parameter.kind, "no such thing")
    assert isinstance(what_is_right(parameter.kind, "1"), str)


def test_reserved_parameters_say_why_and_what_instead() -> None:
    reserved = [found for found in all_parameters() if found.reserved_for]
    assert len(reserved) > 40
    assert all(found.remedy for found in reserved)
    assert find_parameter(Place.GLOBAL, "resume_program") in reserved
