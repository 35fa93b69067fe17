"""Conversions: what a value at hand would be in the form that a tool's schema wants.

    "5" → 5    5 → "5"    "yes" → true    "x" → ["x"]    ["x"] → "x"    "office" → "Office"
    "31.12.2026" → "2026-12-31"    "5 kg" → 5000, where the schema says that it counts in grams

What the field takes as it is stays as it is. Whether the same is meant is for `spellings` and for
people to say: these are only proposals.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Final

from holdfast.forms.shapes import answer_problem
from holdfast.model.form import Field, FieldType, Option
from holdfast.model.values import Json
from holdfast.repair.mentions import only_near
from holdfast.repair.spellings import the_day
from holdfast.repair.units import Unit, in_unit, quantity, unit_of

_NUMBER: Final = re.compile(r"[+-]?(?:0|[1-9]\d{0,14})(?:\.\d{1,15})?", re.ASCII)
_TRUTHS: Final = {
    **dict.fromkeys(("true", "yes", "y", "on", "1", "是"), True),
    **dict.fromkeys(("false", "no", "n", "off", "0", "否"), False),
}


def converted(field: Field, value: Json, given: Unit | None = None) -> Json:
    """The value as the field takes it, or None; `given` is the unit of a bare number."""
    alone = isinstance(value, list) and len(value) == 1 and not _takes_lists(field)
    one = value[0] if alone else value
    for attempt in (one, *_attempts(field, one, given)) if alone else _attempts(field, one, given):
        if attempt is not None and answer_problem(field, attempt) is None:
            return attempt
    return None


def iso_date(value: Json) -> str | None:
    """The one day that a text means, as ISO 8601 has it."""
    day = the_day(value) if isinstance(value, str) else None
    return None if day is None else day.isoformat()


def _takes_lists(field: Field) -> bool:
    return field.type is FieldType.MULTISELECT or field.json in (True, "array")


def _attempts(field: Field, value: Json, given: Unit | None) -> Iterator[Json]:
    match field.type, value:
        case FieldType.NUMBER, str():
            yield _counted(field, _number(value), given)
            yield _measured(field, value)
        case FieldType.NUMBER, int() | float() if not isinstance(value, bool):
            yield _counted(field, value, given)
        case ((FieldType.TEXT | FieldType.TEXTAREA), int() | float()) if not (
            field.json or isinstance(value, bool)
        ):
            yield json.dumps(value)
        case FieldType.BOOLEAN, str() | int():
            yield _TRUTHS.get(str(value).strip().lower())
        case ((FieldType.RADIO | FieldType.SELECT), str() | int() | float()):
            yield nearest_option(field, str(value))
        case FieldType.MULTISELECT, _:
            yield _several(field, value if isinstance(value, list) else [value])
        case FieldType.TEXTAREA, str() | int() | float() if field.json == "array":
            yield [value]
        case FieldType.DATE, _:
            yield iso_date(value)
        case _:
            return


def nearest_option(field: Field, text: str) -> str | None:
    """The option that is meant, where only one can be: the same but for its spelling, the only one
    that contains the text or is contained in it, or the only one close to it."""
    options = [one for one in field.options if not one.requires_input]
    wanted = _plain(text)
    for close in (_same(options, wanted), _containing(options, wanted)):
        if close:
            return close[0].value if len(close) == 1 else None
    by_plain = {_plain(one.value): one.value for one in options}
    meant = only_near(wanted, by_plain)
    return None if meant is None else by_plain[meant]


def _same(options: Sequence[Option], wanted: str) -> list[Option]:
    return [one for one in options if wanted in (_plain(one.value), _plain(one.label))]


def _containing(options: Sequence[Option], wanted: str) -> list[Option]:
    plain = [(one, _plain(one.value)) for one in options]
    return [one for one, own in plain if wanted and own and (wanted in own or own in wanted)]


def _plain(text: str) -> str:
    return "".join(one for one in text.casefold() if one.isalnum())


def _several(field: Field, values: Sequence[Json]) -> Json:
    taken = {option.value for option in field.options}
    chosen = [
        one if isinstance(one, str) and one in taken else nearest_option(field, str(one))
        for one in values
    ]
    return None if None in chosen else list(dict.fromkeys(chosen))


def _number(text: str) -> Json:
    plain = text.strip()
    if not _NUMBER.fullmatch(plain):
        return None
    return float(plain) if "." in plain else int(plain)


def _counted(field: Field, number: Json, given: Unit | None) -> Json:
    """A bare number, in the field's unit where both are known to be of one kind."""
    if number is None or given is None:
        return number
    same = _in_unit_of(field, Fraction(str(number)), given)
    return number if same is None else same


def _measured(field: Field, text: str) -> Json:
    found = quantity(text)
    return None if found is None else _in_unit_of(field, *found)


def _in_unit_of(field: Field, number: Fraction, given: Unit) -> Json:
    wanted = unit_of(field.name, field.label, field.description)
    return None if wanted is None else in_unit(number, given, wanted)
