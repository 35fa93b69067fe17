from __future__ import annotations

import json
from collections import OrderedDict, namedtuple
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import IntEnum, StrEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import InvalidValue
from holdfast.language.strict import (
    canonical_json,
    copied,
    digest,
    json_path,
    strict_json,
    strict_text,
)

plain_text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | plain_text
)
json_values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(plain_text, inner, max_size=4),
    max_leaves=12,
)


class Colour(StrEnum):
    RED = "red"


class Level(IntEnum):
    HIGH = 3


class Shout(str):
    def __str__(self) -> str:
        return "changed"


class Metres(float):
    pass


Point = namedtuple("Point", "x y")


@dataclass
class Person:
    name: str


def refusal(value: object, **limits: int) -> InvalidValue:
    with pytest.raises(InvalidValue) as caught:
        strict_json(value, **limits)
    return caught.value


def kinds(value: Any) -> Any:
    """The value with every type beside it, since 1, 1.0 and True compare equal."""
    if isinstance(value, list):
        return [kinds(item) for item in value]
    if isinstance(value, dict):
        return {key: kinds(item) for key, item in value.items()}
    return type(value), value


@given(json_values)
def test_json_comes_through_unchanged_and_fresh(value: Any) -> None:
    copy = strict_json(value)
    assert kinds(copy) == kinds(value)
    if isinstance(value, list | dict):
        assert copy is not value


@given(json_values)
def test_what_passes_the_gate_survives_the_codec(value: Any) -> None:
    assert kinds(json.loads(canonical_json(strict_json(value)))) == kinds(value)


@given(json_values, st.lists(plain_text | st.integers(0, 3), max_size=4), st.booleans())
def test_a_refusal_names_the_place_wherever_it_is(
    beside: Any, way: list[str | int], as_key: bool
) -> None:
    value: Any = {0: beside} if as_key else b"odd"
    for part in reversed(way):
        value = {part: value} if isinstance(part, str) else [*([beside] * part), value]
    assert refusal(value).path == json_path(way)


def test_nested_containers_are_fresh_too() -> None:
    inner = {"a": [1]}
    copy = strict_json({"inner": inner})
    inner["a"].append(2)
    assert copy == {"inner": {"a": [1]}}


@pytest.mark.parametrize(
    ("foreign", "plain"),
    [
        ((1, (2,)), [1, [2]]),
        (Point(1, 2), [1, 2]),
        (Colour.RED, "red"),
        (Shout("quiet"), "quiet"),
        (Level.HIGH, 3),
        (Metres(1.5), 1.5),
        (OrderedDict(b=1, a=2), {"b": 1, "a": 2}),
        ({Colour.RED: True}, {"red": True}),
        ({"姓名": "张三"}, {"姓名": "张三"}),
    ],
)
def test_what_json_would_bend_is_made_plain(foreign: object, plain: object) -> None:
    assert kinds(strict_json(foreign)) == kinds(plain)
    assert all(type(key) is str for key in plain) if isinstance(plain, dict) else True


def test_enum_keys_become_plain_text() -> None:
    (key,) = strict_json({Colour.RED: 1})
    assert type(key) is str


@pytest.mark.parametrize(
    ("value", "path", "reason"),
    [
        (float("nan"), "$", "NaN"),
        ({"a": float("-inf")}, "$.a", "Infinity"),
        ({"a": [0, b"x"]}, "$.a[1]", "base64"),
        ({"a": {"b": {1}}}, "$.a.b", "make it a list"),
        ([frozenset()], "$[0]", "make it a list"),
        ({"a b": Decimal(1)}, '$["a b"]', "Decimal is not JSON"),
        ((date(2026, 1, 1),), "$[0]", "date is not JSON"),
        (Person("Will Zhang"), "$", "Person is not JSON"),
        (object, "$", "type is not JSON"),
        ({"items": [{}, {}, {}, {"price": complex(1)}]}, "$.items[3].price", "complex"),
        ({"a": {1: "x"}}, "$.a", "a key of type int"),
        ({None: "x"}, "$", "a key of type NoneType"),
        ({"a": "\ud800"}, "$.a", "lone surrogate"),
        ({"a": {"\udfff": 1}}, "$.a", "lone surrogate"),
        ({"a": "x\0"}, "$.a", "U+0000"),
        ({"a": "张\0"}, "$.a", "U+0000"),
        ({"a\0": 1}, "$", "U+0000"),
        ({"a": {"张\0": 1}}, "$.a", "U+0000"),
        ([{"a": ["\0"]}], "$[0].a[0]", "U+0000"),
        ("\0", "$", "U+0000"),
        ({"n": 2**63}, "$.n", "64 bits"),
        ({"n": -(2**63) - 1}, "$.n", "64 bits"),
    ],
)
def test_what_json_would_lose_is_refused_with_its_place(
    value: object, path: str, reason: str
) -> None:
    error = refusal(value)
    assert error.path == path
    assert str(error).startswith(f"{path}: ")
    assert reason in str(error)


