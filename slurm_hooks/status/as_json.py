"""A status as one JSON object for programs; `docs/status.md` describes it."""

from __future__ import annotations

import json
from datetime import datetime

from slurm_hooks.status.model import ClusterStatus, NodeStatus, RequestStatus, VmStatus
from slurm_hooks.status.words import stamp


def status_as_json(status: ClusterStatus, indent: int | None = 2) -> str:
    """The object as text; times are in UTC. Without an indent it is one line."""
    return json.dumps(
        {
            "cluster_id": status.cluster_id,
            "time": stamp(status.time_utc),
            "state": status.state.value,
            "detail": status.detail,
            "held_up_by": list(status.held_up_by),
            "unavailable": [
                {"system": part.system.value, "why": part.why} for part in status.unavailable
            ],
            "nodes": [_node(node) for node in status.nodes],
        },
        indent=indent,
    )


def _node(node: NodeStatus) -> dict[str, object]:
    return {
        "node": node.name,
        "pool": node.pool_id,
        "is_login": node.is_login,
        "must_exist": node.must_exist,
        "state": node.state.value,
        "detail": node.detail,
        "slurm_state": node.slurm_state,
        "vm": _vm(node.vm) if node.vm is not None else None,
        "request": _request(node.request) if node.request is not None else None,
        "end_of_life": _time(node.end_of_life_utc),
        "jobs": list(node.jobs),
    }


def _vm(vm: VmStatus) -> dict[str, object]:
    return {
        "instance_id": vm.instance_id,
        "status": vm.status,
        "zone": vm.zone,
        "creation_time": _time(vm.creation_time_utc),
    }


def _request(request: RequestStatus) -> dict[str, object]:
    return {
        "name": request.name,
        "state": request.state,
        "creation_time": _time(request.creation_time_utc),
        "code": request.code,
    }


def _time(time_utc: datetime | None) -> str | None:
    return stamp(time_utc) if time_utc is not None else None
