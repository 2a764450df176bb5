"""What is rendered for which cluster and which Slurm."""

from __future__ import annotations

import itertools
import re
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from slurm_hooks import settings
from slurm_hooks.cluster.load import load_cluster
from slurm_hooks.cluster.machine_types import MachineCatalogue, standard_catalogue
from slurm_hooks.slurm.render import (
    RenderError,
    RenderOptions,
    include_lines,
    parse_slurm_version,
    render,
)
from slurm_hooks.slurm.render.lines import is_as_rendered
from slurm_hooks.slurm.render.nodes import real_memory_mib
from slurm_hooks.slurm.render.partitions import slurm_time
from tests.unit.slurm_render.clusters import EXAMPLE, REPOSITORY, cluster_of, pool

VERSIONS = [(22, 5), (23, 2), (23, 11), (24, 5), (24, 11), (25, 5), (25, 11), (26, 5)]
FRAGMENTS_DIRECTORY = REPOSITORY / "etc" / "slurm.conf.d"
GPU = "a3-ultragpu-8g"


def settings_of(text: str) -> dict[str, str]:
    """The `Key=Value` lines of a rendered file."""
    lines = (line for line in text.splitlines() if line and not line.startswith("#"))
    return dict(line.split("=", 1) for line in lines)


def power_save(version: tuple[int, int], *, minimum: int = 0) -> dict[str, str]:
    cluster = cluster_of(pool("p", minimum=minimum))
    texts = render(cluster, RenderOptions(slurm_version=version))
    return settings_of(texts["slurm.conf.d/power_save.conf"])


def scheduler(version: tuple[int, int]) -> dict[str, str]:
    texts = render(cluster_of(pool("p")), RenderOptions(slurm_version=version))
    return settings_of(texts["slurm.conf.d/scheduler.conf"])


def health(version: tuple[int, int], **options: Any) -> dict[str, str]:
    texts = render(cluster_of(pool("p")), RenderOptions(slurm_version=version, **options))
    return settings_of(texts["slurm.conf.d/health.conf"])


def node_lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("NodeName=")]


def test_checked_in_files_are_what_the_example_renders_to() -> None:
    texts = render(load_cluster(EXAMPLE), RenderOptions(slurm_version=(24, 11)))
    for name, text in texts.items():
        assert (REPOSITORY / "etc" / name).read_text() == text, (
            "out of date: slurm-hooks render etc/slurm-hooks/cluster_config.json"
            " --output etc --slurm-version 24.11 --force"
        )
    kept = {f"Include slurm.conf.d/{path.name}" for path in FRAGMENTS_DIRECTORY.iterdir()}
    assert kept == set(include_lines())


@pytest.mark.parametrize("version", VERSIONS)
def test_nothing_that_breaks_a_cluster_is_ever_rendered(version: tuple[int, int]) -> None:
    for minimum in (0, 2):
        texts = render(cluster_of(pool("p", minimum=minimum)), RenderOptions(slurm_version=version))
        lines = "\n".join(
            line for text in texts.values() for line in text.splitlines() if line[:1] != "#"
        )
        assert "cloud_dns" not in lines
        assert "INFINITE" not in lines
        assert not re.search(r"^\w+=$", lines, flags=re.MULTILINE), "a key without a value"


@pytest.mark.parametrize("version", VERSIONS)
def test_power_settings_follow_the_version(version: tuple[int, int]) -> None:
    values = power_save(version)
    assert ("SuspendExcStates" in values) == (version >= (23, 2))
    assert ("PrivateData" in values) == (version < (23, 2))
    assert ("TreeWidth" in values) == (version < (23, 11))
    assert ("cloud_reg_addrs" in values["SlurmctldParameters"]) == (version < (23, 11))
    assert "idle_on_node_suspend" in values["SlurmctldParameters"]
    assert (values["ResumeRate"], values["SuspendRate"]) == ("0", "0")
    assert int(values["ResumeTimeout"]) < 65_535


@pytest.mark.parametrize("version", VERSIONS)
def test_requeue_delay_uses_the_option_that_the_version_has(version: tuple[int, int]) -> None:
    values = scheduler(version)
    has_option = version >= (25, 11)
    assert ("requeue_delay=30" in values["SchedulerParameters"]) == has_option
    assert ("cred_expire=30" in values.get("AuthInfo", "")) == (not has_option)
    resumes = "requeue_on_resume_failure" in values["SchedulerParameters"]
    assert resumes == (version >= (25, 5))


