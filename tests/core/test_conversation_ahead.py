"""What follows of itself is decided at once, up to a task, which is begun when it is asked for."""

from __future__ import annotations

import pytest
from conversation_machine import PERMANENT, Talk, executing, several, wanted
from hypothesis import given, settings
from hypothesis import strategies as st
from test_conversation_properties import play

from holdfast.core.conversation.decide import decide
from holdfast.core.conversation.phases import MOST_AHEAD, may_choose, rests
from holdfast.model import commands as c
from holdfast.model import effects as f
from holdfast.model.conversation import EngineState, SubTask

AHEAD = c.Advance(ahead=True)
AB = (SubTask("a"), SubTask("b"))


def names(talk: Talk, command: c.Command = AHEAD) -> list[str]:
    return [type(event).__name__ for event in talk.submit(command).events]


def test_a_turn_goes_on_to_the_work_that_it_waits_for() -> None:
    talk = wanted(*AB)
    assert names(talk) == ["PhaseChanged", "PhaseChanged", "WorkStarted"]
    assert names(talk) == []
    talk.answer_phase()
    assert names(talk) == ["PhaseChanged", "WorkStarted"]
    talk.answer_phase()
    assert names(talk) == ["PhaseChanged", "TaskScheduled", "TaskScheduled", "PhaseChanged"]


@pytest.mark.parametrize("max_parallel", [1, 2])
def test_no_task_begins_before_it_is_asked_for(max_parallel: int) -> None:
    talk = executing(*AB, max_parallel=max_parallel)
    assert names(talk) == []
    assert not talk.running()
    talk.pull()
    assert names(talk) == []
    talk.done("a")
    assert names(talk) == ["TaskCompleted"]
    assert talk.running() == []


def test_what_came_of_the_last_task_ends_the_turn() -> None:
    talk = executing(*AB, max_parallel=2).fill()
    talk.done("b")
    talk.done("a")
    assert names(talk) == ["TaskCompleted", "TaskCompleted", "PhaseChanged", "EngineCompleted"]
    assert talk.state.phase is EngineState.COMPLETED


def test_a_model_has_the_last_word_before_the_turn_ends() -> None:
    talk = wanted()
    talk.by_model = True
    talk.until(EngineState.EXECUTING).fill()
    talk.done("only")
    decision = talk.submit(AHEAD)
    assert isinstance(decision.effects[0], f.WriteAnswer)
    assert [type(one).__name__ for one in decision.events] == ["TaskCompleted", "WorkStarted"]


def test_a_failure_ends_it_and_a_pause_holds_it() -> None:
    talk = executing(*AB).fill()
    talk.hold()
    talk.fails("a", PERMANENT)
    assert names(talk) == []
    talk.unhold()
    assert names(talk) == ["PhaseChanged", "EngineFailed"]


def test_a_person_who_is_to_see_the_tasks_is_asked() -> None:
    talk = wanted(confirm_tasks=True).until(EngineState.DECOMPOSING)
    names(talk)
    talk.answer_phase()
    assert names(talk) == ["QuestionOpened"]


def test_a_decision_ends_however_many_tasks_there_are() -> None:
    talk = wanted(*several(f"n{one}" for one in range(100))).until(EngineState.SCHEDULING)
    assert names(talk) == ["TaskScheduled"] * MOST_AHEAD
    assert names(talk) == [*["TaskScheduled"] * (100 - MOST_AHEAD), "PhaseChanged"]


@settings(max_examples=100, deadline=None)
@given(st.binary(min_size=60, max_size=300))
def test_going_ahead_is_asking_again_and_again(script: bytes) -> None:
    state, moment = play(script).state, c.Moment(1_800_000_000.0, b"secret")
    ahead = decide(state, AHEAD, moment)
    events, effects = [], []
    while not may_choose(state):
        decision = decide(state, c.Advance(), moment)
        if not decision.events:
            break
        assert not rests(state)
        state = decision.state
        events += decision.events
        effects += decision.effects
    assert ([*ahead.events], [*ahead.effects]) == (events, effects)


def test_nothing_follows_while_the_only_work_is_under_way() -> None:
    talk = wanted(*several("ab"))
    assert not rests(talk.state)
    names(talk)
    assert rests(talk.state), "the context is fetched"
    talk.answer_phase()
    assert not rests(talk.state)
    talk.until(EngineState.EXECUTING)
    assert not rests(talk.state), "a task may be chosen"
    talk.pull()
    assert rests(talk.state), "there is room for one"
    talk.done("a")
    assert not rests(talk.state), "its end is to be told"
