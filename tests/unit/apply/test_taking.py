"""How slurmctld is made to take what was rendered: never by less than its version needs."""

from __future__ import annotations

from slurm_hooks.apply.taking import Running, Taking, Way, digest_of, taking_of

TEXTS = {"slurm.conf.d/nodes.conf": "NodeName=a\n", "slurm.conf.d/s.conf": "PriorityType=p/m\n"}
NODES = frozenset({"c-p-0"})
PARAMETERS = {"PriorityType": "p/m", "SelectType": "select/cons_tres"}


def way(
    running: Running | None,
    *,
    taken: str = "",
    restarts: bool = True,
    texts: dict[str, str] | None = None,
) -> Taking:
    return taking_of(texts or TEXTS, NODES, running, taken, restarts_for_nodes=restarts)


def test_slurmctld_that_does_not_answer_is_started_in_any_version() -> None:
    for restarts in (True, False):
        assert way(None, taken=digest_of(TEXTS), restarts=restarts).way is Way.RESTART


def test_changed_nodes_need_a_restart_where_the_version_does() -> None:
    other = Running(frozenset({"c-p-0", "c-p-1"}), PARAMETERS)
    assert way(other, restarts=True).way is Way.RESTART
    assert way(other, restarts=False).way is Way.RECONFIGURE
    assert way(other, restarts=False, taken=digest_of(TEXTS)).way is Way.RECONFIGURE


def test_plugin_that_is_loaded_at_the_start_needs_a_restart_where_the_version_does() -> None:
    running = Running(NODES, {**PARAMETERS, "PriorityType": "priority/basic"})
    assert way(running) == Taking(
        Way.RESTART, "this version takes PriorityType=p/m at its start alone"
    )
    assert way(running, restarts=False).way is Way.RECONFIGURE


def test_same_nodes_are_taken_by_reconfigure() -> None:
    assert way(Running(NODES, PARAMETERS)).way is Way.RECONFIGURE


def test_what_was_taken_already_is_kept() -> None:
    running = Running(NODES, {**PARAMETERS, "prioritytype": "P/M"})
    assert way(running, taken=digest_of(TEXTS)).way is Way.KEEP
    changed = {**TEXTS, "gres.conf": "NodeName=a\n"}
    assert way(running, taken=digest_of(TEXTS), texts=changed).way is Way.RECONFIGURE
