"""What connects a GPU: NVLink, the fabric that it joins, and PCIe."""

from __future__ import annotations

from collections.abc import Iterator

from slurm_hooks.health import files
from slurm_hooks.health.checks.gpus import each_gpu
from slurm_hooks.health.driver.model import Fabric, Gpu, PcieLink
from slurm_hooks.health.evidence import Evidence
from slurm_hooks.health.host import Host
from slurm_hooks.health.model import Context, Finding, Verdict


class NvLinkCheck:
    """Whether every NVLink that the machine type has is up."""

    name = "nvlink"
    contexts = frozenset({Context.PROLOG, Context.EPILOG})
    summary = "every NVLink is active"
    explanation = (
        "Reads the state of each link. Fewer active links than the machine type has mean RESET. For"
        " a machine type that nobody described, a GPU with active and inactive links does. Machine"
        " types without NVLink by design, GPUs that say so, and GPUs that are cut into instances"
        " (MIG), which use none, are left out."
    )

    def run(self, evidence: Evidence) -> Iterator[Finding]:
        """Count the active links of every GPU."""
        wanted = evidence.expected.nvlinks
        if wanted == 0:
            return

        def look(gpu: Gpu) -> Iterator[Finding]:
            links = evidence.driver.nvlinks(gpu)
            if links is None:
                return
            active, count = sum(links.active), wanted
            if count is None:
                count = len(links.active) if active else 0
            if active < count and not evidence.driver.is_in_multi_instance_mode(gpu):
                yield Finding(
                    self.name,
                    Verdict.RESET,
                    f"{active} of {count} NVLinks active",
                    gpu=gpu.minor,
                    of_job=evidence.is_of_job(gpu),
                )

        yield from each_gpu(self.name, evidence, look)


class NvLinkErrorsCheck:
    """Whether NVLinks had errors during the job."""

    name = "nvlink_errors"
    contexts = frozenset({Context.PROLOG, Context.EPILOG})
    summary = "NVLinks recovered from all errors while the job ran"
    explanation = (
        "Keeps NVLink counters before a job and compares them after it. Failed recoveries, or a bit"
        " error rate beyond nvlink_bit_error_rate_warn, are a WARN: they slow jobs down and often"
        " come before worse."
    )

    def run(self, evidence: Evidence) -> Iterator[Finding]:
        """Note the counters of every GPU, and say how they have grown."""

        def look(gpu: Gpu) -> Iterator[Finding]:
            errors = evidence.driver.nvlink_errors(gpu)
            if errors is None:
                return
            failed = None
            if errors.recoveries_failed is not None:
                key = f"nvlink_recoveries_failed {gpu.uuid}"
                failed = evidence.note(key, errors.recoveries_failed)
            if evidence.context is not Context.EPILOG:
                return
            if failed:
                detail = f"{failed:.0f} failed NVLink recoveries during the job"
                yield Finding(self.name, Verdict.WARN, detail, gpu=gpu.minor)
            rate = errors.effective_bit_error_rate
            if rate is not None and rate > evidence.policy.thresholds.nvlink_bit_error_rate_warn:
                detail = f"NVLink bit error rate {rate:.1e}"
                yield Finding(self.name, Verdict.WARN, detail, gpu=gpu.minor)

        yield from each_gpu(self.name, evidence, look)


_REGISTERED, _UNSUPPORTED = 3, 0
_UNHEALTHY, _LIMITED = 2, 3
_TRUE, _FALSE = 1, 2
_BAD_IF_TRUE = {
    0: "degraded bandwidth",
    2: "route recovery",
    4: "route unhealthy",
    6: "access timeout recovery",
}
_BAD_IF_FALSE = {12: "no partition assigned", 14: "no global fabric manager"}
_CONFIGURATION_OFFSET, _RIGHT_CONFIGURATION = 8, 1
_SECONDS_TO_REGISTER = 300.0


class FabricCheck:
    """Whether each GPU has joined the NVLink fabric, and is well in it."""

    name = "fabric"
    contexts = frozenset({Context.PROLOG})
    summary = "every GPU has registered with the NVLink fabric and is healthy in it"
    explanation = (
        "Reads NVML's fabric information: state, status, health mask and summary. Without a"
        " completed registration CUDA does not even start (error 802). It means REBOOT, or REQUEUE"
        " in the first five minutes after boot, while registration may still be on its way. A"
        " limited summary is a WARN. GPUs that take part in no fabric are left out, and those that"
        " are cut into instances (MIG), which have no peers."
    )

    def run(self, evidence: Evidence) -> Iterator[Finding]:
        """Read the fabric of every GPU."""
        is_young = _uptime(evidence.host) < _SECONDS_TO_REGISTER

        def look(gpu: Gpu) -> Iterator[Finding]:
            fabric = evidence.driver.fabric(gpu)
            if fabric is None or fabric.state == _UNSUPPORTED:
                return
            trouble = _trouble(fabric)
            if trouble and not evidence.driver.is_in_multi_instance_mode(gpu):
                registers = is_young and fabric.state != _REGISTERED
                verdict = Verdict.REQUEUE if registers else Verdict.REBOOT
                yield Finding(
                    self.name, verdict, trouble, gpu=gpu.minor, of_job=evidence.is_of_job(gpu)
                )
            elif not trouble and fabric.health_summary == _LIMITED:
                yield Finding(self.name, Verdict.WARN, "fabric health is limited", gpu=gpu.minor)

        yield from each_gpu(self.name, evidence, look)


