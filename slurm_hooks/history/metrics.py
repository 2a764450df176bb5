"""What the daemon counts, for Prometheus."""

from __future__ import annotations

from prometheus_client import Counter, Gauge, Histogram, start_http_server

from slurm_hooks.reconcile.actions import NoticeKind, Plan
from slurm_hooks.reconcile.node_table import Step

PASSES = Counter("slurm_hooks_passes_total", "Passes run")
PASS_SECONDS = Histogram("slurm_hooks_pass_seconds", "Seconds of one pass")
ACTIONS = Counter("slurm_hooks_actions_total", "Actions planned", ["action"])
NODES = Gauge("slurm_hooks_nodes", "Nodes by the step decided for them", ["step"])
CONDITIONS = Gauge("slurm_hooks_conditions", "Conditions that hold", ["condition"])


def record_pass(plan: Plan, seconds: float) -> None:
    """Count one pass and what it decided."""
    PASSES.inc()
    PASS_SECONDS.observe(seconds)
    for action in plan.actions:
        ACTIONS.labels(type(action).__name__).inc()
    steps = list(plan.steps.values())
    for step in Step:
        NODES.labels(step.name).set(steps.count(step))
    kinds = [notice.kind for notice in plan.notices]
    for kind in NoticeKind:
        CONDITIONS.labels(kind).set(kinds.count(kind))


def serve(listen: str) -> None:
    """Serve the metrics over HTTP on `HOST:PORT`. Raises OSError, ValueError."""
    host, _, port = listen.rpartition(":")
    start_http_server(int(port), addr=host)
