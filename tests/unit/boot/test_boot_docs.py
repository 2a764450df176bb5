"""docs/node_boot.md names every metadata key and every step, and the units what the boot writes."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from slurm_hooks.boot import keys, run
from slurm_hooks.boot.mounts import NFS_OPTIONS
from slurm_hooks.boot.startup_script import DEFAULT_SECONDS
from slurm_hooks.cluster.node_boot import STARTUP_SCRIPT_SECONDS

ROOT = Path(__file__).resolve().parents[3]
DOCUMENT = (ROOT / "docs" / "node_boot.md").read_text()
UNITS = ROOT / "packaging" / "node"
DAEMONS = ("slurmd", "sackd", "munge")
PACKAGED = Path("/lib/systemd/system")


def first_column(heading: str) -> list[str]:
    section = DOCUMENT.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(r"^\| `([^`]+)` \|", section, flags=re.MULTILINE)


def test_every_metadata_key_is_documented() -> None:
    known = [value for value in vars(keys).values() if str(value).startswith("slurm-hooks-")]
    assert sorted(first_column("What VMs are told")) == sorted(known)


def test_every_step_is_documented() -> None:
    source = Path(run.__file__).read_text()
    steps = re.findall(r'(?:begin|take)\(\s*"([a-z-]+)"', source)
    assert sorted(first_column("The steps")) == sorted(steps)


def test_defaults_are_documented_and_the_same_on_both_sides() -> None:
    assert f"| `{NFS_OPTIONS}` |" in DOCUMENT
    assert f"| {DEFAULT_SECONDS} |" in DOCUMENT
    assert DEFAULT_SECONDS == STARTUP_SCRIPT_SECONDS


def test_daemons_take_their_options_from_the_boot_and_wait_for_it() -> None:
    for daemon in ("slurmd", "sackd"):
        unit = (UNITS / f"{daemon}.service.d" / "slurm-hooks.conf").read_text()
        assert f"EnvironmentFile=/run/slurm-hooks/{daemon}\n" in unit
        assert f"ConditionPathExists=\nConditionPathExists=/run/slurm-hooks/{daemon}\n" in unit
    for daemon in DAEMONS:
        unit = (UNITS / f"{daemon}.service.d" / "slurm-hooks.conf").read_text()
        assert "Requires=slurm-hooks-boot.service\nAfter=slurm-hooks-boot.service\n" in unit


@pytest.mark.slow
def test_units_fit_those_of_the_packages(tmp_path: Path) -> None:
    installed = [name for name in DAEMONS if (PACKAGED / f"{name}.service").exists()]
    if shutil.which("systemd-analyze") is None or "slurmd" not in installed:
        pytest.skip("needs systemd-analyze and the package of slurmd")
    for name in installed:
        shutil.copy(PACKAGED / f"{name}.service", tmp_path)
        shutil.copytree(UNITS / f"{name}.service.d", tmp_path / f"{name}.service.d")
    unit = (UNITS / "slurm-hooks-boot.service").read_text()
    boot = tmp_path / "slurm-hooks-boot.service"
    boot.write_text(unit.replace("/opt/slurm-hooks/bin/slurm-hooks-boot", "/bin/true"))
    answer = subprocess.run(
        ("systemd-analyze", "verify", boot, *(tmp_path / f"{name}.service" for name in installed)),
        env={"PATH": "/usr/bin:/bin", "SYSTEMD_UNIT_PATH": f"{tmp_path}:"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (answer.returncode, answer.stderr) == (0, "")
