"""The decision table: intent in Slurm, resize request and VM give the next step of a node.

Rows are read from the top, the first that fits holds. The table is total: a test walks every
combination. What is said to be missing, bad or surplus "for long" is acted on only when a look some
seconds later still sees it (`sightings`): the two systems are read at different times, and lists
may be stale.
"""

from __future__ import annotations

import enum
import itertools
from dataclasses import dataclass

from slurm_hooks.reconcile.phases import Intent, RequestPhase, VmPhase


class Step(enum.StrEnum):
    """What to do next for one node."""

    LEAVE = "leave alone"
    LOOK_AGAIN = "look again at the next pass"
    REQUEST = "ask for a VM"
    REQUEST_AGAIN = "ask for a VM again, once it is missing for long"
    AWAIT_CAPACITY = "wait for capacity"
    AWAIT_BOOT = "wait for slurmd to register"
    AWAIT_DELETION = "wait until the old VM is gone"
    FAIL_START = "fail the start: power down by force, with the reason"
    ABANDON_START = "cancel the request and power down by force"
    CANCEL_REQUEST = "cancel the request"
    DELETE_VM = "delete the VM"
    REPLACE_VM = "keep its console output and delete the VM; it is asked for again when gone"
    POWER_UP = "power up: a static node always exists"
    DELETE_SURPLUS_VM = "delete the VM, once it is surplus for long and older than the grace"
    KEEP_OUT = "drain with the reason it has, which slurmd's registration does not undo"
    SET_ASIDE = "power down by force and drain again, once its VM is missing or bad for long"
    LOSE_NODE = "set down, then power down, once the VM is missing for long"
    LOSE_JOBS = "set down with the reason it has, once the VM is missing for long"
    RECYCLE = "keep the console output of its VM and power down"
    RECOVER = "power down, which brings the node back"
    FREE_TRAPPED = "power down, after which Slurm gives it to jobs again"


@dataclass(frozen=True, slots=True)
class Row:
    """One row: which intents, requests and VMs it fits (empty fits all), the step, and why."""

    intents: frozenset[Intent]
    requests: frozenset[RequestPhase]
    vms: frozenset[VmPhase]
    step: Step
    why: str

    def fits(self, intent: Intent, request: RequestPhase, vm: VmPhase) -> bool:
        """Whether this row holds for a node in these phases."""
        return (
            intent in self.intents
            and (not self.requests or request in self.requests)
            and (not self.vms or vm in self.vms)
        )


def _row(
    intents: Intent | tuple[Intent, ...],
    requests: tuple[RequestPhase, ...],
    vms: tuple[VmPhase, ...],
    step: Step,
    why: str,
) -> Row:
    chosen = (intents,) if isinstance(intents, Intent) else intents
    return Row(frozenset(chosen), frozenset(requests), frozenset(vms), step, why)


_I, _R, _V, _S = Intent, RequestPhase, VmPhase, Step
_ALIVE = (_V.COMING, _V.RUNNING)

