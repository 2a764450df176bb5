"""What the nodes of a cluster have, written down for their boots. Standard library only."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class NodeHardware:
    """One node's GPUs, the active NVLinks of each, and its RDMA ports."""

    gpus: int = 0
    nvlinks: int = 0
    rdma_ports: int = 0


def write_hardware(path: Path, nodes: Mapping[str, NodeHardware]) -> None:
    """Write down what each node has, by its name."""
    path.write_text(json.dumps({name: asdict(found) for name, found in nodes.items()}))


def read_hardware(path: Path, node: str) -> NodeHardware:
    """What a node has; nothing where nobody wrote it down. Raises OSError and ValueError."""
    try:
        nodes = json.loads(path.read_text())
    except FileNotFoundError:
        return NodeHardware()
    return NodeHardware(**nodes.get(node, {}))
