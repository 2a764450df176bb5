"""The options of a render as one line of the settings, so that the next one need not be told again.

`name=value` with blanks between, only what is not the default. What the settings say by keys of
their own, and what is found out anew each time, is left out.
"""

from __future__ import annotations

import dataclasses

from slurm_hooks.slurm.render.options import RenderError, RenderOptions

ELSEWHERE = frozenset(
    {
        "slurm_version",
        "spool_directory",
        "log_file",
        "api_endpoint",
        "api_credentials",
        "cluster_config",
        "catalogue",
    }
)
_WORDS = {True: "yes", False: "no"}


def options_text(options: RenderOptions) -> str:
    """What differs from the defaults; empty when nothing does."""
    return " ".join(
        f"{field.name}={_word(value)}"
        for field in dataclasses.fields(options)
        if field.name not in ELSEWHERE
        and (value := getattr(options, field.name)) != field.default
        and value != ""
    )


def with_options(text: str, options: RenderOptions) -> RenderOptions:
    """The options with those of a line of the settings. Raises RenderError for what is odd."""
    known = {field.name: field for field in dataclasses.fields(options)}
    values: dict[str, object] = {}
    for word in text.split():
        name, equals, value = word.partition("=")
        if not equals or name not in known or name in ELSEWHERE:
            wanted = ", ".join(sorted(known.keys() - ELSEWHERE))
            raise RenderError(f"RenderOptions: {word!r} is not name=value, name one of {wanted}")
        values[name] = _value(name, value, known[name].type)
    return dataclasses.replace(options, **values)  # type: ignore[arg-type]  # read by their types


def _word(value: object) -> str:
    return _WORDS[value] if isinstance(value, bool) else str(value)


def _value(name: str, text: str, kind: object) -> object:
    if kind == "str":
        return text
    if kind == "bool":
        if text not in _WORDS.values():
            raise RenderError(f"RenderOptions: {name}={text}: expected yes or no")
        return text == _WORDS[True]
    if not text.isascii() or not text.isdigit():
        raise RenderError(f"RenderOptions: {name}={text}: expected a whole number")
    return int(text)
