"""Renders a cluster into the files that Slurm and the hook programs read.

Pure: cluster and options in, texts out, the same texts for the same input. The site's own
slurm.conf stays the site's and only includes what is rendered here.
"""

from __future__ import annotations

from slurm_hooks.cluster.slurm_parameters import Place
from slurm_hooks.cluster.topology import Cluster
from slurm_hooks.slurm.render.health import health_lines
from slurm_hooks.slurm.render.kept_options import options_text, with_options
from slurm_hooks.slurm.render.lines import Line, file_text, setting
from slurm_hooks.slurm.render.nodes import gres_lines, node_lines
from slurm_hooks.slurm.render.operator_words import (
    check_versions,
    remaining_lines,
    with_settings,
    with_their_times,
)
from slurm_hooks.slurm.render.options import RenderError, RenderOptions, parse_slurm_version
from slurm_hooks.slurm.render.partitions import partition_lines
from slurm_hooks.slurm.render.power_save import power_save_lines
from slurm_hooks.slurm.render.scheduler import scheduler_lines

__all__ = [
    "EPILOG_SCRIPTS",
    "PROLOG_SCRIPTS",
    "RenderError",
    "RenderOptions",
    "include_lines",
    "parse_slurm_version",
    "render",
    "with_options",
]

FRAGMENTS = {
    "nodes": "The nodes: what each VM offers to jobs. Login VMs run no slurmd and are not listed.",
    "partitions": "The partitions.",
    "power_save": "Power saving: the programs that create and delete VMs, and their times.",
    "scheduler": "Scheduling and requeueing.",
    "health": "Node health: what runs around jobs, and the reboot of a node.",
}
PROLOG_SCRIPTS, EPILOG_SCRIPTS = "prolog.d", "epilog.d"
"""Directories of the site's own scripts."""

_PLACES = {
    False: "Keep the directory slurm.conf.d beside slurm.conf and add the lines below. Configless"
    " nodes are sent only what lies beside slurm.conf: for them render with --configless.",
    True: "Keep this file beside slurm.conf, from where it is sent to configless nodes, and add:",
}


def include_lines(configless: bool = False) -> tuple[str, ...]:
    """The lines to add to the site's slurm.conf; `configless` as in RenderOptions."""
    return tuple(f"Include {_file_name(name, configless)}" for name in FRAGMENTS)


def _file_name(fragment: str, configless: bool) -> str:
    return f"slurm-hooks-{fragment}.conf" if configless else f"slurm.conf.d/{fragment}.conf"


def render(cluster: Cluster, options: RenderOptions) -> dict[str, str]:
    """All files by name, relative to the directory of slurm.conf. Raises RenderError."""
    lines = {
        "nodes": node_lines(cluster, options),
        "partitions": partition_lines(cluster, options),
        **_global_lines(cluster, options),
    }
    texts = {
        _file_name(name, options.configless): file_text(
            _introduction(cluster, options, name), lines[name]
        )
        for name in FRAGMENTS
    }
    about = f"gres.conf of cluster {cluster.cluster_id}: the GPUs of its nodes."
    texts["gres.conf"] = file_text(about, gres_lines(cluster, options))
    texts["slurm-hooks.conf"] = file_text(
        f"Settings of slurm-hooks for cluster {cluster.cluster_id}. Keep this file in the directory"
        " of slurm.conf or in /etc/slurm-hooks.",
        _settings(cluster, options),
    )
    return texts | _site_scripts(cluster)


def _global_lines(cluster: Cluster, options: RenderOptions) -> dict[str, tuple[Line, ...]]:
    """The files of global settings, in which the operator's stand where ours would."""
    theirs = cluster.slurm_config
    check_versions(Place.GLOBAL, theirs, options.slurm_version)
    ours = {
        "power_save": power_save_lines(cluster, options),
        "scheduler": scheduler_lines(cluster, options),
        "health": health_lines(with_their_times(options, theirs)),
    }
    everything = [line for lines in ours.values() for line in lines]
    files = {name: with_settings(lines, theirs) for name, lines in ours.items()}
    files["scheduler"] += tuple(remaining_lines(theirs, everything))
    return files


def _site_scripts(cluster: Cluster) -> dict[str, str]:
    """The cluster file's own scripts, a file each; nodes run them in the order of their names."""
    texts = {}
    for role, directory, scripts in (
        ("Prolog", PROLOG_SCRIPTS, cluster.prolog_scripts),
        ("Epilog", EPILOG_SCRIPTS, cluster.epilog_scripts),
    ):
        for number, script in enumerate(scripts, 1):
            name = f"{directory}/{number:02}.sh"
            about = (
                f"Script {number} of {len(scripts)} that cluster {cluster.cluster_id} runs in its"
                f" {role}. bash runs it as root on every compute node, which expects it, owned by"
                f" root and writable by nobody else, as\n  /etc/slurm-hooks/{name}"
            )
            texts[name] = file_text(about, (Line(script.rstrip("\n"), ()),))
    return texts


def _introduction(cluster: Cluster, options: RenderOptions, name: str) -> str:
    major, minor = options.slurm_version
    return "\n".join(
        (
            f"Cluster {cluster.cluster_id}, Slurm {major}.{minor:02}. {FRAGMENTS[name]}",
            "",
            _PLACES[options.configless],
            *(f"  {line}" for line in include_lines(options.configless)),
            "A setting given here and in slurm.conf counts as it stands last, so set no list such"
            " as SlurmctldParameters in both.",
        )
    )


def _settings(cluster: Cluster, options: RenderOptions) -> tuple[Line, ...]:
    values = (
        ("ClusterConfig", options.cluster_config, "The cluster file that this was rendered from."),
        ("ClusterId", cluster.cluster_id, "First part of every node's name."),
        ("Project", cluster.project, "The project in which VMs are created."),
        ("SpoolDir", options.spool_directory, "Where the hook programs leave their requests."),
        ("LogFile", options.log_file, "Slurm records no output of the programs, this file does."),
        ("ApiEndpoint", options.api_endpoint, "Where Compute Engine is served, if not publicly."),
        ("ApiCredentials", options.api_credentials, "default: Application Default Credentials."),
        ("RenderOptions", options_text(options), "What the next render of this cluster repeats."),
    )
    return tuple(setting(key, value, reason) for key, value, reason in values if value)
