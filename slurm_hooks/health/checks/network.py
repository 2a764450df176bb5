"""The node's network: its own interfaces, with one attempt to heal, and the RDMA ports."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from typing import NamedTuple

from slurm_hooks.health import files
from slurm_hooks.health.evidence import Evidence
from slurm_hooks.health.host import Host
from slurm_hooks.health.model import Context, Finding, Verdict

_DRIVERS = frozenset({"gve", "gvnic", "idpf", "virtio_net"})
"""Of the interfaces that Compute Engine gives to a VM for its own traffic. sysfs calls gve `gvnic`
in kernels before 6.6."""

_COMMAND_SECONDS = 1.0
_HEALING_SECONDS = 2.0
_LOOK_AGAIN_SECONDS = 0.1


class NetworkCheck:
    """Whether the VM's own interfaces have an IPv4 address."""

    name = "network"
    contexts = frozenset(Context)
    summary = "the primary network interfaces have an IPv4 address"
    explanation = (
        "Takes the interfaces with a gve, idpf or virtio driver in the order of their numbers: the"
        " first one, or as many as network_interfaces of the machine type says, must have an IPv4"
        " address. That shows as a route in /proc/net/route, else `ip` is asked. One that has none"
        " is reset once; if that heals it, it is a WARN, else REBOOT. Fewer interfaces than"
        " network_interfaces mean REBOOT, too."
    )

    def run(self, evidence: Evidence) -> Iterator[Finding]:
        """Look at each interface that must have an address."""
        host = evidence.host
        wanted = evidence.expected.network_interfaces or 1
        interfaces = _interfaces(host)
        if not interfaces and not evidence.expected.network_interfaces:
            return
        if len(interfaces) < wanted:
            detail = f"{len(interfaces)} of {wanted} network interfaces"
            yield Finding(self.name, Verdict.REBOOT, detail)
        for interface in interfaces[:wanted]:
            if _has_route(host, interface) or _has_address(host, interface):
                continue
            if not evidence.may_act:
                yield Finding(self.name, Verdict.REBOOT, f"{interface} has no IPv4 address")
            elif _heals(evidence, interface):
                detail = f"{interface} had no IPv4 address until it was reset"
                yield Finding(self.name, Verdict.WARN, detail)
            else:
                detail = f"{interface} has no IPv4 address, and a reset does not help"
                yield Finding(self.name, Verdict.REBOOT, detail)


def _interfaces(host: Host) -> list[str]:
    directory = host.path("sys", "class", "net")
    try:
        names = os.listdir(directory)
    except OSError:
        return []
    own = [name for name in names if _driver(os.path.join(directory, name)) in _DRIVERS]
    return sorted(own, key=lambda name: ([int(n) for n in re.findall(r"[0-9]+", name)], name))


def _driver(interface: str) -> str:
    try:
        return os.path.basename(os.readlink(os.path.join(interface, "device", "driver")))
    except OSError:
        return ""


def _has_route(host: Host, interface: str) -> bool:
    """An interface with an address has a route, but the kernel shows those of one table alone."""
    lines = files.read_text(host.path("proc", "net", "route")).splitlines()[1:]
    return any(line.split("\t", 1)[0].strip() == interface for line in lines)


def _has_address(host: Host, interface: str) -> bool:
    arguments = (_ip(host), "-4", "-oneline", "address", "show", "dev", interface)
    return " inet " in f" {_output(arguments)} "


def _output(arguments: tuple[str, ...]) -> str:
    from slurm_hooks.health.children import PATH, run_program

    try:
        return run_program(arguments, _COMMAND_SECONDS, {"PATH": PATH}).output
    except OSError:
        return ""


def _heals(evidence: Evidence, interface: str) -> bool:
    """Whether the interface has an address after one reset."""
    host = evidence.host
    for arguments in _reset_commands(host, interface):
        _output(arguments)
    until = time.monotonic() + evidence.seconds_left(_HEALING_SECONDS)
    while time.monotonic() < until:
        if _has_route(host, interface):
            return True
        time.sleep(_LOOK_AGAIN_SECONDS)
    return _has_route(host, interface)


def _reset_commands(host: Host, interface: str) -> list[tuple[str, ...]]:
    networkctl = host.path("usr", "bin", "networkctl")
    if os.access(networkctl, os.X_OK):
        return [(networkctl, "reconfigure", interface)]
    return [(_ip(host), "link", "set", "dev", interface, word) for word in ("down", "up")]


def _ip(host: Host) -> str:
    places = (host.path("usr", "sbin", "ip"), host.path("usr", "bin", "ip"))
    return next((place for place in places if os.access(place, os.X_OK)), places[0])


class _Port(NamedTuple):
    name: str
    is_active: bool
    state: str
    gigabits: float
    downs: int


class RdmaCheck:
    """Whether the RDMA ports are up, all of them, and stayed so."""

    name = "rdma"
    contexts = frozenset({Context.PROLOG, Context.EPILOG})
    summary = "every RDMA port is active, at full rate, and stayed so while the job ran"
    explanation = (
        "Reads /sys/class/infiniband/*/ports/1. Fewer ports than the machine type has, or one that"
        " is not active with its link up, mean REBOOT, and so do rdma_downs_bad or more link downs"
        " while a job ran; fewer downs, and a port slower than the others, are a WARN."
    )

    def run(self, evidence: Evidence) -> Iterator[Finding]:
        """Look at each port."""
        ports = _ports(evidence.host)
        wanted = evidence.expected.rdma_ports or 0
        if len(ports) < wanted:
            yield Finding(self.name, Verdict.REBOOT, f"{len(ports)} of {wanted} RDMA ports")
        fastest = max((port.gigabits for port in ports), default=0.0)
        for port in ports:
            if not port.is_active:
                yield Finding(self.name, Verdict.REBOOT, f"{port.name} is {port.state}")
            elif port.gigabits < fastest:
                detail = f"{port.name} runs at {port.gigabits:g} of {fastest:g} Gb/s"
                yield Finding(self.name, Verdict.WARN, detail)
            downs = evidence.note(f"rdma_downs {port.name}", port.downs)
            if evidence.context is Context.EPILOG and downs:
                is_bad = downs >= evidence.policy.thresholds.rdma_downs_bad
                verdict = Verdict.REBOOT if is_bad else Verdict.WARN
                detail = f"{port.name} went down {downs:.0f} times during the job"
                yield Finding(self.name, verdict, detail, of_job=is_bad)


def _ports(host: Host) -> list[_Port]:
    directory = host.path("sys", "class", "infiniband")
    try:
        names = sorted(os.listdir(directory))
    except OSError:
        return []
    return [_port(name, os.path.join(directory, name, "ports", "1")) for name in names]


def _port(name: str, place: str) -> _Port:
    state = _word(os.path.join(place, "state"))
    physical = _word(os.path.join(place, "phys_state"))
    rate = re.match(r"[0-9]+(\.[0-9]+)?", files.read_text(os.path.join(place, "rate")))
    downs = files.read_text(os.path.join(place, "counters", "link_downed")).strip()
    return _Port(
        name,
        is_active=state == "ACTIVE" and physical in ("LinkUp", ""),
        state=f"{state or 'not readable'} {physical}".strip(),
        gigabits=float(rate[0]) if rate else 0.0,
        downs=int(downs) if downs.isascii() and downs.isdigit() else 0,
    )


def _word(path: str) -> str:
    """`ACTIVE` of `4: ACTIVE`."""
    return files.read_text(path).strip().partition(":")[2].strip()
