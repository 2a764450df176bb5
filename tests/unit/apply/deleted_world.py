"""Slurm and Compute Engine with a cluster that is to be deleted in them, and another one."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from slurm_hooks.apply.delete_run import DeleteOptions, Removal
from slurm_hooks.apply.systems import Systems
from slurm_hooks.cluster.topology import Cluster
from slurm_hooks.compute.model import (
    RequestReference,
    Scope,
    ScopeKind,
)
from slurm_hooks.reconcile.specifications import (
    group_of,
    request_of,
    template_of,
    workload_policy_of,
)
from slurm_hooks.slurm.client import ReservationSpecification
from slurm_hooks.slurm.controllers import Controller
from slurm_hooks.slurm.model import NodeFlag
from tests.fakes.compute import FakeCompute
from tests.fakes.slurm import FakeSlurm
from tests.unit.cluster.files import build, changed

CLUSTER: Cluster = build(changed(node_pools__1__slurm_hooks={"compact_placement": True}))
N0, N1 = "flexvm-a3u-0", "flexvm-a3u-1"
GLOBAL = Scope(ScopeKind.GLOBAL, "")
NOW = datetime(2026, 12, 1, tzinfo=UTC)


class AnsweringSlurm(FakeSlurm):
    """A FakeSlurm whose slurmctld answers a ping."""

    def responding_controller(self) -> Controller | None:
        """It is there."""
        return Controller("primary", "here")

    def parameters(self) -> dict[str, str]:
        """Nothing of note."""
        return {}

    def reconfigure(self) -> None:
        """Nothing changes."""


class World:
    """Both systems with a cluster in them, and the same of another cluster."""

    def __init__(self, directory: Path) -> None:
        self.spool = directory
        self.compute = FakeCompute()
        self.slurm = AnsweringSlurm([N0, N1, "other-a3u-0"])
        self.now = 0.0
        self.told: list[tuple[str, ...]] = []
        conf = directory / "slurm.conf"
        conf.write_text("ClusterName=x\n")
        self.systems = Systems(conf, self.slurm, self.compute, True, lambda: None)
        self.provision(CLUSTER)
        self.provision(replace(CLUSTER, cluster_id="other"))
        self.slurm.create_reservation(
            ReservationSpecification("slurm-hooks-eol-1", (N0,), NOW + timedelta(days=1), 60)
        )
        self.slurm.create_reservation(
            ReservationSpecification("maint", (N0,), NOW + timedelta(days=1), 60)
        )

    def provision(self, cluster: Cluster) -> None:
        """A request that waits, one that was granted, and all that they need."""
        pool, run = cluster.pools["a3u"], cluster.cluster_id
        group = group_of(cluster, pool)
        policy = workload_policy_of(cluster, pool)
        self.compute.insert_template(GLOBAL, template_of(cluster, pool), f"t {run}")
        self.compute.insert_workload_policy(policy, f"p {run}")
        self.compute.insert_group(replace(group, workload_policy=policy), f"g {run}")
        for index, is_granted in ((0, True), (1, False)):
            reference = RequestReference(group.reference, f"r{index}")
            nodes = [f"{run}-a3u-{index}"]
            request = request_of(cluster, pool, reference, nodes, None, None)
            self.compute.insert_resize_request(request, f"r {run} {index}")
            if is_granted:
                self.compute.state.grant(reference)

    def pause(self, seconds: float) -> None:
        """Time passes, and both systems move on."""
        self.now += seconds
        self.compute.state.step()
        going = [
            name
            for name, node in self.slurm.nodes.items()
            if node.state.has(NodeFlag.POWERING_DOWN)
        ]
        self.slurm.slept(going)
        self.slurm.pass_power_thread()

    def removal(self, *, force: bool = False, seconds: float = 600) -> Removal:
        return Removal(
            self.spool,
            self.systems,
            "flexvm",
            DeleteOptions(force, seconds),
            self.told.append,
            self.pause,
            lambda: self.now,
        )

    def names(self) -> dict[str, set[str]]:
        """What is left in Compute Engine, of whomever."""
        state = self.compute.state
        return {
            "groups": {reference.name.partition("-")[0] for reference in state.groups},
            "templates": {name.partition("-")[0] for _, name in state.templates},
            "policies": {name.partition("-")[0] for _, name in state.workload_policies},
            "VMs": {instance.name for instance in state.instances.values()},
        }
