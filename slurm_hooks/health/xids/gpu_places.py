"""Which GPU a PCI address of the kernel log is, also when the driver can no longer attach to it.

An Xid 79 is about a GPU that NVML does not list any more, and still the job that had it must be
known: so the Prolog leaves the minor numbers to the Epilog, and the driver's own directory in
/proc is asked too.
"""

from __future__ import annotations

from slurm_hooks.health import files
from slurm_hooks.health.driver.model import DriverError, Gpu
from slurm_hooks.health.evidence import Evidence
from slurm_hooks.health.host import Host

_COUNTER = "gpu_minor."
_MINOR_LINE = "Device Minor:"


def attached_gpus(evidence: Evidence) -> dict[str, Gpu]:
    """The GPUs that the driver attaches to, by address; none where it does not answer at all,
    which other checks tell of."""
    try:
        return {plain_address(gpu.pci_address): gpu for gpu in evidence.gpus()}
    except (DriverError, ImportError):
        return {}


def keep_minors(evidence: Evidence) -> None:
    """Leave to the Epilog which minor number each address has."""
    for address, gpu in attached_gpus(evidence).items():
        evidence.counters[_COUNTER + address] = gpu.minor


def minor_at(evidence: Evidence, pci_address: str) -> int | None:
    """The N of /dev/nvidiaN of a GPU; None where nothing tells."""
    address = plain_address(pci_address)
    gpu = attached_gpus(evidence).get(address)
    if gpu is not None:
        return gpu.minor
    kept = evidence.baseline.get(_COUNTER + address)
    return int(kept) if kept is not None else _minor_in_proc(evidence.host, address)


def plain_address(pci_address: str) -> str:
    """`0000:9b:00` for each of the forms in which an address is printed."""
    parts = pci_address.lower().partition(".")[0].split(":")
    if len(parts) != 3:
        return pci_address.lower()
    domain, bus, device = parts
    return f"{domain[-4:].rjust(4, '0')}:{bus}:{device}"


def _minor_in_proc(host: Host, address: str) -> int | None:
    path = host.path("proc", "driver", "nvidia", "gpus", f"{address}.0", "information")
    for line in files.read_text(path).splitlines():
        if line.startswith(_MINOR_LINE):
            number = line.removeprefix(_MINOR_LINE).strip()
            return int(number) if number.isascii() and number.isdigit() else None
    return None
