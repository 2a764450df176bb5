"""The config maps of a cluster file: settings of slurm.conf in its own words.

A map stands for the whole cluster, for a partition's line or for the nodes' line of a pool. Nothing
of it is dropped silently: a key is known at its place and free to be set, and its value fits, or it
is a mistake with its path. Facts: the managed service's rules for config maps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from slurm_hooks.cluster.errors import FieldError
from slurm_hooks.cluster.fields import shown
from slurm_hooks.cluster.slurm_pairs import check_pairs
from slurm_hooks.cluster.slurm_parameters import (
    Parameter,
    Place,
    find_parameter,
    nearest_parameter,
    places_of,
)
from slurm_hooks.cluster.slurm_values import what_is_right
from slurm_hooks.cluster.spelling import join

Settings = tuple[tuple[str, str], ...]
"""Parameters in Slurm's own spelling with their values, in the order of the file."""

_HOMES = {
    Place.GLOBAL: "slurm_spec.config",
    Place.PARTITION: "the config of a partition",
    Place.NODE: "the config of a node_sets entry",
    Place.SLURMDBD: "slurmdbd.conf",
}
_REFUSED_OPTIONS = {
    ("SlurmctldParameters", "cloud_dns"): (
        "nodes would be looked up by names that do not resolve before their VMs run"
    ),
    ("SlurmctldParameters", "reboot_from_controller"): (
        "the controller would reboot itself instead of the node"
    ),
}


def settings_of(place: Place, config: Mapping[str, object]) -> Settings:
    """A map that has been checked, in Slurm's own spelling."""
    found = ((find_parameter(place, key), value) for key, value in config.items())
    return tuple((parameter.name, str(value)) for parameter, value in found if parameter)


def check_config(path: str, place: Place, config: Mapping[str, object]) -> Iterator[FieldError]:
    """Every mistake in one config map, whose path is given."""
    fitting: dict[str, str] = {}
    paths: dict[str, str] = {}
    for key, value in config.items():
        where = join(path, key)
        parameter = find_parameter(place, key)
        mistake = _key_mistake(where, place, key, parameter)
        if mistake is None and parameter is not None:
            mistake = _value_mistake(where, parameter, value)
            if parameter.name in paths:
                problem = f"is {paths[parameter.name]} in another spelling"
                mistake = FieldError(where, problem, "keep one of them")
            elif mistake is None:
                fitting[parameter.name] = str(value)
            paths.setdefault(parameter.name, where)
        if mistake is not None:
            yield mistake
    for name, problem, remedy in check_pairs(place, fitting):
        yield FieldError(paths[name], problem, remedy)


def _key_mistake(
    path: str, place: Place, key: str, parameter: Parameter | None
) -> FieldError | None:
    if parameter is None:
        return _unknown(path, place, key)
    if parameter.reserved_for:
        problem = f"{parameter.name} is reserved: {parameter.reserved_for}"
        return FieldError(path, problem, parameter.remedy)
    return None


def _unknown(path: str, place: Place, key: str) -> FieldError:
    elsewhere = places_of(key)
    if elsewhere == (Place.SLURMDBD,):
        problem = "a parameter of slurmdbd.conf, which no cluster file sets"
        return FieldError(path, problem, "set it in slurmdbd.conf")
    if elsewhere:
        homes = " or ".join(_HOMES[home] for home in elsewhere)
        problem = f"no parameter of {_HOMES[place]}"
        return FieldError(path, problem, f"move it to {homes}")
    nearest = nearest_parameter(place, key)
    remedy = f"did you mean {nearest}?" if nearest else "look it up in the manual of slurm.conf"
    return FieldError(path, "unknown parameter of slurm.conf", remedy)


def _value_mistake(path: str, parameter: Parameter, value: object) -> FieldError | None:
    if not isinstance(value, str):
        remedy = "write the text of slurm.conf in quotes, numbers too"
        return FieldError(path, f"{shown(value)} is no text", remedy)
    remedy = what_is_right(parameter.kind, value)
    if remedy:
        return FieldError(path, f"{shown(value)} is no value of {parameter.name}", remedy)
    for option in value.strip('"').split(","):
        reason = _REFUSED_OPTIONS.get((parameter.name, option.strip().lower()))
        if reason:
            return FieldError(path, f"{shown(option)} is refused: {reason}", "remove it")
    return None
