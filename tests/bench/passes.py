"""Passes over 1,000 and 10,000 nodes: recorded Slurm answers, the real client, the emulator."""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from rich.table import Table

from slurm_hooks.cluster.topology import Cluster
from slurm_hooks.compute.google_client import GoogleComputeClient
from slurm_hooks.compute.model import InstanceStatus
from slurm_hooks.history.consoles import ConsolesDirectory
from slurm_hooks.reconcile.actions import InsertRequest
from slurm_hooks.reconcile.decide import decide
from slurm_hooks.reconcile.observe import observe
from slurm_hooks.reconcile.passes import Passes
from slurm_hooks.reconcile.resume_calls import CallsDirectory
from slurm_hooks.reconcile.snapshot import Memory
from slurm_hooks.sandbox.emulator.control import EmulatorControl
from slurm_hooks.slurm.hostlist import expand
from slurm_hooks.slurm.scontrol import ScontrolClient
from tests.bench.measure import cpu_seconds
from tests.bench.recorded_slurm import RecordedSlurm
from tests.emulator_process import EmulatorProcess
from tests.unit.reconcile.builders import example_cluster

NODES_A_POOL = 1000
FILL_SECONDS = 600
IDLE_RUNS = 3


@dataclass(frozen=True)
class Result:
    """What was measured for one number of nodes."""

    nodes: int
    resume_seconds: float
    resume_calls: Counter[str]
    idle_cpu_seconds: float
    idle_calls: int
    idle_commands: int
    decide_cpu_seconds: float


class Installation:
    """A controller on a cluster of so many nodes, in pools of a thousand."""

    def __init__(self, nodes: int, nodes_a_job: int, url: str, spool: Path) -> None:
        self.cluster = _cluster(nodes)
        names = [n for pool in self.cluster.pools for n in self.cluster.node_names(pool)]
        self.recorded = RecordedSlurm(names, nodes_a_job)
        self.slurm = ScontrolClient(spool / "slurm.conf", runner=self.recorded)
        self.compute = GoogleComputeClient(self.cluster.project, url, "anonymous")
        self.calls = CallsDirectory(spool, expand)
        self.control = EmulatorControl(url)
        self.passes = Passes(
            self.cluster,
            self.slurm,
            self.compute,
            self.calls,
            ConsolesDirectory(spool / "consoles"),
            lambda: datetime.now(UTC),
        )

    def run_until_requested(self, requests: int) -> float:
        """Passes until so many requests exist; the seconds that it took."""
        started = time.perf_counter()
        while self.control.status().resize_requests < requests:
            self.passes.run()
        return time.perf_counter() - started

    def run_until_running(self) -> None:
        """Wait until every VM runs and every operation of ours is over."""
        end = time.monotonic() + FILL_SECONDS
        while time.monotonic() < end:
            self.passes.run()
            vms = self.compute.read(self.cluster.cluster_id).instances.values()
            running = sum(vm.status is InstanceStatus.RUNNING for vm in vms)
            if running == len(self.recorded.nodes) and not self.passes.has_operations:
                return
        raise RuntimeError(f"{len(self.recorded.nodes)} VMs did not come in {FILL_SECONDS} s")


