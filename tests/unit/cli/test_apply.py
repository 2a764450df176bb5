"""`slurm-hooks apply` and `delete` as their users meet them where no Slurm answers."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from slurm_hooks.reconcile import deleting
from slurm_hooks.reconcile.locks import sole_change
from slurm_hooks.slurm.render import include_lines
from tests.fakes.canned_server import answer_error, canned_server
from tests.unit.cluster.files import EXAMPLE, changed

pytestmark = pytest.mark.slow

COMMAND = Path(sys.executable).parent / "slurm-hooks"
VERSION = "#!/bin/sh\necho 'slurm-wlm 22.05.8'\n"
DOWN = "#!/bin/sh\necho 'Slurmctld(primary) at here is DOWN'\nexit 1\n"
HERE = "\n".join(("SlurmctldHost=here", *include_lines(), ""))


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A controller with Slurm's programs, whose slurmctld does not run, before the first apply."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, text in (("slurmctld", VERSION), ("scontrol", DOWN)):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    (tmp_path / "spool").mkdir(mode=0o700)
    (tmp_path / "slurm.conf").write_text(HERE)
    values = {
        "ClusterConfig": tmp_path / "applied" / "cluster_config.json",
        "SpoolDir": tmp_path / "spool",
        "LogFile": tmp_path / "log",
        "ApiEndpoint": "http://127.0.0.1:9",
        "ApiCredentials": "anonymous",
        "SlurmBinDir": programs,
        "RestartSlurmctld": "/bin/false",
        "RenderOptions": "suspend_time_seconds=77",
    }
    text = "".join(f"{key}={value}\n" for key, value in values.items())
    (tmp_path / "slurm-hooks.conf").write_text(text)
    return tmp_path


def environment(site: Path) -> dict[str, str]:
    path = os.pathsep.join([str(site / "bin"), os.defpath])
    return {"SLURM_CONF": str(site / "slurm.conf"), "PATH": path}


def run(site: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    result = subprocess.run(
        [str(COMMAND), *map(str, arguments)],
        env=environment(site),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "Traceback" not in result.stderr, result.stderr
    return result


def apply(site: Path, file: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return run(site, "apply", file, "--yes", "--skip-check", "--no-wait", *options)


def write(path: Path, document: object) -> Path:
    path.write_text(json.dumps(document))
    return path


def test_help_teaches_with_an_example(site: Path) -> None:
    assert "slurm-hooks apply cluster_config.json --dry-run" in run(site, "apply", "--help").stdout
    assert "slurm-hooks delete --dry-run" in run(site, "delete", "--help").stdout


def test_where_nobody_can_be_asked_it_says_what_to_add(site: Path) -> None:
    for words in (("apply", str(EXAMPLE)), ("delete",)):
        result = run(site, *words)
        assert result.returncode == 2
        assert "--yes" in result.stderr


def test_dry_run_shows_the_plan_and_changes_nothing(site: Path) -> None:
    before = sorted(site.rglob("*"))
    result = run(site, "apply", EXAMPLE, "--dry-run")
    assert result.returncode == 0, result.stderr
    assert "+ pool a3u: create" in result.stdout
    assert "slurmctld: restart: slurmctld does not answer" in result.stdout
    tree = json.loads(run(site, "apply", EXAMPLE, "--dry-run", "--json").stdout)
    assert tree["cluster_id"] == "flexvm"
    assert [path for path in sorted(site.rglob("*")) if path.name != "change.lock"] == before


def test_first_apply_puts_everything_in_its_place_and_asks_for_the_restart(site: Path) -> None:
    result = apply(site, EXAMPLE)
    assert result.returncode == 3, result.stderr
    assert "--restart-slurmctld" in result.stdout
    applied = site / "applied" / "cluster_config.json"
    assert applied.read_text() == EXAMPLE.read_text()
    assert stat.S_IMODE(applied.stat().st_mode) == 0o644
    power_save = (site / "slurm.conf.d" / "power_save.conf").read_text()
    assert "\nSuspendTime=77\n" in power_save, "as RenderOptions of the settings say"


def test_restart_that_fails_is_told_with_its_command(site: Path) -> None:
    result = apply(site, EXAMPLE, "--restart-slurmctld")
    assert result.returncode == 1
    assert "/bin/false: exit status 1" in result.stderr
    assert "goes on from here" in result.stderr


def test_slurm_conf_without_the_includes_is_a_persons_to_complete(site: Path) -> None:
    (site / "slurm.conf").write_text("SlurmctldHost=here\n")
    result = apply(site, EXAMPLE, "--restart-slurmctld")
    assert result.returncode == 3
    for line in include_lines():
        assert line in result.stdout


def test_mistakes_of_the_file_are_all_told_and_nothing_is_changed(site: Path) -> None:
    file = write(site / "mine.json", changed(node_pools__1__zone="<zone>"))
    result = apply(site, file)
    assert result.returncode == 2
    assert "node_pools[1].zone" in result.stderr
    assert not (site / "applied").exists()


def test_field_that_is_fixed_is_refused_with_the_way_out(site: Path) -> None:
    apply(site, EXAMPLE)
    other = changed(node_pools__0__machine_spec__machine_type="n2-standard-16")
    result = apply(site, write(site / "mine.json", other))
    assert result.returncode == 2
    assert "node_pools[0].machine_spec.machine_type" in result.stderr
    assert "new id" in result.stderr
    assert (site / "applied" / "cluster_config.json").read_text() == EXAMPLE.read_text()


def test_nodes_do_not_leave_while_nobody_knows_who_uses_them(site: Path) -> None:
    apply(site, EXAMPLE)
    smaller = changed(node_pools__1__scaling_spec__max_node_count=1)
    result = apply(site, write(site / "mine.json", smaller))
    assert result.returncode == 2
    assert "flexvm-a3u-1" in result.stderr
    assert (site / "applied" / "cluster_config.json").read_text() == EXAMPLE.read_text()


def test_file_that_was_edited_is_kept_unless_forced(site: Path) -> None:
    apply(site, EXAMPLE)
    edited = site / "slurm.conf.d" / "scheduler.conf"
    edited.write_text(edited.read_text() + "MessageTimeout=50\n")
    result = apply(site, EXAMPLE)
    assert result.returncode == 2
    assert "scheduler.conf" in result.stderr
    assert apply(site, EXAMPLE, "--force").returncode == 3
    assert "MessageTimeout=50" not in edited.read_text()


def test_nodes_do_not_come_either_while_nobody_knows_whether_some_leave(site: Path) -> None:
    apply(site, EXAMPLE)
    larger = changed(node_pools__1__scaling_spec__max_node_count=3)
    result = apply(site, write(site / "mine.json", larger), "--timeout", "0")
    assert result.returncode == 1
    assert "slurmctld does not answer" in result.stdout
    assert "[0-1]" in (site / "slurm.conf.d" / "nodes.conf").read_text()


def test_applied_file_with_mistakes_is_named_as_the_one_in_force(site: Path) -> None:
    apply(site, EXAMPLE)
    applied = site / "applied" / "cluster_config.json"
    applied.write_text("{")
    result = apply(site, EXAMPLE)
    assert result.returncode == 2
    assert f"{applied}, which is in force" in result.stderr


def test_yaml_is_applied_as_the_json_that_the_settings_name(site: Path) -> None:
    file = site / "mine.yaml"
    file.write_text(json.dumps(changed()))
    file.write_text(file.read_text().replace('{"display_name"', '# mine\n{"display_name"'))
    assert apply(site, file).returncode == 3
    text = (site / "applied" / "cluster_config.json").read_text()
    assert json.loads(text)["display_name"] == "flexvm"


def test_machine_types_beside_the_file_come_with_it(site: Path) -> None:
    mine = site / "mine"
    mine.mkdir()
    (mine / "machine_types.json").write_text(
        '{"machine_types": {"own-8": {"cpus": 8, "memory_gb": 32}}}'
    )
    document = changed(node_pools__0__machine_spec__machine_type="own-8")
    assert apply(site, write(mine / "c.json", document)).returncode == 3
    assert "own-8" in (site / "applied" / "machine_types.json").read_text()
    (mine / "machine_types.json").unlink()
    assert apply(site, mine / "c.json").returncode == 3, "those that were applied are still known"


def test_two_changes_at_once_are_refused(site: Path) -> None:
    with sole_change(site / "spool"):
        result = apply(site, EXAMPLE)
    assert result.returncode == 2
    assert "another apply or delete" in result.stderr


def test_settings_that_are_odd_are_named(site: Path) -> None:
    with (site / "slurm-hooks.conf").open("a") as file:
        file.write("RenderOptions=suspend_tyme_seconds=3\n")
    result = apply(site, EXAMPLE)
    assert result.returncode == 2
    assert "suspend_tyme_seconds" in result.stderr


def test_delete_needs_to_know_which_cluster(site: Path) -> None:
    result = run(site, "delete", "--yes")
    assert result.returncode == 2
    assert "ClusterId and Project" in result.stderr


def test_delete_says_why_compute_engine_is_not_readable_and_marks_nothing(site: Path) -> None:
    apply(site, EXAMPLE)
    with canned_server() as server:
        server.will_answer(answer_error(403, "forbidden"))
        with (site / "slurm-hooks.conf").open("a") as file:
            file.write(f"ApiEndpoint={server.url}\n")
        result = run(site, "delete", "--yes")
    assert result.returncode == 1
    assert "forbidden" in result.stderr
    assert not deleting.is_marked(site / "spool")


def test_apply_lets_a_deleted_cluster_come_back(site: Path) -> None:
    apply(site, EXAMPLE)
    deleting.mark(site / "spool")
    assert "it was deleted, and comes back" in run(site, "apply", EXAMPLE, "--dry-run").stdout
    assert deleting.is_marked(site / "spool")
    apply(site, EXAMPLE)
    assert not deleting.is_marked(site / "spool")


def test_controller_that_stands_by_changes_nothing(site: Path) -> None:
    (site / "slurm.conf").write_text("SlurmctldHost=elsewhere\nSlurmctldHost=here\n")
    up = "#!/bin/sh\necho 'Slurmctld(primary) at elsewhere is UP'\n"
    (site / "bin" / "scontrol").write_text(up)
    for result in (apply(site, EXAMPLE), run(site, "apply", EXAMPLE, "--dry-run")):
        assert result.returncode == 2
        assert "not in charge" in result.stderr
    assert not (site / "applied").exists()


def test_interrupt_ends_the_waiting_with_a_word_and_the_next_run_goes_on(site: Path) -> None:
    apply(site, EXAMPLE)
    larger = write(site / "mine.json", changed(node_pools__1__scaling_spec__max_node_count=3))
    with subprocess.Popen(
        [str(COMMAND), "apply", str(larger), "--yes", "--skip-check"],
        env=environment(site),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        next(line for line in process.stderr if "waiting" in line)
        process.send_signal(signal.SIGINT)
        said = process.stderr.read()
        assert process.wait(30) == 130
    assert "goes on from here" in said
    assert "Traceback" not in said
    assert (site / "applied" / "cluster_config.json").read_text() == larger.read_text()
    assert apply(site, larger, "--timeout", "0").returncode == 1
