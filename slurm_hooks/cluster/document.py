"""Reads the cluster file's text into plain values: JSON or YAML, told apart by name or content.

A mapping remembers the keys that were written twice, since both formats would drop all but one
silently. YAML scalars stay text: the fields say what they are, so `8` and `"8"` mean the same in
both formats and YAML's own ideas (yes, 1:30, dates) never apply.
"""

from __future__ import annotations

import json
from pathlib import Path

import yaml

from slurm_hooks.cluster.errors import ClusterFileError, FieldError
from slurm_hooks.cluster.json_mistakes import find_json_mistakes

MAXIMUM_BYTES = 4 * 1024 * 1024
"""Far above any real cluster file, far below what would hurt the controller."""

YAML_SUFFIXES = (".yaml", ".yml")


class Mapping(dict[str, object]):
    """A mapping of the file, with the keys that occur in it more than once."""

    repeated: tuple[str, ...] = ()


def read_document(path: Path) -> Mapping:
    """Read a cluster file. Raises ClusterFileError for whatever cannot be read or parsed."""
    text = _read_text(path)
    is_json = path.suffix == ".json" or (
        path.suffix not in YAML_SUFFIXES and text.lstrip().startswith(("{", "["))
    )
    if not text.strip():
        raise _error(str(path), "the file is empty", "start from the example cluster_config.json")
    document = parse_json(text) if is_json else parse_yaml(text)
    if not isinstance(document, Mapping):
        raise _error(str(path), "not a mapping of fields", "put the whole cluster in one { ... }")
    return document


def parse_json(text: str) -> object:
    """Parse JSON. Raises ClusterFileError with line, column and likely cause of each mistake."""
    try:
        return json.loads(text, object_pairs_hook=_mapping, parse_constant=_refuse_constant)
    except json.JSONDecodeError:
        raise ClusterFileError(find_json_mistakes(text)) from None
    except (ValueError, RecursionError) as error:
        reason = str(error) if isinstance(error, ValueError) else "nested too deeply"
        raise _error("line 1, column 1", reason, "write plain numbers and texts") from None


def parse_yaml(text: str) -> object:
    """Parse YAML. Raises ClusterFileError with line and column of the mistake."""
    try:
        return yaml.load(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}" if mark else "line 1, column 1"
        problem = error.problem or error.context or "not YAML"
        remedy = "check indentation, colons and quotes there"
        raise _error(place, problem, remedy) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        problem = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise _error("line 1, column 1", problem, "write plain YAML in UTF-8") from None


class _Loader(yaml.BaseLoader):
    """Scalars stay text; mappings notice repeated keys."""

    def construct_mapping(  # type: ignore[override]  # keys are text here
        self, node: yaml.MappingNode, deep: bool = False
    ) -> Mapping:
        del deep  # children must be complete before they are looked at
        pairs = []
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(
                    None, None, "a field name must be a plain word", key_node.start_mark
                )
            pairs.append((key_node.value, self.construct_object(value_node, deep=True)))
        return _mapping(pairs)


def _mapping(pairs: list[tuple[str, object]]) -> Mapping:
    mapping, repeated = Mapping(), []
    for key, value in pairs:
        if key in mapping:
            repeated.append(key)
        mapping[key] = value
    mapping.repeated = tuple(repeated)
    return mapping


def _refuse_constant(word: str) -> object:
    raise ValueError(f"{word} is no number in JSON")


def _read_text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(MAXIMUM_BYTES + 1)
        if len(content) > MAXIMUM_BYTES:
            raise _error(str(path), "larger than 4 MiB", "pass the cluster file itself")
        return content.decode("utf-8-sig")
    except FileNotFoundError:
        raise _error(str(path), "no such file", "check the path") from None
    except IsADirectoryError:
        raise _error(str(path), "is a directory", "name the file in it") from None
    except PermissionError:
        raise _error(str(path), "may not be read", "grant read permission to it") from None
    except UnicodeDecodeError as error:
        problem = f"not UTF-8 at byte {error.start}"
        raise _error(str(path), problem, "save the file as UTF-8") from None
    except (OSError, ValueError) as error:
        raise _error(str(path), f"cannot be read: {error}", "check the path") from None


def _error(path: str, problem: str, remedy: str) -> ClusterFileError:
    return ClusterFileError((FieldError(path, problem, remedy),))