def measure(nodes: int) -> Result:
    """Resume jobs of up to 1,000 nodes from a settled cluster, then pass with nothing to do."""
    with EmulatorProcess() as emulator, tempfile.TemporaryDirectory() as spool:
        _warm_up(emulator.url, Path(spool), nodes)
        installation = Installation(nodes, NODES_A_POOL, emulator.url, Path(spool))
        emulator.control.clear_calls()
        resume_seconds = installation.run_until_requested(nodes // NODES_A_POOL)
        resume_calls = _calls(emulator.control)
        installation.run_until_running()
        installation.recorded.run_jobs()
        installation.passes.run()
        emulator.control.clear_calls()
        installation.recorded.commands.clear()
        idle = cpu_seconds(installation.passes.run, IDLE_RUNS)
        return Result(
            nodes,
            resume_seconds,
            resume_calls,
            idle,
            sum(_calls(emulator.control).values()) // IDLE_RUNS,
            len(installation.recorded.commands) // IDLE_RUNS,
            _decide_cpu_seconds(installation),
        )


@dataclass(frozen=True)
class Resume:
    """What it cost until the requests of all jobs existed, and a bare client that made the same
    calls, one after another, at once after that on a project of its own."""

    seconds: float
    cpu_seconds: float
    bare_seconds: float
    calls: Counter[str]
    commands: int


def measure_resume(nodes: int, nodes_a_job: int) -> Resume:
    """Resume nodes in jobs of one size."""
    with EmulatorProcess() as emulator, tempfile.TemporaryDirectory() as spool:
        _warm_up(emulator.url, Path(spool), nodes)
        installation = Installation(nodes, nodes_a_job, emulator.url, Path(spool))
        emulator.control.clear_calls()
        cpu_before = time.process_time()
        seconds = installation.run_until_requested(nodes // nodes_a_job)
        cpu = time.process_time() - cpu_before
        calls, commands = _calls(emulator.control), len(installation.recorded.commands)
    return Resume(seconds, cpu, _bare_seconds(nodes, nodes_a_job), calls, commands)


def _bare_seconds(nodes: int, nodes_a_job: int) -> float:
    """A look at the project and the requests, with nothing read, decided or told in between."""
    with EmulatorProcess() as emulator, tempfile.TemporaryDirectory() as spool:
        _warm_up(emulator.url, Path(spool), nodes)
        installation = Installation(nodes, nodes_a_job, emulator.url, Path(spool))
        actions = installation.passes.plan().actions
        requests = [action.request for action in actions if isinstance(action, InsertRequest)]
        started = time.perf_counter()
        installation.compute.read(installation.cluster.cluster_id)
        for request in requests:
            installation.compute.insert_resize_request(request, request.reference.name)
        return time.perf_counter() - started


def resume_table() -> Table:
    """1,000 nodes in one job, and in a hundred."""
    result = Table(
        *("resume of 1,000 nodes", "s", "bare client: s", "beyond it: s", "CPU s"),
        *("API calls", "Slurm commands"),
    )
    for title, nodes_a_job in (("one job", 1000), ("100 jobs of 10", 10)):
        cost = measure_resume(1000, nodes_a_job)
        times = cost.seconds, cost.bare_seconds, cost.seconds - cost.bare_seconds, cost.cpu_seconds
        row = [f"{seconds:.2f}" for seconds in times]
        result.add_row(title, *row, _text(cost.calls), f"{cost.commands}")
    return result


def _warm_up(url: str, spool: Path, nodes: int) -> None:
    """Let templates and groups exist already, as on a cluster that has run a job before."""
    installation = Installation(nodes, NODES_A_POOL, url, spool)
    while installation.control.status().groups < len(installation.cluster.pools):
        installation.passes.run()
        if installation.control.status().resize_requests:
            raise RuntimeError("a request was made before all groups existed")
    while installation.passes.has_operations:
        installation.passes.poll_operations()


def _decide_cpu_seconds(installation: Installation) -> float:
    snapshot = observe(
        installation.slurm,
        installation.compute,
        installation.calls,
        installation.cluster.cluster_id,
        Memory(),
    )
    now = datetime.now(UTC)
    return cpu_seconds(lambda: decide(snapshot, installation.cluster, now), 5)


def _calls(control: EmulatorControl) -> Counter[str]:
    return Counter(call.method for call in control.calls())


def _cluster(nodes: int) -> Cluster:
    example = example_cluster(max_node_count=NODES_A_POOL)
    pool = example.pools["a3u"]
    count = nodes // NODES_A_POOL
    pools = {f"a3u{n}": replace(pool, pool_id=f"a3u{n}") for n in range(count)}
    return replace(example, pools=pools, partitions={"a3u": tuple(pools)})


def table(results: list[Result]) -> Table:
    """Both sizes side by side."""
    small, large = results
    rows = [
        ("nodes", f"{small.nodes}", f"{large.nodes}", _ratio(small.nodes, large.nodes)),
        _seconds("resume, 1,000 nodes a job: s", small.resume_seconds, large.resume_seconds),
        ("resume: API calls", _text(small.resume_calls), _text(large.resume_calls), ""),
        _seconds("idle pass: CPU s", small.idle_cpu_seconds, large.idle_cpu_seconds),
        (
            "idle pass: API calls",
            f"{small.idle_calls}",
            f"{large.idle_calls}",
            _ratio(small.idle_calls, large.idle_calls),
        ),
        (
            "idle pass: Slurm commands",
            f"{small.idle_commands}",
            f"{large.idle_commands}",
            _ratio(small.idle_commands, large.idle_commands),
        ),
        _seconds("decide: CPU s", small.decide_cpu_seconds, large.decide_cpu_seconds),
    ]
    result = Table("passes", "small", "large", "ratio")
    for row in rows:
        result.add_row(*row)
    return result


def _seconds(title: str, small: float, large: float) -> tuple[str, str, str, str]:
    return title, f"{small:.3f}", f"{large:.3f}", _ratio(small, large)


def _ratio(small: float, large: float) -> str:
    return f"{large / small:.1f}x" if small else ""


def _text(calls: Counter[str]) -> str:
    return ", ".join(f"{count} {method}" for method, count in sorted(calls.items()))