def _trouble(fabric: Fabric) -> str:
    """What is wrong, most important first; empty for nothing."""
    if fabric.state != _REGISTERED:
        return f"fabric registration is not completed (state {fabric.state})"
    if fabric.status != 0:
        return f"fabric registration failed (status {fabric.status})"
    bad = [
        word for offset, word in _BAD_IF_TRUE.items() if fabric.health_mask >> offset & 3 == _TRUE
    ]
    bad += [
        word for offset, word in _BAD_IF_FALSE.items() if fabric.health_mask >> offset & 3 == _FALSE
    ]
    if fabric.health_mask >> _CONFIGURATION_OFFSET & 15 > _RIGHT_CONFIGURATION:
        bad.append("incorrect configuration")
    if not bad and fabric.health_summary == _UNHEALTHY:
        bad.append("unhealthy")
    return f"fabric: {', '.join(bad)}" if bad else ""


class PcieLinkCheck:
    """Whether each GPU has the PCIe lanes that it was built with."""

    name = "pcie_link"
    contexts = frozenset({Context.PROLOG, Context.BACKGROUND})
    summary = "every GPU has its full PCIe width"
    explanation = (
        "Compares the PCIe width with what the policy says of the machine type (pcie_lanes), else"
        " with the GPU's own maximum. A narrower link means REBOOT. Where nobody said what is right"
        " and all GPUs have the same narrow width, the machine type is built so rather than broken,"
        " and that is a WARN: say pcie_lanes. The generation is not judged: links slow down on"
        " purpose while a GPU idles."
    )

    def run(self, evidence: Evidence) -> Iterator[Finding]:
        """Compare the widths of every GPU."""
        links: dict[int, PcieLink] = {}

        def look(gpu: Gpu) -> Iterator[Finding]:
            link = evidence.driver.pcie_link(gpu)
            if link is not None:
                links[gpu.minor] = link
            yield from ()

        yield from each_gpu(self.name, evidence, look)
        lanes = evidence.expected.pcie_lanes
        narrow = {
            minor: f"PCIe width {link.width} of {link.max_width if lanes is None else lanes}"
            for minor, link in links.items()
            if link.width < (link.max_width if lanes is None else lanes)
        }
        if lanes is None and len(narrow) == len(links) and len(set(narrow.values())) == 1:
            detail = f"{next(iter(narrow.values()))} on all GPUs: say pcie_lanes if that is right"
            yield Finding(self.name, Verdict.WARN, detail)
            return
        for minor, detail in narrow.items():
            yield Finding(self.name, Verdict.REBOOT, detail, gpu=minor)


class PcieErrorsCheck:
    """Whether PCIe had errors during the job."""

    name = "pcie_errors"
    contexts = frozenset({Context.PROLOG, Context.EPILOG})
    summary = "no fatal PCIe error came while the job ran"
    explanation = (
        "Keeps the PCIe counters before a job and compares them after it. A fatal error means"
        " RESET, replays beyond pcie_replays_per_minute_warn are a WARN."
    )

    def run(self, evidence: Evidence) -> Iterator[Finding]:
        """Note the counters of every GPU, and say how they have grown."""

        def look(gpu: Gpu) -> Iterator[Finding]:
            errors = evidence.driver.pcie_errors(gpu)
            if errors is None:
                return
            fatal = replays = None
            if errors.fatal is not None:
                fatal = evidence.note(f"pcie_fatal {gpu.uuid}", errors.fatal)
            if errors.replays is not None:
                replays = evidence.note(f"pcie_replays {gpu.uuid}", errors.replays)
            if evidence.context is not Context.EPILOG:
                return
            if fatal:
                yield Finding(
                    self.name,
                    Verdict.RESET,
                    f"{fatal:.0f} fatal PCIe errors during the job",
                    gpu=gpu.minor,
                    of_job=evidence.is_of_job(gpu),
                )
            if replays is not None and evidence.baseline_time is not None:
                seconds = (evidence.now - evidence.baseline_time).total_seconds()
                rate = replays / max(seconds / 60, 1.0)
                if rate > evidence.policy.thresholds.pcie_replays_per_minute_warn:
                    detail = f"{rate:.0f} PCIe replays a minute during the job"
                    yield Finding(self.name, Verdict.WARN, detail, gpu=gpu.minor)

        yield from each_gpu(self.name, evidence, look)


def _uptime(host: Host) -> float:
    try:
        return float(files.read_text(host.path("proc", "uptime")).partition(" ")[0])
    except ValueError:
        return _SECONDS_TO_REGISTER
