"""When a failed call is worth another attempt."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.model.recovery import EDGES, Moments, bucket_of, passed_at
from holdfast.repair.counts import total
from holdfast.repair.curves import (
    BUCKETS,
    ENOUGH,
    HOPELESS,
    KINDS,
    NO_CURVE,
    ONE_OF,
    WHOLE,
    Curve,
    explored_bucket,
    hazards,
    moments_of,
    next_wait,
    together,
    tried,
)

NOW = 1_800_000_000.0


def case(curve: Curve, *failures: float, won: float | None = None, at: float = NOW) -> Curve:
    """One call that failed again at these seconds after its first failure, and perhaps won."""
    passed = 0
    for since in failures:
        curve = tried(curve, passed, since, at, won=False)
        passed = max(passed, passed_at(since))
    return curve if won is None else tried(curve, passed, won, at, won=True)


def cases(count: int, *failures: float, won: float | None = None) -> Curve:
    curve = NO_CURVE
    for _ in range(count):
        curve = case(curve, *failures, won=won)
    return curve


def wins_and_tries(curve: Curve) -> tuple[list[float], list[float]]:
    counted = [one / WHOLE for one in total(curve.counts, KINDS)]
    return counted[:BUCKETS], counted[BUCKETS : 2 * BUCKETS]


def test_an_attempt_stands_for_the_bucket_that_it_falls_into_or_has_just_left() -> None:
    assert [bucket_of(one) for one in (0.1, 0.5, 0.54, 0.6, 1_800, 1_980, 1_981)] == [
        *(0, 0, 0, 1, 6, 6, 7)
    ]
    assert [passed_at(one) for one in (0.0, 0.1, 2.0, 1_800, 9_999)] == [0, 1, 2, 7, 7]


def test_a_failed_attempt_has_lived_through_every_bucket_since_the_one_before() -> None:
    curve = case(NO_CURVE, 2.0, 30.0)
    assert wins_and_tries(curve) == ([0] * 7, [1, 1, 1, 1, 0, 0, 0])
    assert curve.cases == 1
    again = case(NO_CURVE, 3.0, 5.0, 7.0)
    assert wins_and_tries(again) == ([0] * 7, [1, 1, 1, 0, 0, 0, 0])


def test_a_win_is_shared_among_the_buckets_since_the_attempt_before() -> None:
    wins, tries = wins_and_tries(case(NO_CURVE, 2.0, won=120.0))
    assert wins == pytest.approx([0, 0, 1 / 3, 1 / 3, 1 / 3, 0, 0])
    assert tries == pytest.approx([1, 1, 1, 2 / 3, 1 / 3, 0, 0])


def test_a_win_in_the_bucket_of_the_attempt_before_is_that_buckets() -> None:
    assert wins_and_tries(case(NO_CURVE, 3.0, won=7.0)) == (
        [0, 0, 1, 0, 0, 0, 0],
        [1, 1, 1, 0, 0, 0, 0],
    )


def test_a_win_after_the_last_bucket_may_have_come_there_only() -> None:
    wins, tries = wins_and_tries(case(NO_CURVE, 120.0, won=9_000.0))
    assert wins == pytest.approx([0, 0, 0, 0, 0, 1 / 3, 1 / 3])
    assert tries == pytest.approx([1, 1, 1, 1, 1, 1, 2 / 3])
    late = case(NO_CURVE, 1_800.0, won=9_000.0)
    assert wins_and_tries(late) == ([0] * 7, [1] * 7)


def test_the_chance_of_a_bucket_is_that_of_the_cause_until_it_is_known_better() -> None:
    assert hazards(NO_CURVE, NO_CURVE, NOW) == (0.25,) * BUCKETS
    pooled = cases(8, 0.5)
    assert hazards(NO_CURVE, pooled, NOW)[0] == pytest.approx(2 * 0.25 / 10)
    own = cases(6, won=0.5)
    assert hazards(own, pooled, NOW)[0] == pytest.approx((6 + 2 * 0.05) / 8)


def test_below_five_cases_nothing_is_known() -> None:
    assert moments_of(cases(4, 1.0), NO_CURVE, NOW) == Moments(cases=4)
    assert not moments_of(cases(4, 1.0), NO_CURVE, NOW).known
    assert moments_of(cases(5, 1.0), NO_CURVE, NOW).known


def test_the_next_attempt_comes_when_it_is_likely_enough_to_help() -> None:
    curve = cases(40, 0.5, 2.0, 8.0, 30.0, won=120.0)
    found = moments_of(curve, curve, NOW)
    assert found.due[:6] == (120.0, 120.0, 120.0, 120.0, 120.0, 1_800.0)
    assert found.wait(0.0, 0.0) == 120.0
    assert found.wait(20.0, 20.0) == 100.0
    assert found.wait(20.0, 50.0) == 70.0, "an attempt counts from where it began"
    assert found.chances[0] > 0.9
    assert found.why(0.0) == (
        f"of failures like it, 40 known, {round(100 * found.chances[0])} % are over 120 s after "
        "they began"
    )


def test_what_never_recovers_is_left() -> None:
    curve = cases(40, 0.5, 2.0, 8.0, 30.0, 120.0, 600.0, 1_800.0)
    found = moments_of(curve, curve, NOW)
    assert found.due == (None,) * (BUCKETS + 1)
    assert found.wait(0.0, 0.0) is None
    assert found.why(0.0).startswith("of failures like it, 40 known, ")
    assert found.why(0.0).endswith(" % are over within half an hour")


def test_where_the_chance_is_small_all_of_it_is_waited_for() -> None:
    known = cases(30, 0.5, 2.0, 8.0, 30.0, 120.0, 600.0, 1_800.0)
    curve = together(known, cases(5, 0.5, 2.0, 8.0, 30.0, won=120.0))
    found = moments_of(curve, curve, NOW)
    assert found.due[0] == EDGES[-1]
    assert HOPELESS <= found.chances[0] < ENOUGH


def test_after_half_an_hour_there_is_no_further_attempt() -> None:
    found = moments_of(cases(9, won=0.5), NO_CURVE, NOW)
    assert found.wait(1_800.0, 1_800.0) is None


def test_a_curve_fades() -> None:
    curve = cases(10, 0.5, 2.0, 8.0, 30.0, 120.0, 600.0, 1_800.0)
    assert moments_of(curve, curve, NOW).wait(0.0, 0.0) is None
    assert moments_of(curve, NO_CURVE, NOW + 100 * 86_400).wait(0.0, 0.0) is not None


def test_a_wait_is_counted_from_now() -> None:
    curve = cases(40, 0.5, 2.0, 8.0, 30.0, won=120.0)
    assert next_wait(curve, 0.0, 0.0, curve, NOW) == 120.0
    assert next_wait(curve, 31.0, 1.0, curve, NOW) == 89.0
    assert next_wait(curve, 1_800.0, 0.0, curve, NOW) is None
    assert next_wait(curve, 700.0, 690.0, curve, NOW) == 0.0


def test_one_run_of_twenty_explores_and_the_rest_do_what_is_known() -> None:
    curve = cases(40, 0.5, 2.0, 8.0, 30.0, 120.0, 600.0, 1_800.0)
    runs = [f"inst_{n:06d}" for n in range(4_000)]
    explorers = [one for one in runs if explored_bucket(one) is not None]
    assert len(explorers) == pytest.approx(len(runs) / ONE_OF, rel=0.3)
    assert {explored_bucket(one) for one in explorers} == set(range(BUCKETS))
    waits = {one: moments_of(curve, curve, NOW, one).wait(0.0, 0.0) for one in runs}
    assert {one for one, wait in waits.items() if wait is not None} == set(explorers)
    assert explored_bucket("") is None


def test_an_explorer_goes_on_as_known_after_its_attempt() -> None:
    curve = cases(40, 0.5, 2.0, 8.0, 30.0, won=120.0)
    run_id = next(r for n in range(999) if explored_bucket(r := f"inst_{n:06d}") == 1)
    found = moments_of(curve, curve, NOW, run_id)
    assert found.due == (2.0, 2.0, *moments_of(curve, curve, NOW).due[2:])
    assert found.why(0.0) == "tried after 2 s to learn when it recovers"
    assert found.why(2.1).endswith("are over 120 s after they began")


attempts = st.lists(st.floats(0.01, 4_000), max_size=6).map(sorted)
stories = st.lists(st.tuples(attempts, st.none() | st.floats(0.01, 9_000)), max_size=12)


def told(found: list[tuple[list[float], float | None]]) -> Curve:
    curve = NO_CURVE
    for failures, won in found:
        late = None if won is None else max([won, *failures])
        curve = case(curve, *failures, won=late)
    return curve


@given(stories, stories)
def test_curves_of_parts_are_the_curve_of_the_whole(one: list, other: list) -> None:  # type: ignore[type-arg]
    assert together(told(one), told(other)) == told([*one, *other])
    assert together(told(other), told(one)) == told([*one, *other])


@given(stories, stories)
def test_chances_are_chances_and_moments_come_later_and_later(own: list, others: list) -> None:  # type: ignore[type-arg]
    curve, pooled = told(own), told([*own, *others])
    found = hazards(curve, pooled, NOW)
    assert all(0 <= one <= 1 for one in found)
    wins, tries = wins_and_tries(curve)
    assert all(win <= lived + 1e-9 for win, lived in zip(wins, tries, strict=True))
    due = [one for one in moments_of(curve, pooled, NOW).due if one is not None]
    assert all(before <= after for before, after in pairwise(due))
    for passed, moment in enumerate(moments_of(curve, pooled, NOW).due):
        assert moment is None or moment >= EDGES[passed]
