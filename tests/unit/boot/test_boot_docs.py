"""docs/node_boot.md names every metadata key and every step, and the units what the boot writes."""

from __future__ import annotations

import re
from pathlib import Path

from slurm_hooks.boot import keys, run
from slurm_hooks.boot.mounts import NFS_OPTIONS
from slurm_hooks.boot.startup_script import DEFAULT_SECONDS
from slurm_hooks.cluster.node_boot import STARTUP_SCRIPT_SECONDS

ROOT = Path(__file__).resolve().parents[3]
DOCUMENT = (ROOT / "docs" / "node_boot.md").read_text()
UNITS = ROOT / "packaging" / "node"


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
    for daemon in ("slurmd", "sackd", "munge"):
        unit = (UNITS / f"{daemon}.service.d" / "slurm-hooks.conf").read_text()
        assert "Requires=slurm-hooks-boot.service\nAfter=slurm-hooks-boot.service\n" in unit
