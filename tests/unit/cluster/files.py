"""Cluster files for tests: the example, changed in the one place that a test is about."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

from slurm_hooks.cluster.document import Mapping, parse_json
from slurm_hooks.cluster.errors import ClusterFileError, FieldError
from slurm_hooks.cluster.load import build_cluster
from slurm_hooks.cluster.machine_types import MachineCatalogue, standard_catalogue
from slurm_hooks.cluster.topology import Cluster

EXAMPLE = Path(__file__).resolve().parents[3] / "etc" / "slurm-hooks" / "cluster_config.json"

ABSENT = object()
"""As a value for `changed`: take the field away."""

SLURM = "orchestrator_spec.slurm_spec"


def changed(**changes: object) -> dict[str, Any]:
    """The example with fields set by path; `__` stands for the dots, numbers index lists."""
    document: dict[str, Any] = json.loads(EXAMPLE.read_text())
    for path, value in changes.items():
        set_field(document, path.replace("__", "."), value)
    return document


def set_field(document: Any, path: str, value: object) -> None:
    """Set or take away one field, such as `node_pools.1.zone`."""
    *parents, last = path.split(".")
    for part in parents:
        document = document[int(part)] if isinstance(document, list) else document[part]
    if value is ABSENT:
        del document[last]
    elif isinstance(document, list):
        document[int(last)] = copy.deepcopy(value)
    else:
        document[last] = copy.deepcopy(value)


def build(
    document: object, cluster_id: str = "", catalogue: MachineCatalogue | None = None
) -> Cluster:
    """The cluster of a document, after a round trip through JSON text."""
    parsed = parse_json(json.dumps(document))
    assert isinstance(parsed, Mapping)
    return build_cluster(parsed, catalogue or standard_catalogue(), cluster_id)


def mistakes(document: object, cluster_id: str = "") -> dict[str, FieldError]:
    """Every mistake of a document by its path; empty for a good one."""
    try:
        build(document, cluster_id)
    except ClusterFileError as error:
        return {found.path: found for found in error.errors}
    return {}
