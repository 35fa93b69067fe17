"""References: `{load.result.rows}` in a task's arguments is what the task `load` has returned.

A text that is one reference and nothing else becomes the value itself, be it a list or a number;
inside other text a string is inserted as it is and anything else as JSON. Double braces mean the
same, because models write them. Whatever else stands in braces is ordinary text.

A task's id may have dots, and a result a field `result`. The longest id that is known is meant;
where none is, the id ends before the first `.result`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Final

from holdfast.errors import TemplateError
from holdfast.i18n.message import msg
from holdfast.language.facts import step_into
from holdfast.language.strict import canonical_json
from holdfast.language.templates import lack
from holdfast.model.conversation import SubTask
from holdfast.model.values import Json

LONGEST: Final = 500
"""What stands between braces and is longer is ordinary text."""
MOST: Final = 1_000
"""How many references the tasks of one decomposition may have together."""
LARGEST: Final = 1_000_000
"""How many characters of results the arguments of one task may have."""

_INNER: Final = rf"([^{{}}]{{1,{LONGEST}}})"
_BRACES: Final = re.compile(rf"\{{\{{{_INNER}\}}\}}|\{{{_INNER}\}}")
_PART: Final = re.compile(r"\S+")
_RESULT: Final = "result"


def with_dependencies(tasks: Sequence[SubTask]) -> tuple[SubTask, ...]:
    """Tasks wait for those whose results they need, said or not; TemplateError for too many."""
    known, left, waiting = {task.id for task in tasks}, MOST, []
    for task in tasks:
        named = list(islice(_named(task.args, known), left + 1))
        left -= len(named)
        if left < 0:
            raise TemplateError(msg("the tasks have more than {n:,} references to results", n=MOST))
        needed = tuple(dict.fromkeys((*task.dependencies, *named)))
        waiting.append(replace(task, dependencies=needed))
    return tuple(waiting)


def _named(value: Json, known: Collection[str]) -> Iterator[str]:
    match value:
        case str():
            references = (_reference(found, known) for found in _BRACES.finditer(value))
            yield from (reference[0] for reference in references if reference)
        case Mapping():
            for one in value.values():
                yield from _named(one, known)
        case list() | tuple():
            for one in value:
                yield from _named(one, known)


def rendered(args: Mapping[str, Json], results: Mapping[str, Json]) -> dict[str, Json]:
    """The arguments with what they refer to; TemplateError where that is not there."""
    rendering = _Rendering(results)
    return {name: rendering.value(one) for name, one in args.items()}


class _Rendering:
    """One task's arguments; `left` is how many characters of results they may still take."""

    def __init__(self, results: Mapping[str, Json]) -> None:
        self.results = results
        self.left = LARGEST

    def value(self, value: Json) -> Json:
        match value:
            case str():
                return self._text(value)
            case Mapping():
                return {name: self.value(one) for name, one in value.items()}
            case list() | tuple():
                return [self.value(one) for one in value]
            case _:
                return value

    def _text(self, text: str) -> Json:
        whole = _BRACES.fullmatch(text.strip())
        if whole is not None and (reference := _reference(whole, self.results)):
            value = self._read(whole, *reference)
            self._inserted(value)
            return value

        def inserted(found: re.Match[str]) -> str:
            reference = _reference(found, self.results)
            return self._inserted(self._read(found, *reference)) if reference else found[0]

        return _BRACES.sub(inserted, text)

    def _inserted(self, value: Json) -> str:
        """As text; TemplateError where it becomes too much of it."""
        text = value if isinstance(value, str) else canonical_json(value)
        self.left -= len(text)
        if self.left < 0:
            raise TemplateError(
                msg("it refers to more than {n:,} characters of results", n=LARGEST)
            )
        return text

    def _read(self, found: re.Match[str], task: str, path: list[str]) -> Json:
        value, seen = self.results[task], ""
        for part in path:
            try:
                value, seen = step_into(value, part), f"{seen}.{part}"
            except LookupError:
                owner = msg("the result of task {task}{path}", task=task, path=seen)
                lacking = msg("{owner} {lacking}", owner=owner, lacking=lack(value, part))
                why = msg("{source}: {problem}", source=found[0], problem=lacking)
                raise TemplateError(why, found.start()) from None
        return value


def _reference(found: re.Match[str], known: Collection[str]) -> tuple[str, list[str]] | None:
    """The task that is meant and the path into its result; None for ordinary text."""
    text = (found[1] or found[2]).strip()
    ends = list(_ends(text))
    if not ends:
        return None
    end = next((one for one in ends if text[:one] in known), ends[-1])
    return text[:end], text[end:].split(".")[2:]


def _ends(text: str) -> Iterator[int]:
    """Where the task's id may end, before `.result` and a sound path; the last place first."""
    end = len(text)
    for part in reversed(text.split(".")):
        end -= len(part) + 1
        if part == _RESULT and end > 0 and not text[end - 1].isspace():
            yield end
        if not _PART.fullmatch(part):
            return
