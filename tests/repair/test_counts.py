"""Counts fade and add up, in whatever order they were made."""

from __future__ import annotations

from functools import reduce

from hypothesis import given
from hypothesis import strategies as st

from holdfast.repair.counts import DAY, HALF_LIFE, KEPT_SPANS, SPAN, added, counted, total, weighed

NOW = 20_000 * DAY

moments = st.floats(NOW - 300 * DAY, NOW)
rows = st.tuples(st.integers(0, 9), st.integers(0, 9))
told = st.lists(st.tuples(moments, rows), max_size=20)


def of(*found: tuple[float, tuple[int, int]]) -> dict[int, tuple[int, ...]]:
    counts: dict[int, tuple[int, ...]] = {}
    for at, row in found:
        counts = dict(counted(counts, at, row))
    return counts


def test_what_was_counted_thirty_days_ago_weighs_half() -> None:
    counts = of((NOW - HALF_LIFE, (4, 0)), (NOW, (1, 2)))
    assert weighed(counts, 2, NOW) == (3.0, 2.0)
    assert total(counts, 2) == (5, 2)


def test_a_clock_that_was_set_back_makes_nothing_weigh_more() -> None:
    assert weighed(of((NOW, (1, 2))), 2, NOW - HALF_LIFE) == (1.0, 2.0)


def test_what_is_older_than_120_days_is_forgotten() -> None:
    old, young = (NOW - KEPT_SPANS * SPAN, (1, 1)), (NOW - (KEPT_SPANS - 1) * SPAN, (2, 2))
    assert total(of(old, young, (NOW, (4, 4))), 2) == (6, 6)
    assert total(of((NOW, (4, 4)), young, old), 2) == (6, 6)


def test_nothing_counted_is_nothing() -> None:
    assert (total({}, 3), weighed({}, 2, NOW)) == ((0, 0, 0), (0.0, 0.0))


@given(told, st.randoms(use_true_random=False))
def test_the_order_does_not_matter(
    found: list[tuple[float, tuple[int, int]]], dice: object
) -> None:
    shuffled = list(found)
    dice.shuffle(shuffled)  # type: ignore[attr-defined]
    assert of(*found) == of(*shuffled)


@given(st.lists(told, max_size=4))
def test_parts_come_to_the_same_as_the_whole(
    parts: list[list[tuple[float, tuple[int, int]]]],
) -> None:
    whole = of(*(one for part in parts for one in part))
    assert reduce(added, [of(*part) for part in parts], {}) == whole
    assert reduce(added, [of(*part) for part in reversed(parts)], {}) == whole
