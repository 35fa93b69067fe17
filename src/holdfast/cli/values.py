"""Values from the command line: `--set name=value`, `--set name:=JSON`, `--data JSON`.

A value is text until its field says what it is: a number field reads a number, a
boolean yes or no, a multiselect a list with commas. What cannot be read stays text
and is refused by the form, whose message is better than any of ours.

A secret given as text stands in the shell's history and in the list of processes. `@-` reads it
from standard input instead (one line), `@env:NAME` from the environment.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import typer

from holdfast.model.form import Field, FieldType

_YES = frozenset({"true", "yes", "y", "1", "on", "是"})
_NO = frozenset({"false", "no", "n", "0", "off", "否"})
_STDIN = "@-"
_ENVIRONMENT = "@env:"
_LONGEST_NUMBER = 18


def read_values(
    pairs: Sequence[str] | None,
    documents: Sequence[str] | str | None,
    fields: Iterable[Field],
    option: str,
) -> dict[str, Any]:
    """What was given as pairs and as JSON objects; `option` takes both, and a pair wins."""
    known = {field.name: field for field in fields}
    given = [documents] if isinstance(documents, str) else list(documents or ())
    also = [one for one in given if _is_pair(one)]
    values: dict[str, Any] = {}
    for document in given:
        values |= {} if _is_pair(document) else _read_object(document, option)
    return {**values, **dict(_read_pair(one, known) for one in [*also, *(pairs or ())])}


def _is_pair(text: str) -> bool:
    name, equals, _ = text.partition("=")
    return bool(equals) and not name.lstrip().startswith(("{", "[", '"'))


def _read_object(document: str, option: str) -> dict[str, Any]:
    value = _read_json(document, option)
    if not isinstance(value, dict):
        raise typer.BadParameter(f"{option} takes a JSON object, as {{'name': 'value'}}")
    return value


def _read_json(text: str, option: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise typer.BadParameter(f"{option}: this is not JSON: {error}.") from None


def _read_pair(pair: str, fields: Mapping[str, Field]) -> tuple[str, Any]:
    name, equals, text = pair.partition("=")
    if not equals or not name.strip(":"):
        raise typer.BadParameter(f"--set takes NAME=VALUE, not {pair!r}.")
    if name.endswith(":"):
        return name[:-1], _read_json(text, f"--set {name}=")
    field = fields.get(name)
    if field is None:
        return name, text
    return name, _read_secret(field, text) if field.type is FieldType.SECRET else read_text(
        field, text
    )


def _read_secret(field: Field, text: str) -> str:
    """The secret, or where it is; whichever way, it is asked for only once."""
    if text == _STDIN:
        return sys.stdin.readline().rstrip("\r\n")
    if not text.startswith(_ENVIRONMENT):
        return text
    variable = text.removeprefix(_ENVIRONMENT)
    value = os.environ.get(variable)
    if value is None:
        raise typer.BadParameter(f"{field.name}: the environment has no {variable}.")
    return value


def read_text(field: Field, text: str) -> Any:
    """Typed text as a value of the field's type."""
    match field.type:
        case FieldType.NUMBER:
            return _number(text)
        case FieldType.BOOLEAN:
            word = text.strip().lower()
            return True if word in _YES else False if word in _NO else text
        case FieldType.MULTISELECT:
            return [part.strip() for part in text.split(",") if part.strip()]
        case _:
            return text


def _number(text: str) -> Any:
    for read in (int, float):
        try:
            return read(text.strip())
        except ValueError:
            continue
    return text


def full_run_id(name: str, series: str = "inst") -> str:
    """`7` is short for `inst_000007`."""
    number = name.isascii() and name.isdecimal() and len(name) <= _LONGEST_NUMBER
    return f"{series}_{int(name):06d}" if number else name


def read_failures(pairs: Sequence[str] | None) -> dict[str, int]:
    """`grant_access=3` for each tool that shall fail, and how often."""
    failures = {}
    for pair in pairs or ():
        tool, _, count = pair.partition("=")
        if not tool or not (count.isascii() and count.isdecimal()) or len(count) > 6:
            raise typer.BadParameter(f"--failures takes TOOL=COUNT, not {pair!r}.")
        failures[tool] = int(count)
    return failures
