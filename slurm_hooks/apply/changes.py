"""Compares the cluster that is applied with the one that is wanted. Pure.

What counts is what the files come to: a default that is written out is no change. VMs are made
anew where a pool's template is another one, whatever field made it so.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterator
from dataclasses import dataclass

from slurm_hooks.apply.fields import CLUSTER_FIELDS, POOL_FIELDS, SLURM_SPEC, FieldRule, Part, Rule
from slurm_hooks.cluster.errors import FieldError
from slurm_hooks.cluster.topology import Cluster, NodePool
from slurm_hooks.reconcile.specifications import template_of

LONGEST_SHOWN = 60


class Effect(enum.StrEnum):
    """What becomes of a part of the cluster."""

    KEEP = "keep"
    CREATE = "create"
    CHANGE = "change"
    """It holds at once."""
    REPLACE = "replace"
    """Its VMs are made anew: idle ones in turns, busy ones when their jobs have ended."""
    REMOVE = "remove"


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A field with both values, cut to what can be read in a line."""

    path: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class PartChange:
    """A pool, or what concerns all of the cluster or of Slurm.

    `created` and `removed` are node names. Login nodes are no nodes of Slurm.
    """

    part: str
    effect: Effect
    fields: tuple[FieldChange, ...] = ()
    created: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    is_login: bool = False


@dataclass(frozen=True, slots=True)
class Changes:
    """All parts, unchanged ones too, and the fields that may not change."""

    parts: tuple[PartChange, ...]
    refusals: tuple[FieldError, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether nothing changes."""
        return all(part.effect is Effect.KEEP for part in self.parts)

    @property
    def renewed_nodes(self) -> tuple[str, ...]:
        """The nodes that stay and whose VMs are made anew."""
        renewed = (part for part in self.parts if part.effect is Effect.REPLACE)
        return tuple(name for part in renewed for name in part.kept)


def compare(applied: Cluster | None, wanted: Cluster) -> Changes:
    """What it takes to come from the applied cluster to the wanted one; None is no cluster yet."""
    if applied is None:
        created = (_created(wanted, pool) for pool in wanted.pools.values())
        return Changes((PartChange(Part.CLUSTER, Effect.CREATE), *created))
    refusals = [*_refused_fields(applied, wanted), *_refused_pools(applied, wanted)]
    return Changes((*_whole(applied, wanted), *_pools(applied, wanted)), tuple(refusals))


def _whole(applied: Cluster, wanted: Cluster) -> Iterator[PartChange]:
    for part in Part:
        rules = [row for row in CLUSTER_FIELDS if row.part is part and row.rule is not Rule.FIXED]
        fields = list(_differences(rules, applied, wanted, ""))
        if part is Part.CLUSTER:
            fields += _own_differences(applied, wanted)
        yield PartChange(part, Effect.CHANGE if fields else Effect.KEEP, tuple(fields))


def _own_differences(applied: Cluster, wanted: Cluster) -> Iterator[FieldChange]:
    """Changes under `slurm_hooks`: the controller's limits, and what VMs are told to boot."""
    for before, after, rule in (
        (applied.policy, wanted.policy, Rule.AT_ONCE),
        (applied.node_boot, wanted.node_boot, Rule.NEW_VMS),
    ):
        names = [field.name for field in dataclasses.fields(after)]
        rules = [FieldRule(name, f"slurm_hooks.{name}", rule) for name in names]
        yield from _differences(rules, before, after, "")


def _pools(applied: Cluster, wanted: Cluster) -> Iterator[PartChange]:
    for pool in wanted.pools.values():
        before = applied.pools.get(pool.pool_id)
        if before is None:
            yield _created(wanted, pool)
        else:
            yield _changed(applied, before, wanted, pool)
    for pool in applied.pools.values():
        if pool.pool_id not in wanted.pools:
            removed = tuple(applied.node_names(pool.pool_id))
            yield PartChange(
                part_name(pool), Effect.REMOVE, removed=removed, is_login=pool.is_login
            )


def _created(cluster: Cluster, pool: NodePool) -> PartChange:
    created = tuple(cluster.node_names(pool.pool_id))
    return PartChange(part_name(pool), Effect.CREATE, created=created, is_login=pool.is_login)


def _changed(applied: Cluster, before: NodePool, wanted: Cluster, pool: NodePool) -> PartChange:
    fields = tuple(_differences(POOL_FIELDS, before, pool, f"{_path_of(wanted, pool)}."))
    old, new = list(applied.node_names(pool.pool_id)), list(wanted.node_names(pool.pool_id))
    effect = Effect.CHANGE if fields else Effect.KEEP
    if template_of(applied, before).name != template_of(wanted, pool).name:
        effect = Effect.REPLACE
    return PartChange(
        part_name(pool),
        effect,
        fields,
        created=tuple(new[len(old) :]),
        removed=tuple(old[len(new) :]),
        kept=tuple(new[: len(old)]),
        is_login=pool.is_login,
    )


def part_name(pool: NodePool) -> str:
    """A pool as a part of the plan."""
    return f"pool {pool.pool_id}"


def _refused_fields(applied: Cluster, wanted: Cluster) -> Iterator[FieldError]:
    fixed = [row for row in CLUSTER_FIELDS if row.rule is Rule.FIXED]
    for change in _differences(fixed, applied, wanted, ""):
        yield FieldError(
            change.path,
            f"is fixed when the cluster is made: {change.before} cannot become {change.after}",
            "put it back, or make another cluster and delete this one",
        )


def _refused_pools(applied: Cluster, wanted: Cluster) -> Iterator[FieldError]:
    fixed = [row for row in POOL_FIELDS if row.rule is Rule.FIXED]
    for pool in wanted.pools.values():
        before = applied.pools.get(pool.pool_id)
        if before is None:
            continue
        for change in _differences(fixed, before, pool, f"{_path_of(wanted, pool)}."):
            yield FieldError(
                change.path,
                f"is fixed when the pool is made: {change.before} cannot become {change.after}",
                "give the pool a new id: that adds it with this value and removes the old one",
            )
        if before.is_login is not pool.is_login:
            yield FieldError(
                f"{SLURM_SPEC}.login_node_pool_id",
                f"makes pool {pool.pool_id} change sides: a pool is Slurm's or for login for ever",
                "name a pool that is new for login, and give a pool for jobs a new id",
            )


def _path_of(cluster: Cluster, pool: NodePool) -> str:
    return f"node_pools[{list(cluster.pools).index(pool.pool_id)}]"


def _differences(
    rows: tuple[FieldRule, ...] | list[FieldRule], before: object, after: object, prefix: str
) -> Iterator[FieldChange]:
    for row in rows:
        old, new = getattr(before, row.attribute), getattr(after, row.attribute)
        if old != new:
            path = f"{SLURM_SPEC}.{row.path}" if row.path.startswith("node_sets") else ""
            yield FieldChange(path or f"{prefix}{row.path}", _shown(old), _shown(new))


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None or value in ("", (), {}):
        return "none"
    if isinstance(value, str) and len(value) > LONGEST_SHOWN:
        return f"a text of {len(value)} characters"
    text = _joined(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 3]}..."


def _joined(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_joined(part)}" for key, part in value.items())
    if isinstance(value, tuple):
        parts = (part for part in value)
        return ", ".join(
            "=".join(part) if _is_pair(part) else _joined(part) for part in parts
        ).replace("\n", " ")
    return str(value)


def _is_pair(value: object) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and all(isinstance(v, str) for v in value)
