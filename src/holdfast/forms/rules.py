"""Form rules: the `validation` of a field, which rules there are and which suit which type.

A rule that could never be met, or that means nothing for the field's type, is a problem of the
form: its author meant something else. Rules about text also suit a choice with an option that asks
for its own text; they are then about that text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from holdfast.forms.patterns import LONGEST_PATTERN, compile_pattern, most_text
from holdfast.forms.problems import Problems
from holdfast.forms.schemas import RULE_KEYS, rules_of
from holdfast.forms.values import (
    echo,
    longest,
    read_date,
    read_datetime,
)
from holdfast.i18n.message import msg
from holdfast.model.form import Field, FieldType, Validation
from holdfast.model.values import Json

_BOUNDS: Final = (
    ("min", "max"),
    ("min_length", "max_length"),
    ("min_items", "max_items"),
    ("not_before", "not_after"),
)
_TEXT_RULES: Final = frozenset({"pattern", "min_length", "max_length"})
_RULES_OF: Final[Mapping[FieldType, frozenset[str]]] = {
    FieldType.TEXT: _TEXT_RULES | {"values"},
    FieldType.TEXTAREA: _TEXT_RULES | {"values"},
    FieldType.NUMBER: frozenset({"values", "min", "max"}),
    FieldType.BOOLEAN: frozenset({"values"}),
    FieldType.RADIO: frozenset({"values"}),
    FieldType.SELECT: frozenset({"values"}),
    FieldType.MULTISELECT: frozenset({"values", "min_items", "max_items"}),
    FieldType.DATE: frozenset({"not_before", "not_after"}),
    FieldType.DATETIME: frozenset({"not_before", "not_after"}),
    FieldType.SECRET: _TEXT_RULES,
    FieldType.FILE: frozenset(),
}


def applicable_rules(field: Field) -> frozenset[str]:
    """The keys of `validation` that mean something for the field."""
    if field.json:
        return _TEXT_RULES
    own_text = any(option.requires_input for option in field.options)
    return _RULES_OF[field.type] | (_TEXT_RULES if own_text else frozenset())


def make_validation(rules: Mapping[str, Any]) -> Validation:
    """The opposite of `schemas.rules_of`."""
    return Validation(**{RULE_KEYS[key]: rule for key, rule in rules.items()})


def rule_problem(key: str, rule: Json) -> str | None:
    """What is wrong with one rule, whatever the field's type."""
    return _RULE_DEMANDS[key](rule)


def read_validation(raw: Json, problems: Problems) -> Validation:
    if not isinstance(raw, dict | None):
        problems.add(
            msg("must be keys and values, such as {{max_length: 80}}, not {value}", value=echo(raw))
        )
        return Validation()
    given = {key: rule for key, rule in (raw or {}).items() if rule is not None}
    problems.known_keys(given, ("type", *RULE_KEYS))
    if given.pop("type", "enum") != "enum":
        problems.at("type").add(msg('only "enum" is known; every other rule stands for itself'))
    elif raw and "type" in raw and "values" not in given:
        problems.at("values").add(msg("an enum needs its values"))
    return make_validation(dict(_read_rules(given, problems)))


def _read_rules(given: Mapping[str, Json], problems: Problems) -> Iterator[tuple[str, Any]]:
    for key in [key for key in RULE_KEYS if key in given]:
        demand = rule_problem(key, given[key])
        if demand is None:
            yield key, tuple(given[key]) if key == "values" else given[key]
        else:
            problems.at(key).add(demand)


def _demand_list(rule: Json) -> str | None:
    return None if isinstance(rule, list) and rule else msg("must be a list of the allowed values")


def _demand_pattern(rule: Json) -> str | None:
    if not isinstance(rule, str):
        return msg("must be a regular expression, as text")
    if len(rule) > LONGEST_PATTERN:
        return msg("must have at most {n} characters", n=LONGEST_PATTERN)
    try:
        compile_pattern(rule)
    except ValueError as error:
        return msg("is no regular expression that can be used: {reason}", reason=str(error))
    return None


def _demand_number(rule: Json) -> str | None:
    number = isinstance(rule, int | float) and not isinstance(rule, bool)
    return None if number else msg("must be a number, not {value}", value=echo(rule))


def _demand_count(rule: Json) -> str | None:
    count = isinstance(rule, int) and not isinstance(rule, bool) and rule >= 0
    return None if count else msg("must be a whole number from 0, not {value}", value=echo(rule))


def _demand_text(rule: Json) -> str | None:
    return (
        None
        if isinstance(rule, str)
        else msg("must be a date as text, not {value}", value=echo(rule))
    )


_RULE_DEMANDS: Final[Mapping[str, Callable[[Json], str | None]]] = {
    "values": _demand_list,
    "pattern": _demand_pattern,
    "min": _demand_number,
    "max": _demand_number,
    "min_length": _demand_count,
    "max_length": _demand_count,
    "min_items": _demand_count,
    "max_items": _demand_count,
    "not_before": _demand_text,
    "not_after": _demand_text,
}


def check_rules(field: Field, problems: Problems) -> None:
    rules = rules_of(field)
    suitable = applicable_rules(field)
    for key in [key for key in rules if key not in suitable]:
        problems.at(key).add(msg("means nothing for a field of type {type}", type=field.type))
    for low, high in _BOUNDS:
        if {low, high} <= suitable:
            _check_bounds(field, low, high, problems)
    _check_text_bound(rules, problems)


def _check_text_bound(rules: Mapping[str, Any], problems: Problems) -> None:
    if "pattern" in rules and rules.get("max_length", 0) > (most := most_text(rules["pattern"])):
        problems.at("max_length").add(
            msg(
                "must be at most {n:,} with this pattern: a text and its pattern are matched "
                "within bounds",
                n=most,
            )
        )


def _check_bounds(field: Field, low: str, high: str, problems: Problems) -> None:
    usual = {"max_length": longest(field), "max_items": len(field.options)}
    rules = usual | rules_of(field)
    of_moments = _MOMENT_READERS if low == "not_before" else {}
    read: Callable[[Any], Any] = of_moments.get(field.type, lambda rule: rule)
    bounds = {key: read(rules[key]) for key in (low, high) if key in rules}
    for key, bound in bounds.items():
        if bound is None:
            problems.at(key).add(
                msg(
                    "{value} is no {type}: write {example}",
                    value=echo(rules[key]),
                    type=field.type,
                    example=_EXAMPLES[field.type],
                )
            )
    if len(bounds) == 2 and None not in bounds.values() and bounds[low] > bounds[high]:
        problems.at(low).add(
            msg("is beyond {key}, which is {value}: nothing would fit", key=high, value=rules[high])
        )


_MOMENT_READERS: Final[Mapping[FieldType, Callable[[str], Any]]] = {
    FieldType.DATE: read_date,
    FieldType.DATETIME: read_datetime,
}
_EXAMPLES: Final = {
    FieldType.DATE: "2025-10-15",
    FieldType.DATETIME: "2025-10-15T10:30:00Z",
}
