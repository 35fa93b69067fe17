"""JSON text is measured before anything parses it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import InvalidValue
from holdfast.language.strict import Extent, extent, load_json

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text('ab"\\,[]{}:'),
    lambda inner: st.lists(inner) | st.dictionaries(st.text('a"\\,['), inner),
)


def counted(value: Any) -> int:
    match value:
        case dict():
            return 1 + sum(map(counted, value.values()))
        case list():
            return 1 + sum(map(counted, value))
    return 1


def deep(value: Any) -> int:
    match value:
        case dict():
            return 1 + max(map(deep, value.values()), default=0)
        case list():
            return 1 + max(map(deep, value), default=0)
    return 0


@given(ANYTHING)
def test_it_finds_the_depth_and_never_fewer_values_than_there_are(value: Any) -> None:
    text = json.dumps(value)
    found = extent(text.encode())
    assert found.depth == deep(value)
    assert counted(value) <= found.values <= 2 * counted(value) + 1
    assert load_json(text) == value


@pytest.mark.parametrize(
    "text",
    [
        b"[" + b"[]," * 200 + b"[]]",
        b"[" + b'"",' * 200 + b"1]",
        b"[" + rb'"\\",' * 500 + b"1]",
        b"[" + b"1," * 200 + b"1]",
        b"[" * 500,
        b"]" * 500,
        b'"' * 5_000,
        b"," * 500,
        b"{" + b'"a":{},' * 200 + b"}",
    ],
)
def test_too_many_values_are_too_many_however_they_are_written(text: bytes) -> None:
    assert extent(text, 100).depth == 0
    assert extent(text, 100).values > 100
    with pytest.raises(InvalidValue, match="more than 100 values"):
        load_json(text, 100)


def test_a_long_text_is_one_value() -> None:
    for words in ("x" * 100_000, '"' * 100_000, "," * 100_000, "[" * 100_000, "\\" * 100_000):
        assert extent(json.dumps({"source": words}).encode(), 100) == Extent(1, 2)
