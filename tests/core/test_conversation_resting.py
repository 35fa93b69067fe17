"""Whether a conversation needs a consumer, and whether it goes on without one of its own."""

from __future__ import annotations

from dataclasses import replace

import pytest
from conversation_machine import TRANSIENT, WILL, Talk, at_phase, executing, several

from holdfast.core.conversation.resting import is_over, may_rest, moves_unattended
from holdfast.model import commands as c
from holdfast.model.conversation import EngineState, SubTask

RESTS = (EngineState.IDLE, EngineState.COMPLETED, EngineState.ERROR)
PAY = SubTask("pay it", type="pay", args={"amount": 5}, route="tool")


def unattended(*tasks: SubTask) -> Talk:
    talk = Talk()
    talk.goal = tasks or talk.goal
    talk.submit(c.OpenConversation(by=WILL, unattended=True))
    return talk


@pytest.mark.parametrize("phase", EngineState)
def test_it_is_over_in_the_phases_that_rest(phase: EngineState) -> None:
    assert is_over(at_phase(phase).state) is (phase in RESTS)


def test_an_input_that_waits_keeps_it_from_being_over() -> None:
    talk = at_phase(EngineState.COMPLETED)
    talk.converse("And then?")
    assert not is_over(talk.state)


def test_a_cancelled_one_is_over_whatever_was_left() -> None:
    talk = executing(*several("ab"))
    talk.submit(c.Cancel(WILL, "enough"))
    assert is_over(talk.state)


def test_a_pause_rests_once_nothing_of_it_is_in_flight() -> None:
    talk = executing(*several("ab")).fill()
    assert not may_rest(talk.state), "it is at work"
    talk.hold()
    assert not may_rest(talk.state), "what was started goes on to its end"
    for one in talk.running():
        talk.done(one)
    assert may_rest(talk.state)


def test_one_that_waits_for_an_answer_rests_with_the_clocks_of_its_question() -> None:
    state = executing(PAY).fill().state
    assert may_rest(state)
    (asked,) = state.open_questions
    for clock in ("question", "remind", "escalate"):
        assert may_rest(replace(state, timers={f"{clock}:{asked}": 1.0}))
    assert not may_rest(replace(state, timers={"t1": 1.0}))


def test_one_that_waits_to_try_again_does_not_rest() -> None:
    talk = executing(SubTask("flaky")).fill()
    talk.fails("flaky", TRANSIENT)
    talk.hold()
    assert talk.state.timers
    assert not may_rest(talk.state)


def test_only_one_without_a_consumer_moves_by_itself_and_only_while_it_can() -> None:
    attended, alone = Talk().open(), unattended(*several("a"))
    assert not moves_unattended(alone.state), "nothing is wanted of it"
    attended.converse()
    alone.converse()
    assert not moves_unattended(attended.state)
    assert moves_unattended(alone.state)
    alone.settle()
    assert not moves_unattended(alone.state), "its turn is complete"
    alone.converse("More.")
    assert moves_unattended(alone.state), "it stays unattended over its turns"


def test_an_unattended_one_that_asks_does_not_move_until_the_answer() -> None:
    talk = unattended(PAY)
    talk.converse()
    talk.until(EngineState.EXECUTING).fill()
    assert not moves_unattended(talk.state)
    talk.answer("approve")
    assert moves_unattended(talk.state)
