"""VMs make themselves nodes: key, storage and startup script come before slurmd, or none starts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from slurm_hooks.boot.console import BootState, BootStep, last_boot_step
from slurm_hooks.sandbox.box.box import Box
from tests.end_to_end.conftest import FAST_LATENCY
from tests.end_to_end.fleet import POOL, Fleet, example_document, short_times
from tests.end_to_end.leftovers import processes_of
from tests.end_to_end.lifecycle import N0

pytestmark = pytest.mark.slow

LOGIN = "flexvm-login-0"
BOOT_TIMEOUT_SECONDS = 12
INSTANCES = "projects/example-project/locations/us-central1-a/instances"
SECRET = "projects/example-project/secrets/munge/versions/latest"
SCRIPT = """\
echo this is the pool\\'s script
[ ! -e {fault} ] || {{ echo no licence; exit 3; }}
"""


@pytest.fixture
def fault(tmp_path: Path) -> Path:
    """Where a file breaks the startup script."""
    return tmp_path / "fault"


@pytest.fixture
def fleet(start_box: Callable[..., Box], tmp_path: Path, fault: Path) -> Fleet:
    """A static node with all that a pool may mount, and a login node."""
    document = example_document(login_nodes=1)
    pool = next(pool for pool in document["node_pools"] if pool["id"] == POOL)
    pool["scaling_spec"] = {"min_node_count": 1, "max_node_count": 1}
    pool["startup_script"] = SCRIPT.format(fault=fault)
    pool["filestores"] = [f"{INSTANCES}/data"]
    pool["lustres"] = [f"{INSTANCES}/scratch"]
    document["slurm_hooks"] = {
        "key_secret": SECRET,
        "boot_timeout_seconds": BOOT_TIMEOUT_SECONDS,
        "startup_script_timeout_seconds": BOOT_TIMEOUT_SECONDS // 2,
    }
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps(document), encoding="utf-8")
    return Fleet(start_box(cluster_file=file, options=short_times(FAST_LATENCY)))


def console(fleet: Fleet, node: str) -> str:
    """The serial console of the node's VM, as Compute Engine shows it; empty without a VM."""
    return fleet.witness.project.serial_output(node)


def wait_for_step(fleet: Fleet, node: str, *wanted: tuple[str, BootState]) -> BootStep:
    """Wait until the newest step on the console is one of these, and return it."""

    def step() -> BootStep | None:
        return last_boot_step(console(fleet, node))

    def is_there() -> bool:
        found = step()
        return found is not None and (found.step, found.state) in wanted

    fleet.box.wait_until(f"one of {wanted} on the console of {node}", is_there, 60)
    found = step()
    assert found is not None
    return found


def test_vms_boot_from_their_metadata_and_a_broken_startup_script_keeps_slurmd_off(
    fleet: Fleet, fault: Path
) -> None:
    fleet.wait_until_up(N0)
    text = console(fleet, N0)
    assert "startup-script: this is the pool's script\n" in text
    step = last_boot_step(text)
    assert step is not None
    assert (step.step, step.state) == ("slurmd", BootState.DONE)
    root = fleet.box.layout.node(N0)
    mounts = (root / "proc/self/mounts").read_text().replace(f"{root}/", "/")
    assert [line.split()[1:3] for line in mounts.splitlines()] == [
        ["/home", "nfs"], ["/mnt/filestore/data", "nfs"], ["/mnt/lustre/scratch", "lustre"],
    ]  # fmt: skip
    key = root / "etc/munge/munge.key"
    assert key.read_bytes() == fleet.box.layout.munge_key.read_bytes()
    assert not key.is_symlink()

    wait_for_step(fleet, LOGIN, ("clients", BootState.DONE))
    assert "/home nfs" in (fleet.box.layout.node(LOGIN) / "proc/self/mounts").read_text()
    daemons = [text for text in processes_of(fleet.box.layout.directory).values() if LOGIN in text]
    assert not [text for text in daemons if "slurmd -D" in text]

    fault.touch()
    first = fleet.vm_id(N0)
    fleet.update(N0, "power_down")
    fleet.box.wait_until("another VM", lambda: fleet.vm_id(N0) not in ("", first), 60)
    broken = fleet.vm_id(N0)
    failed = wait_for_step(fleet, N0, ("startup-script", BootState.FAILED))
    assert failed.detail.startswith("ended with status 3")
    fleet.box.wait_until(
        "the VM to be given up", lambda: fleet.vm_id(N0) != broken, 30 + BOOT_TIMEOUT_SECONDS
    )
    kept = fleet.box.layout.hooks_spool / "consoles" / f"{N0}-{broken}.txt"
    assert "startup-script: no licence" in kept.read_text(encoding="utf-8")
    assert last_boot_step(kept.read_text(encoding="utf-8")) == failed

    fault.unlink()
    fleet.wait_until_up(N0, another_than=broken)
