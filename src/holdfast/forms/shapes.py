"""Form shapes: a form as its author writes it and as it travels, `{name: {type, label, …}}`.

The same shape stands in a plan's YAML, in a tool's `required_params` and on the wire; a plain list
of names asks for texts. Reading collects every problem, each with its path into the shape, so that
a checker can point at all of them at once. Unknown keys of a field are problems, since most are
misspelt; those of an option are its extras, which are shown and never interpreted.

A field without `type` is a text, or a choice if it has options (radio up to five, select beyond).
An option may be written as its bare value. Option values are texts: YAML's 1 and true are refused
rather than turned into "1" and "True". `schemas.dump_form` writes the shape, and what it writes is
read as the form again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence, Sized
from dataclasses import replace
from typing import Any, Final, TypeGuard

from holdfast.errors import ConditionError, FormRejected, InvalidValue
from holdfast.forms.patterns import (
    LARGEST_PROGRAMS,
    MATCH_BUDGET,
    is_usable,
    match_cost,
    programs,
)
from holdfast.forms.problems import Problems
from holdfast.forms.rules import check_rules, read_validation
from holdfast.forms.schemas import FIELD_KEYS
from holdfast.forms.validation import answers_asked
from holdfast.forms.values import Refusal, clean, echo, is_empty, texts
from holdfast.i18n.message import msg
from holdfast.language.conditions import parse
from holdfast.language.spelling import remedy
from holdfast.language.strict import strict_json
from holdfast.model.form import CHOICES, Field, FieldType, Form, JsonType, Option, Validation
from holdfast.model.values import Json

MOST_RADIO_OPTIONS: Final = 5
MOST_FIELDS: Final = 200
MOST_OPTIONS: Final = 1_000

_TYPES: Final = {each.value: each for each in FieldType}
OPTION_KEYS: Final = ("value", "label", "requires_input")


def parse_form(raw: object, *, enriches: bool = False) -> Form:
    """The form, or FormRejected with all its problems.

    A form that `enriches` a tool's may leave out what the tool's schema says: its conditions may
    name the tool's other arguments, a choice needs no options of its own, and a field without a
    type is checked against the tool's (`from_tools.check_enrichment`).
    """
    problems = Problems()
    if isinstance(raw, Sized) and len(raw) > MOST_FIELDS:
        problems.add(
            msg("a form has at most {n} fields; this has {m:,}", n=MOST_FIELDS, m=len(raw))
        )
        raise FormRejected(problems.found)
    shape = {name: {} for name in raw} if _is_name_list(raw, problems) else raw
    if isinstance(shape, Mapping):
        _check_patterns(shape, problems)
        form = Form(tuple(_read_fields(shape, problems, enriches)))
        _check_visibility(form, problems, enriches)
    else:
        problems.add(msg("a form is fields by name, or a list of names"))
    if problems.found:
        raise FormRejected(problems.found)
    return form


def _is_name_list(raw: object, problems: Problems) -> TypeGuard[list[str]]:
    if not isinstance(raw, list) or not all(isinstance(name, str) for name in raw):
        return False
    for index, name in enumerate(raw):
        if name in raw[:index]:
            problems.at(index).add(msg("{name} is named twice", name=echo(name)))
    return True


def _check_patterns(shape: Mapping[Any, object], problems: Problems) -> None:
    """All of a form's patterns are used at once, for its defaults here and later for answers."""
    ruled = [one for one in map(_pattern_and_default, shape.values()) if is_usable(one[0])]
    matched = sum(match_cost(one, text) for one, default in ruled for text in texts(default))
    if programs(one for one, _ in ruled) > LARGEST_PROGRAMS or matched > MATCH_BUDGET:
        problems.add(
            msg(
                "the patterns of this form are too large together: let max_length bound the "
                "texts instead of counted repeats"
            )
        )
        raise FormRejected(problems.found)


def _pattern_and_default(raw: object) -> tuple[str, Any]:
    match raw:
        case {"validation": {"pattern": str(pattern)}, **rest}:
            return pattern, rest.get("default")
    return "", None


def _read_fields(
    shape: Mapping[Any, object], problems: Problems, enriches: bool
) -> Iterator[Field]:
    for name, raw in shape.items():
        if not isinstance(name, str) or not name.strip():
            problems.at(str(name)).add(msg("a field's name must be text, in quotes if need be"))
        elif not isinstance(raw, Mapping | None):
            problems.at(name).add(msg("a field is keys and values, such as {{type: text}}"))
        else:
            yield _read_field(name, raw or {}, problems.at(name), enriches)


def _read_field(name: str, raw: Mapping[str, Json], problems: Problems, enriches: bool) -> Field:
    known_before = len(problems.found)
    field = Field(name)
    try:
        plain = strict_json({name: dict(raw)})[name]
    except InvalidValue as error:
        problems.add(str(error))
        return field
    problems.known_keys(plain, FIELD_KEYS)
    field = _field_of(name, plain, problems)
    if not (enriches and _is_open(field)):
        _check_type(field, problems)
        check_rules(field, problems.at("validation"))
        if len(problems.found) == known_before:
            _check_values(field, problems)
    return field


def _is_open(field: Field) -> bool:
    """Whether a tool's schema may still say what the field holds."""
    return not field.options and (field.type is FieldType.TEXT or field.type in CHOICES)


