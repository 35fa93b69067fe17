"""Units: which one a text names beyond doubt, and the same quantity in another."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.repair.units import in_unit, quantity, unit_of


@pytest.mark.parametrize(
    ("texts", "same_as"),
    [
        (("weight_g",), "(g)"),
        (("weight", "Weight (kg)"), "kilograms"),
        (("duration", "Duration in min"), "minutes"),
        (("amount", "金额（分）"), "fen"),
        (("amount", "金额，单位：元"), "yuan"),
        (("timeout-ms",), "milliseconds"),
        (("price", "in cents, not less than one cent"), "cents"),
    ],
)
def test_a_text_names_its_unit(texts: tuple[str, ...], same_as: str) -> None:
    assert unit_of(*texts) == unit_of(same_as)
    assert unit_of(*texts) is not None


@pytest.mark.parametrize(
    "text", ["", "weight", "a big m", "amount in yuan or in cents", "begin", "今天的部分"]
)
def test_a_text_that_leaves_a_doubt_names_none(text: str) -> None:
    assert unit_of(text) is None


def test_a_quantity_is_a_number_and_its_unit_and_nothing_else() -> None:
    assert quantity(" 1.5 KG ") == (Fraction(3, 2), unit_of("kilograms"))
    assert quantity("¥20") is None
    assert quantity("20 元") == (20, unit_of("yuan"))
    assert quantity("5 kg of flour") is None
    assert quantity("five kg") is None


def test_only_units_of_one_kind_convert() -> None:
    kilograms, grams, hours = (unit_of(one) for one in ("kilograms", "grams", "hours"))
    assert kilograms
    assert grams
    assert hours
    assert in_unit(Fraction(5), kilograms, grams) == 5_000
    assert in_unit(Fraction(5), grams, kilograms) == 0.005
    assert in_unit(Fraction(5), hours, grams) is None


UNITS = st.sampled_from(["mg", "g", "kg", "t"])


@given(st.integers(-(10**6), 10**6), UNITS, UNITS)
def test_there_and_back_is_the_same_number(number: int, one: str, other: str) -> None:
    here, there = unit_of(f"({one})"), unit_of(f"({other})")
    assert here
    assert there
    assert in_unit(Fraction(str(in_unit(Fraction(number), here, there))), there, here) == number
