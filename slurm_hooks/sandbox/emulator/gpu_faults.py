"""Breaks the GPUs of VMs whose guests are pretended nodes in a directory, as those of a box are.

The emulator changes files below that directory and nothing else: Compute Engine itself notices no
GPU fault.
"""

from __future__ import annotations

from pathlib import Path

from slurm_hooks.sandbox.emulator.records import Instance, InstanceStatus, Json
from slurm_hooks.sandbox.node.faults import apply_fault, parse_fault, set_driver_values
from slurm_hooks.sandbox.node.root import NodeRoot, NodeRootError


def break_gpu(node_roots: Path | None, instance: Instance, body: Json) -> Json:
    """Apply a fault such as `{"kind": "lost", "gpu": 3}`. Raises ValueError."""
    fault = parse_fault(body)
    try:
        apply_fault(_booted_root(node_roots, instance), fault)
    except NodeRootError as error:
        raise ValueError(str(error)) from None
    return {"kind": str(fault.kind), "gpu": fault.gpu, "lasting": fault.lasting}


def set_gpu_state(node_roots: Path | None, instance: Instance, body: Json) -> Json:
    """Change what the driver says by the keys of its state file. Raises ValueError."""
    values = {str(key): None if value is None else str(value) for key, value in body.items()}
    try:
        set_driver_values(_booted_root(node_roots, instance), values)
    except NodeRootError as error:
        raise ValueError(str(error)) from None
    return {"changed": sorted(values)}


def _booted_root(node_roots: Path | None, instance: Instance) -> NodeRoot:
    if node_roots is None:
        raise ValueError("the emulator was started without --node-roots")
    if instance.status is not InstanceStatus.RUNNING:
        raise ValueError(f"the instance is {instance.status}, not RUNNING")
    root = NodeRoot(node_roots / instance.name)
    if root.boot().vm_id != str(instance.instance_id):
        raise NodeRootError(f"{instance.name} has not booted yet")
    return root
