"""Gives the values of a file their types, and keeps what is readable of a file that is not.

A part that does not fit its type is read again with the unreadable fields replaced by neutral
values, so that the checks still find its other mistakes. What the checks then say about a
replaced field is dropped by the caller, who knows that the field is wrong already.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from slurm_hooks.cluster import resource_names as names
from slurm_hooks.cluster.errors import FieldError
from slurm_hooks.cluster.fields import shown
from slurm_hooks.cluster.spec import (
    AccountingSpec,
    ExtensionSpec,
    NodePoolSpec,
    NodeSetSpec,
    PartitionSpec,
    ReservationAffinitySpec,
    SchedulingSpec,
    SlurmSpec,
    Spec,
)
from slurm_hooks.cluster.spelling import join

_S = TypeVar("_S", bound=Spec)

NEUTRAL = "?"
"""Stands for a text that could not be read; it fits no rule, so nothing good passes for it."""

_NO_NODES = {"min_node_count": 0, "max_node_count": 0}
_NO_PARTITION = PartitionSpec(id=NEUTRAL, node_pool_ids=[NEUTRAL])


@dataclass(frozen=True, slots=True)
class Parts:
    """What the checks compare, in the order of the file. Texts are empty where it has none."""

    pools: tuple[NodePoolSpec, ...]
    slurm: SlurmSpec
    name: str
    display_name: str
    network: str
    subnetwork: str
    service_account: str
    labels: dict[str, object]
    extension: ExtensionSpec

    @property
    def pool_ids(self) -> tuple[str, ...]:
        """The ids of all pools, in order."""
        return tuple(pool.id for pool in self.pools)

    @property
    def project(self) -> str:
        """The project that the cluster lives in. A shared VPC's is another, so it comes last."""
        return names.project_of(self.name, self.slurm.home_directory_storage, self.network)

    def cluster_id(self, wanted: str) -> str:
        """The id: as wanted, else the end of `name`, else `display_name` if it can be one."""
        at_end = self.name.rpartition("/")[2]
        fallback = self.display_name if names.CLUSTER_ID.fullmatch(self.display_name) else ""
        return wanted or at_end or fallback


def typed(tree: object, model: type[_S]) -> tuple[_S | None, list[FieldError]]:
    """A part of the file with its types, or every reason why it does not have them."""
    try:
        return model.model_validate(tree), []
    except ValidationError as error:
        return None, [_field_error(detail) for detail in error.errors(include_url=False)]


def read_parts(tree: dict[str, object]) -> Parts:
    """Everything that is readable of a file's tree."""
    pools = tree.get("node_pools")
    return Parts(
        pools=tuple(_readable_pool(pool) for pool in pools) if isinstance(pools, list) else (),
        slurm=_readable_slurm(_inside(tree, "orchestrator_spec", "slurm_spec")),
        name=_text(tree, "name"),
        display_name=_text(tree, "display_name"),
        network=_text(tree, "network", "network"),
        subnetwork=_text(tree, "network", "subnetwork"),
        labels=_map(tree, "labels"),
        extension=typed(_inside(tree, "slurm_hooks"), ExtensionSpec)[0] or ExtensionSpec(),
        service_account=_text(tree, "runtime_spec", "service_account"),
    )


def _readable_pool(tree: object) -> NodePoolSpec:
    neutral = {
        "id": _text(tree, "id") or NEUTRAL,
        "machine_spec": {
            "machine_type": _text(tree, "machine_spec", "machine_type") or NEUTRAL,
            "reservation_affinity": _readable_affinity(tree),
        },
        "scaling_spec": _NO_NODES,
        "zone": _text(tree, "zone") or NEUTRAL,
    }
    kept = _fitting_fields(tree, NodePoolSpec)
    if "provisioning_model" not in kept:
        # whether a duration fits cannot be told without the model
        kept = {key: value for key, value in kept.items() if key != "flex_start_max_duration"}
    pool = typed(tree, NodePoolSpec)[0]
    return pool or NodePoolSpec.model_validate({**neutral, **kept})


