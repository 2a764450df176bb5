"""Configuration lines with their reasons, as values, and the frame of a rendered file.

The first line of every rendered file carries a digest of the rest, so that a later run can tell
a file that it wrote from one that somebody wrote or has edited since.
"""

from __future__ import annotations

import hashlib
import re
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

WIDTH = 98

_MARK = re.compile(r"# Written by slurm-hooks render, contents ([0-9a-f]{16})\.")


@dataclass(frozen=True, slots=True)
class Line:
    """One configuration line and why it is as it is."""

    text: str
    reasons: tuple[str, ...]


def setting(key: str, value: object, reason: str) -> Line:
    """`Key=Value` with its reason."""
    return Line(f"{key}={value}", (reason,))


def listed(key: str, options: Iterable[tuple[str, str]]) -> Line:
    """`Key=a,b` of several options, each with a reason of its own."""
    pairs = list(options)
    value = ",".join(option for option, _ in pairs)
    return Line(f"{key}={value}", tuple(f"{option}: {reason}" for option, reason in pairs))


def file_text(introduction: str, lines: Sequence[Line]) -> str:
    """A whole file: mark, introduction, then each line under its reasons."""
    blocks = [_comment(introduction)]
    for line in lines:
        blocks.append("\n".join([*map(_comment, line.reasons), line.text]))
    body = "\n\n".join(blocks) + "\n"
    return f"# Written by slurm-hooks render, contents {_digest(body)}.\n{body}"


def is_as_rendered(text: str) -> bool:
    """Whether a file's text is what a render wrote, untouched since."""
    first, _, body = text.partition("\n")
    match = _MARK.fullmatch(first)
    return match is not None and match.group(1) == _digest(body)


def _comment(text: str) -> str:
    return "\n".join(
        "\n".join(textwrap.wrap(paragraph, WIDTH, initial_indent="# ", subsequent_indent="# "))
        or "#"
        for paragraph in text.split("\n")
    )


def _digest(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()[:16]
