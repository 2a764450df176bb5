"""A cluster of static and dynamic nodes, and the questions that tests of its nodes ask."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slurm_hooks.sandbox.box.configuration import BoxOptions, example_cluster_file
from tests.end_to_end.lifecycle import Lifecycle

N2 = "flexvm-a3u-2"
POOL, LOGIN_POOL = "a3u", "login"
UP_SECONDS = 60
GONE_SECONDS = 60
UNTIL_TOLD = ("bash", "-c", "until [ -e go ]; do sleep 0.2; done")
"""A command that runs until `let_go`."""
AT_ONCE = {"reap_grace_seconds": 1}
"""A policy under which finished requests go soon, so that those left are a test's own."""
SETTLED_PASSES = 3
"""So many passes after a change, whatever two sightings would start has been started."""

_POWER_WORDS = {"POWERED_DOWN", "POWERING_UP", "POWERING_DOWN", "POWER_DOWN", "POWER_UP"}
_ONE_MACHINE_PORT = 9
"""A node of a machine that is not there answers on no port; this one is never listened on."""


def example_document(login_nodes: int = 0) -> dict[str, Any]:
    """The example cluster: without login nodes, where a test is not about them."""
    document: dict[str, Any] = json.loads(example_cluster_file().read_text(encoding="utf-8"))
    counts = {"min_node_count": login_nodes, "max_node_count": login_nodes}
    for pool in document["node_pools"]:
        if pool["id"] == LOGIN_POOL:
            pool["scaling_spec"] = counts
    return document


def write_cluster(path: Path, *, static: int, nodes: int, policy: Mapping[str, int]) -> Path:
    """The example cluster with so many nodes in its pool, the first of them static."""
    document = example_document()
    pool = next(pool for pool in document["node_pools"] if pool["id"] == POOL)
    pool["scaling_spec"] = {"min_node_count": static, "max_node_count": nodes}
    document["slurm_hooks"] = dict(policy)
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def short_times(latency: Mapping[str, float]) -> BoxOptions:
    """Times under which a node comes and goes in seconds."""
    return BoxOptions(
        suspend_time_seconds=6,
        suspend_timeout_seconds=4,
        scheduler_interval_seconds=2,
        pass_interval_seconds=1,
        latency=latency,
    )


@dataclass
class Fleet(Lifecycle):
    """Questions about nodes and their VMs, beside those about jobs."""

    def vm_id(self, node: str) -> str:
        """The id of the node's VM; empty when there is none."""
        found = [vm.instance_id for vm in self.witness.project.instances() if vm.name == node]
        return found[0] if found else ""

    def is_up(self, node: str) -> bool:
        """Whether the node takes jobs: registered, in no power transition, not kept off."""
        flags = self.node_flags(node)
        kept_off = flags & {"DOWN", "DRAIN", "FAIL", "NOT_RESPONDING"}
        return not kept_off and not flags & _POWER_WORDS

    def is_off(self, node: str) -> bool:
        """Whether the node is powered down and has no VM."""
        flags = self.node_flags(node)
        return (
            "POWERED_DOWN" in flags
            and "POWERING_DOWN" not in flags
            and node not in self.vm_states()
        )

    def reason(self, node: str) -> str:
        """The node's reason without user and time."""
        text = self.slurm("scontrol", "-o", "show", "node", node)
        match = re.search(r" Reason=(.*?)(?: \[[^\]]*\])?\s*$", text)
        return match.group(1) if match else ""

    def update(self, node: str, state: str, reason: str = "") -> None:
        """Change a node's state as a person does."""
        words = [f"reason={reason}"] if reason else []
        self.slurm("scontrol", "update", f"nodename={node}", f"state={state}", *words)

    def wait_until_up(self, *nodes: str, another_than: str = "") -> None:
        """Wait until the nodes are up, on a VM of another id than the one given."""
        self.box.wait_until(
            f"{', '.join(nodes)} to be up",
            lambda: all(
                self.is_up(node) and self.vm_id(node) not in ("", another_than) for node in nodes
            ),
            UP_SECONDS,
        )

    def wait_until_off(self, *nodes: str) -> None:
        """Wait until the nodes are powered down without VMs."""
        self.box.wait_until(
            f"{', '.join(nodes)} to be off",
            lambda: all(self.is_off(node) for node in nodes),
            GONE_SECONDS,
        )

    def wait_for_passes(self, count: int = SETTLED_PASSES) -> None:
        """Wait until the daemon has run so many more passes to their ends."""
        before = self.passes()
        self.box.wait_until(
            f"{count} more passes", lambda: self.passes() >= before + count, 30 + 10 * count
        )

    def let_go(self) -> None:
        """Let jobs that run UNTIL_TOLD end."""
        (self.box.layout.jobs / "go").touch()

    def passes(self) -> int:
        """How many passes the daemon has run."""
        return len(self.log_lines(r"\bpass nodes="))

    def log_lines(self, pattern: str) -> list[str]:
        """Lines of our log with a match of the pattern."""
        text = self.box.layout.log("slurm-hooks").read_text(encoding="utf-8")
        return [line for line in text.splitlines() if re.search(pattern, line)]

    def changes(self) -> list[str]:
        """Lines of our log that tell of a change to a node or of a VM's deletion."""
        return self.log_lines("nodes changed|VM deletion started")

    @contextmanager
    def interactive(self, node: str, *command: str) -> Iterator[subprocess.Popen[str]]:
        """An srun on a node. It starts as soon as the node is up; ends with the block."""
        with self.at_a_terminal("srun", node, *command) as process:
            yield process

    @contextmanager
    def at_a_terminal(
        self, program: str, node: str, *command: str
    ) -> Iterator[subprocess.Popen[str]]:
        """An srun or salloc of a whole node that runs a command; ends with the block."""
        with subprocess.Popen(
            [program, "-N1", "-w", node, "--gres=gpu:8", "--exclusive", *command],
            env=self.box.environment,
            cwd=self.box.layout.jobs,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            try:
                yield process
            finally:
                process.terminate()

    def configure(self, line: str) -> None:
        """Have slurmctld take another line of configuration; the last one of its kind counts."""
        key = line.partition("=")[0]
        conf = self.box.layout.slurm_conf
        lines = conf.read_text(encoding="utf-8").splitlines()
        kept = [other for other in lines if other.partition("=")[0] != key]
        conf.write_text("\n".join([*kept, line, ""]), encoding="utf-8")
        self.slurm("scontrol", "reconfigure")

    def run_on(self, node: str, *command: str) -> str:
        """The output of a command that runs well on a node."""
        with self.interactive(node, *command) as process:
            output, _ = process.communicate(timeout=UP_SECONDS)
            assert process.returncode == 0, output
            return output

    def add_foreign_nodes(self) -> None:
        """Nodes that are not ours: one of this site, one of another cluster in the cloud."""
        with self.box.layout.slurm_conf.open("a", encoding="utf-8") as file:
            file.write(
                f"NodeName=onprem1 NodeAddr=127.0.0.1 Port={_ONE_MACHINE_PORT} State=UNKNOWN\n"
                f"NodeName=other-a3u-0 NodeAddr=127.0.0.1 Port={_ONE_MACHINE_PORT} State=CLOUD\n"
                "PartitionName=foreign Nodes=onprem1,other-a3u-0 State=UP\n"
            )
        self.box.slurmctld.kill()
        self.box.slurmctld.start()
