"""References that stand for secrets, and texts that are rid of the secrets themselves."""

from __future__ import annotations

import html
import json
from base64 import b64encode, urlsafe_b64encode
from enum import IntEnum, StrEnum
from types import MappingProxyType
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.forms.secrets import (
    HIDDEN,
    Scrubber,
    fill,
    is_reference,
    reference_of,
    references_in,
)
from holdfast.model.values import Json

ONE = reference_of(bytes(16))
TWO = reference_of(bytes([255]) * 32)
AWKWARD = 'a+b/ "c"\\<é>&\'x'


def test_a_reference_is_a_text_of_its_own_shape() -> None:
    assert f"secret:{'0' * 32}" == ONE
    assert f"secret:{'f' * 32}" == TWO
    assert is_reference(ONE)
    for other in (f"{ONE} ", f"x{ONE}", "secret:", "secret:hunter2", 7, None, [ONE]):
        assert not is_reference(other)


def test_references_are_found_wherever_they_stand() -> None:
    nested: Json = {"a": [f"Bearer {ONE}", 1, None], TWO: {"b": (True, "secret:")}}
    assert references_in(nested) == {ONE, TWO}
    assert references_in("nothing") == frozenset()


def test_references_are_found_in_values_of_ones_own_types_too() -> None:
    class Word(StrEnum):
        KEY = ONE

    class Level(IntEnum):
        HIGH = 3

    assert references_in([Word.KEY, Level.HIGH, MappingProxyType({TWO: 1.5})]) == {ONE, TWO}


def test_values_take_the_place_of_the_references_that_are_known() -> None:
    given_: Json = {"auth": f"Bearer {ONE}", "both": [ONE, TWO, f"{ONE}{ONE}"], "n": 1, "no": None}
    assert fill(given_, {ONE: "hunter2"}) == {
        "auth": "Bearer hunter2",
        "both": ["hunter2", TWO, "hunter2hunter2"],
        "n": 1,
        "no": None,
    }


def test_a_value_that_looks_like_a_reference_is_not_filled_in_again() -> None:
    assert fill(ONE, {ONE: TWO, TWO: "hunter2"}) == TWO


def test_what_comes_back_as_it_was_becomes_the_reference_again() -> None:
    echoed: Json = {"token": "hunter2", "hunter2": ["it is hunter2!", True, 7.5, None]}
    clean = Scrubber({ONE: "hunter2"}).value(echoed)
    assert clean == {"token": ONE, ONE: [f"it is {ONE}!", True, 7.5, None]}
    assert fill(clean, {ONE: "hunter2"}) == echoed


@pytest.mark.parametrize(
    "spelled",
    [
        json.dumps(AWKWARD),
        json.dumps(AWKWARD, ensure_ascii=False),
        repr(AWKWARD),
        html.escape(AWKWARD),
        quote(AWKWARD),
        quote(AWKWARD, safe=""),
        quote_plus(AWKWARD),
        quote(AWKWARD, safe="").replace("%2F", "%2f"),
        b64encode(AWKWARD.encode()).decode(),
        urlsafe_b64encode(AWKWARD.encode()).decode(),
        b64encode(b"u:" + AWKWARD.encode()).decode(),
        b64encode(b"user:" + AWKWARD.encode() + b";x").decode(),
        b64encode(b"us:" + AWKWARD.encode()).decode(),
    ],
)
def test_other_spellings_are_hidden_too(spelled: str) -> None:
    told = str(Scrubber({ONE: AWKWARD}).value(f"it said {spelled} to us"))
    assert HIDDEN in told
    assert told.startswith("it said ")
    assert spelled[4:-4] not in told


def test_a_short_value_is_only_known_as_a_whole_text() -> None:
    values = {ONE: "12", TWO: ""}
    assert Scrubber(values).value(["12", "1234", 12, "", "on the 12th"]) == [
        ONE,
        "1234",
        12,
        "",
        "on the 12th",
    ]


def test_a_code_of_digits_comes_back_as_a_number() -> None:
    assert Scrubber({ONE: "4711"}).value([4711, 47110, 4711.0]) == [ONE, 47110, 4711.0]


def test_a_value_within_another_does_not_cut_it_apart() -> None:
    values = {ONE: "open", TWO: "open sesame"}
    assert Scrubber(values).value("say open sesame, or open") == f"say {TWO}, or {ONE}"


def test_without_secrets_nothing_changes() -> None:
    assert Scrubber({}).text("hunter2") == "hunter2"


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=4), st.text(), st.text())
def test_no_text_keeps_a_value(value: str, before: str, after: str) -> None:
    told = str(Scrubber({ONE: value}).value(f"{before}{value}{after}"))
    rest = told.replace(ONE, "").replace(HIDDEN, "")
    assert value not in told or value in ONE or value in HIDDEN or value in rest


def test_a_value_without_a_reference_is_hidden_in_any_spelling() -> None:
    scrubber = Scrubber({ONE: "hunter2"}, ["tok-7f3c", "abc", "hunter2"])
    echoed: Json = ["tok-7f3c", "Bearer tok-7f3c", {"tok-7f3c": "tok%2D7f3c"}, "abc", "hunter2"]
    assert scrubber.value(echoed) == [
        HIDDEN,
        f"Bearer {HIDDEN}",
        {HIDDEN: HIDDEN},
        "abc",
        ONE,
    ]
