"""Node health: what slurmd runs before a job, after it and in between, and how long it may last.

Facts: slurmd waits for a Prolog's and an Epilog's end without limit unless told otherwise, and a
HealthCheckProgram is killed after 60 s. slurmctld does not start with a PrologFlag that it does not
know: 22.05 ends on ForceRequeueOnFail (measured), which 23.02 added (its release notes).
"""

from __future__ import annotations

from collections.abc import Iterator

from slurm_hooks.slurm.render.lines import Line, listed, setting
from slurm_hooks.slurm.render.options import RenderOptions

_LAUNCH_SECONDS = 30
"""What the launch of a batch job may take beside its Prolog."""


def health_lines(options: RenderOptions) -> tuple[Line, ...]:
    """All settings of node health for the version at hand."""
    return (
        *_programs(options),
        listed("PrologFlags", _prolog_flags(options)),
        *_times(options),
        *_background(options),
    )


def _programs(options: RenderOptions) -> Iterator[Line]:
    for key, program, reason in (
        (
            "Prolog",
            "slurm-hooks-prolog",
            "A job starts on a node only if the node is well. The path is one of the nodes.",
        ),
        (
            "Epilog",
            "slurm-hooks-epilog",
            "A node that a job broke takes no other, and the job runs again.",
        ),
        (
            "RebootProgram",
            "slurm-hooks-reboot",
            "Reboots a node from within, as the daemon does for a fault that a reboot cures.",
        ),
    ):
        yield setting(key, f"{options.node_programs}/{program}", reason)


def _prolog_flags(options: RenderOptions) -> Iterator[tuple[str, str]]:
    if options.contain_jobs:
        yield "Contain", "the Prolog runs when nodes are allocated, and the job is kept in cgroups."
    else:
        yield "Alloc", "the Prolog runs when nodes are allocated, on those without a step too."
    yield (
        "DeferBatch",
        "a batch script waits for the Prologs of all its nodes, so one bad node costs no start.",
    )
    if options.slurm_version >= (23, 2):
        yield (
            "ForceRequeueOnFail",
            "a job that a bad node kept from starting is queued again, --no-requeue or not.",
        )


def _times(options: RenderOptions) -> Iterator[Line]:
    prolog, epilog = options.prolog_timeout_seconds, options.epilog_timeout_seconds
    if options.slurm_version >= (25, 5):
        yield setting(
            "PrologTimeout",
            prolog,
            "Seconds until a Prolog is killed and its node drained. The checks themselves take 10"
            " at most; the rest is for the site's own scripts.",
        )
        yield setting(
            "EpilogTimeout",
            epilog,
            "Seconds until an Epilog is killed: processes of a job may be slow to leave a GPU.",
        )
    else:
        prolog = max(prolog, epilog)
        yield setting(
            "PrologEpilogTimeout",
            prolog,
            "Seconds until a Prolog or Epilog is killed and its node drained; without it slurmd"
            " waits for ever. This version has one limit for both, so it is the Epilog's.",
        )
    yield setting(
        "BatchStartTimeout",
        prolog + _LAUNCH_SECONDS,
        "Seconds that a batch job may take to start: more than its Prolog may, or a slow Prolog"
        " makes slurmctld take the job for lost.",
    )


def _background(options: RenderOptions) -> Iterator[Line]:
    yield setting(
        "HealthCheckProgram",
        f"{options.node_programs}/slurm-hooks-health-check",
        "Finds what breaks while no job starts or ends.",
    )
    yield setting(
        "HealthCheckInterval",
        options.health_check_interval_seconds,
        "Seconds between two health checks of a node.",
    )
    yield listed(
        "HealthCheckNodeState",
        (
            ("CYCLE", "nodes are checked one after the other, not all at the same moment."),
            ("ANY", "drained nodes too: one that is well again after a reboot says so."),
        ),
    )
