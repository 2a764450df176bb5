"""How a VM becomes a node: everything between its kernel and its slurmd.

Runs on nodes, so it is the standard library alone, and knows of the controller only what stands
in the VM's metadata (keys.py). The controller reads of it what it writes to the serial console.
"""
