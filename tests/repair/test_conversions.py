"""Conversions: values at hand in the form that a tool's schema wants."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.forms.shapes import answer_problem
from holdfast.model.form import Field, FieldType, Option, Validation
from holdfast.repair.conversions import converted, iso_date, nearest_option
from holdfast.repair.units import unit_of

NUMBER = Field("amount", FieldType.NUMBER)
WHOLE = replace(NUMBER, integer=True)
TEXT = Field("name")
FLAG = Field("urgent", FieldType.BOOLEAN)
DAY = Field("until", FieldType.DATE)
LIST = Field("names", FieldType.TEXTAREA, json="array")
AREAS = tuple(Option(one, one) for one in ("Office", "Lab-1", "Lab-2", "Canteen"))
AREA = Field("area", FieldType.SELECT, options=AREAS)
PERMISSIONS = Field("permissions", FieldType.MULTISELECT, options=AREAS)
GRAMS = Field("weight_g", FieldType.NUMBER)


@pytest.mark.parametrize(
    ("field", "value", "wanted"),
    [
        (NUMBER, "5", 5),
        (NUMBER, " -2.50 ", -2.5),
        (WHOLE, "7", 7),
        (TEXT, 5, "5"),
        (TEXT, 2.5, "2.5"),
        (FLAG, "Yes", True),
        (FLAG, 0, False),
        (FLAG, "否", False),
        (DAY, "31.12.2026", "2026-12-31"),
        (LIST, "code", ["code"]),
        (TEXT, ["Will Zhang"], "Will Zhang"),
        (NUMBER, ["5"], 5),
        (AREA, "office", "Office"),
        (AREA, "lab 2", "Lab-2"),
        (AREA, "Cantine", "Canteen"),
        (PERMISSIONS, "office", ["Office"]),
        (PERMISSIONS, ["office", "Lab-1", "Office"], ["Office", "Lab-1"]),
        (GRAMS, "5 kg", 5_000),
        (GRAMS, "1.5kg", 1_500),
        (GRAMS, "250 mg", 0.25),
    ],
)
def test_what_says_the_same_in_another_form_is_converted(
    field: Field, value: Any, wanted: Any
) -> None:
    made = converted(field, value)
    assert made == wanted
    assert type(made) is type(wanted)
    assert answer_problem(field, made) is None


@pytest.mark.parametrize(
    ("field", "value"),
    [
        (NUMBER, "five"),
        (NUMBER, "1,200"),
        (NUMBER, "0x10"),
        (WHOLE, "2.5"),
        (NUMBER, True),
        (TEXT, True),
        (TEXT, None),
        (TEXT, ["a", "b"]),
        (FLAG, "perhaps"),
        (FLAG, None),
        (DAY, "05/06/2026"),
        (DAY, 20261231),
        (LIST, {"a": 1}),
        (AREA, "lab"),
        (AREA, "roof"),
        (PERMISSIONS, ["office", "roof"]),
        (GRAMS, "5 m"),
        (NUMBER, "5 kg"),
        (Field("anything", FieldType.TEXTAREA, json=True), [5]),
    ],
)
def test_what_may_mean_something_else_is_not_converted(field: Field, value: Any) -> None:
    assert converted(field, value) is None


def test_a_number_is_converted_only_from_a_unit_that_is_known() -> None:
    kilograms = unit_of("weight_kg")
    assert converted(GRAMS, 5) == 5
    assert converted(GRAMS, 5, kilograms) == 5_000
    assert converted(GRAMS, "5", kilograms) == 5_000
    assert converted(GRAMS, 5, unit_of("length_m")) == 5
    assert converted(NUMBER, 5, kilograms) == 5
    assert converted(GRAMS, False, kilograms) is None
    most = replace(GRAMS, validation=Validation(maximum=100))
    assert converted(most, 5, kilograms) is None


def test_an_option_that_needs_a_text_of_its_own_is_never_meant() -> None:
    other = Option("other", "Another", requires_input=True)
    assert nearest_option(replace(AREA, options=(*AREAS, other)), "other") is None


def test_an_option_is_found_by_its_label_too() -> None:
    field = replace(AREA, options=(Option("o1", "Main office"), Option("o2", "Canteen")))
    assert nearest_option(field, "main office") == "o1"


def test_a_date_that_is_no_text_is_none() -> None:
    assert iso_date(None) is None
    assert iso_date("2026年3月1日") == "2026-03-01"


FIELDS = st.sampled_from([NUMBER, WHOLE, TEXT, FLAG, DAY, LIST, AREA, PERMISSIONS, GRAMS])
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=20),
    st.sampled_from(["5", "yes", "31.12.2026", "office", "5 kg"]),
    st.lists(st.text(max_size=5), max_size=3),
)


@given(FIELDS, VALUES, st.sampled_from([None, unit_of("weight_g")]))
def test_a_conversion_is_taken_by_its_field_and_converts_no_further(
    field: Field, value: Any, unit: Any
) -> None:
    made = converted(field, value, unit)
    if made is not None:
        assert answer_problem(field, made) is None
        assert converted(field, made, unit) in (None, made)


def test_a_value_of_the_field_stays_below_its_bounds() -> None:
    assert converted(replace(NUMBER, validation=Validation(maximum=10)), "50") is None
