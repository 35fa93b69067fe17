"""A form is read from its shape with all its problems at once, and written back the same."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import AuthorError, FormProblem, FormRejected
from holdfast.forms.schemas import dump_form
from holdfast.forms.shapes import parse_form
from holdfast.language.strict import strict_json
from holdfast.model.form import CHOICES, Field, FieldType, Form, Option, Validation

SEED = {
    "computer_model": {
        "type": "radio",
        "label": "电脑型号",
        "description": "请选择所需的电脑型号",
        "options": [
            {"value": "MacBook Pro", "label": "MacBook Pro 14寸", "price": "¥18,999"},
            {"value": "ThinkPad X1", "label": "ThinkPad X1 Carbon", "price": "¥12,999"},
            {"value": "Dell XPS", "label": "Dell XPS 13", "price": "¥9,999"},
            {"value": "custom", "label": "其他型号（需填写）"},
        ],
        "required": True,
        "validation": {
            "type": "enum",
            "values": ["MacBook Pro", "ThinkPad X1", "Dell XPS", "custom"],
        },
    }
}


def problems(raw: Any, **options: Any) -> dict[str, str]:
    with pytest.raises(FormRejected) as caught:
        parse_form(raw, **options)
    return {problem.place: problem.message for problem in caught.value.problems}


def problem(field: Any) -> tuple[str, str]:
    found = problems({"x": field})
    assert len(found) == 1
    return found.popitem()


def only_field(raw: Any) -> Field:
    return parse_form({"x": raw}).fields[0]


def test_the_seeds_shape_is_read_and_written_back_to_the_letter() -> None:
    form = parse_form(SEED)
    assert dump_form(form) == SEED
    assert list(dump_form(form)["computer_model"]) == list(SEED["computer_model"])
    macbook = form.fields[0].options[0]
    assert macbook == Option("MacBook Pro", "MacBook Pro 14寸", False, {"price": "¥18,999"})


def test_a_list_of_names_asks_for_texts() -> None:
    form = parse_form(["computer_model", "colour"])
    assert form == Form((Field("computer_model"), Field("colour")))


def test_every_key_finds_its_place() -> None:
    field = only_field(
        {
            "type": "number",
            "label": "Seats",
            "description": "How many",
            "required": False,
            "default": 2,
            "integer": True,
            "validation": {"min": 1, "max": 9},
        }
    )
    assert field == Field(
        "x",
        FieldType.NUMBER,
        label="Seats",
        description="How many",
        required=False,
        default=2,
        integer=True,
        validation=Validation(minimum=1, maximum=9),
    )


def test_a_form_is_written_in_full_but_without_what_goes_without_saying() -> None:
    raw = {
        "model": {"options": ["a", {"value": "b", "label": "B", "requires_input": True}]},
        "seats": {"type": "number", "default": 0, "validation": {"max": 9}},
        "why": {"visible_if": 'values.model == "b"'},
    }
    assert dump_form(parse_form(raw)) == {
        "model": {
            "type": "radio",
            "options": [
                {"value": "a", "label": "a"},
                {"value": "b", "label": "B", "requires_input": True},
            ],
            "required": True,
        },
        "seats": {"type": "number", "required": True, "default": 0, "validation": {"max": 9}},
        "why": {"type": "text", "required": True, "visible_if": 'values.model == "b"'},
    }


def test_what_is_left_out_or_null_has_its_usual_value() -> None:
    for raw in (None, {}, {"label": None, "required": None, "options": None, "validation": None}):
        assert only_field(raw) == Field("x")
    assert only_field({"default": ""}) == Field("x")


def test_options_make_a_field_a_choice_and_may_be_bare_values() -> None:
    few = only_field({"options": ["small", "large"]})
    assert few.type is FieldType.RADIO
    assert few.options == (Option("small", "small"), Option("large", "large"))
    assert only_field({"options": list("abcdef")}).type is FieldType.SELECT


def test_all_problems_are_told_at_once_each_with_its_path() -> None:
    raw = {
        "computer_model": {
            "type": "radio",
            "options": [{"value": "a"}, "b", {"value": 14, "label": "Fourteen"}],
        },
        "colour": {"type": "raido", "lable": "Colour"},
        "seats": {"type": "number", "validation": {"min": 3, "max": 2}},
    }
    with pytest.raises(AuthorError) as caught:
        parse_form(raw)
    assert str(caught.value).splitlines() == [
        'computer_model.options[2].value: an option\'s value must be text: write "14"',
        "colour.lable: unknown key: did you mean label?",
        'colour.type: there is no field type "raido": did you mean radio?',
        "seats.validation.min: is beyond max, which is 2: nothing would fit",
    ]


def test_a_problem_knows_its_path_for_the_checker() -> None:
    with pytest.raises(FormRejected) as caught:
        parse_form({"x": {"options": ["a", "a"]}})
    assert caught.value.problems == (
        FormProblem(("x", "options", 1, "value"), '"a" is already an option'),
    )


@pytest.mark.parametrize("raw", ["computer_model", 5, None, [1], [["a"]]])
def test_a_form_is_fields_or_names(raw: Any) -> None:
    assert problems(raw) == {"form": "a form is fields by name, or a list of names"}


def test_names_are_texts_and_stand_once() -> None:
    assert "a field's name must be text" in problems({5: {}})["5"]
    assert "a field's name must be text" in problems({" ": {}})[" "]
    assert problems(["a", "b", "a"]) == {"[2]": '"a" is named twice'}


@pytest.mark.parametrize(
    ("field", "place", "message"),
    [
        ("text", "x", "a field is keys and values"),
        ({"default": date(2025, 1, 1)}, "x", "date is not JSON"),
        ({"label": "\ud800"}, "x", "lone surrogate"),
        ({"label": 5}, "x.label", "must be text, not 5"),
        ({"required": "yes"}, "x.required", 'must be true or false, not "yes"'),
        ({"type": 5}, "x.type", "must be text"),
        ({"type": "hologram"}, "x.type", "use text, textarea, number"),
        ({"zzz": 1}, "x.zzz", "known are type, label"),
        ({"type": "radio"}, "x.options", "needs options to choose from"),
        ({"type": "radio", "options": []}, "x.options", "needs options"),
        ({"type": "text", "options": ["a"]}, "x.options", "use radio, select or multiselect"),
        ({"options": "a, b"}, "x.options", "must be a list of options"),
        ({"options": [True]}, "x.options[0].value", 'write "true"'),
        ({"options": [{"label": "A"}]}, "x.options[0].value", "give it one"),
        ({"options": [" "]}, "x.options[0].value", "give it one"),
        ({"options": [{"value": "a", "requires_input": 1}]}, "x.options[0].requires_input", "true"),
        ({"integer": True}, "x.integer", "only a field of type number"),
        ({"json": True}, "x.json", "only a field of type textarea"),
        ({"json": "list"}, "x.json", 'must be true, array or object, not "list"'),
        ({"json": 1}, "x.json", "must be true or false"),
        ({"type": "secret", "default": "1234"}, "x.default", "a secret has no default"),
        ({"default": 5}, "x.default", "give text; got 5"),
        ({"options": ["a"], "default": "b"}, "x.default", 'choose one of "a"'),
        ({"validation": "short"}, "x.validation", "must be keys and values"),
        ({"validation": {"type": "range"}}, "x.validation.type", 'only "enum" is known'),
        ({"validation": {"type": "enum"}}, "x.validation.values", "an enum needs its values"),
        ({"validation": {"values": []}}, "x.validation.values", "a list of the allowed values"),
        ({"validation": {"values": ["a", 1]}}, "x.validation.values[1]", "give text; got 1"),
        (
            {"options": ["a"], "validation": {"values": ["b"]}},
            "x.validation.values[0]",
            "no option",
        ),
        ({"validation": {"maxlength": 1}}, "x.validation.maxlength", "did you mean max_length?"),
        ({"validation": {"min": 1}}, "x.validation.min", "means nothing for a field of type text"),
        ({"validation": {"min": True}}, "x.validation.min", "must be a number, not true"),
        ({"validation": {"max_length": -1}}, "x.validation.max_length", "whole number from 0"),
        ({"validation": {"max_length": 1.5}}, "x.validation.max_length", "whole number from 0"),
        ({"validation": {"min_length": 20_000}}, "x.validation.min_length", "nothing would fit"),
        ({"validation": {"pattern": 5}}, "x.validation.pattern", "must be a regular expression"),
        ({"validation": {"pattern": "["}}, "x.validation.pattern", "unclosed character class"),
        ({"validation": {"pattern": "(?=a)"}}, "x.validation.pattern", "look-around"),
        ({"validation": {"pattern": "a" * 201}}, "x.validation.pattern", "at most 200"),
        ({"validation": {"pattern": "(a{1000}){1000}"}}, "x.validation.pattern", "1,001,001 steps"),
        (
            {"type": "multiselect", "options": ["a"], "validation": {"min_items": 2}},
            "x.validation.min_items",
            "is beyond max_items, which is 1",
        ),
        (
            {"type": "date", "validation": {"not_before": "soon"}},
            "x.validation.not_before",
            '"soon" is no date: write 2025-10-15',
        ),
        (
            {"type": "datetime", "validation": {"not_after": "2025-10-15"}},
            "x.validation.not_after",
            "write 2025-10-15T10:30:00Z",
        ),
        ({"type": "date", "validation": {"not_after": 2025}}, "x.validation.not_after", "as text"),
        (
            {
                "type": "date",
                "validation": {"not_before": "2025-02-01", "not_after": "2025-01-31"},
            },
            "x.validation.not_before",
            "is beyond not_after, which is 2025-01-31",
        ),
        (
            {"type": "textarea", "json": True, "validation": {"values": ["1"]}},
            "x.validation.values",
            "means nothing",
        ),
        (
            {"type": "textarea", "json": True, "default": ["z"]},
            "x.default",
            "give text; got a list",
        ),
        ({"visible_if": "values.y =="}, "x.visible_if", "values.y =="),
        ({"visible_if": "values.y == 1"}, "x.visible_if", "values.y is no field above this one"),
        ({"visible_if": "values.x == 1"}, "x.visible_if", "values.x is no field above"),
        ({"visible_if": "002.status == Done"}, "x.visible_if", "only its own answers"),
        ({"visible_if": "Done"}, "x.visible_if", "only its own answers"),
    ],
)
def test_a_mistake_is_told_at_its_place_with_its_remedy(
    field: Any, place: str, message: str
) -> None:
    found, told = problem(field)
    assert found == place
    assert message in told


def test_rules_about_text_suit_a_choice_only_with_an_option_that_takes_text() -> None:
    rules = {"validation": {"max_length": 20}}
    option = {"value": "custom", "requires_input": True}
    assert only_field({"options": [option], **rules}).validation.max_length == 20
    assert problem({"options": ["a"], **rules})[0] == "x.validation.max_length"


def test_a_field_that_takes_no_options_is_told_so_even_where_one_takes_text() -> None:
    options = [{"value": "custom", "requires_input": True}]
    place, told = problem({"type": "date", "options": options})
    assert place == "x.options"
    assert "a field of type date has none" in told
    assert problem({"type": "date", "json": True})[0] == "x.json"


def test_an_enriching_form_leaves_to_the_tool_what_the_tool_says() -> None:
    raw = {
        "seats": {"default": 3, "validation": {"min": 1}, "visible_if": "values.kind == 1"},
        "colour": {"type": "select"},
        "last": {"type": "number", "visible_if": "values.seats > 1"},
    }
    assert len(parse_form(raw, enriches=True).fields) == 3
    assert set(problems(raw)) == {
        "seats.validation.min",
        "seats.visible_if",
        "colour.options",
    }


def test_an_enriching_form_is_still_checked_where_it_speaks_for_itself() -> None:
    raw = {
        "a": {"type": "text", "options": ["x"]},
        "b": {"type": "number", "default": "x"},
        "c": {"visible_if": "values.d == 1"},
        "d": {},
    }
    assert set(problems(raw, enriches=True)) == {"a.options", "b.default", "c.visible_if"}


kept_text = st.characters(exclude_characters="\0", exclude_categories=["Cs"])
words = st.text(kept_text, min_size=1, max_size=8).filter(str.strip)
counts = st.none() | st.integers(0, 50)
options = st.builds(
    Option,
    value=words,
    label=words,
    requires_input=st.booleans(),
    extras=st.dictionaries(st.sampled_from(["price", "stock"]), words | st.integers(0, 9)),
)


def ordered(low: Any, high: Any) -> tuple[Any, Any]:
    return (high, low) if None not in (low, high) and low > high else (low, high)


@st.composite
def fields(draw: st.DrawFn, name: str) -> Field:
    kind = draw(st.sampled_from(FieldType))
    of_choice = kind in CHOICES
    by_value = st.lists(options, min_size=1, max_size=4, unique_by=lambda option: option.value)
    return Field(
        name=name,
        type=kind,
        label=draw(st.just("") | words),
        description=draw(st.just("") | words),
        options=tuple(draw(by_value)) if of_choice else (),
        required=draw(st.booleans()),
        default=draw(words) if kind is FieldType.TEXT else None,
        visible_if=draw(st.none() | st.just("not values")),
        validation=draw(rules(kind)),
        integer=kind is FieldType.NUMBER and draw(st.booleans()),
        json=kind is FieldType.TEXTAREA and draw(st.booleans()),
    )


@st.composite
def rules(draw: st.DrawFn, kind: FieldType) -> Validation:
    low, high = ordered(draw(counts), draw(counts))
    match kind:
        case FieldType.NUMBER:
            return Validation(minimum=low, maximum=high)
        case FieldType.TEXTAREA | FieldType.SECRET:
            return Validation(
                min_length=low, max_length=high, pattern=draw(st.sampled_from(["^a"]))
            )
        case FieldType.DATE:
            days = st.none() | st.dates().map(date.isoformat)
            first, last = ordered(draw(days), draw(days))
            return Validation(not_before=first, not_after=last)
        case FieldType.BOOLEAN:
            return Validation(values=draw(st.sampled_from([None, (True,)])))
        case _:
            return Validation()


forms = st.lists(words, max_size=3, unique=True).flatmap(
    lambda names: st.tuples(*(fields(name) for name in names)).map(Form)
)


@given(forms)
def test_a_written_form_reads_back_as_the_same_form(form: Form) -> None:
    shape = dump_form(form)
    assert strict_json(shape) == shape
    assert parse_form(shape) == form
    assert dump_form(parse_form(shape)) == shape


shapes = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "options", "validation", "default", "value", "min", "values"])
            | st.text(max_size=5),
            inner | st.sampled_from(list(FieldType)),
            max_size=4,
        )
    ),
    max_leaves=10,
)


@given(st.dictionaries(st.text(max_size=4), shapes, max_size=3) | shapes, st.booleans())
def test_any_shape_is_either_a_form_or_rejected_with_reasons(raw: Any, enriches: bool) -> None:
    try:
        form = parse_form(raw, enriches=enriches)
    except FormRejected as rejected:
        reasons = rejected.problems
    else:
        reasons = ()
        assert parse_form(dump_form(form), enriches=enriches) == form
    assert all(problem.message for problem in reasons)
