"""Names the mistakes in a text that is not JSON: place, likely cause and remedy of each.

After a mistake is named it is repaired in a copy, character for character so that positions
stay true, and parsing goes on: somebody who copied an example with five mistakes learns of five.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from slurm_hooks.cluster.errors import FieldError

MAXIMUM_MISTAKES = 50

_COMMENT = re.compile(r"(//|#)[^\n]*|/\*.*?(\*/|\Z)", re.DOTALL)
_WORD = re.compile(r"<[^<>\n\"]*>|[^\W\d][\w.-]*")
_QUOTES = "'\u2018\u2019\u201c\u201d"


@dataclass(frozen=True, slots=True)
class _Mistake:
    """What is wrong at a position, and the text with it repaired; None if we cannot repair."""

    position: int
    problem: str
    remedy: str
    repaired: str | None


def find_json_mistakes(text: str) -> tuple[FieldError, ...]:
    """All mistakes that can be told apart, at least one, for a text that json refuses."""
    errors: list[FieldError] = []
    current: str | None = text
    while current is not None and len(errors) < MAXIMUM_MISTAKES:
        try:
            json.loads(current)
            break
        except json.JSONDecodeError as error:
            mistake = _recognise(current, error)
        except (ValueError, RecursionError):
            break
        errors.append(FieldError(_place(text, mistake.position), mistake.problem, mistake.remedy))
        current = mistake.repaired
    return tuple(errors)


def _recognise(text: str, error: json.JSONDecodeError) -> _Mistake:
    position = _skip_blanks(text, error.pos)
    for recogniser in (_comment, _trailing_comma, _quotes, _missing_comma, _bare_word, _cut_off):
        mistake = recogniser(text, position, error)
        if mistake is not None:
            return mistake
    return _Mistake(error.pos, error.msg, "compare with the example cluster_config.json", None)


def _comment(text: str, position: int, error: json.JSONDecodeError) -> _Mistake | None:
    del error
    match = _COMMENT.match(text, position)
    if match is None:
        return None
    blank = re.sub(r"[^\n]", " ", match.group())
    repaired = text[:position] + blank + text[match.end() :]
    return _Mistake(
        position, "a comment, and JSON has none", "remove it, or write the file as YAML", repaired
    )


def _trailing_comma(text: str, position: int, error: json.JSONDecodeError) -> _Mistake | None:
    del error
    closing = _skip_blanks(text, position + 1) if text[position : position + 1] == "," else position
    before = _last_visible(text, closing)
    if text[closing : closing + 1] not in ("}", "]") or text[before : before + 1] != ",":
        return None
    repaired = text[:before] + " " + text[before + 1 :]
    problem = f"a trailing comma before {text[closing]!r}"
    return _Mistake(before, problem, "remove the comma", repaired)


def _quotes(text: str, position: int, error: json.JSONDecodeError) -> _Mistake | None:
    del error
    if text[position : position + 1] not in tuple(_QUOTES):
        return None
    return _Mistake(position, "wrong quotation mark", 'put texts in straight double quotes "', None)


def _missing_comma(text: str, position: int, error: json.JSONDecodeError) -> _Mistake | None:
    if error.msg != "Expecting ',' delimiter" or text[position : position + 1] not in tuple('"{['):
        return None
    after = _last_visible(text, position) + 1
    repaired = text[:after] + "," + text[after + 1 :] if after < position else None
    return _Mistake(after, "a comma is missing", "put a comma after the value here", repaired)


def _bare_word(text: str, position: int, error: json.JSONDecodeError) -> _Mistake | None:
    match = _WORD.match(text, position)
    if match is None or not error.msg.startswith(("Expecting value", "Expecting property name")):
        return None
    word = match.group()
    remedies = {"True": "write true", "False": "write false", "None": "write null"}
    remedy = remedies.get(word, "replace a placeholder by its value; texts need double quotes")
    stand_in = json.dumps("x" * (len(word) - 2)) if len(word) > 2 else None
    repaired = text[:position] + stand_in + text[match.end() :] if stand_in else None
    return _Mistake(position, f"{word[:60]!r} stands here without quotes", remedy, repaired)


def _cut_off(text: str, position: int, error: json.JSONDecodeError) -> _Mistake | None:
    if error.msg.startswith("Unterminated string"):
        return _Mistake(error.pos, "a text without its closing quote", 'add the closing "', None)
    if error.msg.startswith("Extra data"):
        remedy = "check for a closing bracket too many above"
        return _Mistake(position, "something follows after the end", remedy, None)
    if position >= len(text):
        remedy = "add the closing brackets that are missing"
        return _Mistake(position, "the file ends too early", remedy, None)
    return None


def _skip_blanks(text: str, position: int) -> int:
    while position < len(text) and text[position].isspace():
        position += 1
    return position


def _last_visible(text: str, position: int) -> int:
    position -= 1
    while position >= 0 and text[position].isspace():
        position -= 1
    return max(position, 0)


def _place(text: str, position: int) -> str:
    line = text.count("\n", 0, position) + 1
    column = position - text.rfind("\n", 0, position)
    return f"line {line}, column {column}"
