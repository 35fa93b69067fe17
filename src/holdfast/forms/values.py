"""Field values: what a person gave for one field becomes what the tool receives, or is refused.

Values arrive as JSON and are taken at their word: "3" is no number and 1 is no yes. What fits comes
out as it went in, with two exceptions: an option that asks for its own text
(`{"value": "custom", "text": "…"}`) comes out as the text, and a text in a `json` field as the
value that it spells; any other value is taken there as it is. A refusal is written for the person
at the form: it says what is allowed, shows at most a short piece of what was given, and of a secret
nothing at all.

A text that a pattern is matched with is no longer than the pattern allows (`patterns`), whatever
its plan says.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from datetime import date, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, TypeVar

from holdfast.errors import InvalidValue
from holdfast.forms.patterns import MATCH_BUDGET, compile_pattern, match_cost, most_text
from holdfast.forms.secrets import is_reference
from holdfast.i18n.message import msg
from holdfast.language.strict import extent, load_json, strict_json
from holdfast.model.form import Field, FieldType, Option
from holdfast.model.values import Json

if TYPE_CHECKING:
    from pydantic_core import SchemaValidator

Moment = TypeVar("Moment", bound=date)

LONGEST_TEXT: Final = 10_000
LONGEST_TEXTAREA: Final = 100_000
LONGEST_FILE_REFERENCE: Final = 200
MOST_JSON_VALUES: Final = 10_000
FILE_PREFIX: Final = "file:"

_LARGEST_WHOLE: Final = 2**63 - 1
_LONGEST_ECHO: Final = 40
_MOST_NAMED: Final = 12
_CHARACTERS: Final = (msg("character"), msg("characters"))
_OPTIONS: Final = (msg("option"), msg("options"))
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_DATETIME: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?"
    r"([Zz]|[+-][0-9]{2}:[0-9]{2})"
)


class Refusal(ValueError):
    """Why a value does not fit its field, as told to the person who gave it."""


def clean(field: Field, value: object) -> Json:
    """What the tool receives for `value`; raises Refusal."""
    return _CLEANERS[field.type](field, _plain(field, value))


def is_empty(field: Field, value: object) -> bool:
    """Whether nothing was given: spaces alone say nothing, except in a secret."""
    if isinstance(value, str):
        return not (value if field.type is FieldType.SECRET else value.strip())
    return value is None or value == []


def chosen(answer: Json) -> Json:
    """The option behind an answer, which conditions compare, not the text given with it."""
    match answer:
        case {"value": str(value)}:
            return value
        case list():
            return [chosen(item) for item in answer]
    return answer


def longest(field: Field) -> int:
    """How many characters the field takes at most."""
    rules = field.validation
    usual = LONGEST_TEXTAREA if field.type is FieldType.TEXTAREA else LONGEST_TEXT
    most = usual if rules.max_length is None else rules.max_length
    return most if rules.pattern is None else min(most, most_text(rules.pattern))


def cost(field: Field, value: Json) -> int:
    """What it takes to match a value with the field's pattern, or to parse it, 0 if it is not
    even tried; in steps of a match."""
    pattern = field.validation.pattern
    if field.json:
        found = _values_in(value)
        return 0 if found > MOST_JSON_VALUES else found * MATCH_BUDGET // MOST_JSON_VALUES
    if pattern is None:
        return 0
    return sum(match_cost(pattern, text) for text in texts(value) if len(text) <= longest(field))


def _values_in(value: Json) -> int:
    """How many values a JSON field is given, in a text or as they are, up to one too many."""
    if isinstance(value, str):
        return extent(value.encode("utf-8", "surrogatepass"), MOST_JSON_VALUES).values
    found = [] if value is None else [value]
    for one in found:
        if isinstance(one, list | dict):
            found.extend(one.values() if isinstance(one, dict) else one)
        if len(found) > MOST_JSON_VALUES:
            break
    return len(found)


def texts(value: Json) -> Iterable[str]:
    """What of a value a pattern may be matched with."""
    match value:
        case str():
            yield value
        case {"text": str(text)}:
            yield text
        case list():
            for one in value:
                yield from texts(one)


def allowed_options(field: Field) -> tuple[Option, ...]:
    return tuple(option for option in field.options if _is_allowed(field, option))


def _is_allowed(field: Field, option: Option) -> bool:
    values = field.validation.values
    return values is None or option.value in values


def read_date(text: str) -> date | None:
    return _read_moment(_DATE, date.fromisoformat, text)


def read_datetime(text: str) -> datetime | None:
    """An RFC 3339 moment; one without an offset is none: it could be any of 24 hours."""
    return _read_moment(_DATETIME, datetime.fromisoformat, text.upper())


def echo(value: object) -> str:
    """A short, printable piece of what was given."""
    match value:
        case bool() | int() | float() | None:
            return json.dumps(value)
        case str():
            return _quote(value)
        case list():
            return msg("a list")
    return msg("an object")


def _plain(field: Field, value: object) -> Json:
    try:
        return strict_json(value)
    except InvalidValue as error:
        if field.type is FieldType.SECRET:
            raise Refusal(msg("give it as plain text")) from None
        raise Refusal(msg("this cannot be sent: {reason}", reason=str(error))) from None


def _text(field: Field, value: Json) -> Json:
    if field.json and not isinstance(value, str):
        _check_json(field, value)
        return _of_json_type(field, value)
    text = _require_text(field, value, msg("text"))
    return _of_json_type(field, _read_json(text)) if field.json else _among(field, text)


def _require_text(field: Field, value: Json, what: str) -> str:
    if not isinstance(value, str):
        raise _unlike(field, msg("give {what}", what=what), value)
    _check_length(field, value)
    _check_pattern(field, value)
    return value


def _check_length(field: Field, text: str) -> None:
    least, most = field.validation.min_length or 0, longest(field)
    if not least <= len(text) <= most:
        raise Refusal(
            msg(
                "give {span}; this has {n:,}",
                span=_count(least or None, most, _CHARACTERS),
                n=len(text),
            )
        )


def _check_pattern(field: Field, text: str) -> None:
    pattern = field.validation.pattern
    if pattern is not None and not _usable(pattern).isinstance_python(text):
        raise _unlike(field, msg("it must match the pattern {pattern}", pattern=pattern), text)


def _usable(pattern: str) -> SchemaValidator:
    try:
        return compile_pattern(pattern)
    except ValueError as error:
        # Kept from a time when larger ones were taken.
        raise Refusal(msg("its pattern cannot be used: {reason}", reason=str(error))) from None


def _of_json_type(field: Field, value: Json) -> Json:
    taken = {"array": list, "object": dict}.get(str(field.json), object)
    if isinstance(value, taken) or (value is None and field.nullable):
        return value
    raise _unlike(field, msg("give a JSON {kind}", kind=field.json), value)


def _check_json(field: Field, value: Json) -> None:
    """A value that came as it is keeps the rules of the text that spells it."""
    if _values_in(value) > MOST_JSON_VALUES:
        reason = msg("more than {n:,} values: send less at once", n=MOST_JSON_VALUES)
        raise Refusal(msg("this JSON cannot be used: {reason}", reason=reason))
    _require_text(field, json.dumps(value, ensure_ascii=False), msg("text"))


def _read_json(text: str) -> Json:
    try:
        return strict_json(load_json(text, MOST_JSON_VALUES))
    except InvalidValue as error:
        raise Refusal(msg("this JSON cannot be used: {reason}", reason=str(error))) from None
    except json.JSONDecodeError as error:
        raise Refusal(
            msg(
                "write it as JSON; line {line}, column {column}: {reason}",
                line=error.lineno,
                column=error.colno,
                reason=error.msg,
            )
        ) from None
    except (ValueError, RecursionError):
        raise Refusal(msg("write it as JSON, with shorter numbers and less nesting")) from None


def _number(field: Field, value: Json) -> Json:
    what = msg("a whole number") if field.integer else msg("a number")
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _unlike(field, msg("give {what}", what=what), value)
    if field.integer:
        if value != int(value) or abs(value) > _LARGEST_WHOLE:
            raise _unlike(field, msg("give a whole number of at most 64 bits"), value)
        value = int(value)
    _check_range(field, value)
    return _among(field, value)


def _check_range(field: Field, number: float) -> None:
    least, most = field.validation.minimum, field.validation.maximum
    if (least is not None and number < least) or (most is not None and number > most):
        raise _unlike(field, msg("give {what}", what=_span(least, most)), number)


def _boolean(field: Field, value: Json) -> Json:
    if not isinstance(value, bool):
        raise _unlike(field, msg("answer true or false"), value)
    return _among(field, value)


def _one_choice(field: Field, value: Json) -> Json:
    return _choose(field, value)[1]


def _several_choices(field: Field, value: Json) -> Json:
    if not isinstance(value, list):
        raise _unlike(
            field, msg("give a list with any of {names}", names=_named_options(field)), value
        )
    picked = dict(_choose_anew(field, value))
    rules = field.validation
    least, most = rules.min_items or 0, rules.max_items
    if len(picked) < least or (most is not None and len(picked) > most):
        raise Refusal(
            msg(
                "choose {span}; these are {n}",
                span=_count(least or None, most, _OPTIONS),
                n=len(picked),
            )
        )
    return list(picked.values())


def _choose_anew(field: Field, answers: list[Json]) -> Iterable[tuple[str, str]]:
    seen = set()
    for answer in answers:
        option, received = _choose(field, answer)
        if option in seen:
            raise Refusal(msg("choose {option} only once", option=_quote(option)))
        seen.add(option)
        yield option, received


def _choose(field: Field, answer: Json) -> tuple[str, str]:
    """The option's value, and what the tool receives for it."""
    value, text = _read_choice(field, answer)
    option = next((each for each in field.options if each.value == value), None)
    if option is None or not _is_allowed(field, option):
        raise _unlike(field, msg("choose one of {names}", names=_named_options(field)), value)
    if option.requires_input:
        return option.value, _own_text(field, option, text)
    if text:
        raise Refusal(
            msg(
                "{option} takes no text of its own: leave the text out", option=_quote(option.value)
            )
        )
    return option.value, option.value


