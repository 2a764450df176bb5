"""Programs of a pretended node: real ones, below its root, that write down how they were called."""

from __future__ import annotations

from pathlib import Path

from tests.unit.health.node_roots import NodeRoot


def add_tool(node: NodeRoot, place: str, script: str = "") -> None:
    """Put a shell script at a place such as `usr/sbin/ip`. `$ROOT` in it is the node's root."""
    file = node.write(
        place,
        f"#!/bin/sh\nROOT={node.directory}\nexport PATH=/usr/bin:/bin\n"
        f'echo "$(basename "$0") $*" >> "$ROOT/tool-calls"\n{script}\n',
    )
    file.chmod(0o755)


def tool_calls(node: NodeRoot) -> list[str]:
    """Every call of every tool, in order."""
    calls: Path = node.path("tool-calls")
    return calls.read_text().splitlines() if calls.exists() else []
