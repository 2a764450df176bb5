"""docs/cluster_config.md speaks of every field that the reader knows, and of no other."""

from __future__ import annotations

import re
import typing
from collections.abc import Iterator
from pathlib import Path

import pytest

from slurm_hooks.cluster.slurm_parameters import Place, all_parameters
from slurm_hooks.cluster.spec import (
    ClusterSpec,
    ExtensionSpec,
    NodePoolSpec,
    PoolExtensionSpec,
    SlurmSpec,
    Spec,
)
from slurm_hooks.cluster.spelling import part_of

DOCUMENT = (Path(__file__).resolve().parents[3] / "docs" / "cluster_config.md").read_text()
SECTIONS: dict[str, type[Spec]] = {
    "The cluster": ClusterSpec,
    "`node_pools[]`": NodePoolSpec,
    "`orchestrator_spec.slurm_spec`": SlurmSpec,
    "Ours: `slurm_hooks`": ExtensionSpec,
    "Ours: `node_pools[].slurm_hooks`": PoolExtensionSpec,
}


def documented(title: str) -> list[str]:
    """The fields in the first column of a section's first table."""
    section = DOCUMENT.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    table = section.partition("| field |")[2].partition("\n\n")[0]
    rows = table.splitlines()[2:]
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row.split("|")[1])]


def fields_of(model: type[Spec], prefix: str = "") -> Iterator[str]:
    """The paths of all fields of a part, without those of parts with a section of their own."""
    yield from (f"{prefix}{name}" for name in model.not_read)
    for name, field in model.model_fields.items():
        yield f"{prefix}{name}"
        part = part_of(field.annotation)
        if part is not None and part not in SECTIONS.values():
            is_list = typing.get_origin(field.annotation) is list
            yield from fields_of(part, f"{prefix}{name}{'[]' if is_list else ''}.")


@pytest.mark.parametrize(("title", "model"), SECTIONS.items())
def test_every_field_has_its_row_and_every_row_its_field(title: str, model: type[Spec]) -> None:
    assert sorted(documented(title)) == sorted(fields_of(model))


@pytest.mark.parametrize("title", ["Ours: `slurm_hooks`", "Ours: `node_pools[].slurm_hooks`"])
def test_defaults_of_our_own_settings_are_those_of_the_reader(title: str) -> None:
    section = DOCUMENT.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \|.*\| ([^|]+) \|$", section, flags=re.MULTILINE)
    for name, default in rows:
        expected = SECTIONS[title].model_fields[name].get_default(call_default_factory=True)
        assert default == shown_default(expected)


def shown_default(value: object) -> str:
    """A default as the document writes it."""
    if value is None:
        return "no limit"
    return "none" if value in ("", [], {}) else str(value).replace("F", "f")


def test_every_reserved_parameter_is_named() -> None:
    text = DOCUMENT.partition("**Reserved**")[2].partition("- **Values")[0]
    named = set(re.findall(r"\b\w+\b", text))
    reserved = {found.name for found in all_parameters() if found.reserved_for}
    assert reserved <= named
    assert Place.SLURMDBD.value in text