@pytest.mark.parametrize("version", VERSIONS)
def test_prologs_and_epilogs_have_limits_in_every_version(version: tuple[int, int]) -> None:
    values = health(version, prolog_timeout_seconds=60, epilog_timeout_seconds=200)
    if version >= (25, 5):
        assert (values["PrologTimeout"], values["EpilogTimeout"]) == ("60", "200")
        assert "PrologEpilogTimeout" not in values
        assert values["BatchStartTimeout"] == "90"
    else:
        assert values["PrologEpilogTimeout"] == "200"
        assert not {"PrologTimeout", "EpilogTimeout"} & values.keys()
        assert values["BatchStartTimeout"] == "230"


@pytest.mark.parametrize("version", VERSIONS)
def test_no_version_gets_a_prolog_flag_that_it_does_not_know(version: tuple[int, int]) -> None:
    flags = health(version)["PrologFlags"].split(",")
    assert flags[:2] == ["Contain", "DeferBatch"]
    assert ("ForceRequeueOnFail" in flags) == (version >= (23, 2))


def test_prolog_runs_at_allocation_where_jobs_cannot_be_contained() -> None:
    assert health((22, 5), contain_jobs=False)["PrologFlags"] == "Alloc,DeferBatch"


def test_programs_of_nodes_may_lie_elsewhere_than_those_of_the_controller() -> None:
    own = health((24, 11), programs_directory="/opt/controller/bin")
    assert own["Prolog"] == "/opt/controller/bin/slurm-hooks-prolog"
    options = {"programs_directory": "/opt/a", "node_programs_directory": "/opt/node/bin/"}
    values = health((24, 11), **options)
    for key, name in (
        ("Prolog", "prolog"),
        ("Epilog", "epilog"),
        ("HealthCheckProgram", "health-check"),
        ("RebootProgram", "reboot"),
    ):
        assert values[key] == f"/opt/node/bin/slurm-hooks-{name}"
    both = RenderOptions(slurm_version=(24, 11), **options)  # type: ignore[arg-type]
    texts = render(cluster_of(pool("p")), both)
    assert "/opt/node" not in texts["slurm.conf.d/power_save.conf"]


def test_every_setting_has_its_reason_beside_it() -> None:
    for version in VERSIONS:
        texts = render(load_cluster(EXAMPLE), RenderOptions(slurm_version=version))
        for name, text in texts.items():
            lines = text.splitlines()
            for before, line in itertools.pairwise(lines):
                assert not line or line[0] == "#" or before[:2] == "# ", f"{name}: {line}"


def test_static_nodes_are_excluded_from_suspend_and_dynamic_ones_are_not() -> None:
    assert power_save((22, 5), minimum=2)["SuspendExcNodes"] == "c-p-[0-1]"
    assert power_save((22, 5), minimum=1)["SuspendExcNodes"] == "c-p-0"
    assert "SuspendExcNodes" not in power_save((22, 5))


def test_static_and_dynamic_nodes_differ_in_feature_and_weight() -> None:
    cluster = cluster_of(pool("p", minimum=2, maximum=5))
    text = render(cluster, RenderOptions(slurm_version=(24, 11)))["slurm.conf.d/nodes.conf"]
    static, dynamic = node_lines(text)
    assert static.startswith("NodeName=c-p-[0-1] ")
    assert ",static Weight=1 " in static
    assert dynamic.startswith("NodeName=c-p-[2-4] ")
    assert ",dynamic Weight=10 " in dynamic


def test_login_nodes_are_no_slurm_nodes() -> None:
    cluster = cluster_of(pool("login", minimum=1, maximum=1, is_login=True), pool("p"))
    texts = render(cluster, RenderOptions(slurm_version=(24, 11)))
    for text in texts.values():
        assert "c-login" not in text


def test_node_offers_what_its_machine_type_has() -> None:
    cluster = cluster_of(pool("g", machine_type=GPU, life_seconds=604_800))
    texts = render(cluster, RenderOptions(slurm_version=(24, 11)))
    line = node_lines(texts["slurm.conf.d/nodes.conf"])[0]
    assert "CPUs=224 Sockets=2 CoresPerSocket=56 ThreadsPerCore=2 " in line
    assert "Gres=gpu:nvidia_h200_141gb:8 " in line
    assert "Features=a3-ultragpu-8g,flex_start,us-central1-a,dynamic " in line
    assert line.endswith("State=CLOUD")
    assert settings_of(texts["gres.conf"])["NodeName"] == (
        "c-g-[0-1] Name=gpu Type=nvidia_h200_141gb File=/dev/nvidia[0-7]"
    )


