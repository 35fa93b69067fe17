"""Forms: what a person answered, checked field by field.

A field is asked when its `visible_if` holds over the answers. There a choice counts as the option
that was chosen, not as the text that came with it; a default counts where nothing was given; and a
field that is itself not asked counts as empty for the fields below it. An answer to a field that is
not asked is an error: to drop it would lose what a person typed.

Nothing given at all lets the default speak. Something emptied on purpose does not: a cleared
optional field is left out, a cleared required one is still required. Only a `nullable` field takes
null as a value.

Changes to what is there already are judged as they were sent: there an empty text is an empty text,
and what the field does not take is refused, never left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from dataclasses import field as attribute
from itertools import islice
from typing import Final, NoReturn

from holdfast.errors import InvalidAnswer, InvalidValue
from holdfast.forms.patterns import MATCH_BUDGET
from holdfast.forms.secrets import is_reference
from holdfast.forms.values import Refusal, chosen, clean, cost, is_empty
from holdfast.i18n.message import msg
from holdfast.language import conditions
from holdfast.language.spelling import (
    LONGEST_NAME_SHOWN,
    MOST_UNKNOWN,
    printable,
    remedy,
)
from holdfast.language.strict import strict_json
from holdfast.model.form import CHOICES, Field, FieldType, Form
from holdfast.model.values import Json

_SECRET: Final = FieldType.SECRET
_NOTHING: Final = object()


@dataclass(frozen=True, slots=True)
class Validated:
    """What fits, as the tool receives it, and one message for each field that does not."""

    values: dict[str, Json] = attribute(default_factory=dict)
    errors: dict[str, str] = attribute(default_factory=dict)

    def accepted(self) -> dict[str, Json]:
        """The values; InvalidAnswer where something does not fit."""
        if self.errors:
            raise InvalidAnswer(msg("the answer does not fit the form"), self.errors)
        return self.values


def validate(form: Form, data: Mapping[str, Json], *, partial: bool = False) -> Validated:
    """Checks `data`; with `partial` nothing need be complete, and no default is filled in."""
    asked = {field.name for field in visible_fields(form, data)}

    def settled(field: Field) -> object:
        return _settle(field, data, partial) if field.name in asked else _unasked(field, data)

    return _judged(form, data, settled)


def validate_changes(form: Form, data: Mapping[str, Json]) -> Validated:
    """Checks what is to replace values that are there already; the rest stays as it is."""
    return _judged(form, data, lambda field: _changed(field, data))


def _judged(form: Form, data: Mapping[str, Json], settled: Callable[[Field], object]) -> Validated:
    result = Validated(errors=_unknown_fields(form, data) | overlong(form, data))
    for field in form.fields:
        if field.name in result.errors:
            continue
        try:
            value = settled(field)
            if value is not _NOTHING:
                result.values[field.name] = value
        except Refusal as refusal:
            result.errors[field.name] = str(refusal)
    return result


def overlong(form: Form, data: Mapping[str, Json]) -> dict[str, str]:
    """The fields whose texts would make the form's patterns work for too long, all together."""
    left, errors = MATCH_BUDGET, {}
    for field in form.fields:
        left -= (wanted := cost(field, data.get(field.name)))
        if wanted and left < 0:
            errors[field.name] = msg(
                "this form's texts are too long for its patterns: shorten this one"
            )
    return errors


def refuse_overlong(form: Form, data: Mapping[str, Json]) -> None:
    if errors := overlong(form, data):
        raise InvalidAnswer(msg("the answer does not fit the form"), errors)


def unsealed(form: Form, data: Mapping[str, Json]) -> dict[str, str]:
    """What is raw in secret fields: it belongs in the vault, and only its reference here."""
    return {
        field.name: msg("this is a secret: only a reference to it may be recorded")
        for field in form.fields
        if field.type is _SECRET
        and not is_empty(field, data.get(field.name))
        and not is_reference(data[field.name])
    }


def visible_fields(form: Form, data: Mapping[str, Json]) -> tuple[Field, ...]:
    """The fields that are asked, given the answers so far."""
    if not any(field.visible_if for field in form.fields):
        return form.fields
    answers = {field.name: _seen(field, data) for field in form.fields}
    visible = []
    for field in form.fields:
        if field.visible_if is None or _holds(field.visible_if, answers):
            visible.append(field)
        else:
            answers[field.name] = None
    return tuple(visible)


def answers_asked(field: Field) -> set[str]:
    """The fields that the field's condition looks at."""
    paths = conditions.parse(field.visible_if).paths if field.visible_if else ()
    return {path[1] for path in paths if path[0] == "values" and len(path) > 1}


@dataclass(frozen=True, slots=True)
class _Answers:
    """The facts of a form: there are answers, and no tasks."""

    names: Mapping[str, Json]

    def status_of(self, task_id: str) -> NoReturn:
        raise KeyError(task_id)

    def context_of(self, task_id: str) -> NoReturn:
        raise KeyError(task_id)


def _holds(condition: str, answers: Mapping[str, Json]) -> bool:
    facts = _Answers({"values": answers})
    return conditions.holds(conditions.parse(condition), (), facts)


def _seen(field: Field, data: Mapping[str, Json]) -> Json:
    try:
        value = strict_json(data.get(field.name, field.default))
    except InvalidValue:
        return None
    return chosen(value) if field.type in CHOICES else value


def _settle(field: Field, data: Mapping[str, Json], partial: bool) -> object:
    if field.name in data:
        if field.nullable and data[field.name] is None:
            return None
        if not _left_empty(field, data[field.name]):
            return clean(field, data[field.name])
    elif field.default is not None and not partial:
        return clean(field, field.default)
    if field.required and not partial:
        raise Refusal(msg("this is required: please fill it in"))
    return _NOTHING


def _left_empty(field: Field, value: Json) -> bool:
    """A list without items is nothing chosen, but where JSON is asked it is a value."""
    return is_empty(field, value) and not (field.json and value == [])


def _changed(field: Field, data: Mapping[str, Json]) -> object:
    if field.name not in data:
        return _NOTHING
    value = None if data[field.name] is None else clean(field, data[field.name])
    if value is None and not field.nullable:
        raise Refusal(
            msg("null is not taken here: give a value, or leave it out to keep what is shown")
        )
    return value


def _unasked(field: Field, data: Mapping[str, Json]) -> object:
    if _left_empty(field, data.get(field.name)):
        return _NOTHING
    raise Refusal(
        msg(
            "this is not asked, because {condition} does not hold: leave it out",
            condition=field.visible_if,
        )
    )


def _unknown_fields(form: Form, data: Mapping[str, Json]) -> dict[str, str]:
    names = [field.name for field in form.fields]
    unknown = islice((name for name in data if name not in names), MOST_UNKNOWN)
    return {printable(name): _no_such_field(name, names) for name in unknown}


def _no_such_field(name: str, names: list[str]) -> str:
    known = msg("it has {names}", names=", ".join(names)) if names else msg("it has no fields")
    return msg(
        "the form has no such field: {hint}", hint=remedy(name[:LONGEST_NAME_SHOWN], names, known)
    )
