"""The Prolog on a healthy node of eight GPUs, beside a bare Python, beside NVIDIA's own
binding alone, and beside a shell script of ten checks that asks no GPU."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from rich.table import Table

from slurm_hooks.sandbox.gpu.build import LIBRARY_NAME, build_driver_library
from tests.bench.measure import processes
from tests.unit.health.node_roots import BOOT_ID, NodeRoot

RUNS = 30
BARE = "python3 -c pass"
BINDING = "python3 -c 'import pynvml'"
PROLOG = "slurm-hooks-prolog, 8 healthy GPUs"
SCRIPT = "bash script of ten checks"

_ENVIRONMENT = {
    "SLURM_JOB_ID": "7",
    "SLURM_JOB_UID": "1000",
    "SLURM_JOB_GPUS": "0,1,2,3,4,5,6,7",
    "SLURMD_NODENAME": "g-0",
}

TEN_CHECKS = r"""
root=$1
die() { echo "ERROR: $*"; exit 1; }

pci=0
for vendor in "$root"/sys/bus/pci/devices/*/vendor; do
    [ "$(<"$vendor")" = 0x10de ] && pci=$((pci + 1))
done
[ "$pci" -eq 8 ] || die "$pci GPUs on the bus"
files=$(ls "$root/dev" | grep -c '^nvidia[0-9]')
[ "$files" -eq 8 ] || die "$files device files"
grep -q 'NVRM: Xid' "$root/dev/kmsg" && die "Xids in the kernel log"
used=$(df --output=pcent / | tail -1 | tr -dc 0-9)
[ "$used" -lt 100 ] || die "/ is full"
inodes=$(df --output=ipcent / | tail -1 | tr -dc 0-9)
[ "${inodes:-0}" -lt 100 ] || die "/ has no inodes"
touch /tmp/.node_health.$$ && rm /tmp/.node_health.$$ || die "/tmp is read-only"
read -r load _ < /proc/loadavg
awk -v load="$load" -v cores="$(nproc)" 'BEGIN { exit load > 1000 * cores }' || die "load $load"
available=$(awk '/^MemAvailable/ { print $2 }' /proc/meminfo)
[ "$available" -gt 1024 ] || die "no memory"
stuck=$(awk '$3 == "D"' /proc/[0-9]*/stat 2>/dev/null | grep -c nvidia)
[ "$stuck" -eq 0 ] || die "stuck tasks"
ip=$(awk 'NR > 1' /proc/net/route | wc -l)
[ "$ip" -ge 0 ] || die "no routes"
exit 0
"""
"""What sites write by hand, and as thrifty: builtins where they will do, tools elsewhere."""


def measure() -> Table:
    """Time and peak memory from exec to exit, in slurmd's bare surroundings."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        library = build_driver_library(directory / LIBRARY_NAME)
        node = NodeRoot(directory / "node", library).with_gpus(8)
        identity = f"{BOOT_ID[:8]}\n4711\na3-highgpu-8g\n"
        node.write("var/lib/slurm-hooks/health/identity", identity)
        script = node.write("ten-checks", TEN_CHECKS)
        prolog = Path(sys.executable).parent / "slurm-hooks-prolog"
        root = str(node.directory)
        commands = {
            BARE: [sys.executable, "-c", "pass"],
            BINDING: [sys.executable, "-I", "-c", "import pynvml"],
            PROLOG: [str(prolog), "--root", root],
            SCRIPT: ["/bin/bash", str(script), root],
        }
        costs = processes(commands, {**_ENVIRONMENT, "PATH": "/usr/bin:/bin"}, RUNS)
    title = "node health, median"
    table = Table("program", "ms", "beside bare", "beside script", "peak MiB", title=title)
    for program, cost in costs.items():
        beside_bare = cost.milliseconds / costs[BARE].milliseconds
        beside_script = cost.milliseconds / costs[SCRIPT].milliseconds
        table.add_row(
            program,
            f"{cost.milliseconds:.1f}",
            f"{beside_bare:.2f}x",
            f"{beside_script:.2f}x",
            f"{cost.peak_mib:.1f}",
        )
    return table
