"""What a Prolog on a healthy node does not pay for. `make bench` says what it costs."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.unit.health.node_roots import BOOT_ID, NodeRoot

_CODE = """
import os, sys
leave = os._exit
def tell(status):
    loaded = sorted(sys.modules)
    import gc, json
    print(json.dumps({{"modules": loaded, "searches_garbage": gc.isenabled()}}), flush=True)
    leave(status)
os._exit = tell
sys.argv = ["slurm-hooks-prolog", "--root", {root!r}]
from slurm_hooks.programs.prolog import main
main()
"""
_DEAR = (
    *("argparse", "inspect", "json.scanner", "logging", "socket", "subprocess", "yaml"),
    *("encodings.ascii", "slurm_hooks.health.checks.base"),
    *("slurm_hooks.health.driver.protocol", "slurm_hooks.health.late_probe"),
    *("slurm_hooks.health.consequences", "slurm_hooks.health.slurmctld"),
)


@pytest.fixture
def told(node: NodeRoot) -> dict[str, object]:
    """How the process stood when it ended."""
    identity = f"{BOOT_ID[:8]}\n4711\na3-highgpu-8g\n"
    node.write("var/lib/slurm-hooks/health/identity", identity)
    code = _CODE.format(root=str(node.directory))
    ended = subprocess.run(
        [sys.executable, "-I", "-c", code], env={}, capture_output=True, text=True, timeout=60
    )
    assert ended.returncode == 0, ended.stderr
    answer = json.loads(ended.stdout)
    assert isinstance(answer, dict)
    return answer


def test_prolog_on_a_healthy_node_loads_nothing_dear(told: dict[str, object]) -> None:
    modules = told["modules"]
    assert isinstance(modules, list)
    assert "slurm_hooks.health.run" in modules
    assert set(_DEAR).isdisjoint(modules)


def test_prolog_searches_for_no_garbage_and_ends_at_once(told: dict[str, object]) -> None:
    assert told["searches_garbage"] is False