TABLE: tuple[Row, ...] = (
    _row(_I.UNKNOWN, (), (), _S.LEAVE, "we do not know what is meant"),
    _row(_I.INCONSISTENT, (), (), _S.LOOK_AGAIN, "nodes and jobs were read at different times"),
    _row(
        (
            _I.STARTING,
            _I.DISOWNED,
            _I.ABANDONED,
            _I.REGISTERED,
            _I.DRAINED,
            _I.DOWN_BY_HAND,
            _I.WITHDRAWN,
            _I.ASKED_OFF,
            _I.STOPPING,
            _I.OFF,
            _I.STATIC_OFF,
            _I.TRAPPED,
            _I.RESUME_FAILED,
        ),
        (),
        (_V.UNKNOWN,),
        _S.LEAVE,
        "a VM state that we do not know is no licence to act",
    ),
    _row(
        (_I.DISOWNED, _I.ABANDONED, _I.WITHDRAWN, _I.STATIC_OFF),
        (_R.UNKNOWN,),
        (_V.NONE,),
        _S.LEAVE,
        "a request state that we do not know is no licence to act",
    ),
    _row(
        _I.STARTING,
        (_R.WAITING, _R.UNKNOWN),
        (),
        _S.AWAIT_CAPACITY,
        "the request is in the queue, as far as we can know",
    ),
    _row(_I.STARTING, (), _ALIVE, _S.AWAIT_BOOT, "the VM boots"),
    _row(
        (_I.STARTING, _I.DISOWNED, _I.ABANDONED),
        (),
        (_V.OVERDUE,),
        _S.REPLACE_VM,
        "it should be up by now",
    ),
    _row(_I.STARTING, (), (_V.LEAVING,), _S.AWAIT_DELETION, "never two VMs of one name"),
    _row(_I.STARTING, (), (_V.BROKEN,), _S.DELETE_VM, "it never serves again"),
    _row(_I.STARTING, (_R.FAILED,), (_V.NONE,), _S.FAIL_START, "the job learns it in seconds"),
    _row(_I.STARTING, (_R.GRANTED,), (_V.NONE,), _S.REQUEST_AGAIN, "its VM came and went"),
    _row(_I.STARTING, (_R.NONE,), (_V.NONE,), _S.REQUEST, "there must be a VM"),
    _row(_I.DISOWNED, (), _ALIVE, _S.AWAIT_BOOT, "a job that has it already runs to its end"),
    _row(_I.DISOWNED, (), (), _S.FAIL_START, "none is started any more, its job goes elsewhere"),
    _row(_I.ABANDONED, (_R.WAITING,), (), _S.ABANDON_START, "nobody waits for it any more"),
    _row(_I.ABANDONED, (), _ALIVE, _S.AWAIT_BOOT, "capacity in hand serves others"),
    _row(_I.ABANDONED, (), (), _S.ABANDON_START, "nobody waits for it any more"),
    _row(_I.REGISTERED, (), (_V.NONE, _V.BROKEN), _S.LOSE_NODE, "slurmd cannot live without it"),
    _row(_I.REGISTERED, (), (), _S.LEAVE, "as it should be"),
    _row(_I.DRAINING, (), (_V.NONE, _V.BROKEN), _S.LOSE_JOBS, "its jobs go back, the drain stays"),
    _row(_I.DOWN_BY_HAND, (), (), _S.KEEP_OUT, "a person took it out of service"),
    _row((_I.DRAINED, _I.WITHDRAWN), (_R.WAITING,), (), _S.CANCEL_REQUEST, "no job may use it"),
    _row(_I.WITHDRAWN, (), _ALIVE, _S.AWAIT_BOOT, "the drain outlives slurmd's registration"),
    _row(_I.WITHDRAWN, (), (_V.LEAVING,), _S.AWAIT_DELETION, "the name is not free yet"),
    _row(_I.WITHDRAWN, (), (), _S.SET_ASIDE, "ResumeTimeout would end the drain"),
    _row((_I.DRAINING, _I.DRAINED), (), (), _S.LEAVE, "a person took it out of service"),
    _row(_I.REBOOTING, (), (_V.NONE, _V.BROKEN), _S.LOSE_NODE, "there is nothing to reboot"),
    _row(_I.REBOOTING, (), (), _S.LEAVE, "a person's order, and Slurm gives it ResumeTimeout"),
    _row(_I.NOT_RESPONDING, (), (_V.NONE, _V.BROKEN), _S.LOSE_NODE, "slurmd died with its VM"),
    _row(_I.NOT_RESPONDING, (), _ALIVE, _S.RECYCLE, "slurmd died alone, and nothing runs there"),
    _row(_I.NOT_RESPONDING, (), (), _S.LEAVE, "its VM goes, or we do not know"),
    _row(
        (_I.ASKED_OFF, _I.STOPPING, _I.OFF, _I.STATIC_OFF, _I.TRAPPED),
        (_R.WAITING,),
        (),
        _S.CANCEL_REQUEST,
        "nobody wants these VMs",
    ),
    _row(_I.ASKED_OFF, (), (), _S.LEAVE, "Slurm asks for the VM's end in a moment"),
    _row((_I.STOPPING, _I.OFF), (), (_V.NONE, _V.LEAVING), _S.LEAVE, "as it should be"),
    _row(_I.TRAPPED, (), (), _S.FREE_TRAPPED, "Slurm would keep it from jobs for ever"),
    _row(_I.STATIC_OFF, (), (_V.NONE,), _S.POWER_UP, "a static node always exists"),
    _row(_I.STATIC_OFF, (), (_V.LEAVING,), _S.AWAIT_DELETION, "never two VMs of one name"),
    _row(_I.STOPPING, (), (), _S.DELETE_VM, "Slurm has asked for it"),
    _row((_I.OFF, _I.STATIC_OFF), (), (), _S.DELETE_SURPLUS_VM, "Slurm wants none"),
    _row(_I.RESUME_FAILED, (_R.WAITING,), (), _S.CANCEL_REQUEST, "Slurm has given up on it"),
    _row(_I.RESUME_FAILED, (), (_V.NONE,), _S.RECOVER, "Slurm never brings it back itself"),
    _row(_I.RESUME_FAILED, (), (_V.LEAVING,), _S.AWAIT_DELETION, "the name is not free yet"),
    _row(_I.RESUME_FAILED, (), (), _S.DELETE_VM, "Slurm has given up on it"),
)


_ROW_BY_CASE = {
    case: next(row for row in TABLE if row.fits(*case))
    for case in itertools.product(Intent, RequestPhase, VmPhase)
}
"""Looked up once a node and pass. An incomplete table fails here, at import."""


def row_for(intent: Intent, request: RequestPhase, vm: VmPhase) -> Row:
    """The row that holds for a node in these phases."""
    return _ROW_BY_CASE[intent, request, vm]
