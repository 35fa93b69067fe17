"""Forms as JSON: the shape that `shapes` reads, and JSON Schema (draft 2020-12).

What JSON Schema can say is said in its words, the rest in `x-holdfast-*` keys. A choice lists its
options as `oneOf`; one that asks for its own text is the object `{"value", "text"}`. A field that
is only sometimes asked, or that has a default, is never in `required`.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Final, assert_never

from holdfast.forms.values import (
    FILE_PREFIX,
    LONGEST_FILE_REFERENCE,
    allowed_options,
    longest,
)
from holdfast.model.form import Field, FieldType, Form, Option, Validation

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

FIELD_KEYS: Final = tuple(each.name for each in fields(Field) if each.name != "name")
_SHORT: Final = {"minimum": "min", "maximum": "max"}
RULE_KEYS: Final = {_SHORT.get(each.name, each.name): each.name for each in fields(Validation)}

KEYWORDS: Final = {
    "pattern": "pattern",
    "min": "minimum",
    "max": "maximum",
    "min_length": "minLength",
    "max_length": "maxLength",
    "min_items": "minItems",
    "max_items": "maxItems",
    "not_before": "x-holdfast-not-before",
    "not_after": "x-holdfast-not-after",
}


def dump_form(form: Form) -> dict[str, Any]:
    """The shape that `shapes.parse_form` reads; what has its usual value is left out."""
    return {field.name: _dump_field(field) for field in form.fields}


def _dump_field(field: Field) -> dict[str, Any]:
    always = {"type": field.type.value, "required": field.required}
    sometimes = {
        "label": field.label,
        "description": field.description,
        "options": [_dump_option(option) for option in field.options],
        "visible_if": field.visible_if,
        "validation": _dump_validation(field),
        "integer": field.integer,
        "json": field.json,
        "nullable": field.nullable,
    }
    shape = always | {key: value for key, value in sometimes.items() if value}
    if field.default is not None:
        shape["default"] = field.default
    return {key: shape[key] for key in FIELD_KEYS if key in shape}


def _dump_option(option: Option) -> dict[str, Any]:
    shape = {"value": option.value, "label": option.label, **option.extras}
    return shape | {"requires_input": True} if option.requires_input else shape


def _dump_validation(field: Field) -> dict[str, Any]:
    rules = rules_of(field)
    if "values" in rules:
        return {"type": "enum", **rules, "values": list(rules["values"])}
    return rules


def rules_of(field: Field) -> dict[str, Any]:
    """The rules that are set, by their key in the shape."""
    rules = {key: getattr(field.validation, name) for key, name in RULE_KEYS.items()}
    return {key: rule for key, rule in rules.items() if rule is not None}


def json_schema(form: Form) -> dict[str, Any]:
    """What answers to the form look like."""
    return {
        "$schema": DIALECT,
        "type": "object",
        "properties": {field.name: _property(field) for field in form.fields},
        "required": [field.name for field in form.fields if _always_given(field)],
        "additionalProperties": False,
    }


def _always_given(field: Field) -> bool:
    return field.required and field.visible_if is None and field.default is None


def _property(field: Field) -> dict[str, Any]:
    notes = {
        "title": field.label,
        "description": field.description,
        "x-holdfast-type": field.type.value,
        "x-holdfast-visible-if": field.visible_if,
    }
    value = _value_schema(field)
    taken = {"anyOf": [value, {"type": "null"}]} if field.nullable else value
    schema = {key: note for key, note in notes.items() if note} | taken
    return schema if field.default is None else schema | {"default": field.default}


def _value_schema(field: Field) -> dict[str, Any]:
    match field.type:
        case FieldType.RADIO | FieldType.SELECT:
            return {"oneOf": _options(field)}
        case FieldType.MULTISELECT:
            return _list_schema(field)
        case FieldType.NUMBER:
            kind = "integer" if field.integer else "number"
            return {"type": kind} | _enum(field) | _rules(field, "min", "max")
        case FieldType.BOOLEAN:
            return {"type": "boolean"} | _enum(field)
        case FieldType.DATE:
            return {"type": "string", "format": "date"} | _date_range(field)
        case FieldType.DATETIME:
            return {"type": "string", "format": "date-time"} | _date_range(field)
        case FieldType.FILE:
            reference = {"pattern": f"^{FILE_PREFIX}.", "maxLength": LONGEST_FILE_REFERENCE}
            return {"type": "string"} | reference
        case FieldType.SECRET:
            return _text_schema(field) | {"format": "password", "writeOnly": True}
        case FieldType.TEXT | FieldType.TEXTAREA:
            text = _text_schema(field) | _enum(field)
            return _json_schema(field, text) if field.json else text
        case _:
            assert_never(field.type)


def _json_schema(field: Field, text: dict[str, Any]) -> dict[str, Any]:
    """JSON is taken as it is or written in a text."""
    kinds = ["array", "boolean", "number", "object"] if field.json is True else field.json
    return {"anyOf": [{"type": kinds}, text | {"contentMediaType": "application/json"}]}


def _list_schema(field: Field) -> dict[str, Any]:
    schema = {"type": "array", "items": {"oneOf": _options(field)}, "uniqueItems": True}
    least = {"minItems": 1} if field.required else {}
    return schema | least | _rules(field, "min_items", "max_items")


def _text_schema(field: Field) -> dict[str, Any]:
    least = {"minLength": 1} if field.required else {}
    return {"type": "string"} | least | _text_rules(field)


def _text_rules(field: Field) -> dict[str, Any]:
    return _rules(field, "pattern", "min_length") | {"maxLength": longest(field)}


def _date_range(field: Field) -> dict[str, Any]:
    return _rules(field, "not_before", "not_after")


def _enum(field: Field) -> dict[str, Any]:
    values = field.validation.values
    return {} if values is None else {"enum": list(values)}


def _rules(field: Field, *keys: str) -> dict[str, Any]:
    return {KEYWORDS[key]: rule for key, rule in rules_of(field).items() if key in keys}


def _options(field: Field) -> list[dict[str, Any]]:
    return [_option(field, option) for option in allowed_options(field)]


def _option(field: Field, option: Option) -> dict[str, Any]:
    notes: dict[str, Any] = {"title": option.label}
    if option.extras:
        notes["x-holdfast-extras"] = dict(option.extras)
    chosen = {"const": option.value}
    if not option.requires_input:
        return chosen | notes
    text = {"type": "string", "minLength": 1} | _text_rules(field)
    return notes | {
        "type": "object",
        "properties": {"value": chosen, "text": text},
        "required": ["value", "text"],
        "additionalProperties": False,
    }
