"""Leaves: what a JSON value holds in the end, each with its place.

A leaf is a text, a number, true, false, null, or a list or object with nothing in it. Of a text
that is a template, what its author wrote and what it reads can be told apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

from holdfast.errors import TemplateError
from holdfast.language.facts import Path
from holdfast.language.templates import compile_template
from holdfast.model.values import Json, JsonObject

Place: TypeAlias = tuple[str | int, ...]

_PLACEHOLDER: Final = re.compile(r"\{\{\s*result[\w.-]*\s*\}\}|\{\s*[\w-]+(?:\.[\w-]+)+\s*\}")


def leaves(given: JsonObject) -> Iterator[tuple[Place, Json]]:
    for name, value in given.items():
        yield from _leaves(value, (name,))


def _leaves(value: Json, place: Place) -> Iterator[tuple[Place, Json]]:
    if isinstance(value, Mapping | list | tuple) and value:
        inside = value.items() if isinstance(value, Mapping) else enumerate(value)
        for part, one in inside:
            yield from _leaves(one, (*place, part))
    else:
        yield place, value


def spelled(place: Place) -> str:
    return ".".join(map(str, place))


def name_of(place: Place) -> str:
    """The last word of a place; the items of a list have the list's."""
    return next((part for part in reversed(place) if isinstance(part, str)), "")


def paths_in(value: Json) -> tuple[Path, ...]:
    """Whatever its placeholders read; nothing where it is no template."""
    try:
        template = compile_template(value)
    except TemplateError:
        return ()
    return (*template.task_paths, *template.result_paths)


def parted(leaf: Json) -> tuple[list[str], list[Path]] | None:
    """What stands around the placeholders of a text, and what these read, in order; None where it
    has none, or braces that are meant as text."""
    if not isinstance(leaf, str) or "\\" in leaf:
        return None
    read = [path for one in _PLACEHOLDER.findall(leaf) for path in paths_in(one)]
    return (_PLACEHOLDER.split(leaf), read) if read else None