def _read_choice(field: Field, answer: Json) -> tuple[Json, Json]:
    match answer:
        case str():
            return answer, None
        case {"value": value, **rest} if rest.keys() <= {"text"}:
            return value, rest.get("text")
    raise _unlike(field, msg("choose one of {names}", names=_named_options(field)), answer)


def _own_text(field: Field, option: Option, text: Json) -> str:
    if text is None or is_empty(field, text):
        value = json.dumps(option.value, ensure_ascii=False)
        raise Refusal(
            msg(
                '{option} needs a text: answer {{"value": {value}, "text": "…"}}',
                option=_quote(option.value),
                value=value,
            )
        )
    return _require_text(
        field, text, msg("the text of {option} as text", option=_quote(option.value))
    )


def _date(field: Field, value: Json) -> Json:
    return _moment(field, value, read_date, msg("a date as YYYY-MM-DD"))


def _datetime(field: Field, value: Json) -> Json:
    what = msg("a date and time with its offset, as 2025-10-15T10:30:00Z or …T10:30:00+08:00")
    return _moment(field, value, read_datetime, what)


def _moment(field: Field, value: Json, read: Callable[[str], Any], what: str) -> Json:
    moment = read(value) if isinstance(value, str) else None
    if moment is None:
        raise _unlike(field, msg("give {what}", what=what), value)
    first, last = field.validation.not_before, field.validation.not_after
    if (first and moment < read(first)) or (last and moment > read(last)):
        raise _unlike(field, _period(first, last), value)
    return value


