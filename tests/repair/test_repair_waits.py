"""Whether a failed call is worth a further round, and when."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_plans import on
from troubled_runs import DOWN, PLAN, begun, fail_call, retrying, wait

from holdfast.model import commands as c
from holdfast.model.plan import CodeAction
from holdfast.model.recovery import EDGES, Moments
from holdfast.model.repair import RepairLimits, RepairMode, RepairPolicy
from holdfast.model.retry import Failure, FailureKind, GiveUp, Retry
from holdfast.repair.waits import Failing, failing_of, held, weighed

FAILURE = DOWN.failure
ADVICE = Retry(3)
KNOWN = Moments((120.0,) * 5 + (600.0, None, None), (0.7,) * 8, cases=9)
HOPELESS = Moments((None,) * 8, (0.01,) * 8, cases=9)
FRESH = Failing("keyed", since=0.0, tried=0.0, asked=0.0, usual=0.5, left=3_600.0)


def test_how_long_it_has_failed_counts_from_its_first_failure() -> None:
    machine = begun(PLAN[0], retrying(2))
    fail_call(machine, after=7.0)
    wait(machine)
    fail_call(machine, after=40.0)
    found = failing_of(machine.state, "L002", FAILURE, machine.now)
    assert found == Failing("keyed", 40.5, 0.5, 0.0, 1.0, 3_600.0 - 40.5)


def test_one_that_fails_for_the_first_time_has_failed_for_no_time() -> None:
    machine = begun(PLAN[0], retrying(2))
    found = failing_of(machine.state, "L002", FAILURE, machine.now)
    assert found is not None
    assert (found.since, found.tried) == (0.0, 0.0)


def test_the_plan_says_how_long_may_be_waited() -> None:
    policy = RepairPolicy(RepairMode.AUTO, most=RepairLimits(wait=60.0))
    machine = begun(PLAN[0], retrying(1), repair=policy)
    fail_call(machine)
    machine.now += 45.0
    found = failing_of(machine.state, "L002", FAILURE, machine.now)
    assert found is not None
    assert found.left == 15.0


@pytest.mark.parametrize(
    "failure",
    [
        Failure(FailureKind.PERMANENT, "there is no such person"),
        Failure(FailureKind.FORBIDDEN, "no"),
        Failure(FailureKind.TRANSIENT, "busy", retry_after=7_200.0),
    ],
    ids=lambda one: one.message,
)
def test_what_no_wait_helps_or_is_for_a_person_is_not_weighed(failure: Failure) -> None:
    machine = begun(PLAN[0], retrying(1))
    fail_call(machine, c.Failed(failure))
    assert failing_of(machine.state, "L002", failure, machine.now) is None


def test_what_calls_no_tool_is_not_weighed() -> None:
    code = on("L002", "002 Done", CodeAction("result = {}"), "001")
    machine = begun(PLAN[0], code)
    fail_call(machine)
    assert failing_of(machine.state, "L002", FAILURE, machine.now) is None


def test_where_little_is_known_the_author_has_it() -> None:
    assert weighed(ADVICE, Moments(cases=4), FRESH) is ADVICE


def test_what_is_known_says_when_and_why() -> None:
    found = weighed(Retry(3, why="as usual"), KNOWN, FRESH)
    why = "of failures like it, 9 known, 70 % are over 120 s after they began"
    assert found == Retry(3, 120.0, f"as usual; {why}")
    later = replace(FRESH, since=40.5, tried=0.5)
    assert weighed(ADVICE, KNOWN, later) == Retry(3, 79.5, why)


def test_what_does_not_recover_is_given_up() -> None:
    why = "of failures like it, 9 known, 1 % are over within half an hour"
    assert weighed(ADVICE, HOPELESS, FRESH) == GiveUp(why)


@pytest.mark.parametrize("found", [KNOWN, HOPELESS, Moments()])
def test_who_asks_for_more_has_it(found: Moments) -> None:
    assert weighed(ADVICE, found, replace(FRESH, asked=120.0)) is ADVICE


def test_who_asks_for_less_waits_as_others_had_to() -> None:
    found = weighed(ADVICE, KNOWN, replace(FRESH, asked=119.0))
    assert isinstance(found, Retry)
    assert found.delay == 120.0


@pytest.mark.parametrize(
    ("asked", "told"),
    [(0.0, "120 s after they began"), (500.0, "the service asked for 500 s")],
)
def test_nothing_waits_longer_than_the_plan_allows(asked: float, told: str) -> None:
    found = weighed(ADVICE, KNOWN, replace(FRESH, asked=asked, left=100.0))
    assert isinstance(found, GiveUp)
    assert found.why.endswith(f"{told}: longer than the plan allows")


def test_too_many_others_put_it_off() -> None:
    assert held(Retry(3, 120.0), FRESH, 60.0, "work is out") == Retry(3, 120.0)
    assert held(ADVICE, FRESH, 0.5, "work is out") is ADVICE
    assert held(ADVICE, FRESH, 0.6, "work is out") == Retry(3, 0.6, "work is out")
    found = held(Retry(3, 120.0, "learned"), FRESH, 1_800.0, "work is out")
    assert found == Retry(3, 1_800.0, "learned; work is out")


def test_nothing_is_put_off_beyond_what_the_plan_allows() -> None:
    nearly = replace(FRESH, left=40.0)
    assert held(ADVICE, nearly, 1_800.0, "work is out") == Retry(3, 40.0, "work is out")
    assert held(ADVICE, replace(FRESH, left=-1.0), 1_800.0, "work is out") is ADVICE


seconds = st.floats(0.0, 4_000.0)
known = st.builds(
    lambda due: Moments(tuple(due), (0.5,) * 8, cases=9),
    st.lists(st.none() | st.sampled_from(EDGES), min_size=8, max_size=8),
)


@given(st.just(Moments(cases=2)) | known, seconds, seconds, seconds, seconds, seconds)
def test_a_wait_is_within_what_is_left_and_never_before_the_service_wants_it(
    found: Moments, since: float, took: float, asked: float, left: float, hold: float
) -> None:
    tried = max(0.0, since - took)
    failing = Failing("keyed", since, tried, asked, max(asked, 0.5), left)
    advice = weighed(ADVICE, found, failing)
    if isinstance(advice, GiveUp):
        assert found.known or asked > left
        return
    advice = held(advice, failing, hold, "work is out")
    assert advice.delay is None or asked <= advice.delay <= left
    assert asked <= left
