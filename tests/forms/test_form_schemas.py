"""A form says in JSON Schema what its answers look like."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.forms.schemas import DIALECT, json_schema
from holdfast.forms.shapes import parse_form
from holdfast.language.strict import strict_json

JSON_TEXT = {
    "type": "string",
    "maxLength": 100_000,
    "contentMediaType": "application/json",
}


def schema_of(field: dict[str, Any]) -> dict[str, Any]:
    schema: dict[str, Any] = json_schema(parse_form({"x": field}))["properties"]["x"]
    assert strict_json(schema) == schema
    return schema


def test_a_form_is_an_object_of_its_fields() -> None:
    form = parse_form(
        {
            "name": {"label": "姓名", "description": "As in the passport"},
            "team": {"required": False},
            "seat": {"default": "A1"},
            "why": {"visible_if": 'values.team == "x"'},
        }
    )
    schema = json_schema(form)
    assert schema["$schema"] == DIALECT
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    assert schema["required"] == ["name"]
    assert schema["properties"]["name"] == {
        "title": "姓名",
        "description": "As in the passport",
        "x-holdfast-type": "text",
        "type": "string",
        "minLength": 1,
        "maxLength": 10_000,
    }
    assert schema["properties"]["seat"]["default"] == "A1"
    assert schema["properties"]["why"]["x-holdfast-visible-if"] == 'values.team == "x"'


def test_options_are_titled_constants_with_their_extras() -> None:
    schema = schema_of(
        {
            "type": "select",
            "options": [{"value": "mac", "label": "MacBook", "price": "¥18,999"}, "dell"],
        }
    )
    assert schema["oneOf"] == [
        {"const": "mac", "title": "MacBook", "x-holdfast-extras": {"price": "¥18,999"}},
        {"const": "dell", "title": "dell"},
    ]


def test_an_option_with_its_own_text_is_an_object() -> None:
    schema = schema_of(
        {
            "options": [{"value": "custom", "label": "Other", "requires_input": True}],
            "validation": {"pattern": "^[A-Z]", "max_length": 20},
        }
    )
    assert schema["oneOf"] == [
        {
            "title": "Other",
            "type": "object",
            "properties": {
                "value": {"const": "custom"},
                "text": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 20,
                    "pattern": "^[A-Z]",
                },
            },
            "required": ["value", "text"],
            "additionalProperties": False,
        }
    ]


def test_an_enum_leaves_only_the_options_it_allows() -> None:
    schema = schema_of({"options": ["a", "b"], "validation": {"values": ["b"]}})
    assert schema["oneOf"] == [{"const": "b", "title": "b"}]


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        (
            {"type": "number", "validation": {"min": 1, "max": 2.5, "values": [1, 2]}},
            {"type": "number", "minimum": 1, "maximum": 2.5, "enum": [1, 2]},
        ),
        ({"type": "number", "integer": True}, {"type": "integer"}),
        ({"type": "boolean"}, {"type": "boolean"}),
        (
            {"type": "date", "validation": {"not_before": "2025-01-01"}},
            {
                "type": "string",
                "format": "date",
                "x-holdfast-not-before": "2025-01-01",
            },
        ),
        ({"type": "datetime"}, {"type": "string", "format": "date-time"}),
        ({"type": "file"}, {"type": "string", "pattern": "^file:.", "maxLength": 200}),
        (
            {"type": "secret"},
            {
                "type": "string",
                "format": "password",
                "writeOnly": True,
                "minLength": 1,
                "maxLength": 10_000,
            },
        ),
        (
            {"type": "textarea", "required": False, "json": True},
            {"anyOf": [{"type": ["array", "boolean", "number", "object"]}, JSON_TEXT]},
        ),
        (
            {"type": "textarea", "required": False, "json": "array"},
            {"anyOf": [{"type": "array"}, JSON_TEXT]},
        ),
        (
            {"type": "textarea", "required": False, "json": "object"},
            {"anyOf": [{"type": "object"}, JSON_TEXT]},
        ),
        (
            {"validation": {"values": ["a"], "min_length": 1, "max_length": 3, "pattern": "a"}},
            {"type": "string", "enum": ["a"], "minLength": 1, "maxLength": 3, "pattern": "a"},
        ),
        (
            {"type": "multiselect", "options": ["a", "b"], "validation": {"max_items": 2}},
            {
                "type": "array",
                "items": {"oneOf": [{"const": "a", "title": "a"}, {"const": "b", "title": "b"}]},
                "uniqueItems": True,
                "minItems": 1,
                "maxItems": 2,
            },
        ),
        (
            {"type": "multiselect", "options": ["a"], "required": False},
            {
                "type": "array",
                "items": {"oneOf": [{"const": "a", "title": "a"}]},
                "uniqueItems": True,
            },
        ),
    ],
)
def test_every_type_is_said_in_the_words_of_json_schema(
    field: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert schema_of(field) == {"x-holdfast-type": field.get("type", "text"), **expected}
