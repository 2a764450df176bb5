"""The `filter` parameter of lists: `labels.k = v`, `name eq REGEX`, AND, OR, NOT, parentheses.

Two styles, never mixed in one filter: comparisons of AIP-160 (`=`, `!=`, `:`, `<`, ...), where a
`*` in a value stands for anything, and `eq`/`ne` with a regular expression over the whole value.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from slurm_hooks.sandbox.emulator.problems import invalid_field

Predicate = Callable[[dict[str, Any]], bool]
_TOKEN = re.compile(
    r"""\s*(?:(?P<quoted>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    |(?P<operator><=|>=|!=|=|<|>|:)
    |(?P<parenthesis>[()])
    |(?P<word>[^\s()<>=!:"']+))""",
    re.VERBOSE,
)
_ORDERED: dict[str, Callable[[float, float], bool]] = {
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
}


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str


def parse(text: str) -> Predicate:
    """Turn a filter into a test over an item's JSON. Raises ApiError 400 for a malformed one."""
    if not text.strip():
        return lambda item: True
    parser = _Parser(text)
    predicate = parser.everything()
    parser.expect_end()
    return predicate


class _Parser:
    """Recursive descent; as in AIP-160 OR binds closer than AND, which needs not be written."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(self._split(text))
        self._position = 0

    def _split(self, text: str) -> list[_Token]:
        tokens, position = [], 0
        while position < len(text.rstrip()):
            match = _TOKEN.match(text, position)
            if match is None or match.lastgroup is None:
                raise self._malformed()
            tokens.append(_Token(match.lastgroup, match[match.lastgroup]))
            position = match.end()
        return tokens

    def _malformed(self) -> Exception:
        return invalid_field("filter", self._text, "Invalid list filter expression.")

    def _peek(self) -> _Token | None:
        return self._tokens[self._position] if self._position < len(self._tokens) else None

    def _take(self) -> _Token:
        token = self._peek()
        if token is None:
            raise self._malformed()
        self._position += 1
        return token

    def _at(self, *texts: str) -> bool:
        token = self._peek()
        return token is not None and token.kind != "quoted" and token.text in texts

    def expect_end(self) -> None:
        if self._peek() is not None:
            raise self._malformed()

    def everything(self) -> Predicate:
        """A sequence of alternatives, with or without AND between them."""
        parts = [self._either()]
        while self._peek() is not None and not self._at(")"):
            if self._at("AND"):
                self._take()
            parts.append(self._either())
        return lambda item: all(part(item) for part in parts)

    def _either(self) -> Predicate:
        parts = [self._one()]
        while self._at("OR"):
            self._take()
            parts.append(self._one())
        return lambda item: any(part(item) for part in parts)

    def _one(self) -> Predicate:
        if self._at("NOT"):
            self._take()
            inner = self._one()
            return lambda item: not inner(item)
        if self._at("("):
            self._take()
            predicate = self.everything()
            if self._take().text != ")":
                raise self._malformed()
            return predicate
        return self._comparison()

    def _comparison(self) -> Predicate:
        name, operator, value = self._take(), self._take(), self._take()
        known = operator.kind == "operator" or operator.text in ("eq", "ne")
        if name.kind == "operator" or not known or value.kind in ("operator", "parenthesis"):
            raise self._malformed()
        is_pattern = operator.text in ("eq", "ne")
        text = _unquoted(value) if is_pattern else _plain(value)
        try:
            return _comparison(_plain(name), operator.text, text)
        except (re.error, ValueError):
            raise self._malformed() from None


def _unquoted(token: _Token) -> str:
    return token.text[1:-1] if token.kind == "quoted" else token.text


def _plain(token: _Token) -> str:
    """The text of a token; in double quotes a backslash keeps the next character as it is."""
    text = _unquoted(token)
    escapes = token.kind == "quoted" and token.text[0] == '"'
    return re.sub(r"\\(.)", r"\1", text) if escapes else text


def _comparison(name: str, operator: str, value: str) -> Predicate:
    path = name.split(".")
    if operator in ("eq", "ne"):
        pattern = re.compile(value)
        wanted = operator == "eq"
        return lambda item: (
            wanted == bool(any(pattern.fullmatch(found) for found in _values(item, path)))
        )
    if operator in _ORDERED:
        compare, limit = _ORDERED[operator], float(value)
        return lambda item: any(compare(float(found), limit) for found in _values(item, path))
    pattern = _wildcard(value)
    if operator == ":":
        return lambda item: any(_has(found, value, pattern) for found in _values(item, path))
    wanted = operator == "="
    return lambda item: wanted == any(pattern.fullmatch(found) for found in _values(item, path))


def _wildcard(value: str) -> re.Pattern[str]:
    return re.compile(".*".join(re.escape(part) for part in value.split("*")), re.DOTALL)


def _has(found: str, value: str, pattern: re.Pattern[str]) -> bool:
    return bool(pattern.fullmatch(found)) or value in found


def _values(item: Any, path: list[str]) -> list[str]:
    """The texts at a path; a list on the way stands for each of its members."""
    if isinstance(item, list):
        return [text for member in item for text in _values(member, path)]
    if not path:
        if isinstance(item, bool):
            return [str(item).lower()]
        return [] if item is None or isinstance(item, dict) else [str(item)]
    if not isinstance(item, dict):
        return []
    return _values(item.get(path[0]), path[1:])
