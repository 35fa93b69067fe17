"""A field's pattern, its repeats and the text that it is matched with are bounded together."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.errors import FormRejected, InvalidAnswer
from holdfast.forms import validation, values
from holdfast.forms.patterns import (
    LARGEST_PROGRAM,
    LARGEST_PROGRAMS,
    MATCH_BUDGET,
    compile_pattern,
    is_usable,
    match_cost,
    measure,
    most_text,
)
from holdfast.forms.schemas import json_schema
from holdfast.forms.shapes import MOST_FIELDS, MOST_OPTIONS, parse_form
from holdfast.forms.validation import overlong, refuse_overlong, validate
from holdfast.forms.values import longest
from holdfast.model.form import Field, FieldType, Form, Option, Validation

HOSTILE = "(?:.{0,90}){0,90}[yz]$"
WORDS = r"^\w{2,30}$"
SENSIBLE = (
    "^[0-9]+$",
    WORDS,
    r"^[\w.+-]+@[\w-]+\.[\w.]+$",
    "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$",
    "^.{1,500}$",
    r"^\+?[0-9 ()-]{5,20}$",
    r"^[一-龥·]{2,20}$",
    r"^(?P<year>[0-9]{4})-(?P<month>0[1-9]|1[0-2])$",
    r"(?i)^https?://\S+$",
    r"^\p{Lu}\p{L}{1,30}$",
    r"^\d{1,500}$",
    r"^\D{0,100}$",
)


def ruled(name: str, pattern: str, **rules: Any) -> Field:
    return Field(name, validation=Validation(pattern=pattern, **rules))


@pytest.mark.parametrize("pattern", SENSIBLE)
def test_a_sensible_pattern_is_taken(pattern: str) -> None:
    assert is_usable(pattern)
    assert most_text(pattern) >= 500
    parse_form({"x": {"validation": {"pattern": pattern}}})


@pytest.mark.parametrize(
    ("pattern", "program"),
    [
        (HOSTILE, 5 * 90 * 90),
        ("a{9}{9}", 81),
        ("(a{9}){9}", 81),
        ("(?:a|b{9}){,9}", 90),
        ("(?:a{9,}){9}", 81),
        ("[]a]{90}b{90}", 6 * 90),
        ("[^]a]{9}{9}", 6 * 81),
        ("[a[]]]{9}b{90}", 6 * 9 + 90),
        (r"[a\]]{9}{90}", 6 * 810),
        (r"\({9}{90}", 810),
        ("(){9}{90}", 810),
        (r"[\w-]{90}", 80 * 90),
        (r"\p{L}{90}", 80 * 90),
        (r"\b{90}", 80 * 90),
        (r"\d{90}", 7 * 90),
        (r"[\d-]{90}", 7 * 90),
        (r"\D{90}", 20 * 90),
        (r"[^\d]{90}", 20 * 90),
        (r"[\D--\s]{90}", 20 * 90),
        (r"[\S--\d]{90}", 20 * 90),
        (r"[a[^\d]]{90}", 20 * 90),
        ("(?i)k{90}", 5 * 90),
        ("(?i:k{90})", 5 * 90),
        ("(?<n>a{9}){9}", 81),
        ("字{90}", 5 * 90),
        ("((a{9}", 9),
        ("a)b{9}", 9),
        ("[a{9}", 5),
    ],
)
def test_counted_repeats_are_written_out_before_they_are_counted(
    pattern: str, program: int
) -> None:
    assert program <= measure(pattern).program < 2 * program + 20


def test_a_large_pattern_is_refused_before_it_is_compiled() -> None:
    with pytest.raises(ValueError, match=r"has 40,\d+ steps, and 4,000 are allowed"):
        compile_pattern(HOSTILE)
    with pytest.raises(ValueError, match="more than 200 characters"):
        compile_pattern("a" * 201)
    with pytest.raises(ValueError, match="verbose"):
        compile_pattern("(?x) # [\n(?:.{0,90}){0,90}")
    assert not is_usable("(?x:.)")
    assert not is_usable("a" * 201)


def test_the_longer_a_pattern_the_shorter_its_texts() -> None:
    assert match_cost(WORDS, "a" * most_text(WORDS)) <= MATCH_BUDGET
    assert match_cost(WORDS, "a" * (most_text(WORDS) + 1)) == 0
    assert most_text("^[0-9]+$") > 100_000
    assert longest(Field("x", FieldType.TEXTAREA)) == 100_000
    assert longest(ruled("x", WORDS)) == most_text(WORDS) < 10_000
    assert longest(ruled("x", WORDS, max_length=30)) == 30
    schema = json_schema(Form((ruled("x", WORDS, max_length=9_999),)))
    assert schema["properties"]["x"]["maxLength"] == most_text(WORDS)


def problems(shape: Any) -> dict[str, str]:
    with pytest.raises(FormRejected) as rejected:
        parse_form(shape)
    return {one.place: one.message for one in rejected.value.problems}


def test_the_author_is_told_what_is_too_much() -> None:
    shape = {"x": {"validation": {"pattern": HOSTILE}, "default": "x" * 9_000}}
    assert "40," in problems(shape)["x.validation.pattern"]
    shape = {"x": {"validation": {"pattern": WORDS, "max_length": 9_000}}}
    assert problems(shape)["x.validation.max_length"].startswith("must be at most 3,3")


def test_all_patterns_of_a_form_are_bounded_together() -> None:
    count = LARGEST_PROGRAMS // LARGEST_PROGRAM + 2
    distinct = {f"x{n}": {"validation": {"pattern": rf"^{n}\w{{40}}"}} for n in range(count)}
    assert "too large together" in problems(distinct)["form"]
    parse_form(dict.fromkeys(distinct, distinct["x0"]))


def test_all_defaults_of_a_form_are_matched_within_one_budget() -> None:
    pattern = "^.{0,90}"
    default = "x" * (most_text(pattern) // 2 + 1)
    field = {"validation": {"pattern": pattern}, "default": default}
    parse_form({"a": field})
    assert "too large together" in problems({"a": field, "b": field})["form"]


def test_all_texts_of_an_answer_are_matched_within_one_budget(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Counted where they are matched."""
    matched: list[int] = []

    def counting(pattern: str) -> Any:
        matched.append(len(pattern))
        return compile_pattern(pattern)

    monkeypatch.setattr(values, "compile_pattern", counting)
    form = Form(tuple(ruled(f"x{n}", "^.{0,90}") for n in range(9)))
    text = "x" * (most_text("^.{0,90}") // 2)
    found = validate(form, {field.name: text for field in form.fields})
    assert set(found.values) == {"x0", "x1"}
    assert set(found.errors) == {f"x{n}" for n in range(2, 9)}
    assert all("too long for its patterns" in one for one in found.errors.values())
    assert len(matched) == 2


def test_the_texts_of_options_count_too() -> None:
    options = tuple(Option(name, name, requires_input=True) for name in "abcd")
    rules = Validation(pattern="^.{0,90}")
    field = Field("x", FieldType.MULTISELECT, options=options, validation=rules)
    text = "x" * (most_text("^.{0,90}") // 2)
    several = [{"value": name, "text": text} for name in "abcd"]
    assert overlong(Form((field,)), {"x": several}).keys() == {"x"}
    assert not overlong(Form((field,)), {"x": several[:2]})
    assert not overlong(Form((field,)), {"x": 5})
    refuse_overlong(Form((field,)), {"x": several[:2]})
    with pytest.raises(InvalidAnswer) as refused:
        refuse_overlong(Form((field,)), {"x": several})
    assert refused.value.fields == overlong(Form((field,)), {"x": several})


def test_a_pattern_from_before_the_bounds_is_not_run() -> None:
    form = Form((ruled("x", HOSTILE), ruled("y", "(?x).")))
    found = validate(form, {"x": "x" * 9_000, "y": "z"})
    assert found.errors["x"].startswith("give at most 3")
    assert found.errors["y"].startswith("give at most 0")
    assert "cannot be used" in validate(form, {"x": "z"}).errors["x"]


def test_a_form_has_so_many_fields_and_options_and_no_more() -> None:
    fields = [f"x{n}" for n in range(MOST_FIELDS)]
    assert len(parse_form(fields).fields) == MOST_FIELDS
    assert "at most 200 fields; this has 201" in problems([*fields, "more"])["form"]
    assert "at most 200" in problems({name: {} for name in [*fields, "more"]})["form"]
    options = [str(n) for n in range(MOST_OPTIONS)]
    parse_form({"x": {"options": options}})
    assert "at most 1,000 options" in problems({"x": {"options": [*options, "y"]}})["x.options"]


def test_the_bounds_are_what_the_documentation_says() -> None:
    assert validation.MATCH_BUDGET == 1_200_000
    assert (LARGEST_PROGRAM, LARGEST_PROGRAMS) == (4_000, 6_000)