def _period(first: str | None, last: str | None) -> str:
    if first and last:
        return msg("it must be from {first} to {last}", first=first, last=last)
    if first:
        return msg("it must be {first} or later", first=first)
    return msg("it must be {last} or earlier", last=last)


def _read_moment(shape: re.Pattern[str], read: Callable[[str], Moment], text: str) -> Moment | None:
    try:
        return read(text) if shape.fullmatch(text) else None
    except ValueError:
        return None


def _file(field: Field, value: Json) -> Json:
    if not isinstance(value, str) or not value.startswith(FILE_PREFIX) or value == FILE_PREFIX:
        raise _unlike(
            field,
            msg('give a file reference, which begins with "{prefix}"', prefix=FILE_PREFIX),
            value,
        )
    if len(value) > LONGEST_FILE_REFERENCE:
        raise Refusal(msg("a file reference has at most {n} characters", n=LONGEST_FILE_REFERENCE))
    return value


def _secret(field: Field, value: Json) -> Json:
    """What a reference stands for was judged when it was sealed."""
    return value if is_reference(value) else _require_text(field, value, msg("it as text"))


def _among(field: Field, value: Json) -> Json:
    values = field.validation.values
    if values is not None and value not in values:
        raise _unlike(
            field,
            msg("it must be one of {values}", values=_listed(map(echo, values), len(values))),
            value,
        )
    return value


