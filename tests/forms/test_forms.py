"""What a person answered is checked field by field, and what fits reaches the tool."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from json import dumps
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.forms.schemas import dump_form, json_schema
from holdfast.forms.shapes import parse_form
from holdfast.forms.validation import (
    Validated,
    unsealed,
    validate,
    validate_changes,
    visible_fields,
)
from holdfast.forms.values import echo, is_empty
from holdfast.language.strict import strict_json
from holdfast.model.form import Field, FieldType, Form, Option, Validation

LONE_SURROGATE = "\ud800"

COMPUTER = parse_form(
    {
        "computer_model": {
            "type": "radio",
            "label": "电脑型号",
            "options": [
                {"value": "MacBook Pro", "label": "MacBook Pro 14寸", "price": "¥18,999"},
                {"value": "ThinkPad X1", "label": "ThinkPad X1 Carbon"},
                {"value": "custom", "label": "其他型号", "requires_input": True},
            ],
        }
    }
)


def check(field: Field, value: Any) -> Validated:
    return validate(Form((field,)), {field.name: value})


def accepted(field: Field, value: Any) -> Any:
    result = check(field, value)
    assert result.errors == {}
    return result.values[field.name]


def refused(field: Field, value: Any) -> str:
    result = check(field, value)
    assert result.values == {}
    assert list(result.errors) == [field.name]
    return result.errors[field.name]


def of(kind: FieldType, **attributes: Any) -> Field:
    return Field("x", kind, **attributes)


def one_of(*values: str, kind: FieldType = FieldType.RADIO, **rules: Any) -> Field:
    options = tuple(Option(value, value, value == "custom") for value in values)
    return Field("x", kind, options=options, validation=Validation(**rules))


def test_the_seeds_answer_reaches_the_tool_as_it_is() -> None:
    result = validate(COMPUTER, {"computer_model": "MacBook Pro"})
    assert result == Validated({"computer_model": "MacBook Pro"}, {})


def test_the_seeds_own_custom_option_without_requires_input_is_an_ordinary_value() -> None:
    form = parse_form(
        {
            "computer_model": {
                "type": "radio",
                "options": [
                    {"value": "Dell XPS", "label": "Dell XPS 13"},
                    {"value": "custom", "label": "其他型号（需填写）"},
                ],
                "validation": {"type": "enum", "values": ["Dell XPS", "custom"]},
            }
        }
    )
    assert validate(form, {"computer_model": "custom"}).values == {"computer_model": "custom"}


def test_an_option_that_asks_for_its_own_text_gives_the_tool_that_text() -> None:
    answer = {"value": "custom", "text": "Framework 13"}
    assert validate(COMPUTER, {"computer_model": answer}).values == {
        "computer_model": "Framework 13"
    }


@pytest.mark.parametrize(
    "answer", ["custom", {"value": "custom"}, {"value": "custom", "text": " "}]
)
def test_such_an_option_without_a_text_says_how_to_give_one(answer: Any) -> None:
    errors = validate(COMPUTER, {"computer_model": answer}).errors
    assert errors == {
        "computer_model": '"custom" needs a text: answer {"value": "custom", "text": "…"}'
    }


def test_an_ordinary_option_may_be_answered_as_an_object() -> None:
    for answer in ({"value": "ThinkPad X1"}, {"value": "ThinkPad X1", "text": ""}):
        assert validate(COMPUTER, {"computer_model": answer}).values == {
            "computer_model": "ThinkPad X1"
        }


def test_a_text_beside_an_ordinary_option_is_not_dropped_in_silence() -> None:
    assert "takes no text" in refused(COMPUTER.fields[0], {"value": "ThinkPad X1", "text": "red"})


def test_an_unknown_option_is_told_which_there_are() -> None:
    message = refused(COMPUTER.fields[0], "Amiga")
    assert message == 'choose one of "MacBook Pro", "ThinkPad X1", "custom"; got "Amiga"'


@pytest.mark.parametrize(
    "answer", [1, True, ["a"], {}, {"value": 1}, {"value": []}, {"value": "a", "colour": "red"}]
)
def test_a_choice_is_an_option_and_nothing_else(answer: Any) -> None:
    assert refused(one_of("a", "b"), answer).startswith('choose one of "a", "b"; got ')


def test_the_rules_about_text_are_about_the_options_own_text() -> None:
    field = one_of("a", "custom", pattern="^[A-Z]", max_length=4)
    assert accepted(field, {"value": "custom", "text": "Ab"}) == "Ab"
    assert accepted(field, "a") == "a"
    assert "pattern" in refused(field, {"value": "custom", "text": "ab"})
    assert "at most 4" in refused(field, {"value": "custom", "text": "Abcde"})
    assert 'the text of "custom"' in refused(field, {"value": "custom", "text": 5})


def test_an_enum_narrows_the_options() -> None:
    field = one_of("a", "b", values=("a",))
    assert accepted(field, "a") == "a"
    assert refused(field, "b") == 'choose one of "a"; got "b"'


def test_many_options_are_not_all_listed() -> None:
    message = refused(one_of(*(f"o{number}" for number in range(30))), "x")
    assert '"o11" and 18 more' in message
    assert "o12" not in message


def test_several_choices_come_out_in_the_order_they_were_made() -> None:
    field = one_of("a", "b", "custom", kind=FieldType.MULTISELECT)
    assert accepted(field, ["b", {"value": "custom", "text": "c"}, {"value": "a"}]) == [
        "b",
        "c",
        "a",
    ]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("a", 'give a list with any of "a", "b", "custom"'),
        (["a", "a"], 'choose "a" only once'),
        (["a", {"value": "a"}], 'choose "a" only once'),
        (["z"], "choose one of"),
        (["custom"], "needs a text"),
        (["a"], "choose between 2 and 2 options; these are 1"),
        (["a", "b", {"value": "custom", "text": "c"}], "choose between 2 and 2 options"),
    ],
)
def test_several_choices_are_checked_one_by_one_and_counted(answer: Any, message: str) -> None:
    field = one_of("a", "b", "custom", kind=FieldType.MULTISELECT, min_items=2, max_items=2)
    assert message in refused(field, answer)


def test_a_single_bound_on_the_count_is_told_alone() -> None:
    least = one_of("a", "b", kind=FieldType.MULTISELECT, min_items=2)
    most = one_of("a", "b", kind=FieldType.MULTISELECT, max_items=1)
    assert "choose at least 2 options" in refused(least, ["a"])
    assert "choose at most 1 option;" in refused(most, ["a", "b"])


@pytest.mark.parametrize("nothing", [None, "", "  \n", []])
def test_nothing_is_not_an_answer_to_a_required_field(nothing: Any) -> None:
    assert refused(Field("x"), nothing) == "this is required: please fill it in"
    assert validate(Form((Field("x"),)), {}).errors == {"x": "this is required: please fill it in"}
    assert check(Field("x", required=False), nothing) == Validated()


def test_spaces_are_a_secret_but_not_a_text() -> None:
    assert is_empty(Field("x"), " ")
    assert accepted(of(FieldType.SECRET), " ") == " "


def test_text_is_kept_to_the_letter() -> None:
    assert accepted(Field("x"), "  张三 ") == "  张三 "


@pytest.mark.parametrize("value", [1, True, ["a"], {"a": 1}])
def test_text_must_be_text(value: Any) -> None:
    assert refused(Field("x"), value) == f"give text; got {echo(value)}"


def test_long_texts_are_refused_unless_the_plan_wants_them() -> None:
    assert accepted(Field("x"), "a" * 10_000)
    assert refused(Field("x"), "a" * 10_001) == ("give at most 10,000 characters; this has 10,001")
    assert accepted(Field("x", validation=Validation(max_length=20_000)), "a" * 20_000)
    assert accepted(of(FieldType.TEXTAREA), "a" * 100_000)
    assert "100,001" in refused(of(FieldType.TEXTAREA), "a" * 100_001)


def test_ten_megabytes_are_refused_without_being_repeated() -> None:
    flood = "张" * 10_000_000
    for kind in FieldType:
        message = refused(one_of("a", kind=kind), flood)
        assert len(message) < 300


def test_both_bounds_of_a_length_are_told() -> None:
    field = Field("x", validation=Validation(min_length=2, max_length=3))
    assert refused(field, "a") == "give between 2 and 3 characters; this has 1"


def test_a_pattern_matches_anywhere_unless_it_is_anchored() -> None:
    loose, strict = (Field("x", validation=Validation(pattern=p)) for p in ("[0-9]", "^[0-9]+$"))
    assert accepted(loose, "room 7") == "room 7"
    assert refused(strict, "room 7") == 'it must match the pattern ^[0-9]+$; got "room 7"'
    assert "pattern" in refused(strict, "7\n")


def test_a_hostile_answer_to_a_careless_pattern_takes_no_time() -> None:
    field = Field("x", validation=Validation(pattern="^(a+)+$"))
    assert "pattern" in refused(field, "a" * 9_000 + "b")


def test_an_enum_of_texts_names_its_values() -> None:
    field = Field("x", validation=Validation(values=("red", "blue")))
    assert accepted(field, "red") == "red"
    assert refused(field, "green") == 'it must be one of "red", "blue"; got "green"'


@pytest.mark.parametrize("number", [0, -3, 2.5, 2**63 - 1, 1e300])
def test_numbers_come_through(number: float) -> None:
    assert accepted(of(FieldType.NUMBER), number) == number


@pytest.mark.parametrize("value", ["3", True, False, [1], {"a": 1}])
def test_what_only_looks_like_a_number_is_refused(value: Any) -> None:
    assert refused(of(FieldType.NUMBER), value).startswith("give a number; got ")


def test_whole_numbers_may_be_written_with_a_point() -> None:
    whole = of(FieldType.NUMBER, integer=True)
    assert type(accepted(whole, 3.0)) is int
    assert "give a whole number" in refused(whole, 3.5)
    assert "64 bits" in refused(whole, 1e300)
    assert refused(whole, "3") == 'give a whole number; got "3"'


def test_the_range_of_a_number_is_told_as_far_as_there_is_one() -> None:
    def within(least: float | None, most: float | None) -> Field:
        return of(FieldType.NUMBER, validation=Validation(minimum=least, maximum=most))

    assert refused(within(1, 9), 10) == "give between 1 and 9; got 10"
    assert refused(within(1.0, 9.0), 10) == "give between 1 and 9; got 10"
    assert refused(within(0.5, 1e300), 0) == "give between 0.5 and 1e+300; got 0"
    assert refused(within(1, None), 0.5) == "give at least 1; got 0.5"
    assert refused(within(None, 9), 9.5) == "give at most 9; got 9.5"
    assert accepted(within(1, 9), 9) == 9


def test_yes_and_no_are_true_and_false_only() -> None:
    assert accepted(of(FieldType.BOOLEAN), False) is False
    for value in (0, 1, "true", "yes"):
        assert "answer true or false" in refused(of(FieldType.BOOLEAN), value)
    consent = of(FieldType.BOOLEAN, validation=Validation(values=(True,)))
    assert refused(consent, False) == "it must be one of true; got false"


@pytest.mark.parametrize(
    "value", ["2025-02-29", "20250101", "2025-W01-1", "01.02.2025", "２025-01-01", 20250101]
)
def test_a_date_must_exist_and_be_written_one_way(value: Any) -> None:
    assert "YYYY-MM-DD" in refused(of(FieldType.DATE), value)


def test_a_date_stays_within_its_range() -> None:
    year = Validation(not_before="2025-01-01", not_after="2025-12-31")
    field = of(FieldType.DATE, validation=year)
    assert accepted(field, "2025-12-31") == "2025-12-31"
    assert refused(field, "2026-01-01") == (
        'it must be from 2025-01-01 to 2025-12-31; got "2026-01-01"'
    )
    assert "from 2025-01-01 to" in refused(field, "2024-12-31")
    until = of(FieldType.DATE, validation=Validation(not_after="2025-12-31"))
    assert refused(until, "2026-01-01") == 'it must be 2025-12-31 or earlier; got "2026-01-01"'
    open_end = of(FieldType.DATE, validation=Validation(not_before="2025-01-01"))
    assert accepted(open_end, "9999-12-31") == "9999-12-31"


@pytest.mark.parametrize(
    "value",
    ["2025-10-15T10:30:00Z", "2025-10-15t10:30:00.123456789z", "0001-01-01T00:00:00+23:59"],
)
def test_a_moment_has_an_offset_and_is_kept_as_written(value: str) -> None:
    late = Validation(not_after="9999-12-31T23:59:59-23:59")
    assert accepted(of(FieldType.DATETIME, validation=late), value) == value


@pytest.mark.parametrize(
    "value",
    [
        "2025-10-15T10:30:00",
        "2025-10-15",
        "2025-10-15T25:00:00Z",
        "2025-10-15T10:30:00+99:00",
        "2025-10-15T10:30:00+08:00:30",
        5,
    ],
)
def test_a_moment_that_is_none_is_shown_how_to_write_one(value: Any) -> None:
    assert "2025-10-15T10:30:00Z" in refused(of(FieldType.DATETIME), value)


def test_moments_are_compared_across_offsets() -> None:
    field = of(FieldType.DATETIME, validation=Validation(not_before="2025-10-15T10:00:00Z"))
    assert accepted(field, "2025-10-15T18:00:00+08:00")
    assert "2025-10-15T10:00:00Z or later" in refused(field, "2025-10-15T17:59:59+08:00")


def test_a_file_is_an_opaque_reference() -> None:
    field = of(FieldType.FILE)
    assert accepted(field, "file:8f2a") == "file:8f2a"
    for value in ("file:", "/etc/hosts", 7):
        assert 'begins with "file:"' in refused(field, value)
    assert "at most 200" in refused(field, "file:" + "a" * 200)


def test_a_refused_secret_is_never_repeated() -> None:
    rules = Validation(pattern="^[0-9]+$", max_length=10)
    pin = of(FieldType.SECRET, validation=rules)
    assert accepted(pin, "1234") == "1234"
    hidden = of(FieldType.SECRET, visible_if="values.y == 1")
    for field in (pin, hidden):
        for value in ("hunter2", "hunter2hunter2", ["hunter2"], {"hunter2": float("nan")}):
            assert "hunter2" not in str(check(field, value))
    assert refused(pin, "hunter2") == "it must match the pattern ^[0-9]+$"


def test_what_a_reference_stands_for_was_judged_when_it_was_sealed() -> None:
    pin = of(FieldType.SECRET, validation=Validation(pattern="^[0-9]+$", max_length=10))
    reference = f"secret:{'0' * 32}"
    assert accepted(pin, reference) == reference
    form = Form((pin, Field("y")))
    assert unsealed(form, {"x": reference, "y": "hunter2"}) == {}
    assert unsealed(form, {"x": ""}) == unsealed(form, {}) == {}
    assert set(unsealed(form, {"x": "1234"})) == {"x"}


def test_a_text_field_may_hold_json_and_the_tool_receives_the_value() -> None:
    field = of(FieldType.TEXTAREA, json=True)
    assert accepted(field, '{"floors": [1, 2]}') == {"floors": [1, 2]}
    assert refused(field, "{floors}").startswith("write it as JSON; line 1, column 2")
    assert "this JSON cannot be used" in refused(field, "[NaN]")
    assert "less nesting" in refused(field, "[" * 9_000)
    assert "more than 10,000 values" in refused(field, "[" * 90_000)
    assert "more than 10,000 values" in refused(field, f"[{'[],' * 20_000}]")
    assert "shorter numbers" in refused(field, "1" * 5_000)


def test_json_that_comes_as_it_is_is_held_to_the_same_rules() -> None:
    field = of(FieldType.TEXTAREA, json=True)
    for value in ({"floors": [1, 2]}, ["z"], [], {}, 7, False):
        assert accepted(field, value) == value
    assert "more than 10,000 values" in refused(field, [{"n": 1}] * 6_000)
    assert "this cannot be sent" in refused(field, [float("nan")])
    assert "at most 100,000 characters" in refused(field, ["x" * 100_000])
    ruled = of(FieldType.TEXTAREA, json=True, validation=Validation(pattern=r"^\["))
    assert accepted(ruled, [1]) == [1]
    assert "must match the pattern" in refused(ruled, {"a": 1})
    assert "required" in refused(field, None)


@pytest.mark.parametrize(
    ("json", "taken", "other"),
    [("array", [1], {"a": 1}), ("object", {"a": 1}, [1])],
)
def test_json_of_one_type_is_of_that_type_however_it_came(
    json: Any, taken: Any, other: Any
) -> None:
    field = of(FieldType.TEXTAREA, json=json)
    for value in (taken, dumps(taken)):
        assert accepted(field, value) == taken
    for value in (other, dumps(other), 5, "5", '"text"', "null"):
        assert refused(field, value).startswith(f"give a JSON {json}; got ")
    assert accepted(replace(field, nullable=True), "null") is None


def test_a_form_counts_all_its_json_together_however_it_came() -> None:
    fields = tuple(Field(name, FieldType.TEXTAREA, json=True) for name in ("a", "b"))
    given = {"a": [0] * 6_000, "b": [0] * 6_000}
    assert set(validate(Form(fields), given).errors) == {"b"}


def test_json_that_is_not_asked_is_not_lost() -> None:
    hidden = of(FieldType.TEXTAREA, json=True, required=False, visible_if="values.y == 1")
    assert "this is not asked" in refused(hidden, [])
    assert check(hidden, None) == Validated()


def test_what_is_not_strict_json_is_refused_at_its_field_alone() -> None:
    form = Form((Field("good"), Field("bad")))
    result = validate(form, {"good": "yes", "bad": LONE_SURROGATE})
    assert result.values == {"good": "yes"}
    assert "lone surrogate" in result.errors["bad"]
    for value in (float("nan"), b"bytes", {1: 2}):
        assert "this cannot be sent" in refused(of(FieldType.NUMBER), value)


def test_unknown_fields_are_errors_with_a_hint() -> None:
    form = Form((Field("name", required=False), Field("email", required=False)))
    assert validate(form, {"nmae": "x", "zzz": 1}).errors == {
        "nmae": "the form has no such field: did you mean name?",
        "zzz": "the form has no such field: it has name, email",
    }
    assert validate(Form(), {"x": 1}).errors == {
        "x": "the form has no such field: it has no fields"
    }


def test_the_name_of_an_unknown_field_can_always_be_sent_back() -> None:
    errors = validate(Form(), {LONE_SURROGATE: 1, "n" * 1_000_000: 2}).errors
    assert strict_json(errors) == errors
    assert sum(map(len, errors)) < 200


def test_a_default_fills_what_was_not_given_and_only_that() -> None:
    field = Field("x", default="张三")
    assert validate(Form((field,)), {}).values == {"x": "张三"}
    assert accepted(field, "Will Zhang") == "Will Zhang"
    assert "required" in refused(field, "")
    assert check(Field("x", required=False, default="张三"), "") == Validated()


def test_a_default_may_be_an_option_with_its_text() -> None:
    field = Field(
        "x",
        FieldType.RADIO,
        options=(Option("custom", "Other", requires_input=True),),
        default={"value": "custom", "text": "Amiga"},
    )
    assert validate(Form((field,)), {}).values == {"x": "Amiga"}


def test_a_partial_answer_is_checked_but_not_completed() -> None:
    form = Form((Field("a"), Field("b", default="c"), Field("n", FieldType.NUMBER)))
    result = validate(form, {"n": "three", "a": ""}, partial=True)
    assert result.values == {}
    assert list(result.errors) == ["n"]
    assert validate(form, {"a": "x"}, partial=True) == Validated({"a": "x"})


KIND = parse_form(
    {
        "kind": {"options": ["standard", {"value": "custom", "requires_input": True}]},
        "reason": {"visible_if": 'values.kind == "custom"'},
        "approver": {"visible_if": 'values.reason == "urgent"', "default": "Will Zhang"},
    }
)


def test_a_field_that_is_not_asked_is_neither_required_nor_filled() -> None:
    assert validate(KIND, {"kind": "standard", "reason": " "}) == Validated({"kind": "standard"})


def test_a_condition_sees_the_option_that_was_chosen_not_its_text() -> None:
    answer = {"kind": {"value": "custom", "text": "Amiga"}}
    assert validate(KIND, answer).errors == {"reason": "this is required: please fill it in"}
    assert validate(KIND, answer | {"reason": "urgent"}).values == {
        "kind": "Amiga",
        "reason": "urgent",
        "approver": "Will Zhang",
    }


def test_an_answer_to_a_field_that_is_not_asked_is_refused_with_the_reason() -> None:
    result = validate(KIND, {"kind": "standard", "reason": "urgent"})
    assert result.values == {"kind": "standard"}
    assert result.errors == {
        "reason": 'this is not asked, because values.kind == "custom" does not hold: leave it out'
    }


def test_a_field_that_is_not_asked_counts_as_empty_for_those_below() -> None:
    visible = visible_fields(KIND, {"kind": "standard", "reason": "urgent"})
    assert [field.name for field in visible] == ["kind"]


def test_a_default_counts_in_conditions() -> None:
    form = parse_form({"a": {"default": "x"}, "b": {"visible_if": 'values.a == "x"'}})
    assert [field.name for field in visible_fields(form, {})] == ["a", "b"]
    assert [field.name for field in visible_fields(form, {"a": LONE_SURROGATE})] == ["a"]


def test_several_choices_can_be_searched_by_a_condition() -> None:
    form = parse_form(
        {
            "perks": {"type": "multiselect", "options": ["desk", "phone"]},
            "number": {"visible_if": '"phone" in values.perks'},
        }
    )
    assert validate(form, {"perks": ["desk"]}).errors == {}
    assert list(validate(form, {"perks": ["desk", {"value": "phone"}]}).errors) == ["number"]


def test_a_form_knows_no_tasks() -> None:
    by_status = Field("x", visible_if="002.status == Done")
    by_context = Field("y", visible_if="002.context.a == 1")
    assert visible_fields(Form((by_status, by_context)), {}) == ()


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
answers = st.recursive(
    scalars | st.sampled_from(["a", "custom", "2025-01-01", "file:1", LONE_SURROGATE]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text() | st.sampled_from(["value", "text"]), inner, max_size=3)
    ),
    max_leaves=8,
)
EVERY_KIND = Form(
    (
        *(Field(str(kind), kind, options=one_of("a", "custom").options) for kind in FieldType),
        Field("whole", FieldType.NUMBER, integer=True, required=False),
        Field("json", FieldType.TEXTAREA, json=True, visible_if='values.text == "a"'),
        Field("low", visible_if="values.number > 3 or values.radio == values.multiselect"),
    )
)
kept_text = st.characters(exclude_characters="\0", exclude_categories=["Cs"])
"""What a name in an answer consists of: it is read strictly."""
names = st.sampled_from([field.name for field in EVERY_KIND.fields]) | st.text(kept_text)


@given(st.dictionaries(names, answers, max_size=8), st.booleans())
def test_whatever_is_answered_is_judged_and_never_raises(data: Any, partial: bool) -> None:
    result = validate(EVERY_KIND, data, partial=partial)
    assert not result.values.keys() & result.errors.keys()
    assert strict_json(result.values) == result.values
    assert strict_json(result.errors) == result.errors


@given(
    st.fixed_dictionaries(
        {
            "text": st.text(kept_text, min_size=1).filter(str.strip),
            "number": st.integers(-(2**63), 2**63 - 1)
            | st.floats(allow_nan=False, allow_infinity=False),
            "boolean": st.booleans(),
            "date": st.integers(0, 3_000_000).map(
                lambda days: (date.min + timedelta(days=days)).isoformat()
            ),
            "datetime": st.datetimes().map(lambda moment: moment.isoformat() + "+08:00"),
            "radio": st.sampled_from("abc"),
            "multiselect": st.lists(st.sampled_from("abc"), min_size=1, unique=True),
        }
    )
)
def test_what_fits_comes_out_as_it_went_in(data: dict[str, Any]) -> None:
    options = one_of("a", "b", "c").options
    form = Form(tuple(Field(name, FieldType(name), options=options) for name in data))
    assert validate(form, data) == Validated(data, {})


def test_null_is_a_value_where_the_field_says_so() -> None:
    form = Form((Field("until", nullable=True), Field("to")))
    assert validate(form, {"until": None, "to": "ann"}).values == {"until": None, "to": "ann"}
    assert set(validate(form, {"until": " ", "to": None}).errors) == {"until", "to"}
    assert json_schema(form)["properties"]["until"]["anyOf"][1] == {"type": "null"}
    assert parse_form(dump_form(form)) == form


def test_changes_are_judged_as_they_were_sent_and_nothing_else_is() -> None:
    form = Form((Field("to", default="ann"), Field("amount", FieldType.NUMBER)))
    assert validate_changes(form, {}).values == {}
    assert validate_changes(form, {"to": " "}).values == {"to": " "}
    wrong = validate_changes(form, {"to": None, "amount": "", "whom": ""}).errors
    assert set(wrong) == {"to", "amount", "whom"}