def _readable_affinity(tree: object) -> dict[str, object] | None:
    """The affinity of a pool; one that cannot be read is taken for the one that has no rules."""
    affinity = _inside(tree, "machine_spec", "reservation_affinity")
    if affinity is None:
        return None
    if isinstance(affinity, dict) and typed(affinity, ReservationAffinitySpec)[0]:
        return affinity
    return {"reservation_affinity_type": "ANY_RESERVATION"}


def _readable_slurm(tree: object) -> SlurmSpec:
    partitions = [_readable_partition(part) for part in _list(tree, "partitions")]
    kept = _fitting_fields(tree, SlurmSpec)
    return SlurmSpec(
        home_directory_storage=_text(tree, "home_directory_storage") or NEUTRAL,
        login_node_pool_id=_text(tree, "login_node_pool_id") or NEUTRAL,
        partitions=partitions or [_NO_PARTITION],
        default_partition_id=_text(tree, "default_partition_id"),
        config=_map(tree, "config"),
        node_sets=[_readable_node_set(entry) for entry in _list(tree, "node_sets")],
        accounting=typed(kept.get("accounting"), AccountingSpec)[0],
        scheduling=typed(kept.get("scheduling"), SchedulingSpec)[0],
    )


def _readable_partition(tree: object) -> PartitionSpec:
    listed = _list(tree, "node_pool_ids")
    readable = [item if isinstance(item, str) and item else NEUTRAL for item in listed]
    return PartitionSpec(
        id=_text(tree, "id") or NEUTRAL,
        node_pool_ids=readable or [NEUTRAL],
        config=_map(tree, "config"),
    )


def _readable_node_set(tree: object) -> NodeSetSpec:
    return NodeSetSpec(
        node_pool_id=_text(tree, "node_pool_id") or NEUTRAL, config=_map(tree, "config")
    )


def _fitting_fields(tree: object, model: type[Spec]) -> dict[str, object]:
    """The fields of a mapping that fit their types; none when it is no mapping."""
    if not isinstance(tree, dict):
        return {}
    try:
        model.model_validate(tree)
    except ValidationError as error:
        unfit = {detail["loc"][0] for detail in error.errors(include_url=False) if detail["loc"]}
        return {key: value for key, value in tree.items() if key not in unfit}
    return dict(tree)


def _inside(tree: object, *path: str) -> object:
    for key in path:
        tree = tree.get(key) if isinstance(tree, dict) else None
    return tree


def _text(tree: object, *path: str) -> str:
    value = _inside(tree, *path)
    return value if isinstance(value, str) else ""


def _list(tree: object, key: str) -> list[object]:
    value = _inside(tree, key)
    return value if isinstance(value, list) else []


def _map(tree: object, key: str) -> dict[str, object]:
    value = _inside(tree, key)
    return value if isinstance(value, dict) else {}


def _field_error(detail: ErrorDetails) -> FieldError:
    path = ""
    for part in detail["loc"]:
        path = f"{path}[{part}]" if isinstance(part, int) else join(path, part)
    value, context = detail["input"], detail.get("ctx", {})
    match detail["type"]:
        case "cluster_field":
            return FieldError(path, context["problem"], context["remedy"])
        case "missing":
            return FieldError(path, "is required and missing", "add it")
        case "string_type" | "string_unicode":
            return FieldError(path, f"{shown(value)} is no text", "write it in quotes")
        case "string_too_short" | "too_short":
            return FieldError(path, "is empty", "give it a value")
        case "too_long":
            most = context["max_length"]
            return FieldError(
                path, f"has {context['actual_length']} parts", f"write at most {most}"
            )
        case "list_type":
            return FieldError(path, f"{shown(value)} is no list", "write it in [ ... ]")
        case "model_type" | "model_attributes_type" | "dict_type":
            return FieldError(path, f"{shown(value)} is no mapping", "write it as { ... }")
        case _:
            return FieldError(path, detail["msg"], "compare with the example")
