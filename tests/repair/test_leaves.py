"""What a JSON value holds in the end, and what of a text is read from elsewhere."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.repair.leaves import Place, leaves, name_of, parted, paths_in, spelled

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(max_size=3), inside),
    max_leaves=10,
)


def test_every_leaf_has_its_place() -> None:
    found = dict(leaves({"a": 1, "b": {"c": [True, {"d": None}], "e": []}, "f": {}}))
    assert found == {
        ("a",): 1,
        ("b", "c", 0): True,
        ("b", "c", 1, "d"): None,
        ("b", "e"): [],
        ("f",): {},
    }


def test_a_place_is_spelled_with_dots_and_named_by_its_last_word() -> None:
    assert spelled(("L2", "b", "c", 1)) == "L2.b.c.1"
    assert name_of(("b", "c", 1)) == "c"
    assert name_of((0,)) == ""


@given(st.dictionaries(st.text(max_size=3), VALUES, max_size=3))
def test_the_leaves_are_all_that_there_is(value: dict[str, Any]) -> None:
    made = dict(leaves(value))
    assert all(_at(value, place) == leaf for place, leaf in made.items())
    assert {place[0] for place in made} == value.keys()


def _at(value: Any, place: Place) -> Any:
    for part in place:
        value = value[part]
    return value


@pytest.mark.parametrize("broken", ["{{result", "{001.contxt.a}", {"a": ["{{x}}"]}])
def test_what_is_no_template_reads_nothing(broken: object) -> None:
    assert paths_in(broken) == ()


def test_a_template_is_parted_into_words_and_what_it_reads() -> None:
    assert parted("To {001.context.a}: {{result.b}}!") == (
        ["To ", ": ", "!"],
        [("001", "context", "a"), ("result", "b")],
    )
    assert parted("{ 001.status }") == (["", ""], [("001", "status")])


@pytest.mark.parametrize(
    "plain", ["no braces", r"\{001.context.a}", "{a}", 5, None, ["{1.status}"]]
)
def test_what_reads_nothing_has_no_parts(plain: object) -> None:
    assert parted(plain) is None
