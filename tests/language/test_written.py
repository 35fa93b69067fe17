"""JSON in a model's words."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.language.written import MOST_BRACES, objects_within, written_json

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text('ab{}[]"\\'),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab{", max_size=3), inner),
    max_leaves=6,
)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"a": 1}', [{"a": 1}]),
        ("[1, 2]", [[1, 2]]),
        ("so:\n```json\n[1]\n```\nand\n``` \n{}\n```", [[1], {}]),
        ("so it is", []),
        ('{"a": NaN}', []),
        ('{"a": "\\ud800"}', []),
        ("[" * 10_000, []),
        ('I say {"a": 1}', []),
    ],
)
def test_the_whole_text_and_each_fenced_block_may_be_json(text: str, found: list[Any]) -> None:
    assert list(written_json(text)) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('I say {"a": {"b": 1}} and {"c": 2}.', [{"a": {"b": 1}}, {"c": 2}]),
        ('{"a": 1', []),
        ('{"lost": {"a": 1}', [{"a": 1}]),
        ('{"a": NaN}{"b": 1}', [{"b": 1}]),
        ("{no} {" + '{"a": 1}', [{"a": 1}]),
        ("no braces at all", []),
    ],
)
def test_objects_are_found_among_words(text: str, found: list[Any]) -> None:
    assert list(objects_within(text)) == found


def test_only_so_many_braces_are_tried() -> None:
    assert list(objects_within("{ " * (MOST_BRACES - 1) + "{}")) == [{}]
    assert list(objects_within("{ " * MOST_BRACES + "{}")) == []


@given(st.dictionaries(st.text("ab", max_size=3), JSON, max_size=3), st.text("ab ,.:]}"))
def test_an_object_between_words_is_found_as_it_was_written(
    value: dict[str, Any], words: str
) -> None:
    assert list(objects_within(f"{words}{json.dumps(value)}{words}")) == [value]
