"""The decision table as a page for operators: `python -m slurm_hooks.reconcile.decision_docs`.

Everything on the page comes from the code that decides: rows, steps and reasons from the table,
the meaning of a phase from the text below its member. So the page cannot say something else than
what is done, and a test keeps `docs/decisions.md` current.
"""

from __future__ import annotations

import ast
import enum
import inspect
import sys
import textwrap
from collections.abc import Collection, Iterable, Iterator

from slurm_hooks.reconcile.node_table import TABLE, Row
from slurm_hooks.reconcile.phases import Intent, RequestPhase, VmPhase

_OPENING = """\
# What happens to a node, and why

This page is written by `make decisions` from `slurm_hooks/reconcile/node_table.py`.

A pass compares three things for every node of ours: what Slurm asks for, the resize request that
names the node, and the VM of the node's name. Each has one phase out of few, explained below. The
three phases lead to one step: the rows are read from the top, and the first that fits holds. An
empty cell fits everything. Every combination has a row; what we do not understand is left alone.

`slurm-hooksd --dry-run` counts the nodes by step, in the words of this page."""

_ENUMS: tuple[tuple[str, type[enum.StrEnum]], ...] = (
    ("What Slurm asks for", Intent),
    ("The request", RequestPhase),
    ("The VM", VmPhase),
)


def decision_page() -> str:
    """The whole page as Markdown."""
    return "\n\n".join((_OPENING, "## The table", _table(), *_meanings())) + "\n"


def member_texts(kind: type[enum.StrEnum]) -> dict[str, str]:
    """What the source says of each member of an enum: the text that stands below it, in a line.

    A member without a text has an empty one.
    """
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(definition, ast.ClassDef)
    texts = dict.fromkeys(kind.__members__, "")
    name = ""
    for statement in definition.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)]):
                pass
            case ast.Expr(value=ast.Constant(value=str(text))) if name:
                texts[name] = " ".join(text.split())
    return texts


def _table() -> str:
    heads = [title for title, _ in _ENUMS]
    cells = [
        [*(_phases(kind, chosen) for kind, chosen in _columns(row)), row.step.value, row.why]
        for row in TABLE
    ]
    return _markdown_table([*heads, "What is done", "Why"], cells)


def _columns(row: Row) -> Iterator[tuple[type[enum.StrEnum], Collection[enum.StrEnum]]]:
    yield Intent, row.intents
    yield RequestPhase, row.requests
    yield VmPhase, row.vms


def _phases(kind: type[enum.StrEnum], chosen: Collection[enum.StrEnum]) -> str:
    """In the order of the enum: a set has none of its own."""
    return ", ".join(member.value for member in kind if member in chosen)


def _meanings() -> Iterator[str]:
    for title, kind in _ENUMS:
        yield f"## {title}"
        yield _sentence(inspect.cleandoc(kind.__doc__ or ""))
        yield _markdown_table(["Phase", "Meaning"], member_texts(kind).items())


def _sentence(text: str) -> str:
    return " ".join(text.split())


def _markdown_table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [list(heads)]
    lines.append(["---"] * len(lines[0]))
    lines.extend(list(row) for row in rows)
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    sys.stdout.write(decision_page())
