"""A cluster whose GPUs break: how they break, what a node then says, and what is done about it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from slurm_hooks.health.reason import HealthReason, health_reason_of
from slurm_hooks.history.event import Event, EventKind
from slurm_hooks.history.events import FILE_NAME, EventHistory, Filter
from slurm_hooks.sandbox.box.box import Box
from tests.end_to_end.conftest import FAST_LATENCY, place_for_a_box
from tests.end_to_end.fleet import Fleet, short_times, write_cluster
from tests.end_to_end.lifecycle import COME_SECONDS

ONLY_WITH_JOBS = 3600
"""An interval of background checks at which none comes while a test lasts."""
NO_STOP = {"stop_repairs_least": 1000}
"""A policy under which stories on many nodes of one pool do not stop its repairs."""
TOLD_SECONDS = 60
"""A health check comes within its interval, a pass within its own, on a machine that is busy."""

_SCRIPT = """\
#!/bin/bash
srun bash -c 'echo "$(head -n1 ../nodes/$SLURMD_NODENAME/boot) \\
$(head -c8 ../nodes/$SLURMD_NODENAME/proc/sys/kernel/random/boot_id) \\
$SLURMD_NODENAME" >> "starts-$SLURM_JOB_ID-${SLURM_RESTART_COUNT:-0}"'
until [ -e "end-$SLURM_JOB_ID-${SLURM_RESTART_COUNT:-0}" ]; do sleep 0.1; done
exit "$(< "end-$SLURM_JOB_ID-${SLURM_RESTART_COUNT:-0}")"
"""


@dataclass(frozen=True, order=True)
class Place:
    """Where a task of a job ran: which boot of which VM."""

    node: str
    vm_id: str
    boot: str


@dataclass
class Clinic(Fleet):
    """Faults of GPUs, and questions about nodes that have them.

    Events are those since the story began.
    """

    past: int = 0

    def begin_story(self, *nodes: str) -> None:
        """Wait until the nodes are up, and leave behind what happened until now."""
        self.wait_until_up(*nodes)
        recorded = self._history.read(Filter())
        self.past = recorded[-1].number if recorded else 0

    def break_gpu(
        self, node: str, kind: str, gpu: int = 0, *, number: int = 0, lasting: bool = False
    ) -> None:
        """Break a GPU; a reboot cures what is not lasting, a new VM everything."""
        self.box.control.gpu_fault(node, kind, gpu=gpu, number=number, lasting=lasting)

    def set_driver(self, node: str, key: str, value: str | None) -> None:
        """Change what the driver says of the node's first GPU: sandbox/gpu/state_file.h."""
        self.box.control.set_gpu_state(node, {f"gpu.0.{key}": value})

    def cure(self, node: str) -> None:
        """Let the driver ask for no recovery of the node's first GPU any more."""
        self.set_driver(node, "field.230", "uint:0")

    def set_health_policy(self, node: str, text: str) -> None:
        """Write the policy of the node's VM; its disks are this machine's, and not looked at."""
        path = self.box.layout.node(node) / "etc/slurm-hooks/health.yaml"
        path.write_text(f"disks: []\n{text}\n", encoding="utf-8")

    def set_burn_in(self, node: str) -> Path:
        """Have the node's VM burn in after its reboots; the file to which each burn-in adds the
        node's state in Slurm as it is then."""
        place = self.box.layout.node(node) / "etc/slurm-hooks"
        program, states = place / "burn-in", place / "burn-in-states"
        ask = f"scontrol -o show node {node} | grep -o 'State=[^ ]*'"
        program.write_text(
            f"#!/bin/sh\nexport SLURM_CONF={self.box.layout.slurm_conf}\n"
            f"export PATH={self.box.environment['PATH']}\n{ask} >> {states}\n",
            encoding="utf-8",
        )
        program.chmod(0o755)
        self.set_health_policy(node, f"burn_in: [{program}]")
        return states

    def set_gpus_of_next_boots(self, node: str, gpus: int) -> None:
        """Let all further boots of VMs of this name find so many GPUs."""
        path = self.box.layout.hardware
        found = json.loads(path.read_text(encoding="utf-8"))
        found[node]["gpus"] = gpus
        hidden = path.with_name(f".{path.name}")
        hidden.write_text(json.dumps(found), encoding="utf-8")
        hidden.rename(path)

    def reboot_by_hand(self, node: str) -> None:
        """Reboot the node's VM from within, as a person who is logged in there."""
        program = self.box.layout.programs / "slurm-hooks-reboot"
        answer = self.box.run(["env", f"SLURMD_NODENAME={node}", str(program)])
        assert answer.returncode == 0, answer.stderr

    def submit_open_ended(self, *options: str, nodes: int = 1, gpus: int = 8) -> int:
        """Submit a job whose every start runs until `end_start`."""
        return self.witness.submit(_SCRIPT, f"-N{nodes}", f"--gres=gpu:{gpus}", *options)

    def end_start(self, job_id: int, start: int, status: int = 0) -> None:
        """Let a start of a job (0 is the first) end with a status, or do so once it is reached."""
        path = self.box.layout.jobs / f"end-{job_id}-{start}"
        hidden = path.with_name(f".{path.name}")
        hidden.write_text(f"{status}\n", encoding="ascii")
        hidden.rename(path)

    def places(self, job_id: int, start: int) -> list[Place]:
        """Where a start of a job ran; empty before it did."""
        path = self.box.layout.jobs / f"starts-{job_id}-{start}"
        lines = path.read_text(encoding="ascii").splitlines() if path.exists() else []
        found = [line.split() for line in lines]
        return sorted(Place(node, vm_id, boot) for vm_id, boot, node in found)

    def wait_for_start(self, job_id: int, start: int, nodes: int = 1) -> list[Place]:
        """Wait until a start of a job runs on all of its nodes."""
        self.box.wait_until(
            f"start {start} of job {job_id} to run on {nodes} nodes",
            lambda: len(self.places(job_id, start)) == nodes,
            COME_SECONDS,
        )
        return self.places(job_id, start)

    def health_reason(self, node: str) -> HealthReason | None:
        """What a health run says in the node's reason now; None where it is not one's."""
        return health_reason_of(self.reason(node))

    def health_log(self, node: str) -> str:
        """What the health programs have logged on the node's VM."""
        path = self.box.layout.node(node) / "var/log/slurm-hooks/health.log"
        return path.read_text(encoding="utf-8") if path.exists() else ""

    def wait_for_health_log(self, node: str, text: str) -> None:
        """Wait until the health programs of a node have logged a text."""
        self.box.wait_until(
            f"{text!r} in the health log of {node}",
            lambda: text in self.health_log(node),
            TOLD_SECONDS,
        )

    def events(self, node: str = "") -> list[Event]:
        """What the history has of a node, or of all, the oldest first."""
        chosen = Filter(nodes=(node,) if node else (), after_id=self.past)
        return [recorded.event for recorded in self._history.read(chosen)]

    def kinds(self, node: str) -> list[EventKind]:
        """The kinds of a node's events, the oldest first."""
        return [event.kind for event in self.events(node)]

    def wait_for_event(self, node: str, kind: EventKind) -> Event:
        """Wait until the history has an event of the kind about the node, and return the last."""
        self.box.wait_until(
            f"{kind} of {node} in the history",
            lambda: kind in self.kinds(node),
            TOLD_SECONDS,
        )
        return [event for event in self.events(node) if event.kind is kind][-1]

    def command(self, *arguments: str) -> str:
        """The output of a command of slurm-hooks that ends well."""
        answer = self.box.run([sys.executable, "-m", "slurm_hooks.cli.main", *arguments])
        assert answer.returncode == 0, answer.stderr
        return answer.stdout

    def shown_repairs(self, node: str) -> Mapping[str, object] | None:
        """What `slurm-hooks repairs` shows of a node; None where it shows nothing."""
        shown = json.loads(self.command("repairs", "--json"))
        return next((one for one in shown["nodes"] if one["node"] == node), None)

    @property
    def _history(self) -> EventHistory:
        return EventHistory(self.box.layout.hooks_spool / FILE_NAME)


@contextmanager
def open_clinic(
    directory: Path, *, nodes: int, check_seconds: int, policy: Mapping[str, int]
) -> Iterator[Clinic]:
    """A box with so many nodes, all static and up, checked every so many seconds while idle.

    `directory` is for the cluster file.
    """
    file = write_cluster(directory / "cluster.json", static=nodes, nodes=nodes, policy=policy)
    times = short_times(FAST_LATENCY)
    options = replace(times, health_check_interval_seconds=check_seconds)
    with (
        place_for_a_box() as place,
        Box.start(place, cluster_file=file, options=options) as box,
    ):
        clinic = Clinic(box)
        clinic.wait_until_up(*(node_name(index) for index in range(nodes)))
        yield clinic


def node_name(index: int) -> str:
    """A node of the pool."""
    return f"flexvm-a3u-{index}"
