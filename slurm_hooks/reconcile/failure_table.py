"""The failure table: what each kind of error means, where it occurs, for the nodes and the pool.

A row is one occasion, a column one kind of error, and every pair has exactly one reaction: a test
walks all of them. Codes have become kinds before (`compute.classify`); message text never counts.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from slurm_hooks.compute.errors import ErrorKind


class Occasion(enum.StrEnum):
    """What was being done when the error came."""

    INSERT_GROUP = "creating a pool's template and group"
    INSERT_REQUEST = "asking for VMs"
    REQUEST_OPERATION = "the operation of that call"
    REQUEST_FAILED = "a resize request that ended FAILED"
    CREATE_INSTANCES = "creating VMs by name, in a pool without resize requests"
    MEMBER_FAILED = "the last attempt to make one of these VMs"
    CANCEL = "giving up a resize request"
    DELETE = "deleting a VM or a finished request"


@dataclass(frozen=True, slots=True)
class Cause:
    """What was being done, and for which pool; without one no pool is to blame.

    `told_as` is what people are told that it was about; empty where it is the action's subject.
    """

    occasion: Occasion
    pool_id: str = ""
    told_as: str = ""


class Reaction(enum.StrEnum):
    """The one fixed answer to a failure."""

    DONE = "what was wanted is so already"
    AT_NEXT_PASS = "nodes and job wait; tried again at the next pass"
    AFTER_A_MINUTE = "nodes and job wait; tried again when the minute turns"
    STANDS = "no node is touched; reported, and tried again after a while"
    FAIL_START = "the nodes' start fails, their jobs are requeued or end; counts against the pool"


_D, _N, _M, _S, _F = (
    Reaction.DONE,
    Reaction.AT_NEXT_PASS,
    Reaction.AFTER_A_MINUTE,
    Reaction.STANDS,
    Reaction.FAIL_START,
)

COLUMNS = (
    ErrorKind.RATE,
    ErrorKind.TRANSIENT,
    ErrorKind.STOCKOUT,
    ErrorKind.QUOTA,
    ErrorKind.PERMISSION,
    ErrorKind.CONFIG,
    ErrorKind.CONFLICT,
    ErrorKind.GONE,
)

# fmt: off
TABLE: dict[Occasion, tuple[Reaction, ...]] = {
    #                           RATE TRANS STOCK QUOTA PERM CONFIG CONFL GONE
    Occasion.INSERT_GROUP:      (_M, _N,   _F,   _F,   _F,  _F,    _D,   _N),
    Occasion.INSERT_REQUEST:    (_M, _N,   _F,   _S,   _F,  _F,    _N,   _N),
    Occasion.REQUEST_OPERATION: (_M, _N,   _F,   _S,   _F,  _F,    _N,   _N),
    Occasion.REQUEST_FAILED:    (_F, _F,   _F,   _F,   _F,  _F,    _F,   _F),
    Occasion.CREATE_INSTANCES:  (_M, _N,   _F,   _F,   _F,  _F,    _N,   _N),
    Occasion.MEMBER_FAILED:     (_M, _N,   _F,   _F,   _F,  _F,    _N,   _F),
    Occasion.CANCEL:            (_M, _N,   _S,   _S,   _S,  _S,    _N,   _D),
    Occasion.DELETE:            (_M, _N,   _S,   _S,   _S,  _S,    _N,   _D),
}
# fmt: on
"""CONFLICT while asking is a name that is still taken, while cancelling a request that has ended
meanwhile: the next pass sees which. GONE while asking is a group that somebody deleted: it is
created anew. QUOTA while asking is the number of requests that may be active, for the VMs' own
quotas let a request wait: the job waits for its turn. A FAILED request is over whatever its code
says, and its job asks again when it comes back. A VM that is created by name fails where a request
would wait: nobody promises it, and while its job waits for it the other VMs of the job cost money.
CONFLICT there is an old VM of the name that still goes, GONE something that the template names."""

_REACTIONS = {
    (occasion, kind): reaction
    for occasion, row in TABLE.items()
    for kind, reaction in zip(COLUMNS, row, strict=True)
}


def reaction_to(occasion: Occasion, kind: ErrorKind) -> Reaction:
    """The fixed answer to an error of this kind on this occasion."""
    return _REACTIONS[occasion, kind]
