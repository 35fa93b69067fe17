"""What a tool's call lacks is asked with a form made from the tool's schema."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.errors import FormRejected
from holdfast.forms.from_tools import allows_null, check_enrichment, form_from_schema
from holdfast.forms.schemas import dump_form, json_schema
from holdfast.forms.shapes import parse_form
from holdfast.forms.validation import validate
from holdfast.model.form import Field, FieldType, Form, Option, Validation

AS_JSON = Field("x", FieldType.TEXTAREA, description="Write it as JSON.", json=True)


def tool(required: bool = True, /, **properties: Any) -> dict[str, Any]:
    names = list(properties) if required else []
    return {"type": "object", "properties": properties, "required": names}


def made(source: Any, own: dict[str, Any] | None = None, **root: Any) -> Field:
    """The field for one property, enriched by `own`."""
    enrich = Form() if own is None else parse_form({"x": own}, enriches=True)
    return form_from_schema(tool(x=source) | root, ["x"], enrich).fields[0]


def options(*values: str) -> tuple[Option, ...]:
    return tuple(Option(value, value) for value in values)


def test_only_the_named_arguments_are_asked_in_the_order_named() -> None:
    schema = tool(a={"type": "string"}, b={"type": "string"}, c={"type": "string"})
    assert form_from_schema(schema, ["c", "a"], Form()) == Form((Field("c"), Field("a")))


def test_what_the_tool_does_not_require_may_be_left_empty() -> None:
    assert made({"type": "string"}).required
    assert not form_from_schema(tool(False, x={}), ["x"], Form()).fields[0].required
    assert not form_from_schema({}, ["x"], Form()).fields[0].required


@pytest.mark.parametrize(
    ("source", "field"),
    [
        ({"type": "string"}, Field("x")),
        (
            {"type": "string", "title": "T", "description": "D"},
            Field("x", label="T", description="D"),
        ),
        ({}, Field("x")),
        ("nonsense", Field("x")),
        ({"type": "integer"}, Field("x", FieldType.NUMBER, integer=True)),
        ({"type": ["integer", "number"]}, Field("x", FieldType.NUMBER)),
        ({"type": "boolean"}, Field("x", FieldType.BOOLEAN)),
        ({"type": "string", "format": "date"}, Field("x", FieldType.DATE)),
        ({"type": "string", "format": "date-time"}, Field("x", FieldType.DATETIME)),
        ({"type": "string", "format": "password"}, Field("x", FieldType.SECRET)),
        (
            {"type": "string", "format": "password", "maxLength": 500},
            Field("x", FieldType.SECRET, validation=Validation(max_length=500)),
        ),
        ({"type": "string", "format": "email"}, Field("x")),
        ({"type": "string", "writeOnly": True}, Field("x", FieldType.SECRET)),
        ({"enum": ["a", "b"]}, Field("x", FieldType.RADIO, options=options("a", "b"))),
        ({"enum": ["a", None, ""]}, Field("x", FieldType.RADIO, options=options("a"))),
        ({"enum": list("abcdef")}, Field("x", FieldType.SELECT, options=options(*"abcdef"))),
        ({"const": "a"}, Field("x", FieldType.RADIO, options=options("a"))),
        (
            {"oneOf": [{"const": "a", "title": "Ah"}, {"const": "b"}]},
            Field("x", FieldType.RADIO, options=(Option("a", "Ah"), Option("b", "b"))),
        ),
        (
            {"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 1},
            Field(
                "x",
                FieldType.MULTISELECT,
                options=options("a", "b"),
                validation=Validation(max_items=1),
            ),
        ),
        (
            {"enum": [1, 2]},
            Field("x", FieldType.NUMBER, integer=True, validation=Validation(values=(1, 2))),
        ),
        ({"enum": [1, 2.5]}, Field("x", FieldType.NUMBER, validation=Validation(values=(1, 2.5)))),
        ({"const": True}, Field("x", FieldType.BOOLEAN, validation=Validation(values=(True,)))),
        ({"type": "object"}, replace(AS_JSON, json="object")),
        ({"properties": {"a": {}}}, AS_JSON),
        ({"type": ["array", "null"], "items": {}}, replace(AS_JSON, json="array")),
        ({"type": "array", "items": {"type": "string"}}, replace(AS_JSON, json="array")),
        ({"items": {"type": "string"}}, AS_JSON),
        ({"type": ["string", "integer"]}, AS_JSON),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, AS_JSON),
        ({"enum": ["a", 1]}, AS_JSON),
        ({"enum": [[1], {"a": 1}]}, AS_JSON),
    ],
)
def test_each_kind_of_argument_has_its_kind_of_field(source: Any, field: Field) -> None:
    assert made(source) == field


@pytest.mark.parametrize(
    "source",
    [
        {"type": ["integer", "null"]},
        {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        {"oneOf": [{"type": "null"}, {"$ref": "#/$defs/Count"}]},
        {"$ref": "#/$defs/Count"},
        {"$ref": "#/$defs/Again"},
        {"allOf": [{"$ref": "#/$defs/Count"}]},
        {"allOf": [{"type": "integer"}, {"title": "Count"}]},
        {"$ref": "#/$defs/a~1b"},
    ],
)
def test_references_and_an_optional_null_are_seen_through(source: Any) -> None:
    definitions = {
        "Count": {"type": "integer", "title": "Count"},
        "Again": {"anyOf": [{"$ref": "#/$defs/Count"}]},
        "a/b": {"type": "integer"},
    }
    field = made(source, **{"$defs": definitions})
    assert field.type is FieldType.NUMBER
    assert field.integer


def test_what_stands_beside_a_reference_counts_more() -> None:
    definitions = {"Count": {"type": "integer", "title": "Count"}}
    source = {"$ref": "#/$defs/Count", "title": "Seats"}
    assert made(source, **{"$defs": definitions}).label == "Seats"


@pytest.mark.parametrize(
    "reference", ["#/$defs/Nowhere", "#/required", "https://example.org/x", "#/properties/x"]
)
def test_a_reference_that_leads_nowhere_or_in_circles_is_asked_as_json(reference: str) -> None:
    assert made({"$ref": reference}) == AS_JSON


def test_bounds_come_along_as_far_as_a_form_can_say_them() -> None:
    assert made({"type": "number", "minimum": 1, "exclusiveMaximum": 2}).validation == (
        Validation(minimum=1, maximum=2)
    )
    assert made(
        {"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 10}
    ).validation == Validation(minimum=1, maximum=9)
    assert made(
        {"type": "string", "minLength": 2, "maxLength": 9, "pattern": "^a", "maximum": 3}
    ).validation == Validation(min_length=2, max_length=9, pattern="^a")


def test_bounds_that_mean_nothing_are_left_to_the_tool() -> None:
    for source in (
        {"type": "string", "pattern": "(?=look)", "minLength": "2"},
        {"type": "string", "minLength": 5, "maxLength": 2},
        {"type": "integer", "exclusiveMinimum": True},
    ):
        assert made(source).validation == Validation()


def test_a_long_text_has_room_but_not_without_end() -> None:
    assert made({"type": "string", "maxLength": 200}).type is FieldType.TEXT
    long = made({"type": "string", "maxLength": 2_000})
    assert (long.type, long.validation.max_length) == (FieldType.TEXTAREA, 2_000)
    assert made({"type": "string", "maxLength": 10**9}).validation.max_length is None


def test_a_tools_default_fills_but_never_chooses() -> None:
    assert made({"type": "integer", "default": 3}).default == 3
    assert made({"type": "string", "default": ""}).default is None
    assert made({"type": "integer", "default": "three"}).default is None
    for source in (
        {"enum": ["a", "b"], "default": "a"},
        {"type": "boolean", "default": True},
        {"type": "string", "format": "password", "default": "1234"},
    ):
        assert made(source).default is None


def test_the_plan_of_the_design_enriches_the_tools_field() -> None:
    own = {
        "type": "radio",
        "label": "电脑型号",
        "options": [
            {"value": "MacBook Pro", "label": "MacBook Pro 14寸", "price": "¥18,999"},
            {"value": "custom", "label": "其他型号", "requires_input": True},
        ],
    }
    field = made({"type": "string", "title": "Computer Model", "description": "Which"}, own)
    assert field.type is FieldType.RADIO
    assert (field.label, field.description) == ("电脑型号", "Which")
    assert field.options[0].extras == {"price": "¥18,999"}
    answer = {"x": {"value": "custom", "text": "Framework 13"}}
    assert validate(Form((field,)), answer).values == {"x": "Framework 13"}


def test_a_plan_replaces_only_what_it_sets() -> None:
    source = {"type": "integer", "title": "Seats", "minimum": 1, "default": 2}
    assert made(source, {"validation": {"max": 9}}) == Field(
        "x",
        FieldType.NUMBER,
        label="Seats",
        default=2,
        integer=True,
        validation=Validation(minimum=1, maximum=9),
    )
    field = made(source, {"label": "How many", "default": 4, "required": False})
    assert (field.label, field.default, field.required) == ("How many", 4, False)


def test_a_condition_holds_back_a_field_only_if_the_form_asks_what_it_looks_at() -> None:
    schema = tool(kind={"enum": ["standard", "custom"]}, why={"type": "string"})
    enrich = parse_form({"why": {"visible_if": 'values.kind == "custom"'}}, enriches=True)
    both = form_from_schema(schema, ["kind", "why"], enrich)
    assert validate(both, {"kind": "standard"}).errors == {}
    alone = form_from_schema(schema, ["why"], enrich)
    assert list(validate(alone, {}).errors) == ["why"]


def test_a_plan_may_require_what_the_tool_does_not() -> None:
    enrich = parse_form({"x": {"required": True}}, enriches=True)
    assert form_from_schema(tool(False, x={}), ["x"], enrich).fields[0].required


def test_plain_text_never_widens_what_the_tool_narrows() -> None:
    assert made({"type": "string", "format": "password"}, {"label": "PIN"}).type is FieldType.SECRET
    assert made({"enum": ["a"]}, {"type": "text"}).options == options("a")


def test_the_plan_says_how_a_choice_looks_and_what_is_preselected() -> None:
    source = {"enum": ["a", "b"], "default": "a"}
    assert made(source, {"type": "select"}).type is FieldType.SELECT
    assert made(source, {"default": "b"}).default == "b"
    assert made({"type": "string", "default": "a"}, {"options": ["a"]}).default is None


def test_a_list_stays_a_list_and_a_choice_needs_options() -> None:
    many = made({"type": "array", "items": {"enum": ["a", "b"]}}, {"options": ["b"]})
    assert (many.type, many.options) == (FieldType.MULTISELECT, options("b"))
    assert made({"type": "string"}, {"type": "radio"}).type is FieldType.TEXT


def test_a_plan_may_offer_choices_for_a_free_list() -> None:
    source = {"type": "array", "items": {"type": "string"}}
    field = made(source, {"type": "multiselect", "options": ["a", "b"]})
    assert (field.type, field.json) == (FieldType.MULTISELECT, False)


@pytest.mark.parametrize(
    ("source", "own"),
    [
        ({"type": "array", "items": {"type": "string"}}, {"type": "multiselect"}),
        ({"type": "array"}, {"type": "multiselect"}),
        ({"type": ["string", "integer"]}, {"type": "radio"}),
        ({"type": "object"}, {"type": "select"}),
    ],
)
@pytest.mark.parametrize("words", ["", "Which ones?"])
def test_a_choice_is_not_told_to_be_written_as_json(source: Any, own: Any, words: str) -> None:
    field = made({**source, "description": words}, {**own, "options": ["a", "b"]})
    assert (field.type, field.json) == (FieldType(own["type"]), False)
    assert field.description == words


@pytest.mark.parametrize(
    "source",
    [
        {"type": "array", "items": {"enum": ["a", "b"]}},
        {"items": {"enum": ["a", "b"]}},
        {"anyOf": [{"type": "array", "items": {"enum": ["a", "b"]}}, {"type": "null"}]},
        {"type": "array", "items": {"$ref": "#/$defs/Right"}, "uniqueItems": True},
        {"type": "array", "items": {"anyOf": [{"const": "a"}, {"const": "b"}]}},
        {"type": ["array", "null"], "items": {"type": "string", "enum": ["a", "b"]}},
    ],
)
def test_a_list_of_known_texts_is_a_multiselect_however_it_is_said(source: Any) -> None:
    field = made(source, **{"$defs": {"Right": {"type": "string", "enum": ["a", "b"]}}})
    assert (field.type, field.json, field.description) == (FieldType.MULTISELECT, False, "")
    assert field.options == options("a", "b")


def test_a_person_is_told_to_write_json_in_the_plans_words_too() -> None:
    assert made({"type": "object"}, {"description": "Floors."}).description == (
        "Floors. Write it as JSON."
    )
    assert made({"type": "object"}, {"label": "F"}).description == "Write it as JSON."


def test_rules_of_the_tool_that_no_longer_apply_go() -> None:
    assert made({"type": "string", "maxLength": 5}, {"options": ["a"]}).validation == Validation()


def enrichment_problems(schema: dict[str, Any], **fields: Any) -> dict[str, str]:
    with pytest.raises(FormRejected) as caught:
        check_enrichment(schema, parse_form(fields, enriches=True))
    return {problem.place: problem.message for problem in caught.value.problems}


def test_an_author_hears_beforehand_what_does_not_go_together() -> None:
    schema = tool(
        seats={"type": "integer", "minimum": 5},
        pin={"type": "string", "format": "password"},
        name={"type": "string"},
    )
    assert enrichment_problems(
        schema,
        seats={"default": "many", "validation": {"max": 3}},
        pin={"default": "1234"},
        name={"validation": {"min": 1}},
        nmae={},
    ) == {
        "nmae": "the tool has no argument nmae: did you mean name?",
        "seats.validation.min": "is beyond max, which is 3: nothing would fit",
        "seats.default": 'give a whole number; got "many"',
        "pin.default": "a secret has no default: it would stand in the plan for all to read",
        "name.validation.min": "means nothing for a field of type text",
    }
    assert enrichment_problems({}, a={}) == {"a": "the tool has no argument a: it has none"}
    assert enrichment_problems(schema, name={"visible_if": "values.seat > 1"}) == {
        "name.visible_if": "the tool has no argument seat: did you mean seats?"
    }


def test_a_sound_enrichment_passes_and_an_open_tool_takes_any_name() -> None:
    check_enrichment(tool(x={"type": "integer"}), parse_form({"x": {"default": 3}}, enriches=True))
    check_enrichment({"additionalProperties": True}, parse_form(["anything"]))


def test_a_run_can_ask_even_if_the_enrichment_is_not_sound() -> None:
    field = made({"type": "integer", "minimum": 5}, {"default": "x", "validation": {"max": 3}})
    assert field == Field("x", FieldType.NUMBER, integer=True)


def test_what_a_form_exports_can_be_asked_again() -> None:
    form = parse_form(
        {
            "model": {"options": [{"value": "mac", "label": "MacBook"}, "dell"]},
            "perks": {"type": "multiselect", "options": ["a", "b"]},
            "seats": {"type": "number", "integer": True, "validation": {"min": 1}},
            "start": {"type": "date"},
        }
    )
    again = form_from_schema(json_schema(form), [field.name for field in form.fields], Form())
    kinds = [(field.type, field.options, field.integer) for field in form.fields]
    assert [(field.type, field.options, field.integer) for field in again.fields] == kinds


keywords = st.sampled_from(
    [
        "type",
        "enum",
        "const",
        "anyOf",
        "oneOf",
        "allOf",
        "$ref",
        "items",
        "default",
        "minimum",
        "maxLength",
        "pattern",
        "title",
        "required",
        "properties",
    ]
)
words = st.sampled_from(["string", "integer", "array", "null", "#", "#/properties/x", "x", ""])
schemas = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keywords, inner, max_size=4),
    max_leaves=12,
)


def test_values_that_no_answer_could_be_are_left_out() -> None:
    mixed, none = tool(x={"type": "string", "enum": ["a", 1, False]}), {"enum": [False]}
    [field] = form_from_schema(mixed, ["x"], Form()).fields
    assert field.validation.values == ("a",)
    [field] = form_from_schema(tool(x={"type": "string", **none}), ["x"], Form()).fields
    assert field.validation.values is None


@given(schemas, schemas)
@example(source={"type": "string", "const": False}, other=None)
def test_any_schema_gives_a_form_that_can_be_asked(source: Any, other: Any) -> None:
    form = form_from_schema(tool(x=source, y=other), ["x", "y"], Form())
    assert [field.name for field in form.fields] == ["x", "y"]
    assert parse_form(dump_form(form)) == form


@pytest.mark.parametrize(
    ("source", "allowed"),
    [
        ({"type": "null"}, True),
        ({"type": ["string", "null"]}, True),
        ({"type": "string"}, False),
        ({"type": ["string", "integer"]}, False),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, True),
        ({"oneOf": [{"type": "string"}, {"enum": [None]}]}, True),
        ({"anyOf": [{"type": "string"}, {"minLength": 1}, True]}, False),
        ({"enum": ["a", None]}, True),
        ({"enum": ["a", 0]}, False),
        ({"type": "string", "enum": ["a", None]}, False),
        ({"const": None}, True),
        ({"const": 0}, False),
        ({"$ref": "#/$defs/maybe"}, True),
        ({"$ref": "#/$defs/text"}, False),
        ({"$ref": "#/$defs/circle"}, False),
        ({"$ref": "#/$defs/nowhere"}, False),
        ({"$ref": "elsewhere.json"}, False),
        ({"anyOf": [{"type": "string"}, {"$ref": "#/$defs/maybe"}]}, True),
        ({"allOf": [{"$ref": "#/$defs/maybe"}, {"minLength": 1}]}, True),
        ({"allOf": [{"$ref": "#/$defs/maybe"}, {"type": "string"}]}, False),
        ({}, False),
        ({"type": 5, "enum": 5, "anyOf": 5, "$ref": 5}, False),
    ],
    ids=repr,
)
def test_null_is_a_value_only_where_the_schema_says_so(
    source: dict[str, Any], allowed: bool
) -> None:
    definitions = {
        "maybe": {"type": ["string", "null"]},
        "text": {"type": "string"},
        "circle": {"anyOf": [{"$ref": "#/$defs/circle"}, {"type": "string"}]},
    }
    schema = {"properties": {"x": source}, "$defs": definitions}
    assert allows_null(schema, "x") is allowed
    assert not allows_null(schema, "y")