@pytest.mark.parametrize("name", sorted(standard_catalogue().machine_types))
def test_real_memory_leaves_the_system_its_share(name: str) -> None:
    machine = standard_catalogue().machine_types[name]
    whole_mib = machine.memory_gb * 1024
    assert 0.9 * whole_mib < real_memory_mib(machine) + 512 < 0.98 * whole_mib


def test_single_gpu_has_a_single_device() -> None:
    cluster = cluster_of(pool("g", machine_type="a3-highgpu-1g", maximum=1, life_seconds=600))
    options = RenderOptions(slurm_version=(24, 11), gpu_device_prefix="/var/box/gpu")
    assert "File=/var/box/gpu0\n" in render(cluster, options)["gres.conf"]


def test_cluster_without_gpus_needs_no_gres() -> None:
    texts = render(cluster_of(pool("p")), RenderOptions(slurm_version=(24, 11)))
    assert settings_of(texts["gres.conf"]) == {}
    assert "GresTypes" not in settings_of(texts["slurm.conf.d/scheduler.conf"])


def test_partition_is_limited_by_the_shortest_life_of_its_vms() -> None:
    cluster = cluster_of(
        pool("a", machine_type=GPU, life_seconds=7200),
        pool("b", machine_type=GPU, life_seconds=5400),
        pool("c"),
        partitions={"mixed": ("a", "b", "c"), "cpu": ("c",)},
    )
    text = render(cluster, RenderOptions(slurm_version=(24, 11)))["slurm.conf.d/partitions.conf"]
    mixed, cpu = (line for line in text.splitlines() if line.startswith("PartitionName="))
    assert "Nodes=c-a-[0-1],c-b-[0-1],c-c-[0-1] Default=YES" in mixed
    assert "DefaultTime=0-00:45:00 MaxTime=0-01:30:00" in mixed
    assert "MaxTime" not in cpu
    assert "Default=NO" in cpu


def test_pool_that_may_have_no_nodes_leaves_its_partition_empty() -> None:
    texts = render(cluster_of(pool("p", maximum=0)), RenderOptions(slurm_version=(24, 11)))
    assert node_lines(texts["slurm.conf.d/nodes.conf"]) == []
    assert "Nodes=" not in settings_of(texts["slurm.conf.d/partitions.conf"])["PartitionName"]


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(30, "0-00:01:00"), (90, "0-00:01:00"), (3600, "0-01:00:00"), (604_800, "7-00:00:00")],
)
def test_time_limits_are_whole_minutes(seconds: int, expected: str) -> None:
    assert slurm_time(seconds) == expected


def test_nodes_of_one_machine_have_neighbouring_ports() -> None:
    cluster = cluster_of(pool("a", minimum=1, maximum=3), pool("b", maximum=1))
    options = RenderOptions(slurm_version=(24, 11), one_machine_first_port=17_001)
    texts = render(cluster, options)
    lines = node_lines(texts["slurm.conf.d/nodes.conf"])
    assert [re.findall(r"Port=(\S+)", line)[0] for line in lines] == [
        "17001",
        "17002-17003",
        "17004",
    ]
    for line in lines:
        assert "NodeHostName=localhost NodeAddr=127.0.0.1" in line
    assert "SlurmdParameters=config_overrides" in texts["slurm.conf.d/power_save.conf"]


def test_more_nodes_than_ports_is_refused() -> None:
    options = RenderOptions(slurm_version=(24, 11), one_machine_first_port=65_535)
    with pytest.raises(RenderError, match="ports 65535 to 65536"):
        render(cluster_of(pool("a", maximum=2)), options)


def test_munge_socket_joins_the_requeue_delay() -> None:
    options = RenderOptions(slurm_version=(22, 5), munge_socket="/run/box/munge.socket")
    texts = render(cluster_of(pool("p")), options)
    values = settings_of(texts["slurm.conf.d/scheduler.conf"])
    assert values["AuthInfo"] == "socket=/run/box/munge.socket,cred_expire=30"


def test_settings_file_is_read_back_by_the_programs(tmp_path: Path) -> None:
    options = RenderOptions(
        slurm_version=(24, 11),
        spool_directory="/var/spool/box",
        api_endpoint="http://127.0.0.1:8080",
        api_credentials="anonymous",
    )
    texts = render(load_cluster(EXAMPLE), options)
    (tmp_path / settings.FILE_NAME).write_text(texts[settings.FILE_NAME])
    values = settings.read(settings.find(str(tmp_path / "slurm.conf")))
    assert values["ClusterId"] == "flexvm"
    assert values["Project"] == "example-project"
    assert values["SpoolDir"] == "/var/spool/box"
    assert values["ApiEndpoint"] == "http://127.0.0.1:8080"
    assert values["ApiCredentials"] == "anonymous"


