"""Names and values as pages list them: a call's arguments, an answer's data, a context."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from holdfast.console.views.form import Choice, taken
from holdfast.console.words import YES_NO
from holdfast.forms.secrets import is_reference
from holdfast.language.display import indented
from holdfast.model.form import CHOICES, Field, FieldType, Form
from holdfast.model.values import Json


@dataclass(frozen=True, slots=True)
class Fact:
    """A name and its value; `long` ones are shown as written, `secret` ones not at all.

    `label` is the form's, where it differs from the name. What was chosen in a form is shown in the
    form's words: `choices`, or `word`.
    """

    name: str
    text: str
    long: bool = False
    secret: bool = False
    label: str = ""
    choices: tuple[Choice, ...] = ()
    word: str = ""


def _is_same(label: str, name: str) -> bool:
    """Whether the label was made from the name, as `Order Id` of `order_id`."""
    first, second = ("".join(filter(str.isalnum, one.casefold())) for one in (label, name))
    return first == second


def labelled_facts(form: Form, values: Mapping[str, Json]) -> tuple[Fact, ...]:
    labels = {one.name: one.label for one in form.fields if not _is_same(one.label, one.name)}
    return tuple(replace(one, label=labels.get(one.name, "")) for one in facts(values))


def facts(values: Mapping[str, Json]) -> tuple[Fact, ...]:
    return tuple(fact_of(name, value) for name, value in values.items())


def fact_of(name: str, value: Json) -> Fact:
    if is_reference(value):
        return Fact(name, "", secret=True)
    if isinstance(value, Mapping) and value.keys() == {"value", "text"}:
        return Fact(name, str(value["text"]))
    if isinstance(value, str):
        return Fact(name, value, long="\n" in value)
    nested = isinstance(value, list | Mapping) and bool(value)
    return Fact(name, indented(value), long=nested)


def answered_fact(field: Field | None, name: str, value: Json) -> Fact:
    """A value of an answer, in the words of its form."""
    if field is None:
        return fact_of(name, value)
    fact = fact_of(field.label or name, value)
    if field.type is FieldType.BOOLEAN and isinstance(value, bool):
        return replace(fact, word=YES_NO["yes" if value else "no"])
    return replace(fact, choices=taken(field, value)) if field.type in CHOICES else fact
