"""What retries may put on a tool."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from holdfast.repair.budgets import (
    ALIKE,
    BETWEEN,
    FULL,
    HELD,
    NO_LOAD,
    PUT_OFF,
    WITHIN,
    Call,
    Load,
    Turn,
    at_rest,
    failed,
    left,
    recovered,
    succeeded,
    wake_after,
)

NOW = 1_800_000_000.0
DOWN = "fp1:0123456789abcdef"
ODD = "fp1:fedcba9876543210"


def call(number: int) -> Call:
    return Call(f"inst_{number:06d}", "L002")


def fail(load: Load, number: int, now: float = NOW, fingerprint: str = DOWN) -> tuple[Load, Turn]:
    return failed(load, fingerprint, call(number), now)


def out(*, now: float = NOW, others: int = 0) -> Load:
    """Five runs have failed alike, and so many others after them."""
    load = NO_LOAD
    for number in range(1, ALIKE + others + 1):
        load, _ = fail(load, number, now)
    return load


def test_a_retry_costs_a_token_and_a_success_earns_a_tenth() -> None:
    load, turn = fail(NO_LOAD, 1)
    assert (turn, load.tokens) == (Turn(), FULL - 10)
    for _ in range(9):
        load = succeeded(load)
    assert load.tokens == FULL - 1
    assert succeeded(succeeded(load)).tokens == FULL


def test_without_a_token_retries_are_put_off_one_a_minute_and_it_is_told_once() -> None:
    load = NO_LOAD
    for _ in range(10):
        load, turn = fail(load, 1)
        assert turn == Turn()
    load, first = fail(load, 1)
    load, second = fail(load, 2)
    assert first == Turn(PUT_OFF, spent=True)
    assert second == Turn(2 * PUT_OFF)
    _, later = fail(load, 3, NOW + 30.0)
    assert later == Turn(3 * PUT_OFF - 30.0)


def test_no_retry_is_put_off_by_more_than_an_hour() -> None:
    load = replace(NO_LOAD, tokens=0, slot=NOW + 9_000.0)
    _, turn = fail(load, 1)
    assert turn.hold == 2 * HELD


def test_a_spent_budget_is_told_again_after_it_was_half_full() -> None:
    load = replace(NO_LOAD, tokens=0, dry=True)
    for _ in range(49):
        load = succeeded(load)
    assert load.dry
    load = succeeded(load)
    assert not load.dry
    _, turn = fail(replace(load, tokens=0), 1)
    assert turn.spent


def test_five_runs_that_fail_alike_within_a_minute_are_an_outage_and_one_leads() -> None:
    load, turns = NO_LOAD, []
    for number in range(1, 8):
        load, turn = fail(load, number)
        turns.append(turn)
    assert turns[:4] == [Turn()] * 4
    assert turns[4] == Turn(leads=True, began=True)
    assert all(one.waits and HELD <= one.hold <= 2 * HELD for one in turns[5:])
    assert turns[5].hold != turns[6].hold
    assert load.tokens == FULL - 40, "who leads or waits pays nothing"


def test_other_failures_slower_ones_and_those_of_one_run_are_no_outage() -> None:
    load = NO_LOAD
    for number in range(1, 9):
        load, turn = fail(load, 1)
        assert not turn.began
        load, turn = fail(load, number, fingerprint=f"fp1:{number}")
        assert not turn.began
    load = NO_LOAD
    for number in range(1, 9):
        load, turn = fail(load, number, NOW + number * WITHIN / 4)
        assert not turn.began


def test_the_leader_goes_on_trying_and_the_others_wait() -> None:
    load = out(others=3)
    load, again = fail(load, ALIKE, NOW + 120.0)
    assert again == Turn(leads=True)
    load, early = fail(load, 1, NOW + 121.0)
    assert early.waits
    assert set(load.outages[DOWN].waiting) == {call(one) for one in (1, 6, 7, 8)}


def test_a_success_wakes_the_others_in_order_and_spread() -> None:
    load = out(others=3)
    load, _ = fail(load, 1, NOW + 9.0)
    load, waiting = recovered(load, DOWN)
    assert waiting == (call(6), call(7), call(8), call(1))
    assert [wake_after(place) for place in range(3)] == [0.0, BETWEEN, 2 * BETWEEN]
    assert recovered(load, DOWN) == (load, ())


def test_a_leader_that_leaves_is_followed_by_the_next() -> None:
    load = out(others=2)
    load, following = left(load, DOWN, call(ALIKE))
    assert following == call(6)
    load, turn = fail(load, 6, NOW + 5.0)
    assert turn.leads
    load, following = left(load, DOWN, call(7))
    assert following is None
    assert recovered(load, DOWN)[1] == ()
    load, following = left(load, DOWN, call(6))
    assert following is None
    _, turn = fail(load, 9, NOW + 6.0)
    assert turn.leads


def test_who_leaves_without_having_waited_changes_nothing() -> None:
    load = out(others=1)
    assert left(load, DOWN, call(99)) == (load, None)
    assert left(load, ODD, call(6)) == (load, None)


def test_a_leader_that_is_not_heard_of_is_followed_by_whoever_asks() -> None:
    load = out(others=2)
    _, turn = fail(load, 6, NOW + HELD - 1)
    assert turn.waits
    load, turn = fail(load, 6, NOW + HELD)
    assert turn.leads
    assert set(load.outages[DOWN].waiting) == {call(7)}


def test_an_outage_of_which_nobody_hears_is_over() -> None:
    load, turn = fail(out(others=2), 6, NOW + 2 * HELD)
    assert turn == Turn()
    assert not load.outages


def test_a_load_is_worth_keeping_until_all_is_as_it_was() -> None:
    load, _ = fail(NO_LOAD, 1)
    assert not at_rest(load, NOW + WITHIN)
    for _ in range(10):
        load = succeeded(load)
    assert not at_rest(load, NOW), "it failed just now"
    assert at_rest(load, NOW + WITHIN)
    assert not at_rest(out(), NOW + WITHIN)
    assert not at_rest(replace(NO_LOAD, slot=NOW + 1), NOW)


def test_200_runs_in_an_outage_are_retried_twenty_times_and_all_go_on() -> None:
    """It lasts for ten minutes; each run that may retry does so after a minute."""
    load, now, retries = NO_LOAD, NOW, 0
    due: list[tuple[float, int]] = []
    for number in range(1, 201):
        load, turn = fail(load, number, now)
        due.append((now + max(turn.hold, 60.0), number))
    while due:
        now, number = min(due)
        due.remove((now, number))
        if now >= NOW + 600.0:
            break
        retries += 1
        load, turn = fail(load, number, now)
        due.append((now + max(turn.hold, 60.0), number))
    load, waiting = recovered(load, DOWN)
    assert retries <= 20
    assert len(waiting) == 199


events = st.lists(
    st.tuples(
        st.sampled_from(("failed", "succeeded", "recovered", "left")),
        st.integers(1, 12),
        st.sampled_from((DOWN, ODD)),
        st.floats(0, 300),
    ),
    max_size=60,
)


@given(events)
def test_whatever_happens_every_call_goes_on_within_the_hour_and_one_leads(found: list) -> None:  # type: ignore[type-arg]
    load, now = NO_LOAD, NOW
    for what, number, fingerprint, later in found:
        now += later
        match what:
            case "failed":
                load, turn = failed(load, fingerprint, call(number), now)
                assert 0 <= turn.hold <= 2 * HELD
                outage = load.outages.get(fingerprint)
                assert outage is None or outage.leader is not None
                assert not (turn.leads and turn.hold)
            case "succeeded":
                load = succeeded(load)
            case "recovered":
                load, _ = recovered(load, fingerprint)
            case _:
                load, _ = left(load, fingerprint, call(number))
        assert 0 <= load.tokens <= FULL
        for outage in load.outages.values():
            assert outage.leader not in outage.waiting
