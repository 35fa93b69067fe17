"""What an installation has learned, as one value."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.model.recovery import EDGES
from holdfast.model.repair import LessonState, Level
from holdfast.repair import experience as learning
from holdfast.repair.alerts import Alert, AlertKind
from holdfast.repair.experience import (
    NOTHING_LEARNED,
    Experience,
    dump,
    learn,
    lessons_for,
    load,
    merged,
    moments,
    said_of,
    say,
)
from holdfast.repair.facts import Fact, Left, Mended, ThoughtFailed, Took, Tried
from holdfast.repair.lessons import id_of

NOW = 1_800_000_000.0
DOWN = "fp1:0123456789abcdef"
KEY = '["onboarding","l","grant_access","1","f"]'
OTHER = KEY.replace("grant_access", "send_email")
SKIP = ({"op": "skip", "listener_id": "@listener"},)


def tried(since: float = 120.0, *, won: bool = True, at: float = NOW, **other: Any) -> Tried:
    fact = Tried("grant_access", DOWN, "outage", 0, since, won, "inst_000001", "L002", at)
    return replace(fact, **other)


def took(seconds: float, tool: str = "grant_access", at: float = NOW) -> Took:
    return Took(tool, seconds, "inst_000001", at)


def mended(*, won: bool = True, run: int = 1, key: str = KEY, at: float = NOW) -> Mended:
    return Mended(key, SKIP, Level.RENAME, won, f"inst_{run:06d}", at)


def after(*facts: Fact) -> Experience:
    return learn(NOTHING_LEARNED, facts)[0]


def raised(experience: Experience, *facts: Fact) -> list[Alert]:
    return list(learn(experience, facts)[1])


def test_curves_are_learned_of_a_tool_and_a_fingerprint() -> None:
    known = after(*[tried() for _ in range(5)])
    assert moments(known, "grant_access", DOWN, NOW).cases == 5
    assert moments(known, "send_email", DOWN, NOW).cases == 0
    assert moments(known, "grant_access", "fp1:other", NOW).cases == 0


def test_what_is_known_of_a_cause_helps_where_little_is_known() -> None:
    others = [tried(1_800.0, won=False, fingerprint=f"fp1:{n}") for n in range(60)]
    few = [tried(0.5, won=False) for _ in range(5)]
    alone, among = after(*few), after(*few, *others)
    assert moments(alone, "grant_access", DOWN, NOW).wait(0.5, 0.5) is not None
    assert moments(among, "grant_access", DOWN, NOW).wait(0.5, 0.5) is None


def test_one_run_of_twenty_explores() -> None:
    known = after(*[tried(1_800.0, won=False) for _ in range(40)])
    waits = [
        moments(known, "grant_access", DOWN, NOW, f"inst_{n}").wait(0.0, 0.0) for n in range(400)
    ]
    assert 5 < sum(one in EDGES for one in waits) < 40


def test_a_lesson_is_offered_where_its_key_fits() -> None:
    known = after(mended(), mended(run=2), mended(key=KEY.replace("1", "2")))
    [lesson] = lessons_for(known, KEY)
    assert (lesson.wins, lesson.state) == (2, LessonState.TRIAL)
    assert (lesson.operations, lesson.level) == (SKIP, Level.RENAME)
    assert lesson.runs == ("inst_000002", "inst_000001")
    assert lessons_for(known, "none") == ()


def test_a_lesson_that_is_lost_is_told_of_once() -> None:
    known = after(*[mended(run=n) for n in range(3)])
    [alert] = raised(known, mended(won=False, run=4), mended(won=False, run=5))
    assert (alert.kind, alert.about, alert.run_id) == (
        AlertKind.LESSON_RETIRED,
        id_of(KEY, SKIP),
        "inst_000004",
    )
    assert "onboarding" in alert.message
    assert lessons_for(learn(known, [mended(won=False)])[0], KEY) == ()


def test_a_repair_that_never_helped_is_no_lesson_that_is_lost() -> None:
    assert raised(NOTHING_LEARNED, mended(won=False)) == []
    pinned = say(after(mended()), id_of(KEY, SKIP), LessonState.PINNED, NOW)
    assert raised(pinned, mended(won=False)) == []


def test_a_call_far_beyond_its_usual_duration_is_told_of() -> None:
    known = after(*[took(0.2) for _ in range(40)])
    [alert] = raised(known, took(0.3), took(60.0), took(9.0))
    assert alert.kind is AlertKind.SLOW_CALL
    assert alert.message == (
        "a call of grant_access took 60 s; nineteen of twenty take less than 0.256 s"
    )
    assert raised(known, took(60.0, tool="send_email")) == []


def test_thinking_that_failed_is_told_of() -> None:
    [alert] = raised(NOTHING_LEARNED, ThoughtFailed("case_1", "no answer", "inst_000001", NOW))
    assert alert.kind is AlertKind.THINKING_FAILED
    assert alert.message == "nothing came of asking about case_1 of inst_000001: no answer"


def test_what_is_left_teaches_nothing() -> None:
    left = Left("grant_access", DOWN, "inst_000001", "L002", NOW)
    assert learn(NOTHING_LEARNED, [left]) == (NOTHING_LEARNED, ())


def test_the_least_recently_used_go_beyond_the_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MOST_CURVES", "MOST_TOOLS", "MOST_LESSONS"):
        monkeypatch.setattr(learning, name, 3)
    known = NOTHING_LEARNED
    for number in range(6):
        at = NOW + number
        key = KEY.replace("1", str(number))
        facts = [
            tried(tool=f"t{number}", at=at),
            took(1.0, f"t{number}", at),
            mended(key=key, at=at),
        ]
        known, _ = learn(known, facts)
        if number == 0:
            known = say(known, id_of(key, SKIP), LessonState.PINNED, NOW)
    assert sorted(tool for tool, _ in known.curves) == ["t3", "t4", "t5"]
    assert sorted(known.durations) == ["t3", "t4", "t5"]
    kept = sorted(one.key for one in known.lessons.values())
    assert kept == [KEY.replace("1", number) for number in "045"], "a pinned one stays"
    assert known.pooled["outage"].cases == 6
    whole = merged(known, after(tried(tool="t9", at=NOW + 9)))
    assert sorted(tool for tool, _ in whole.curves) == ["t4", "t5", "t9"]


def test_what_people_said_is_carried_over() -> None:
    known = after(mended(), mended(key=OTHER), tried())
    pinned = say(known, id_of(KEY, SKIP), LessonState.PINNED, NOW)
    said = said_of(pinned)
    assert list(said.lessons) == [id_of(KEY, SKIP)]
    assert merged(known, said) == pinned
    assert merged(pinned, said) == pinned
    assert said_of(known) == NOTHING_LEARNED


def test_what_is_kept_is_read_again() -> None:
    known = after(mended(), tried(), Took("a", 2.0, "r1", NOW))
    assert load(dump(known)) == known
    assert known.lessons
    assert known.durations


moments_ = st.floats(NOW - 90 * 86_400, NOW)
tools = st.sampled_from(("a", "b"))
all_facts: st.SearchStrategy[Fact] = st.one_of(
    st.builds(
        Tried,
        tools,
        st.sampled_from((DOWN, "fp1:other")),
        st.just("outage"),
        st.integers(0, 7),
        st.floats(0, 5_000),
        st.booleans(),
        st.just("r"),
        st.just("L"),
        moments_,
    ),
    st.builds(Took, tools, st.floats(0, 500), st.just("r"), moments_),
    st.builds(
        Mended,
        st.sampled_from((KEY, OTHER)),
        st.just(SKIP),
        st.sampled_from(Level),
        st.booleans(),
        st.sampled_from(("r1", "r2")),
        moments_,
    ),
)
batches = st.lists(st.lists(all_facts, max_size=8), max_size=5)


@given(batches)
def test_learning_in_any_batches_is_learning_at_once(found: list[list[Fact]]) -> None:
    whole = after(*(fact for batch in found for fact in batch))
    assert reduce(lambda known, batch: learn(known, batch)[0], found, NOTHING_LEARNED) == whole
    assert reduce(merged, [after(*batch) for batch in found], NOTHING_LEARNED) == whole
    assert reduce(merged, [after(*batch) for batch in found[::-1]], NOTHING_LEARNED) == whole


@given(batches)
def test_what_is_written_is_read(found: Sequence[Sequence[Fact]]) -> None:
    known = after(*(fact for batch in found for fact in batch))
    for lesson_id in known.lessons:
        known = say(known, lesson_id, LessonState.RETIRED, NOW)
    assert load(dump(known)) == known
    assert dump(load(dump(known))) == dump(known)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        json.dumps({**json.loads(dump(NOTHING_LEARNED)), "version": 2}),
        json.dumps({**json.loads(dump(NOTHING_LEARNED)), "curves": [["a"]]}),
        json.dumps({**json.loads(dump(NOTHING_LEARNED)), "lessons": [{"key": "k"}]}),
    ],
)
def test_what_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="this is no experience of version 1"):
        load(text)
