"""Templates: JSON values with places in them that a run fills in, types kept.

    {001.context.name}  {002.status}  {values.name}    a task's context or status, the plan's values
    {{result.order_id}}  {{result}}                    what the listener's own work returned

A text that is one placeholder and nothing else becomes the value itself, be it a number, a list or
a dict; inside other text a string is inserted as it is and anything else as JSON. Keys are never
rendered. Braces around anything that is not words joined by dots are ordinary text, such as
`{"a": 1}`; `\\{` is a brace that is meant as one, and `\\\\{` a backslash before a placeholder.

What a placeholder names must be there: a message must not go out with `{001.context.nmae}`
in it. Errors list names, never values.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, NoReturn, TypeAlias

from holdfast.errors import TemplateError
from holdfast.i18n.message import msg
from holdfast.language.facts import ROOTS, Facts, Path, reader, split_path, step_into
from holdfast.language.spelling import nearest
from holdfast.language.strict import json_path
from holdfast.model.values import Json

MAX_NESTING: Final = 64

_TEXTS_KEPT: Final = 1_024
_NAMES_SHOWN: Final = 10
_GROUP_SHOWN: Final = 40
_BRACE: Final = re.compile(
    r"""
    (?<! \\ ) (?P<slashes> (?: \\\\ )* ) (?:
        \\ \{
      | (?P<double> \{\{ (?P<inner> .*? ) (?: (?P<closed> \}\} ) | \Z ) )
      | (?P<single> \{ \s* (?P<path> [\w-]+ (?: \. [\w-]+ )+ | values | result ) \s* \} )
      | \{
    )
    """,
    re.VERBOSE | re.DOTALL,
)
_RESULT: Final = re.compile(r"\s*(result(?:\.[\w-]+)*)\s*")

_to_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode

Filler: TypeAlias = Callable[[Facts], Json]


@dataclass(frozen=True, slots=True)
class Template:
    """A compiled template; a constant one renders to the very value it was compiled from.

    What a `bounded` one renders to is as large and as deep as one result and the template itself.
    """

    value: Json
    task_paths: tuple[Path, ...]
    result_paths: tuple[Path, ...]
    constant: bool
    bounded: bool
    fill: Filler = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class _Placeholder:
    """One place to fill; `source` is how its author wrote it."""

    path: Path
    source: str
    column: int

    def filler(self) -> Filler:
        return reader(self.path, self._refuse)

    def _refuse(self, facts: Facts) -> NoReturn:
        raise TemplateError(_absence(self, facts), self.column) from None


def compile_template(value: Json) -> Template:
    """The template, or TemplateError for a placeholder that cannot be one."""
    compiler = _Compiler()
    fill = compiler.compile(value, ())
    paths = tuple(dict.fromkeys(compiler.paths))
    return Template(
        value=value,
        task_paths=tuple(path for path in paths if path[0] != "result"),
        result_paths=tuple(path for path in paths if path[0] == "result"),
        constant=fill is None,
        bounded=not compiler.paths or [path[0] for path in compiler.paths] == ["result"],
        fill=fill or (lambda facts: value),
    )


def render(template: Template, facts: Facts) -> Json:
    """The value with every placeholder filled; what it takes from facts is shared, not copied."""
    return template.fill(facts)


def literally(text: str) -> str:
    """The text as a template that renders to it: its braces are no placeholders."""
    return re.sub(r"(\\*)\{", r"\1\1\\{", text)


def preview(text: str, facts: Facts) -> str:
    """The text as far as the facts go; what they do not know yet is an ellipsis."""
    try:
        pieces = tuple(_pieces(text))
    except TemplateError:
        return text
    return "".join(one if isinstance(one, str) else _known(one, facts) for one in pieces)


def _known(placeholder: _Placeholder, facts: Facts) -> str:
    try:
        return _inserted(placeholder.filler())(facts)
    except TemplateError:
        return "…"


class _Compiler:
    """Turns each part of a value into a filler, or None where nothing is to be filled."""

    def __init__(self) -> None:
        self.paths: list[Path] = []

    def compile(self, value: Json, place: tuple[str | int, ...]) -> Filler | None:
        if len(place) > MAX_NESTING:
            raise TemplateError(msg("nested deeper than {n}: flatten the template", n=MAX_NESTING))
        match value:
            case str():
                return self.text(value, place)
            case Mapping():
                return self.container(dict(value), value.items(), place)
            case list() | tuple():
                return self.container(list(value), enumerate(value), place)
        return None

    def container(
        self, frame: Any, entries: Iterable[tuple[Any, Json]], place: tuple[str | int, ...]
    ) -> Filler | None:
        compiled = [(key, self.compile(item, (*place, key))) for key, item in entries]
        fillers = tuple((key, fill) for key, fill in compiled if fill is not None)
        if not fillers:
            return None

        def fill_all(facts: Facts) -> Json:
            filled = frame.copy()
            for key, fill in fillers:
                filled[key] = fill(facts)
            return filled

        return fill_all

    def text(self, text: str, place: tuple[str | int, ...]) -> Filler | None:
        if "{" not in text:
            return None
        try:
            paths, fill = _compiled_text(text)
        except TemplateError as problem:
            where = f"{json_path(place)}: " if place else ""
            raise TemplateError(f"{where}{problem}", problem.column) from None
        self.paths.extend(paths)
        return fill


@lru_cache(maxsize=_TEXTS_KEPT)
def _compiled_text(text: str) -> tuple[tuple[Path, ...], Filler | None]:
    """What the text names, and how it is filled; the tasks of a plan are written alike."""
    pieces = tuple(_pieces(text))
    placeholders = [piece for piece in pieces if isinstance(piece, _Placeholder)]
    paths = tuple(placeholder.path for placeholder in placeholders)
    if placeholders and len(pieces) == 1:
        return paths, placeholders[0].filler()
    return paths, None if pieces == (text,) else _joined(pieces)


def _pieces(text: str) -> Iterator[str | _Placeholder]:
    """The text as plain stretches, never empty, and placeholders between them."""
    plain, position = "", 0
    while found := _BRACE.search(text, position):
        slashes = found.end("slashes") - found.start()
        plain += text[position : found.start() + slashes // 2]
        position = found.end()
        if not (found["double"] or found["single"]):
            plain += "{"
            continue
        if plain:
            yield plain
        yield _placeholder(found, found.end("slashes") + 1)
        plain = ""
    if plain := plain + text[position:]:
        yield plain


def _placeholder(found: re.Match[str], column: int) -> _Placeholder:
    if found["single"]:
        return _Placeholder(_task_path(found, column), found["single"], column)
    result = _RESULT.fullmatch(found["inner"])
    if result and found["closed"]:
        return _Placeholder(split_path(result[1]), found["double"], column)
    raise TemplateError(_about_double(found), column)


def _task_path(found: re.Match[str], column: int) -> Path:
    try:
        path = split_path(found["path"])
    except ValueError as problem:
        message = msg(
            "{text}: {problem}; a brace meant as text is written \\{{",
            text=found["single"],
            problem=str(problem),
        )
        raise TemplateError(message, column) from None
    if path[0] == "result":
        message = msg(
            "{text}: the result takes double braces, {braces}",
            text=found["single"],
            braces=f"{{{{{found['path']}}}}}",
        )
        raise TemplateError(message, column)
    return path


def _about_double(found: re.Match[str]) -> str:
    shown = found["double"]
    if len(shown) > _GROUP_SHOWN:
        shown = shown[:_GROUP_SHOWN] + "…"
    if not found["closed"]:
        return msg(
            "{text}: these double braces are never closed; braces meant as text are \\{{\\{{",
            text=shown,
        )
    return msg(
        "{text}: double braces name the result, as {{{{result.id}}}}, and single ones "
        "a task's path, as {{001.context.name}}; braces meant as text are written "
        "\\{{\\{{",
        text=shown,
    )


def _joined(pieces: tuple[str | _Placeholder, ...]) -> Filler:
    fillers = tuple(
        piece if isinstance(piece, str) else _inserted(piece.filler()) for piece in pieces
    )

    def fill(facts: Facts) -> str:
        return "".join([part if isinstance(part, str) else part(facts) for part in fillers])

    return fill


def _inserted(fill: Filler) -> Callable[[Facts], str]:
    def text(facts: Facts) -> str:
        value = fill(facts)
        return value if isinstance(value, str) else _to_json(value)

    return text


def _absence(placeholder: _Placeholder, facts: Facts) -> str:
    """Which part of the path is missing, and what is there instead."""
    path = placeholder.path
    if path[0] in ROOTS:
        problem = _missing_part(path, 0, facts.names)
        return msg("{source}: {problem}", source=placeholder.source, problem=problem)
    try:
        facts.status_of(path[0])
        context = facts.context_of(path[0])
    except LookupError:
        return msg("{source}: there is no task {id}", source=placeholder.source, id=path[0])
    problem = _missing_part(path, 2, context)
    return msg("{source}: {problem}", source=placeholder.source, problem=problem)


def _missing_part(path: Path, known: int, value: Json) -> str:
    try:
        return _missing_part(path, known + 1, step_into(value, path[known]))
    except LookupError:
        lacking = lack(value, path[known])
        return msg("{owner} {lacking}", owner=_owner(path[:known]), lacking=lacking)


def _owner(path: Path) -> str:
    if not path:
        return msg("this place")
    if path[0] not in ROOTS and len(path) == 2:
        return msg("task {id}'s context", id=path[0])
    return ".".join(path)


def lack(value: Json, part: str) -> str:
    """Why a value has no such part, and what it has instead."""
    if isinstance(value, list):
        return msg(
            "is a list of {n}, without an item {part} (they count from 0)", n=len(value), part=part
        )
    if not isinstance(value, Mapping):
        return msg("is {kind}, without a part {part!r}", kind=_kind(value), part=part)
    meant = nearest(part, value)
    has = _listed(sorted(value))
    if meant is None:
        return msg("has no {part!r} ({has})", part=part, has=has)
    return msg("has no {part!r} ({has}); did you mean {meant!r}?", part=part, has=has, meant=meant)


def _listed(names: list[str]) -> str:
    if not names:
        return msg("it is empty")
    shown, more = ", ".join(names[:_NAMES_SHOWN]), len(names) - _NAMES_SHOWN
    listed = msg("{names} and {n} more", names=shown, n=more) if more > 0 else shown
    return msg("it has: {names}", names=listed)


def _kind(value: Json) -> str:
    match value:
        case None:
            return msg("null")
        case str():
            return msg("text")
        case bool():
            return msg("true or false")
        case _:
            return msg("a number")
