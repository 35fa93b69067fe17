"""How often somebody may be refused."""

from __future__ import annotations

import pytest

from holdfast.errors import TooMany
from holdfast.server.auth.authentication import ANSWER, LIMITS, LOGIN, Attempts, Limit
from holdfast.testing.clock import ManualClock

FEW = {LOGIN: Limit(3, 60.0), ANSWER: Limit(3, 60.0)}


@pytest.fixture
def attempts(clock: ManualClock) -> Attempts:
    return Attempts(clock, FEW, keys=10)


def refuse(attempts: Attempts, times: int, who: str = "10.0.0.1", kind: str = LOGIN) -> None:
    for _ in range(times):
        attempts.failed(who, kind)


def test_the_refusal_beyond_the_limit_says_how_long_to_wait(
    attempts: Attempts, clock: ManualClock
) -> None:
    attempts.failed("10.0.0.1", LOGIN)
    clock.advance(20)
    refuse(attempts, 2)
    with pytest.raises(TooMany) as caught:
        attempts.failed("10.0.0.1", LOGIN)
    assert caught.value.retry_after == 40


def test_the_window_slides(attempts: Attempts, clock: ManualClock) -> None:
    attempts.failed("10.0.0.1", LOGIN)
    clock.advance(30)
    refuse(attempts, 2)
    clock.advance(30)
    attempts.failed("10.0.0.1", LOGIN)
    with pytest.raises(TooMany):
        attempts.check("10.0.0.1", LOGIN)


def test_waiting_as_long_as_told_is_enough(attempts: Attempts, clock: ManualClock) -> None:
    refuse(attempts, 3)
    with pytest.raises(TooMany) as caught:
        attempts.check("10.0.0.1", LOGIN)
    clock.advance(caught.value.retry_after)
    attempts.check("10.0.0.1", LOGIN)
    assert len(attempts) == 0


def test_others_and_other_kinds_are_not_concerned(attempts: Attempts) -> None:
    refuse(attempts, 3)
    attempts.check("10.0.0.2", LOGIN)
    attempts.check("10.0.0.1", ANSWER)


def test_being_refused_for_too_many_does_not_prolong_the_wait(
    attempts: Attempts, clock: ManualClock
) -> None:
    refuse(attempts, 3)
    clock.advance(59)
    with pytest.raises(TooMany):
        attempts.failed("10.0.0.1", LOGIN)
    clock.advance(1)
    attempts.check("10.0.0.1", LOGIN)


def test_memory_is_bounded_however_many_come(attempts: Attempts) -> None:
    for number in range(1000):
        attempts.failed(f"10.0.{number // 256}.{number % 256}", LOGIN)
    assert len(attempts) == 10


def test_a_whole_ipv6_network_is_one_client(attempts: Attempts) -> None:
    for tail in ("1", "2", "ffff:1"):
        attempts.failed(f"2001:db8::{tail}", LOGIN)
    with pytest.raises(TooMany):
        attempts.check("2001:db8::3", LOGIN)
    attempts.check("2001:db8:0:1::3", LOGIN)


def test_an_ipv4_address_is_itself_in_either_spelling(attempts: Attempts) -> None:
    refuse(attempts, 3, "::ffff:10.0.0.1")
    with pytest.raises(TooMany):
        attempts.check("10.0.0.1", LOGIN)
    attempts.check("::ffff:10.0.0.2", LOGIN)


def test_both_kinds_have_a_limit() -> None:
    assert set(LIMITS) == {LOGIN, ANSWER}
