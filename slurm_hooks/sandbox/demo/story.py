"""The demo: a job waits for capacity, gets its nodes, runs, and the nodes go.

It succeeds only if every step was observed. Whatever happens, an interrupt too, the box is gone at
the end; only after a failure its logs stay.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console

from slurm_hooks.sandbox.box.box import Box, interrupts_held_back
from slurm_hooks.sandbox.box.configuration import BoxOptions, example_cluster_file, read_cluster
from slurm_hooks.sandbox.box.layout import BoxError, default_directory
from slurm_hooks.sandbox.demo.narrator import Narrator, Outcome, Result
from slurm_hooks.sandbox.demo.steps import Step, Story, choose_pool
from slurm_hooks.sandbox.demo.witness import Witness

_LOOK_INTERVAL_SECONDS = 0.3
_MOST_NODES = 2


def demo_directory() -> Path:
    """Where the demo's box lies: beside the user's own box, which may be running."""
    directory = default_directory()
    return directory.with_name(directory.name + "-demo")


def tell(directory: Path | None, cluster_file: Path | None) -> bool:
    """Tell the story on a box of its own; whether every step really happened.

    Raises BoxError when the box cannot be started.
    """
    console = Console()
    narrator = Narrator(console)
    cluster = read_cluster(cluster_file or example_cluster_file())
    pool = choose_pool(cluster)
    dynamic = [n for n in cluster.node_names(pool.pool_id) if not cluster.is_static(n)]
    options = BoxOptions(capacity=0, suspend_time_seconds=12)
    narrator.say(
        f"cluster {cluster.cluster_id}, pool {pool.pool_id}: {pool.machine_type},"
        f" {pool.provisioning_model}, {pool.min_node_count} to {pool.max_node_count} nodes"
    )
    started = time.monotonic()
    box = Box.start(
        directory or demo_directory(), cluster_file, options=options, progress=narrator.say
    )
    results = [Result("a cluster in a box", Outcome.HAPPENED, time.monotonic() - started)]
    keep_logs = False
    try:
        witness = Witness(box, tuple(dynamic[:_MOST_NODES]))
        results += _follow(Story(witness, cluster, pool).steps(), narrator)
        narrator.table(results)
        keep_logs = any(result.outcome is not Outcome.HAPPENED for result in results)
    finally:
        with interrupts_held_back():
            narrator.say("taking the box down")
            box.stop(keep_logs=keep_logs)
            narrator.say("nothing of the box is left" + (" but its logs" if keep_logs else ""))
    _conclude(narrator, results, box)
    return not keep_logs


def _follow(steps: Sequence[Step], narrator: Narrator) -> Iterator[Result]:
    reached = True
    for step in steps:
        if not reached:
            yield Result(step.title, Outcome.NOT_REACHED)
            continue
        with narrator.step(step.title):
            result = _watch(step)
        narrator.ended(result)
        reached = result.outcome is Outcome.HAPPENED
        yield result


def _watch(step: Step) -> Result:
    started = time.monotonic()
    try:
        step.begin()
        while (seen := step.observe()) is None:
            if time.monotonic() - started > step.limit_seconds:
                return Result(
                    step.title,
                    Outcome.DID_NOT_HAPPEN,
                    step.limit_seconds,
                    f"not seen within {step.limit_seconds:g} s",
                )
            time.sleep(_LOOK_INTERVAL_SECONDS)
    except BoxError as error:
        seconds = time.monotonic() - started
        return Result(step.title, Outcome.DID_NOT_HAPPEN, seconds, str(error))
    return Result(step.title, Outcome.HAPPENED, time.monotonic() - started, seen)


def _conclude(narrator: Narrator, results: Sequence[Result], box: Box) -> None:
    missed = next((r for r in results if r.outcome is not Outcome.HAPPENED), None)
    if missed is None:
        narrator.say("every step happened")
        return
    narrator.say(f"this step did not happen: {missed.title}: {missed.detail}")
    narrator.say(f"the logs are in {box.logs}")
