"""What the lifecycle tests ask and order: jobs, nodes, requests, VMs, in few words."""

from __future__ import annotations

import re
from dataclasses import dataclass

from slurm_hooks.sandbox.box.box import Box
from slurm_hooks.sandbox.demo.witness import Witness

N0, N1 = "flexvm-a3u-0", "flexvm-a3u-1"
ZONE = "us-central1-a"
MACHINE_TYPE = "a3-ultragpu-8g"
SCRIPT = """#!/bin/bash
srun -l bash -c 'echo "$SLURMD_NODENAME of job $SLURM_JOB_ID"'
{more}
"""
COME_SECONDS = 90
GO_SECONDS = 90


@dataclass
class Lifecycle:
    """One box and the questions of a test."""

    box: Box

    def __post_init__(self) -> None:
        self.witness = Witness(self.box, (N0, N1))

    def submit(self, nodes: int, *options: str, more: str = "") -> int:
        """Submit a job over that many whole nodes."""
        script = SCRIPT.format(more=more)
        return self.witness.submit(script, f"-N{nodes}", "--gres=gpu:8", "--exclusive", *options)

    def slurm(self, *arguments: str) -> str:
        """Run one of Slurm's commands, which must succeed."""
        answer = self.box.run(arguments)
        assert answer.returncode == 0, f"{arguments}: {answer.stderr}"
        return answer.stdout

    def set_capacity(self, vms: int | None) -> None:
        """How many VMs the zone can hold."""
        self.box.control.set_capacity(ZONE, MACHINE_TYPE, vms)

    def job_state(self, job_id: int) -> str:
        """The job's state as scontrol prints it."""
        return self.witness.job(job_id).state

    def job_states(self, job_id: int) -> list[str]:
        """The states of all jobs of an array."""
        text = self.slurm("scontrol", "-o", "show", "job", str(job_id))
        return re.findall(r"\bJobState=(\S+)", text)

    def resume_calls(self) -> list[str]:
        """The hostlists with which Slurm has called ResumeProgram, as its log has them."""
        log = self.box.layout.log("slurm-hooks").read_text(encoding="utf-8")
        return re.findall(r" resume\[\d+\] called nodes=(\S+)", log)

    def requested_nodes(self) -> list[tuple[str, ...]]:
        """The nodes of each resize request."""
        return [tuple(request.instances) for request in self.witness.project.requests()]

    def comment(self, job_id: int) -> str:
        """The job's admin comment."""
        return self.witness.job(job_id).admin_comment

    def node_flags(self, node: str) -> set[str]:
        """The words of a node's state."""
        text = self.slurm("scontrol", "-o", "show", "node", node)
        match = re.search(r"\bState=(\S+)", text)
        assert match is not None, text
        return set(re.split(r"[+*~#%!$@^-]+", match.group(1)))

    def request_states(self) -> dict[str, str]:
        """State of each resize request, by name."""
        return {r.name: r.state for r in self.witness.project.requests()}

    def active_requests(self) -> set[str]:
        """The names of the requests that may still bring VMs: those that are over stay a while."""
        over = ("SUCCEEDED", "FAILED", "CANCELLED")
        return {name for name, state in self.request_states().items() if state not in over}

    def vm_states(self) -> dict[str, str]:
        """Status of each VM, by name."""
        return {vm.name: vm.status for vm in self.witness.project.instances()}

    def inserts(self) -> list[str]:
        """Paths of the resize request inserts that the API has answered well."""
        return [
            call.path
            for call in self.box.control.calls()
            if call.method == "POST"
            and call.path.partition("?")[0].endswith("/resizeRequests")
            and call.status == 200
        ]

    def wait_for_job(self, job_id: int, state: str, seconds: float = COME_SECONDS) -> None:
        """Wait until the job is in the state."""
        self.box.wait_until(
            f"job {job_id} to be {state}", lambda: self.job_state(job_id) == state, seconds
        )

    def wait_for_requests(self, count: int, state: str = "ACCEPTED") -> None:
        """Wait until exactly so many requests exist, all in the state."""
        self.box.wait_until(
            f"{count} requests to be {state}",
            lambda: sorted(self.request_states().values()) == [state] * count,
            COME_SECONDS,
        )

    def wait_until_all_is_gone(self) -> None:
        """Wait until no VM is left, no request waits and the nodes are powered down."""
        self.box.wait_until(
            "VMs and waiting requests to go and nodes to be powered down",
            lambda: (
                not self.vm_states()
                and not self.active_requests()
                and all(
                    {"IDLE", "POWERED_DOWN"} <= self.node_flags(node)
                    and "POWERING_DOWN" not in self.node_flags(node)
                    for node in (N0, N1)
                )
            ),
            GO_SECONDS,
        )
