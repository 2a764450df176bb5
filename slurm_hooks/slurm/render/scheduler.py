"""Scheduling and requeueing: what decides how soon a job runs again after it lost its nodes.

Measured on running daemons: the backfill interval and the requeue delay, not the power programs,
are what such a job waits for with Slurm's defaults (30 s and 121 s).
"""

from __future__ import annotations

from collections.abc import Iterator

from slurm_hooks.cluster.topology import Cluster
from slurm_hooks.slurm.render.lines import Line, listed, setting
from slurm_hooks.slurm.render.nodes import compute_pools
from slurm_hooks.slurm.render.options import RenderOptions


def scheduler_lines(cluster: Cluster, options: RenderOptions) -> tuple[Line, ...]:
    """All settings of scheduling and requeueing for the version at hand."""
    return (
        *_selection(cluster),
        setting("JobRequeue", 1, "A batch job whose VM fails or expires goes back to the queue."),
        listed("SchedulerParameters", _scheduler_parameters(options)),
        *_authentication(options),
    )


def _selection(cluster: Cluster) -> Iterator[Line]:
    yield setting("SelectType", "select/cons_tres", "The one plugin that can give out GPUs.")
    yield setting(
        "SelectTypeParameters",
        "CR_Core_Memory",
        "Whole cores, since the two threads of one are a poor pair for two jobs, and memory.",
    )
    if any(pool.accelerator_count for pool in compute_pools(cluster)):
        yield setting("GresTypes", "gpu", "Makes GPUs known; without it Gres= is an error.")


def _scheduler_parameters(options: RenderOptions) -> Iterator[tuple[str, str]]:
    interval = options.scheduler_interval_seconds
    yield f"bf_interval={interval}", "seconds between backfill passes (30 by default)."
    yield f"sched_interval={interval}", "seconds between full scheduling passes (60 by default)."
    yield (
        "nohold_on_prolog_fail",
        "a job whose prolog found a bad node is queued again instead of held for an administrator.",
    )
    if options.slurm_version >= (25, 5):
        yield (
            "requeue_on_resume_failure",
            "a job whose nodes never came has not run: it is queued again, --no-requeue or not.",
        )
    if options.slurm_version >= (25, 11):
        yield (
            f"requeue_delay={options.requeue_delay_seconds}",
            "seconds that a requeued job waits before it may start again (121 by default).",
        )


def _authentication(options: RenderOptions) -> Iterator[Line]:
    pairs = []
    if options.munge_socket:
        pairs.append((f"socket={options.munge_socket}", "this cluster's own munged."))
    if options.slurm_version < (25, 11):
        delay = options.requeue_delay_seconds
        reason = (
            "seconds that job credentials live, and with them the wait of a requeued job"
            " (120 by default)."
        )
        pairs.append((f"cred_expire={delay}", reason))
    if pairs:
        yield listed("AuthInfo", pairs)
