"""What the daemon counts, for Prometheus."""

from __future__ import annotations

from prometheus_client import Counter, Gauge, Histogram, start_http_server

from slurm_hooks.reconcile.actions import NoticeKind, Plan
from slurm_hooks.reconcile.node_table import Step

PASSES = Counter("slurm_hooks_passes_total", "Passes run")
PASS_SECONDS = Histogram("slurm_hooks_pass_seconds", "Seconds of one pass")
ACTIONS = Counter("slurm_hooks_actions_total", "Actions planned", ["action"])
NODES = Gauge("slurm_hooks_nodes", "Nodes by the step decided for them", ["step"])
IN_CHARGE = Gauge("slurm_hooks_in_charge", "1 where this host acts, 0 where it only watches")
HELD_KILLS = Gauge("slurm_hooks_held_kills", "Kills that the cap keeps back")
CONDITIONS = Gauge("slurm_hooks_conditions", "Conditions that hold", ["condition"])
WAITING = Gauge("slurm_hooks_nodes_waiting_for_capacity", "Nodes that wait for capacity", ["pool"])
LOGIN_LACKING = Gauge(
    "slurm_hooks_login_nodes_lacking", "Login nodes without a VM that runs", ["pool"]
)


def record_pass(plan: Plan, seconds: float) -> None:
    """Count one pass and what it decided."""
    PASSES.inc()
    PASS_SECONDS.observe(seconds)
    for action in plan.actions:
        ACTIONS.labels(type(action).__name__).inc()
    steps = list(plan.steps.values())
    for step in Step:
        NODES.labels(step.name).set(steps.count(step))
    for pool_id, count in plan.waiting.items():
        WAITING.labels(pool_id).set(count)
    for pool_id, count in plan.login_lacking.items():
        LOGIN_LACKING.labels(pool_id).set(count)
    HELD_KILLS.set(len(plan.held))
    kinds = [notice.kind for notice in plan.notices]
    for kind in NoticeKind:
        CONDITIONS.labels(kind).set(kinds.count(kind))


def record_charge(acts: bool) -> None:
    """Note whether this host's daemon acts."""
    IN_CHARGE.set(acts)


def serve(listen: str) -> None:
    """Serve the metrics over HTTP on `HOST:PORT`. Raises OSError, ValueError."""
    host, _, port = listen.rpartition(":")
    start_http_server(int(port), addr=host)
