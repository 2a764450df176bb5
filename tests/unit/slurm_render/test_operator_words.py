"""Settings of the cluster file in the rendered files: theirs win, and what we need stays."""

from __future__ import annotations

from dataclasses import replace

import pytest

from slurm_hooks.cluster.topology import Cluster
from slurm_hooks.slurm.render import RenderError, RenderOptions, render
from slurm_hooks.slurm.render.partitions import limit_seconds
from tests.unit.slurm_render.clusters import cluster_of, pool

OLD, NEW = (22, 5), (25, 11)


def lines_of(cluster: Cluster, version: tuple[int, int] = OLD) -> dict[str, list[str]]:
    """The lines of all rendered files that say something, by what they set."""
    found: dict[str, list[str]] = {}
    for text in render(cluster, RenderOptions(slurm_version=version)).values():
        for line in text.splitlines():
            if line and line[0] != "#":
                found.setdefault(line.partition("=")[0], []).append(line)
    return found


def with_globals(**settings: str) -> Cluster:
    return replace(cluster_of(pool("p")), slurm_config=tuple(settings.items()))


def partition_line(settings: dict[str, str], life_seconds: int | None = None) -> list[str]:
    cluster = cluster_of(pool("p", life_seconds=life_seconds))
    cluster = replace(cluster, partition_config={"p": tuple(settings.items())})
    (line,) = lines_of(cluster)["PartitionName"]
    return line.split()


def test_setting_of_the_operator_stands_where_ours_would_and_once() -> None:
    found = lines_of(with_globals(JobRequeue="0", SuspendTime="600", KillWait="60"))
    assert found["JobRequeue"] == ["JobRequeue=0"]
    assert found["SuspendTime"] == ["SuspendTime=600"]
    assert found["KillWait"] == ["KillWait=60"]


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        (
            "SlurmctldParameters",
            "enable_configless",
            {"idle_on_node_suspend", "cloud_reg_addrs", "enable_configless"},
        ),
        (
            "SchedulerParameters",
            "bf_interval=60,bf_window=1440",
            {"bf_interval=60", "bf_window=1440", "sched_interval=10", "nohold_on_prolog_fail"},
        ),
        ("PrologFlags", "X11", {"Contain", "DeferBatch", "X11"}),
        ("PrivateData", "jobs", {"cloud", "jobs"}),
        ("AuthInfo", "cred_expire=99", {"cred_expire=99"}),
    ],
)
def test_list_of_options_keeps_ours_that_theirs_do_not_name(
    name: str, value: str, expected: set[str]
) -> None:
    (line,) = lines_of(with_globals(**{name: value}))[name]
    assert set(line.partition("=")[2].split(",")) == expected


@pytest.mark.parametrize(
    ("version", "settings", "start_timeout"),
    [
        (OLD, {"PrologEpilogTimeout": "900"}, "930"),
        (NEW, {"PrologTimeout": "600"}, "630"),
        (NEW, {"PrologEpilogTimeout": "400"}, "430"),
        (NEW, {"PrologTimeout": "600", "BatchStartTimeout": "700"}, "700"),
    ],
)
def test_batch_job_may_start_as_late_as_the_prolog_of_the_operator_ends(
    version: tuple[int, int], settings: dict[str, str], start_timeout: str
) -> None:
    found = lines_of(with_globals(**settings), version)
    assert found["BatchStartTimeout"] == [f"BatchStartTimeout={start_timeout}"]
    for name, value in settings.items():
        assert found[name] == [f"{name}={value}"]


def test_line_of_a_partition_holds_what_its_config_says() -> None:
    words = partition_line({"OverSubscribe": "FORCE:4", "State": "DOWN", "DefMemPerCPU": "7"})
    assert {"OverSubscribe=FORCE:4", "State=DOWN", "DefMemPerCPU=7"} <= set(words)
    names = [word.partition("=")[0] for word in words]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("name", ["DefMemPerNode", "DefMemPerGPU"])
def test_our_memory_per_cpu_gives_way_to_another_memory(name: str) -> None:
    words = partition_line({name: "1000"})
    assert f"{name}=1000" in words
    assert not [word for word in words if word.startswith("DefMemPerCPU")]


@pytest.mark.parametrize(
    ("limit", "default"),
    [("1:00:00", "0-01:00:00"), ("UNLIMITED", "1-00:00:00"), ("30-0", "1-00:00:00")],
)
def test_job_without_a_limit_fits_the_limit_of_the_operator(limit: str, default: str) -> None:
    words = partition_line({"MaxTime": limit}, life_seconds=604_800)
    assert f"MaxTime={limit}" in words
    assert f"DefaultTime={default}" in words


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 5400),
        ("1:30", 90),
        ("1:02:03", 3723),
        ("2-3", 183_600),
        ("1-0:30", 88_200),
        ("1-00:00:05", 86_405),
        ("INFINITE", None),
    ],
)
def test_limits_are_read_as_slurm_reads_them(text: str, seconds: int | None) -> None:
    assert limit_seconds(text) == seconds


def test_lines_of_nodes_hold_what_their_pool_says_and_keep_our_features() -> None:
    nodes = replace(
        pool("p", minimum=1, maximum=3),
        slurm_config=(("Features", "fast"), ("MemSpecLimit", "1024"), ("Weight", "5")),
    )
    lines = lines_of(cluster_of(nodes, pool("other")))["NodeName"]
    for line in lines[:2]:
        assert "n2-standard-8,on_demand" in line
        assert ",fast " in line
        assert " MemSpecLimit=1024" in line
        assert line.count("Weight=") == 1
        assert "Weight=5" in line
    assert "fast" not in lines[2]


@pytest.mark.parametrize("place", ["global", "partition", "node"])
def test_parameter_that_this_slurm_does_not_know_is_refused(place: str) -> None:
    nodes = pool("p")
    if place == "node":
        nodes = replace(nodes, slurm_config=(("RestrictedCoresPerGPU", "2"),))
    cluster = cluster_of(nodes)
    if place == "global":
        cluster = replace(cluster, slurm_config=(("HashPlugin", "hash/sha3"),))
    if place == "partition":
        cluster = replace(cluster, partition_config={"p": (("PowerDownOnIdle", "YES"),)})
    with pytest.raises(RenderError, match=r"needs Slurm 23\.02, this is 22\.05"):
        lines_of(cluster, OLD)
    assert lines_of(cluster, NEW)