def _field_of(name: str, raw: Mapping[str, Json], problems: Problems) -> Field:
    options = tuple(_read_options(raw.get("options"), problems.at("options")))
    field = Field(
        name=name,
        type=_read_type(raw, options, problems),
        label=problems.text(raw, "label"),
        description=problems.text(raw, "description"),
        options=options,
        required=problems.flag(raw, "required", default=True),
        visible_if=problems.text(raw, "visible_if") or None,
        validation=read_validation(raw.get("validation"), problems.at("validation")),
        integer=problems.flag(raw, "integer"),
        json=_read_json_type(raw, problems),
        nullable=problems.flag(raw, "nullable"),
    )
    default = raw.get("default")
    return field if is_empty(field, default) else replace(field, default=default)


def _read_json_type(raw: Mapping[str, Json], problems: Problems) -> bool | JsonType:
    match raw.get("json"):
        case "array":
            return "array"
        case "object":
            return "object"
        case str(word):
            problems.at("json").add(
                msg("must be true, array or object, not {value}", value=echo(word))
            )
            return False
    return problems.flag(raw, "json")


def _read_type(raw: Mapping[str, Json], options: Sequence[Option], problems: Problems) -> FieldType:
    word = problems.text(raw, "type")
    if word in _TYPES:
        return _TYPES[word]
    if word:
        hint = remedy(word, _TYPES, msg("use {names}", names=", ".join(_TYPES)))
        problems.at("type").add(
            msg("there is no field type {name}: {hint}", name=echo(word), hint=hint)
        )
    return type_of_choice(options) if options else FieldType.TEXT


def type_of_choice(options: Sequence[Option]) -> FieldType:
    return FieldType.RADIO if len(options) <= MOST_RADIO_OPTIONS else FieldType.SELECT


def _read_options(raw: Json, problems: Problems) -> Iterator[Option]:
    if not isinstance(raw, list | None):
        problems.add(msg("must be a list of options, not {value}", value=echo(raw)))
        return
    if raw and len(raw) > MOST_OPTIONS:
        problems.add(
            msg("a choice has at most {n:,} options; this has {m:,}", n=MOST_OPTIONS, m=len(raw))
        )
        return
    for index, each in enumerate(raw or ()):
        option = {"value": each} if not isinstance(each, dict) else each
        yield _read_option(option, problems.at(index))


def _read_option(raw: Mapping[str, Json], problems: Problems) -> Option:
    value = raw.get("value")
    if not isinstance(value, str) or not value.strip():
        scalar = isinstance(value, bool | int | float)
        hint = (
            msg("write {value}", value=json.dumps(json.dumps(value)))
            if scalar
            else msg("give it one")
        )
        problems.at("value").add(msg("an option's value must be text: {hint}", hint=hint))
        value = ""
    extras = {key: each for key, each in raw.items() if key not in OPTION_KEYS}
    label = problems.text(raw, "label", default=value)
    return Option(value, label, problems.flag(raw, "requires_input"), extras)


def _check_type(field: Field, problems: Problems) -> None:
    if field.type not in CHOICES and field.options:
        problems.at("options").add(
            msg(
                "a field of type {type} has none: use radio, select or multiselect", type=field.type
            )
        )
    if field.type in CHOICES and not field.options:
        problems.at("options").add(
            msg("a field of type {type} needs options to choose from", type=field.type)
        )
    if field.integer and field.type is not FieldType.NUMBER:
        problems.at("integer").add(msg("only a field of type number can be an integer"))
    if field.json and field.type is not FieldType.TEXTAREA:
        problems.at("json").add(msg("only a field of type textarea can hold JSON"))
    seen = set()
    for index, option in enumerate(field.options):
        if option.value and option.value in seen:
            problems.at("options", index, "value").add(
                msg("{value} is already an option", value=echo(option.value))
            )
        seen.add(option.value)


def _check_values(field: Field, problems: Problems) -> None:
    """The default and the enum must be answers that the field itself would take."""
    plain = replace(field, validation=Validation())
    options = [option.value for option in field.options]
    for index, value in enumerate(field.validation.values or ()):
        if field.type in CHOICES:
            problem = None if value in options else msg("{value} is no option", value=echo(value))
        else:
            problem = answer_problem(plain, value)
        if problem:
            problems.at("validation", "values", index).add(problem)
    problem = None if field.default is None else default_problem(field, field.default)
    if problem:
        problems.at("default").add(problem)


def default_problem(field: Field, default: Json) -> str | None:
    if field.type is FieldType.SECRET:
        return msg("a secret has no default: it would stand in the plan for all to read")
    if field.json and not isinstance(default, str):
        return msg(
            "{demand}; got {value}",
            demand=msg("give {what}", what=msg("text")),
            value=echo(default),
        )
    return answer_problem(field, default)


def answer_problem(field: Field, answer: Json) -> str | None:
    try:
        clean(field, answer)
    except Refusal as refusal:
        return str(refusal)
    return None


def _check_visibility(form: Form, problems: Problems, enriches: bool) -> None:
    names = [field.name for field in form.fields]
    for index, field in enumerate(form.fields):
        if field.visible_if is None:
            continue
        here = problems.at(field.name, "visible_if")
        try:
            condition = parse(field.visible_if)
        except ConditionError as error:
            here.add(str(error))
        else:
            wrong = answers_asked(field) - set(names[:index])
            for name in sorted(wrong & set(names) if enriches else wrong):
                here.add(msg("{name} is no field above this one", name=f"values.{name}"))
            if condition.task_ids or condition.asks_triggers:
                here.add(msg("a form knows only its own answers: ask about values.<field>"))
