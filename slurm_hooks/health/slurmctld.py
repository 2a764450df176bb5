"""The few words that a node has for slurmctld, and only when something is wrong.

Each is bounded together with all that it needs: slurmctld may be slow or gone, and the node's exit
status fails the job all the same. A reason of a person's is never replaced, and where the present
one cannot be read none is written.
"""

from __future__ import annotations

import os
import re
import time

from slurm_hooks.health.children import PATH, Ended, run_program
from slurm_hooks.health.host import Host
from slurm_hooks.health.reason import HealthReason, health_reason_of, is_ours_alone
from slurm_hooks.health.slurm_reasons import is_of_slurm

_USUAL_DIRECTORIES = ("/usr/bin", "/usr/local/bin", "/opt/slurm/bin", "/usr/sbin")
_NODE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}")
_REASON = re.compile(r"^\s*Reason=(?P<text>.*?)(?: \[[^\[\]]*@[^\[\]]*\])?\s*$", re.MULTILINE)
_STATE = re.compile(r"^\s*State=(?P<state>\S+)", re.MULTILINE)
_OF_EXIT_STATUS = frozenset({"Prolog error", "Epilog error", "Prolog/Epilog failure"})
"""Slurm's reasons that follow from the exit status of our programs."""


class NotTold(Exception):
    """slurmctld was not told; the text says why. What a person should do stands in the log."""


class SlurmController:
    """slurmctld, as a node may speak to it. All calls together take at most `seconds`."""

    def __init__(self, host: Host, seconds: float) -> None:
        self._host = host
        self._deadline = time.monotonic() + seconds

    def drain(self, reason: str) -> bool:
        """Drain this node with a reason, in one call; whether that was new. Raises NotTold.

        A node that somebody else took out of service keeps the reason it has, and so does one that
        we drained for something as grave on this same boot.
        """
        state, present = self._state_and_reason()
        self._require_ours_or_none(state, present)
        if "DRAIN" in state and _is_as_grave(present, reason):
            return False
        self._update(f"nodename={self._name()}", "state=drain", f"reason={reason}")
        return True

    def ask_for_return(self, reason: str) -> bool:
        """Say in the reason of this drained node that it is well again. Raises NotTold.

        Only where the present reason tells of its health and of nothing else, and does not condemn
        this very boot; whether that was so.
        """
        state, present = self._state_and_reason()
        old, new = health_reason_of(present), health_reason_of(reason)
        if "DRAIN" not in state or old is None:
            return False
        if new is not None and old.verdict.drains and _are_of_one_boot(old, new):
            return False
        self._update(f"nodename={self._name()}", f"reason={reason}")
        return True

    def is_condemned(self) -> bool:
        """Whether this node is drained for its health and for nothing else. Raises NotTold, also
        where it runs a job."""
        state, present = self._state_and_reason()
        base, *flags = re.split(r"[^A-Z_]+", state)
        if "DRAIN" not in flags or health_reason_of(present) is None:
            return False
        if base not in ("IDLE", "DOWN") or "COMPLETING" in flags:
            raise NotTold(f"a job may be on the node: {state}")
        return True

    def tell_later(self, reason: str) -> bool:
        """Say what a run of ours found on this drained node, after slurmctld did not hear it then.

        Only where the present reason is the one that follows from an exit status, or one of ours
        that says less; whether that was so. Raises NotTold.
        """
        state, present = self._state_and_reason()
        is_ours = health_reason_of(present) is not None and not _is_as_grave(present, reason)
        if "DRAIN" not in state or not (present in _OF_EXIT_STATUS or is_ours):
            return False
        self._update(f"nodename={self._name()}", f"reason={reason}")
        return True

    def reason(self) -> str:
        """The reason that this node has now, empty for none. Raises NotTold."""
        return self._state_and_reason()[1]

    def requeue(self, job_id: int) -> None:
        """Put a batch job back into the queue. Raises NotTold, also where it may not be queued
        again."""
        self._run("requeue", f"{job_id:d}")

    def _require_ours_or_none(self, state: str, present: str) -> None:
        out_of_service = "DRAIN" in state or "DOWN" in state or "FAIL" in state
        is_free = not present or is_ours_alone(present) or is_of_slurm(present)
        if is_free or not out_of_service:
            return
        raise NotTold(f"the node has a reason of somebody else's: {present[:200]}")

    def _state_and_reason(self) -> tuple[str, str]:
        text = self._run("show", "node", self._name()).output
        state, reason = _STATE.search(text), _REASON.search(text)
        if state is None:
            raise NotTold("the node's state cannot be read")
        return state["state"], reason["text"].strip() if reason else ""

    def _update(self, *settings: str) -> None:
        self._run("update", *settings)

    def _run(self, *arguments: str) -> Ended:
        seconds = self._deadline - time.monotonic()
        if seconds <= 0:
            raise NotTold("slurmctld is too slow")
        environment = {"PATH": PATH, "LANG": "C.UTF-8"}
        if self._host.slurm_conf:
            environment["SLURM_CONF"] = self._host.slurm_conf
        try:
            ended = run_program((self._scontrol(), *arguments), seconds, environment)
        except OSError as error:
            raise NotTold(f"scontrol cannot be run: {error}") from None
        if ended.status is None:
            raise NotTold("slurmctld does not answer")
        if not ended.is_good:
            raise NotTold(f"scontrol {arguments[0]} failed: {ended.output[:300]}")
        return ended

    def _scontrol(self) -> str:
        chosen = self._host.slurm_bin_directory
        for directory in (chosen,) if chosen else _USUAL_DIRECTORIES:
            path = os.path.join(directory, "scontrol")
            if os.access(path, os.X_OK):
                return path
        raise NotTold("scontrol is in none of the usual directories: say --slurm-bin-dir")

    def _name(self) -> str:
        if not _NODE_NAME.fullmatch(self._host.name):
            raise NotTold("this node does not know its name in Slurm: say --node")
        return self._host.name


def _is_as_grave(present: str, new: str) -> bool:
    """Whether the node is drained already for the same boot, and for nothing milder."""
    old, wanted = health_reason_of(present), health_reason_of(new)
    if old is None or wanted is None:
        return False
    return _are_of_one_boot(old, wanted) and old.verdict.gravity >= wanted.verdict.gravity


def _are_of_one_boot(one: HealthReason, other: HealthReason) -> bool:
    return (one.instance_id, one.boot) == (other.instance_id, other.boot)