@pytest.mark.parametrize("configless", [False, True])
def test_includes_are_the_rendered_fragments(configless: bool) -> None:
    options = RenderOptions(slurm_version=(24, 11), configless=configless)
    texts = render(cluster_of(pool("p")), options)
    includes = include_lines(configless)
    others = {"gres.conf", "slurm-hooks.conf"}
    assert {f"Include {name}" for name in texts.keys() - others} == set(includes)
    for name in texts.keys() - others:
        for line in includes:
            assert f"#   {line}\n" in texts[name]


def test_configless_nodes_are_sent_files_beside_slurm_conf_only() -> None:
    for line in include_lines(configless=True):
        assert "/" not in line


@pytest.mark.parametrize("configless", [False, True])
def test_slurmctld_sends_files_where_nodes_are_to_be_configless(configless: bool) -> None:
    options = RenderOptions(slurm_version=(24, 11), configless=configless)
    texts = "".join(render(cluster_of(pool("p")), options).values())
    assert ("enable_configless" in texts) is configless


def test_rendered_file_is_recognised_until_it_is_edited() -> None:
    texts = render(cluster_of(pool("p")), RenderOptions(slurm_version=(24, 11)))
    for text in texts.values():
        assert is_as_rendered(text)
        assert not is_as_rendered(text + "\n")
        assert not is_as_rendered(text.partition("\n")[2])
    assert not is_as_rendered("")


def test_site_scripts_are_files_in_order_and_say_where_nodes_expect_them() -> None:
    cluster = replace(
        cluster_of(pool("p")),
        prolog_scripts=("#!/bin/bash\necho one\n", "exit 3"),
        epilog_scripts=("echo done",),
    )
    texts = render(cluster, RenderOptions(slurm_version=(24, 11)))
    assert {name for name in texts if name.endswith(".sh")} == {
        "prolog.d/01.sh",
        "prolog.d/02.sh",
        "epilog.d/01.sh",
    }
    assert "#   /etc/slurm-hooks/prolog.d/01.sh\n" in texts["prolog.d/01.sh"]
    assert texts["prolog.d/01.sh"].endswith("\n\n#!/bin/bash\necho one\n")
    bash = subprocess.run(["bash", "-s"], input=texts["prolog.d/02.sh"], text=True, check=False)
    assert bash.returncode == 3
    for text in texts.values():
        assert is_as_rendered(text)


def test_machine_type_outside_the_catalogue_is_refused() -> None:
    options = RenderOptions(slurm_version=(24, 11), catalogue=MachineCatalogue())
    with pytest.raises(RenderError, match="n2-standard-8 of pool p"):
        render(cluster_of(pool("p")), options)


@pytest.mark.parametrize(
    "values",
    [
        {"resume_timeout_seconds": 65_535},
        {"resume_timeout_seconds": 0},
        {"suspend_timeout_seconds": 65_535},
        {"suspend_time_seconds": -1},
        {"requeue_delay_seconds": 4},
        {"prolog_timeout_seconds": 0},
        {"epilog_timeout_seconds": 65_535},
        {"health_check_interval_seconds": 0},
        {"programs_directory": "bin"},
        {"node_programs_directory": "bin"},
        {"programs_directory": "/opt/with blank"},
        {"log_file": "/var/log/a#b"},
        {"munge_socket": "socket"},
        {"api_endpoint": "http://x\nLogLevel=DEBUG"},
    ],
)
def test_options_that_slurm_would_misread_are_refused(values: dict[str, object]) -> None:
    with pytest.raises(RenderError):
        RenderOptions(slurm_version=(24, 11), **values)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("24.11", (24, 11)),
        ("22.05.8", (22, 5)),
        ("slurm-wlm 24.11.5\n", (24, 11)),
        ("slurm 26.05.0-0rc1", (26, 5)),
    ],
)
def test_slurm_version_is_read(text: str, version: tuple[int, int]) -> None:
    assert parse_slurm_version(text) == version


@pytest.mark.parametrize("text", ["", "24", "new", "21.08", "20.11.9"])
def test_slurm_version_that_is_none_or_too_old_is_refused(text: str) -> None:
    with pytest.raises(RenderError):
        parse_slurm_version(text)