def test_integers_fill_exactly_64_bits() -> None:
    assert strict_json([2**63 - 1, -(2**63)]) == [2**63 - 1, -(2**63)]


def test_a_refusal_never_repeats_the_value() -> None:
    assert "hunter2" not in str(refusal({"password": b"hunter2"}))


def test_a_long_key_is_clipped_in_the_path() -> None:
    assert len(refusal({"k" * 5_000: {1}}).path) < 60


def test_depth_counts_lists_and_dicts_together() -> None:
    assert strict_json([{"a": 1}], max_depth=2) == [{"a": 1}]
    error = refusal([{"a": [1]}], max_depth=2)
    assert error.path == "$[0].a"
    assert "too deep" in str(error)
    assert "too deep" in str(refusal([{"a": {}}], max_depth=2))


@pytest.mark.parametrize("value", [{}, [], ()])
def test_a_limit_of_nothing_refuses_the_whole(value: object) -> None:
    assert (error := refusal(value, max_depth=0)).path == "$"
    assert "too deep" in str(error)
    assert (error := refusal(value, max_bytes=99)).path == "$"
    assert "larger than 99 bytes" in str(error)
    assert strict_json(value, max_depth=1, max_bytes=100) in ({}, [])


def test_a_cycle_is_named_as_one_where_it_starts() -> None:
    loop: list[Any] = []
    loop.append({"again": loop})
    error = refusal({"first": 1, "tree": {"loop": loop}})
    assert "contains itself" in str(error)
    assert error.path.startswith("$.tree.loop")
    assert len(error.path) < 40


def test_a_wide_cycle_is_refused_at_once() -> None:
    loop: dict[str, Any] = {}
    loop.update(a=loop, b=loop, c=loop)
    assert "contains itself" in str(refusal(loop))


def test_size_is_capped_over_the_whole_value() -> None:
    assert strict_json(["x" * 5] * 2, max_bytes=150)
    assert "larger than 150 bytes" in str(refusal(["x" * 5] * 3, max_bytes=150))
    for small in (0, None, "", 0.5, True):
        assert strict_json([small] * 2, max_bytes=150)
        assert "at least 20 for every value" in str(refusal([small] * 3, max_bytes=150))
    assert strict_json([[]], max_bytes=200)
    assert "larger than" in str(refusal([[], {}], max_bytes=200))
    assert "larger than" in str(refusal({"k" * 101: None}, max_bytes=100))


def test_size_counts_bytes_not_characters() -> None:
    assert strict_json("张" * 26, max_bytes=100)
    assert "larger than" in str(refusal("张" * 27, max_bytes=100))
    assert "larger than" in str(refusal("张" * 400, max_bytes=100))
    assert strict_json({"a": {"张" * 20: 0}}, max_bytes=304)
    error = refusal({"a": {"张" * 20: 0}}, max_bytes=283)
    assert (error.path, "larger than 283 bytes" in str(error)) == ("$.a", True)
    assert refusal({"a": {"张" * 20: 0}}, max_bytes=303).path == f"$.a.{'张' * 20}"


def test_a_value_shared_a_billion_times_is_refused_early() -> None:
    bomb: list[Any] = ["x" * 10]
    for _ in range(40):
        bomb = [bomb, bomb]
    assert "larger than" in str(refusal(bomb))


def test_equal_data_has_one_canonical_spelling() -> None:
    assert canonical_json({"b": [1, 2.5], "a": "张三"}) == '{"a":"张三","b":[1,2.5]}'
    assert canonical_json({"a": 1, "b": 2}) == canonical_json({"b": 2, "a": 1})


def test_digest_follows_the_canonical_form() -> None:
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    assert digest({"a": 1}) != digest({"a": True})
    assert digest({}) == "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"


def test_paths_read_like_javascript() -> None:
    assert json_path([]) == "$"
    assert json_path(["items", 3, "unit price"]) == '$.items[3]["unit price"]'


def test_a_callers_words_are_taken_as_they_are_or_refused() -> None:
    assert strict_text("张三 said 😀", "feedback") == "张三 said 😀"
    with pytest.raises(InvalidValue, match="feedback: at most 3 characters"):
        strict_text("four", "feedback", longest=3)
    with pytest.raises(InvalidValue, match="by: half of a character"):
        strict_text("a\ud800", "by")
    with pytest.raises(InvalidValue, match="U\\+0000") as refused:
        strict_text("a\0", "by")
    assert refused.value.path == "by"


def test_words_that_are_no_text_are_refused() -> None:
    with pytest.raises(InvalidValue, match="by: must be text, not int"):
        strict_text(5, "by")


def test_a_copy_shares_no_list_or_dict_with_the_value() -> None:
    value: Any = {"a": [1, {"b": "c"}], "d": ({"e": None},)}
    copy = copied(value)
    assert copy == value
    copy["a"][1]["b"] = copy["d"][0]["e"] = "changed"
    copy["a"].clear()
    assert value == {"a": [1, {"b": "c"}], "d": ({"e": None},)}
