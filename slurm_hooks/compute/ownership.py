"""The proof that a cloud object is ours: a mark in descriptions, labels on VMs.

What is not marked, or is marked in a way that we do not understand in full, is not ours and is
never touched. Groups, resize requests and workload policies have no labels, so their mark is a
compact JSON text in `description`; VMs get labels from their template. Label values may hold
lowercase letters, digits, `_` and `-`, at most 63.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass

from slurm_hooks.compute.model import (
    Group,
    Instance,
    ResizeRequest,
    Template,
    WorkloadPolicy,
)

CLUSTER_LABEL = "slurm-hooks-cluster"
POOL_LABEL = "slurm-hooks-pool"

_VERSION_KEY = "slurm-hooks"
_VERSION = 1
_LABEL_VALUE = re.compile(r"[a-z0-9_-]{1,63}")
_NODES_HASH_LENGTH = 16


@dataclass(frozen=True, slots=True)
class Mark:
    """What is written on a group, a request or a workload policy, to go on after a restart.

    `generation` tells the template of a group from its earlier ones. `job_id` and `restarts` are
    those of the Slurm job that a request serves, None where no job asked. `nodes_hash` is
    `hash_of_nodes` of the names that a request was made for. `provisioning_model` stands on groups
    whose VMs are created by name: these have no resize requests.
    """

    cluster: str
    pool: str
    generation: str = ""
    job_id: int | None = None
    restarts: int | None = None
    nodes_hash: str = ""
    provisioning_model: str = ""


def hash_of_nodes(names: Iterable[str]) -> str:
    """A short digest of a set of node names: the same for any order and repetition."""
    text = "\n".join(sorted(set(names)))
    return hashlib.sha256(text.encode()).hexdigest()[:_NODES_HASH_LENGTH]


def encode(mark: Mark) -> str:
    """The mark as text for a `description`: compact JSON, fields without a value left out."""
    members: dict[str, object] = {
        _VERSION_KEY: _VERSION,
        "cluster": mark.cluster,
        "pool": mark.pool,
        "generation": mark.generation or None,
        "job_id": mark.job_id,
        "restarts": mark.restarts,
        "nodes_hash": mark.nodes_hash or None,
        "provisioning_model": mark.provisioning_model or None,
    }
    given = {key: value for key, value in members.items() if value is not None}
    return json.dumps(given, separators=(",", ":"))


def decode(text: str) -> Mark | None:
    """The mark in a `description`; None when there is none or any part of it is odd."""
    try:
        members = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(members, dict) or not _is_whole(members):
        return None
    del members[_VERSION_KEY]
    return Mark(**members)


_TEXT_MEMBERS = {"cluster", "pool", "generation", "nodes_hash", "provisioning_model"}
_NUMBER_MEMBERS = {"job_id", "restarts", _VERSION_KEY}


def _is_whole(members: dict[str, object]) -> bool:
    """Whether the version is ours, nothing is missing or unknown, and each type is right."""
    if members.get(_VERSION_KEY) != _VERSION or not {"cluster", "pool"} <= members.keys():
        return False
    return all(_is_sound(key, value) for key, value in members.items())


def _is_sound(key: str, value: object) -> bool:
    if key in _TEXT_MEMBERS:
        return isinstance(value, str) and value != ""
    return key in _NUMBER_MEMBERS and type(value) is int and value >= 0


def labels_of(mark: Mark) -> dict[str, str]:
    """The labels for the VMs of a group with this mark.

    Raises ValueError when the cluster or pool id cannot be a label value: a changed spelling
    could name another cluster's VMs.
    """
    labels = {CLUSTER_LABEL: mark.cluster, POOL_LABEL: mark.pool}
    for key, value in labels.items():
        if not _LABEL_VALUE.fullmatch(value):
            raise ValueError(f"{value!r} cannot be the value of the label {key}")
    return labels


def is_created_by_name(group: Group) -> bool:
    """Whether the VMs of a group of ours are created by name, without resize requests."""
    mark = decode(group.description)
    return mark is not None and mark.provisioning_model != ""


def instances_filter(cluster: str) -> str:
    """The list filter that lets only this cluster's VMs through. Raises as `labels_of`."""
    return f"labels.{CLUSTER_LABEL}={labels_of(Mark(cluster, 'any'))[CLUSTER_LABEL]}"


def is_ours(
    thing: Group | ResizeRequest | Instance | Template | WorkloadPolicy, cluster: str
) -> bool:
    """Whether a cloud object belongs to this cluster, proven by its mark or labels."""
    if isinstance(thing, Instance | Template):
        return thing.labels.get(CLUSTER_LABEL) == cluster
    mark = decode(thing.description)
    return mark is not None and mark.cluster == cluster
