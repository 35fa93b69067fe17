"""A form's fields as pages show them: values, options, prices.

A field holds the argument of the call that is to be changed, else the plan's default; nothing
else is preselected, and a secret is never shown. A draft only decides which fields are asked: the
browser fills it in, so that it can tell what has changed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from holdfast.forms.validation import visible_fields
from holdfast.forms.values import allowed_options, chosen, longest
from holdfast.model.form import CHOICES, Field, FieldType, Form, Option
from holdfast.model.values import Json

_PRICE: Final = re.compile(r"\+?+(\D*+)(\d[\d,]*+(?:\.\d++)?+)(\D*+)")
_EMPTY: Final[Mapping[str, Json]] = {}


@dataclass(frozen=True, slots=True)
class Price:
    """A price as the plan writes it; totals add up `amount` per `unit`."""

    text: str
    amount: float | None = None
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Choice:
    """`text` is what was typed for an option that requires input; `notes` are its extras."""

    value: str
    label: str
    price: Price | None
    notes: tuple[str, ...]
    requires_input: bool
    chosen: bool
    text: str = ""


@dataclass(frozen=True, slots=True)
class FieldView:
    """`text` is the value of a text control, `yes` that of a boolean one."""

    id: str
    field: Field
    text: str
    yes: bool | None
    choices: tuple[Choice, ...]
    asked: bool

    @property
    def name(self) -> str:
        return self.field.name

    @property
    def label(self) -> str:
        return self.field.label or self.field.name

    @property
    def longest(self) -> int:
        return longest(self.field)

    @property
    def lines(self) -> bool:
        """Whether it needs a textarea: an input would lose line breaks."""
        text = self.field.type is FieldType.TEXT
        return self.field.type is FieldType.TEXTAREA or (text and "\n" in self.text)

    @property
    def empty(self) -> str:
        """Its value when it is emptied: an empty text or list, or none."""
        if self.field.type is FieldType.MULTISELECT:
            return "list"
        text = self.field.type in (FieldType.TEXT, FieldType.TEXTAREA)
        return "text" if text and not self.field.json else ""

    @property
    def priced(self) -> bool:
        return any(one.price and one.price.amount is not None for one in self.choices)


@dataclass(frozen=True, slots=True)
class FormView:
    fields: tuple[FieldView, ...]

    @property
    def priced(self) -> bool:
        return any(field.priced for field in self.fields)

    @property
    def conditional(self) -> bool:
        return any(field.field.visible_if for field in self.fields)


def form_view(
    form: Form,
    prefix: str,
    draft: Mapping[str, Json] | None = None,
    args: Mapping[str, Json] = _EMPTY,
) -> FormView:
    """`prefix` begins the ids; `args` is the call that the form changes."""
    asked = {field.name for field in visible_fields(form, draft or {})}
    views = (
        _view(field, f"{prefix}-f{number}", _held(field, args), field.name in asked)
        for number, field in enumerate(form.fields)
    )
    return FormView(tuple(views))


def _held(field: Field, args: Mapping[str, Json]) -> Json:
    if field.type is FieldType.SECRET:
        return None
    if field.name not in args:
        return field.default
    value = args[field.name]
    return _written(value) if field.json else _as_chosen(field, value)


def _written(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


def _as_chosen(field: Field, value: Json) -> Json:
    """The choice behind a tool's argument; a typed text has lost its option."""
    if field.type not in CHOICES:
        return value
    if isinstance(value, list):
        return [_as_chosen(field, one) for one in value]
    known = {option.value for option in field.options}
    own = next((option for option in field.options if option.requires_input), None)
    return value if value in known or own is None else {"value": own.value, "text": value}


def taken(field: Field, value: Json) -> tuple[Choice, ...]:
    """The choices behind an answer, in the form's order."""
    return tuple(one for one in (_choice(option, value) for option in field.options) if one.chosen)


def _view(field: Field, id: str, held: Json, asked: bool) -> FieldView:  # noqa: A002
    plain = field.type not in CHOICES and field.type is not FieldType.BOOLEAN
    return FieldView(
        id=id,
        field=field,
        text=_text(held) if plain else "",
        yes=held if isinstance(held, bool) and not plain else None,
        choices=tuple(_choice(option, held) for option in allowed_options(field)),
        asked=asked,
    )


def _text(held: Json) -> str:
    if held is None:
        return ""
    return held if isinstance(held, str) else json.dumps(held, ensure_ascii=False)


def _choice(option: Option, held: Json) -> Choice:
    picked: Sequence[Json] = held if isinstance(held, list) else [held]
    mine = [one for one in picked if chosen(one) == option.value]
    extras = {name: extra for name, extra in option.extras.items() if extra not in (None, "")}
    price = extras.pop("price", None)
    return Choice(
        value=option.value,
        label=option.label or option.value,
        price=None if price is None else price_of(price),
        notes=tuple(f"{name}: {_text(extra)}" for name, extra in extras.items()),
        requires_input=option.requires_input,
        chosen=bool(mine),
        text=_own_text(mine),
    )


def _own_text(mine: Sequence[Json]) -> str:
    texts = (one.get("text") for one in mine if isinstance(one, Mapping))
    return next((text for text in texts if isinstance(text, str)), "")


def price_of(price: Json) -> Price:
    """A price with an amount has one number, and may have a unit before or after it."""
    text = _text(price)
    found = _PRICE.fullmatch(text)
    if found is None:
        return Price(text)
    before, digits, after = found.groups()
    return Price(text, float(digits.replace(",", "")), f"{before.strip()}#{after.strip()}")