def _unlike(field: Field, demand: str, value: Json) -> Refusal:
    if field.type is FieldType.SECRET:
        return Refusal(demand)
    return Refusal(msg("{demand}; got {value}", demand=demand, value=echo(value)))


def _named_options(field: Field) -> str:
    options = allowed_options(field)
    return _listed((_quote(option.value) for option in options), len(options))


def _listed(names: Iterable[str], count: int) -> str:
    shown, more = ", ".join(islice(names, _MOST_NAMED)), count - _MOST_NAMED
    return msg("{names} and {n} more", names=shown, n=more) if more > 0 else shown


def _span(least: float | None, most: float | None) -> str:
    least, most = map(_as_written, (least, most))
    if most is None:
        return msg("at least {least:,}", least=least)
    if least is None:
        return msg("at most {most:,}", most=most)
    return msg("between {least:,} and {most:,}", least=least, most=most)


def _as_written(number: float | None) -> float | None:
    """3 and not 3.0, as far as a float counts exactly."""
    if number is None or abs(number) >= 2**53 or number % 1:
        return number
    return int(number)


def _count(least: int | None, most: int | None, units: tuple[str, str]) -> str:
    """How many of something are wanted; `units` name one and several."""
    unit = units[(least if most is None else most) != 1]
    if most is None:
        return msg("at least {least:,} {unit}", least=least, unit=unit)
    if least is None:
        return msg("at most {most:,} {unit}", most=most, unit=unit)
    return msg("between {least:,} and {most:,} {unit}", least=least, most=most, unit=unit)


def _quote(text: str) -> str:
    short = text if len(text) <= _LONGEST_ECHO else text[: _LONGEST_ECHO - 1] + "…"
    return json.dumps(short, ensure_ascii=False).encode("utf-8", "backslashreplace").decode()


_CLEANERS: Final[dict[FieldType, Callable[[Field, Json], Json]]] = {
    FieldType.TEXT: _text,
    FieldType.TEXTAREA: _text,
    FieldType.NUMBER: _number,
    FieldType.BOOLEAN: _boolean,
    FieldType.RADIO: _one_choice,
    FieldType.SELECT: _one_choice,
    FieldType.MULTISELECT: _several_choices,
    FieldType.DATE: _date,
    FieldType.DATETIME: _datetime,
    FieldType.SECRET: _secret,
    FieldType.FILE: _file,
}
