"""Forms: what a person is asked for, field by field."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from holdfast.model.record import TextEnum
from holdfast.model.values import Json


class FieldType(TextEnum):
    TEXT = "text"
    TEXTAREA = "textarea"
    NUMBER = "number"
    BOOLEAN = "boolean"
    RADIO = "radio"
    SELECT = "select"
    MULTISELECT = "multiselect"
    DATE = "date"
    DATETIME = "datetime"
    SECRET = "secret"  # noqa: S105
    FILE = "file"


CHOICES: Final = frozenset({FieldType.RADIO, FieldType.SELECT, FieldType.MULTISELECT})


@dataclass(frozen=True, slots=True)
class Option:
    """One choice of a radio, select or multiselect; `extras` are shown, never interpreted."""

    value: str
    label: str
    requires_input: bool = False
    extras: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Validation:
    """What a value must satisfy beyond its type; None means unbounded."""

    values: tuple[Json, ...] | None = None
    pattern: str | None = None
    minimum: float | None = None
    maximum: float | None = None
    min_length: int | None = None
    max_length: int | None = None
    min_items: int | None = None
    max_items: int | None = None
    not_before: str | None = None
    not_after: str | None = None


JsonType = Literal["array", "object"]


@dataclass(frozen=True, slots=True)
class Field:
    """One thing that is asked; `integer` narrows a number, `json` reads a textarea as JSON, of
    the type that it names, and where it is `nullable` null is a value."""

    name: str
    type: FieldType = FieldType.TEXT
    label: str = ""
    description: str = ""
    options: tuple[Option, ...] = ()
    required: bool = True
    default: Any = None
    visible_if: str | None = None
    validation: Validation = Validation()
    integer: bool = False
    json: bool | JsonType = False
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class Form:
    fields: tuple[Field, ...] = ()
