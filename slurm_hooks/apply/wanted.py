"""The cluster file as it was given, and what follows from it: cluster, texts, what is written."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from slurm_hooks.apply.place import Place
from slurm_hooks.cluster.document import YAML_SUFFIXES, read_document
from slurm_hooks.cluster.errors import ClusterFileError
from slurm_hooks.cluster.load import build_cluster, load_cluster
from slurm_hooks.cluster.machine_types import FILE_NAME as CATALOGUE_FILE
from slurm_hooks.cluster.machine_types import MachineCatalogue, catalogue_beside
from slurm_hooks.cluster.topology import Cluster
from slurm_hooks.settings import FILE_NAME as SETTINGS_FILE
from slurm_hooks.settings import SettingsError
from slurm_hooks.slurm.render import RenderOptions, parse_slurm_version, render, with_options


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be in force.

    `cluster_text` goes into the place's cluster file, `catalogue_text` beside it, where machine
    types are declared. `texts` are the rendered files by name, relative to slurm.conf's directory.
    """

    cluster: Cluster
    cluster_text: str
    catalogue_text: str | None
    texts: dict[str, str]
    configless: bool


def read_wanted(file: Path, place: Place, cluster_id: str, slurm_version: str) -> Wanted:
    """Read a cluster file and render it. Raises ClusterFileError, RenderError, OSError."""
    declared = file.parent / CATALOGUE_FILE
    has_catalogue = declared.is_file()
    catalogue = catalogue_beside(file if has_catalogue else place.cluster_file)
    document = read_document(file)
    cluster = build_cluster(document, catalogue, cluster_id or place.values["ClusterId"])
    options = options_of(place, catalogue, slurm_version)
    texts = render(cluster, options)
    if not place.is_new:
        # the settings are the operator's own, from the first time on
        del texts[SETTINGS_FILE]
    return Wanted(
        cluster=cluster,
        cluster_text=_text_for(place.cluster_file, file, document),
        catalogue_text=declared.read_text(encoding="utf-8") if has_catalogue else None,
        texts=texts,
        configless=options.configless,
    )


def read_applied(place: Place) -> Cluster | None:
    """The cluster in force; None before the first. Raises SettingsError when it is not readable."""
    if not place.cluster_file.exists():
        return None
    try:
        return load_cluster(place.cluster_file, place.values["ClusterId"])
    except ClusterFileError as error:
        raise SettingsError(
            f"{place.cluster_file}, which is in force, has mistakes ({error.errors[0]}): put it"
            " right, or move it away and apply as if it were the first"
        ) from None


def options_of(place: Place, catalogue: MachineCatalogue, slurm_version: str) -> RenderOptions:
    """The options with which this place is rendered. Raises RenderError."""
    values = place.values
    options = RenderOptions(
        slurm_version=parse_slurm_version(slurm_version),
        spool_directory=values["SpoolDir"],
        log_file=values["LogFile"],
        api_endpoint=values["ApiEndpoint"],
        api_credentials=values["ApiCredentials"],
        cluster_config=values["ClusterConfig"],
        catalogue=catalogue,
    )
    return with_options(values["RenderOptions"], options)


def _text_for(target: Path, source: Path, document: dict[str, object]) -> str:
    """The text as it was given, but JSON for a file that must be JSON by its name."""
    text = source.read_text(encoding="utf-8-sig")
    is_json = source.suffix not in YAML_SUFFIXES and text.lstrip().startswith("{")
    if is_json or target.suffix in YAML_SUFFIXES:
        return text
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
