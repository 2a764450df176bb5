"""Words of node, job and partition states, from text and from JSON lists, as typed values.

Invariant: no word is lost. What is not a known flag stays in `NodeState.unknown`, a second base
state too, so that whoever decides can leave such a node alone. Text may carry the signs of
sinfo's short form (`DOWN*+CLOUD`, `ALLOCATED#`). Source of the words: `node_state_flag_string`
and `job_state_string` of Slurm 22.05 to 26.05.
"""

from __future__ import annotations

from collections.abc import Iterable

from slurm_hooks.slurm.model import BaseState, JobState, NodeFlag, NodeState

FLAG_OF_SIGN = {
    "*": NodeFlag.NOT_RESPONDING,
    "~": NodeFlag.POWERED_DOWN,
    "#": NodeFlag.POWERING_UP,
    "%": NodeFlag.POWERING_DOWN,
    "!": NodeFlag.POWER_DOWN,
    "$": NodeFlag.MAINTENANCE,
    "@": NodeFlag.REBOOT_REQUESTED,
    "^": NodeFlag.REBOOT_ISSUED,
    "-": NodeFlag.PLANNED,
}

_BASES: dict[str, BaseState] = {str(base): base for base in BaseState}
_FLAGS: dict[str, NodeFlag] = {str(flag): flag for flag in NodeFlag}

_SERVES_AFTER_REBOOT = frozenset({"RESUME", "UNDRAIN"})

_JOB_STATES: dict[str, JobState] = {str(state): state for state in JobState}
_JOB_STATE_OF_OTHER_WORD = {
    "RESIZING": JobState.RUNNING,
    "SIGNALING": JobState.RUNNING,
    "STOPPED": JobState.SUSPENDED,
    "STAGE_OUT": JobState.COMPLETING,
    "REQUEUED": JobState.PENDING,
    "REQUEUE_FED": JobState.PENDING,
    "REQUEUE_HOLD": JobState.PENDING,
    "SPECIAL_EXIT": JobState.PENDING,
    "RESV_DEL_HOLD": JobState.PENDING,
    "REVOKED": JobState.CANCELLED,
    "LAUNCH_FAILED": JobState.FAILED,
}
_JOB_FLAGS_THAT_RULE = (JobState.COMPLETING, JobState.CONFIGURING)


def node_state_from_text(text: str) -> NodeState:
    """Read a state such as `IDLE+CLOUD+POWERED_DOWN` or `DOWN*+CLOUD`.

    Raises ValueError if there is no word in it.
    """
    return node_state_from_words(text.split("+"))


def node_state_from_words(words: Iterable[str]) -> NodeState:
    """Read a list of state words, one of which should be a base state.

    Without a base state the base is UNKNOWN. Raises ValueError if there is no word at all.
    """
    base: BaseState | None = None
    flags: set[NodeFlag] = set()
    unknown: set[str] = set()
    for word in _words_and_flags_of_signs(words):
        if word in _FLAGS:
            flags.add(_FLAGS[word])
        elif base is None and word in _BASES:
            base = _BASES[word]
        elif word != base:
            unknown.add(word)
    if base is None and not flags and not unknown:
        raise ValueError("no state word")
    return NodeState(base or BaseState.UNKNOWN, frozenset(flags), frozenset(unknown))


def job_state_from_words(words: Iterable[str]) -> JobState:
    """Read a job's state words: one in text and in Slurm 22.05, base and flags in later JSON.

    COMPLETING and CONFIGURING win over the base, as in Slurm's own one-word form. A job without
    any word that we know is UNKNOWN.
    """
    states = []
    for word in words:
        upper = word.strip().upper()
        state = _JOB_STATES.get(upper) or _JOB_STATE_OF_OTHER_WORD.get(upper)
        if state is not None:
            states.append(state)
    for flag in _JOB_FLAGS_THAT_RULE:
        if flag in states:
            return flag
    return states[0] if states else JobState.UNKNOWN


def resumes_after_reboot(words: Iterable[str]) -> bool:
    """Whether the words of a node's state after its reboot say that it serves again."""
    return any(word.strip().upper() in _SERVES_AFTER_REBOOT for word in words)


def _words_and_flags_of_signs(words: Iterable[str]) -> Iterable[str]:
    for raw_word in words:
        word = raw_word.strip().upper()
        bare = word.rstrip("".join(FLAG_OF_SIGN))
        for sign in word[len(bare) :]:
            yield str(FLAG_OF_SIGN[sign])
        if bare:
            yield bare
