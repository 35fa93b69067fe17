"""References: `{load.result.rows}` in a task's arguments is what the task `load` has returned.

A text that is one reference and nothing else becomes the value itself, be it a list or a number;
inside other text a string is inserted as it is and anything else as JSON. Double braces mean the
same, because models write them. Whatever else stands in braces is ordinary text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from holdfast.core.language.facts import step_into
from holdfast.core.language.strict import canonical_json
from holdfast.core.language.templates import lack
from holdfast.errors import TemplateError
from holdfast.model.conversation import SubTask
from holdfast.model.values import Json

_REFERENCE = re.compile(
    r"\{(?P<double>\{)?\s*(?P<task>[^{}\s](?:[^{}]*[^{}\s])?)\.result"
    r"(?P<path>(?:\.[^{}.\s]+)*)\s*\}(?(double)\})"
)


def with_dependencies(task: SubTask) -> SubTask:
    """A task waits for the tasks whose results it needs, whether that was said or not."""
    needed = dict.fromkeys((*task.dependencies, *_named(task.args)))
    return replace(task, dependencies=tuple(needed))


def _named(value: Json) -> Iterator[str]:
    match value:
        case str():
            yield from (found["task"] for found in _REFERENCE.finditer(value))
        case Mapping():
            for one in value.values():
                yield from _named(one)
        case list() | tuple():
            for one in value:
                yield from _named(one)


def rendered(args: Mapping[str, Json], results: Mapping[str, Json]) -> dict[str, Json]:
    """The arguments with what they refer to; TemplateError where that is not there."""
    return {name: _rendered(one, results) for name, one in args.items()}


def _rendered(value: Json, results: Mapping[str, Json]) -> Json:
    match value:
        case str():
            return _text(value, results)
        case Mapping():
            return {name: _rendered(one, results) for name, one in value.items()}
        case list() | tuple():
            return [_rendered(one, results) for one in value]
        case _:
            return value


def _text(text: str, results: Mapping[str, Json]) -> Json:
    whole = _REFERENCE.fullmatch(text.strip())
    if whole is not None:
        return _read(whole, results)

    def inserted(found: re.Match[str]) -> str:
        value = _read(found, results)
        return value if isinstance(value, str) else canonical_json(value)

    return _REFERENCE.sub(inserted, text)


def _read(found: re.Match[str], results: Mapping[str, Json]) -> Json:
    value, seen = results[found["task"]], f"the result of task {found['task']}"
    for part in found["path"].split(".")[1:]:
        try:
            value, seen = step_into(value, part), f"{seen}.{part}"
        except LookupError:
            raise TemplateError(f"{found[0]}: {seen} {lack(value, part)}", found.start()) from None
    return value
