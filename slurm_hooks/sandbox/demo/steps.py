"""The steps of the story, each with the observation that proves it.

A step's `observe` returns what was seen, or None as long as it has not been seen. It only looks;
what a person or the world does at that moment is the step's `begin`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from slurm_hooks.cluster.topology import Cluster, NodePool, ProvisioningModel
from slurm_hooks.sandbox.box.layout import BoxError
from slurm_hooks.sandbox.box.project import Request
from slurm_hooks.sandbox.demo.witness import Witness

JOB_SCRIPT = """\
#!/bin/bash
srun -l hostname
srun -l bash -c 'echo "$SLURMD_NODENAME has GPUs $CUDA_VISIBLE_DEVICES"'
"""


@dataclass(frozen=True, slots=True)
class Step:
    """A step: `limit_seconds` is how long it may take to be seen."""

    title: str
    limit_seconds: float
    observe: Callable[[], str | None]
    begin: Callable[[], None] = lambda: None


def choose_pool(cluster: Cluster) -> NodePool:
    """The first Flex-start pool of the default partition. Raises BoxError when there is none."""
    for pool_id in cluster.partitions.get(cluster.default_partition, ()):
        pool = cluster.pools[pool_id]
        dynamic = pool.max_node_count - pool.min_node_count
        if pool.provisioning_model is ProvisioningModel.FLEX_START and dynamic > 0:
            return pool
    raise BoxError(
        f"partition {cluster.default_partition} has no FLEX_START pool with dynamic nodes to show"
    )


class Story:
    """The steps for one pool and the nodes that the job will get."""

    def __init__(self, witness: Witness, cluster: Cluster, pool: NodePool) -> None:
        self._witness = witness
        self._cluster = cluster
        self._pool = pool
        self._job_id = 0

    def steps(self) -> tuple[Step, ...]:
        """All steps, in order."""
        count = len(self._witness.nodes)
        options = " ".join(self._sbatch_options())
        return (
            Step(f"a user submits sbatch {options}", 10, self._job_queued, self._submit),
            Step("Slurm calls ResumeProgram for the nodes", 30, self._nodes_powering_up),
            Step("the zone has no capacity: the resize request waits", 40, self._request_waits),
            Step("scontrol show job tells the job's owner why", 20, self._owner_knows),
            Step(f"capacity arrives: {count} VMs at once", 40, self._vms_run, self._add_capacity),
            Step("each VM boots a slurmd, the job starts", 90, self._job_started),
            Step("the job runs srun over all its nodes", 40, self._job_done),
            Step("the nodes idle", 20, self._nodes_idle),
            Step("Slurm calls SuspendProgram", 60, self._nodes_powering_down),
            Step("the VMs are gone", 60, self._vms_gone),
            Step("the resize request is gone", 60, self._request_gone),
            Step("sinfo shows the nodes idle~", 60, self._nodes_powered_down),
            Step("nothing is left in the project but what should be", 30, self._project_is_clean),
        )

    def _sbatch_options(self) -> tuple[str, ...]:
        options = [f"-N{len(self._witness.nodes)}"]
        if self._pool.accelerator_count:
            options.append(f"--gres=gpu:{self._pool.accelerator_count}")
        return tuple(options)

    def _submit(self) -> None:
        self._job_id = self._witness.submit(JOB_SCRIPT, *self._sbatch_options())

    def _job_queued(self) -> str | None:
        state = self._witness.job(self._job_id).state
        return f"job {self._job_id} is {state}" if state in ("PENDING", "CONFIGURING") else None

    def _nodes_powering_up(self) -> str | None:
        return self._witness.all_nodes_are("alloc#", "mix#", "idle#")

    def _request_waits(self) -> str | None:
        for request in self._witness.project.requests():
            if request.state == "ACCEPTED" and self._is_for_the_job(request):
                vms = self._story_vms()
                if vms:
                    raise BoxError(f"there are VMs without capacity: {', '.join(vms)}")
                return (
                    f"{request.name} for {', '.join(request.instances)} is {request.state}\n"
                    f"its last attempt: {request.last_error_code}"
                )
        return None

    def _is_for_the_job(self, request: Request) -> bool:
        """Whether it asks for exactly the job's nodes and an attempt has failed."""
        names_match = set(request.instances) == set(self._witness.nodes)
        return names_match and bool(request.last_error_code)

    def _owner_knows(self) -> str | None:
        job = self._witness.job(self._job_id)
        codes = {request.last_error_code for request in self._witness.project.requests()} - {""}
        named = any(code in job.admin_comment for code in codes)
        return job.shown if named else None

    def _add_capacity(self) -> None:
        for zone in self._pool.zones:
            self._witness.box.control.set_capacity(
                zone, self._pool.machine_type, len(self._witness.nodes)
            )

    def _vms_run(self) -> str | None:
        vms = self._story_vms()
        if set(vms) == set(self._witness.nodes) and set(vms.values()) == {"RUNNING"}:
            return ", ".join(f"{name} {status}" for name, status in vms.items())
        return None

    def _job_started(self) -> str | None:
        job = self._witness.job(self._job_id)
        if job.state in ("RUNNING", "COMPLETING", "COMPLETED"):
            return f"job {self._job_id} is {job.state} on {', '.join(self._witness.nodes)}"
        return None

    def _job_done(self) -> str | None:
        job = self._witness.job(self._job_id)
        if job.state in ("FAILED", "NODE_FAIL", "CANCELLED", "TIMEOUT"):
            raise BoxError(f"job {self._job_id} is {job.state}: {job.text}")
        output = self._witness.job_output(self._job_id)
        if job.state == "COMPLETED" and all(node in output for node in self._witness.nodes):
            return output
        return None

    def _nodes_idle(self) -> str | None:
        return self._witness.all_nodes_are("idle")

    def _nodes_powering_down(self) -> str | None:
        return self._witness.all_nodes_are("idle%")

    def _vms_gone(self) -> str | None:
        return None if self._story_vms() else "no VM of the job's nodes exists"

    def _request_gone(self) -> str | None:
        requests = self._witness.project.requests()
        return None if requests else "no resize request exists"

    def _nodes_powered_down(self) -> str | None:
        return self._witness.all_nodes_are("idle~")

    def _project_is_clean(self) -> str | None:
        project = self._witness.project
        vms = [vm.name for vm in project.instances()]
        groups = project.groups()
        strangers = [name for name in vms if not self._cluster.is_static(name)]
        if strangers or project.requests() or sum(g.target_size for g in groups) != len(vms):
            return None
        return (
            f"templates: {', '.join(project.templates()) or 'none'}\n"
            f"groups: {', '.join(f'{g.name} of size {g.target_size}' for g in groups) or 'none'}\n"
            f"VMs: {', '.join(vms) or 'none'}"
        )

    def _story_vms(self) -> dict[str, str]:
        wanted = set(self._witness.nodes)
        return {vm.name: vm.status for vm in self._witness.project.instances() if vm.name in wanted}
