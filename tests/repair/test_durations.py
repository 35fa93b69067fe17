"""How long a tool's calls usually take."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.repair.durations import NO_DURATIONS, Durations, far_beyond, together, took, usual

NOW = 1_800_000_000.0


def of(*seconds: float, at: float = NOW) -> Durations:
    durations = NO_DURATIONS
    for one in seconds:
        durations = took(durations, one, at)
    return durations


def test_nothing_is_usual_before_twenty_calls_are_known() -> None:
    assert usual(of(*[1.0] * 19), NOW) is None
    assert not far_beyond(of(*[1.0] * 19), 9_999.0, NOW)
    assert usual(of(*[1.0] * 20), NOW) is not None


def test_usual_is_what_nineteen_of_twenty_calls_keep_to() -> None:
    known = usual(of(*[0.2] * 95, *[50.0] * 5), NOW)
    assert known is not None
    assert 0.2 < known < 0.4
    slower = usual(of(*[0.2] * 90, *[50.0] * 10), NOW)
    assert slower is not None
    assert 50.0 < slower < 100.0


def test_far_beyond_is_four_times_as_long_and_worth_telling() -> None:
    quick, slow = of(*[0.2] * 40), of(*[20.0] * 40)
    assert not far_beyond(quick, 9.0, NOW)
    assert far_beyond(quick, 11.0, NOW)
    assert not far_beyond(slow, 79.0, NOW)
    assert far_beyond(slow, 140.0, NOW)


def test_what_was_usual_fades() -> None:
    before = of(*[50.0] * 40, at=NOW - 100 * 86_400)
    known = usual(together(before, of(*[0.2] * 160)), NOW)
    assert known is not None
    assert known < 0.4


def test_the_shortest_and_the_longest_have_their_place() -> None:
    known = usual(of(*[0.0] * 40), NOW)
    assert known == 0.002
    assert usual(of(*[1e9] * 40), NOW) == 0.001 * 2**24


@given(st.lists(st.floats(0, 1e6)), st.lists(st.floats(0, 1e6)))
def test_parts_come_to_the_same_as_the_whole(one: list[float], other: list[float]) -> None:
    assert together(of(*one), of(*other)) == of(*other, *one)
