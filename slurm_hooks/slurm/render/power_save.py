"""Power saving: which programs Slurm calls, when, and how cloud nodes are treated.

Facts: slurmctld's power thread and the version gates of its options. Never rendered: cloud_dns
(nodes boot and die in a loop where messages fan out), an empty SuspendExcNodes (slurmctld ends
on it), ResumeTimeout=INFINITE or the 65535 that newer versions take for it.
"""

from __future__ import annotations

from collections.abc import Iterator

from slurm_hooks.cluster.topology import Cluster
from slurm_hooks.slurm.render.lines import Line, listed, setting
from slurm_hooks.slurm.render.nodes import node_ranges
from slurm_hooks.slurm.render.options import RenderOptions


def power_save_lines(cluster: Cluster, options: RenderOptions) -> tuple[Line, ...]:
    """All settings of power saving for the version at hand."""
    return (
        *_programs(options),
        *_times(options),
        *_exclusions(cluster, options),
        *_cloud_nodes(options),
    )


def _programs(options: RenderOptions) -> Iterator[Line]:
    directory = options.programs_directory.rstrip("/")
    for key, program, reason in (
        ("ResumeProgram", "slurm-hooks-resume", "Asks the daemon for VMs and returns at once."),
        ("SuspendProgram", "slurm-hooks-suspend", "Has the VMs of idle nodes deleted."),
        (
            "ResumeFailProgram",
            "slurm-hooks-resume-fail",
            "Cleans up what did not come up; without it a late VM would run on, unused and paid.",
        ),
    ):
        yield setting(key, f"{directory}/{program}", reason)


def _times(options: RenderOptions) -> Iterator[Line]:
    yield setting(
        "SuspendTime",
        options.suspend_time_seconds,
        "Seconds that a dynamic node may idle before its VM is deleted.",
    )
    yield setting(
        "SuspendTimeout",
        options.suspend_timeout_seconds,
        "Seconds until a suspended node may be asked for again. Must exceed the time that a VM"
        " needs to go: 120 s to shut down, then its deletion.",
    )
    yield setting(
        "ResumeTimeout",
        options.resume_timeout_seconds,
        "The last net only: Flex-start requests queue for hours, and the daemon has clocks of its"
        " own for capacity and for boot. Keep it below 65535, which 25.05 and later read as"
        " INFINITE.",
    )
    yield setting(
        "ResumeRate", 0, "No limit: a job's nodes must come in one call to be one request."
    )
    yield setting("SuspendRate", 0, "No limit: the daemon paces the calls to Compute Engine.")


def _exclusions(cluster: Cluster, options: RenderOptions) -> Iterator[Line]:
    static = [nodes.hostlist for nodes in node_ranges(cluster) if nodes.is_static]
    if static:
        reason = "Static nodes (index below min_node_count) never sleep."
        yield setting("SuspendExcNodes", ",".join(static), reason)
    if options.slurm_version >= (23, 2):
        reason = (
            "A drained node keeps its VM for whoever drained it; sleep would also undrain it."
            " An explicit power down still works."
        )
        yield setting("SuspendExcStates", "DRAIN", reason)


def _cloud_nodes(options: RenderOptions) -> Iterator[Line]:
    yield listed("SlurmctldParameters", _slurmctld_parameters(options))
    yield setting(
        "ReturnToService",
        2,
        "A node that registers well is used, also when it was DOWN: a VM that came late, or one"
        " that its host brought back.",
    )
    if options.slurm_version < (23, 11):
        reason = "Messages go straight to each node: names of cloud nodes do not resolve elsewhere."
        yield setting("TreeWidth", 65_533, reason)
    if options.slurm_version < (23, 2):
        yield setting(
            "PrivateData", "cloud", "Shows powered-down nodes to users and to the daemon."
        )
    if options.one_machine_first_port is not None:
        reason = "All nodes share this machine and need not have what they claim."
        yield setting("SlurmdParameters", "config_overrides", reason)


def _slurmctld_parameters(options: RenderOptions) -> Iterator[tuple[str, str]]:
    yield "idle_on_node_suspend", "a node that was DOWN comes back idle once its VM is gone."
    if options.configless:
        yield "enable_configless", "nodes that boot fetch all of this from slurmctld."
    if options.slurm_version < (23, 11):
        yield (
            "cloud_reg_addrs",
            "takes a node's address from its registration, since VMs get new ones.",
        )
