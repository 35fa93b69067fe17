"""A pause that is wished while it still thinks, and tasks that a person sees first."""

from __future__ import annotations

import json

import pytest
from conversation_machine import PERMANENT, WILL, Talk, at_phase, opened, several, wanted

from holdfast.core.conversation import snapshot
from holdfast.core.conversation.decide import ConversationDecider
from holdfast.core.conversation.state import DECOMPOSE
from holdfast.core.conversation.tables import THINKING
from holdfast.core.interactions.answers import CLOCK, UNANSWERED, Answered
from holdfast.errors import InvalidAnswer, NotAllowed
from holdfast.model import commands as c
from holdfast.model import conversation_events as v
from holdfast.model import effects as f
from holdfast.model.conversation import EngineState, SubTask
from holdfast.model.run import RunStatus

WISH = c.Hold(when_possible=True)
PAY = SubTask("pay", "Pay it", "pay", args={"amount": 5}, route="once")


def carried_over(talk: Talk, **settings: bool) -> Talk:
    other = opened(**settings)
    other.goal = talk.goal
    other.submit(c.RestoreSnapshot(snapshot.checked(json.loads(json.dumps(talk.snapshot())))))
    return other


@pytest.mark.parametrize("phase", THINKING)
def test_a_pause_wished_while_it_thinks_takes_hold_before_the_first_task(
    phase: EngineState,
) -> None:
    talk = at_phase(phase)
    with pytest.raises(NotAllowed):
        talk.submit(c.Hold())
    assert talk.submit(WISH).events == (v.PauseWished(),)
    assert not talk.submit(WISH).events
    talk.reload()
    talk.crash()
    for one in (talk, carried_over(talk)):
        one.settle()
        assert (one.state.phase, one.state.left) == (EngineState.PAUSED, EngineState.SCHEDULING)
        assert not one.happened(v.TaskScheduled)
        assert not one.state.pausing
        one.unhold()
        assert one.settle().phase is EngineState.COMPLETED


def test_a_goal_that_has_yet_to_begin_can_be_paused_when_possible() -> None:
    talk = wanted()
    talk.submit(WISH)
    assert carried_over(talk).state.pausing
    assert talk.settle().phase is EngineState.PAUSED


def test_where_it_executes_the_pause_takes_hold_at_once() -> None:
    talk = at_phase(EngineState.EXECUTING)
    talk.submit(WISH)
    assert talk.state.phase is EngineState.PAUSED


@pytest.mark.parametrize("phase", [EngineState.IDLE, EngineState.COMPLETED, EngineState.ERROR])
def test_where_nothing_goes_on_there_is_nothing_to_pause(phase: EngineState) -> None:
    with pytest.raises(NotAllowed, match=f"is {phase} and cannot be paused"):
        at_phase(phase).submit(WISH)


@pytest.mark.parametrize("command", [c.Unhold(), c.Abort(), c.StartOver(WILL)])
def test_a_wish_is_taken_back_by_resume_cancel_and_reset(command: c.Command) -> None:
    talk = at_phase(EngineState.DECOMPOSING)
    talk.submit(WISH)
    talk.submit(command)
    assert not talk.state.pausing
    if isinstance(command, c.Unhold):
        assert talk.settle().phase is EngineState.COMPLETED


def test_a_wish_on_the_way_back_from_a_failure_takes_hold_too() -> None:
    talk = at_phase(EngineState.ERROR)
    talk.go_on()
    talk.submit(WISH)
    assert talk.settle().phase is EngineState.PAUSED


def confirming(*tasks: SubTask) -> Talk:
    talk = wanted(*(tasks or (PAY,)), confirm_tasks=True)
    talk.settle()
    assert (talk.state.phase, talk.state.status) == (EngineState.DECOMPOSING, RunStatus.PAUSE)
    return talk


def test_a_person_sees_the_tasks_before_the_first_one_runs() -> None:
    talk = confirming(PAY, SubTask("bare"))
    asked = talk.question()
    assert (asked.title, asked.message) == ("Run these tasks?", "Go.")
    assert asked.details == 'pay: Pay it: pay {"amount":5}\nbare'
    assert [one["id"] for one in asked.context["tasks"]] == ["pay", "bare"]
    assert not talk.happened(v.TaskScheduled)
    talk.answer("run")
    assert talk.happened(v.TasksConfirmed) == [v.TasksConfirmed(WILL)]
    assert talk.settle().phase is EngineState.COMPLETED


def test_a_person_may_ask_for_other_tasks_and_the_model_hears_what_was_said() -> None:
    talk = confirming()
    with pytest.raises(InvalidAnswer, match="What should be different"):
        talk.answer("other")
    talk.answer("other", "do not pay, only look")
    assert (talk.state.total, talk.state.status) == (0, RunStatus.RUNNING)
    talk.goal = (SubTask("look"),)
    talk.advance()
    heard = talk.out(DECOMPOSE).complaint
    assert heard.endswith("They said: do not pay, only look")
    assert '"id":"pay"' in heard
    talk.settle()
    assert [one["id"] for one in talk.question().context["tasks"]] == ["look"]
    talk.answer("run")
    assert talk.settle().phase is EngineState.COMPLETED
    assert [one.task.id for one in talk.past if isinstance(one, f.RunTask)] == ["look"]


def test_a_list_that_cannot_be_run_may_be_mended_once_after_the_feedback_too() -> None:
    talk = confirming()
    talk.answer("other", "less")
    talk.advance()
    talk.report(talk.out(DECOMPOSE), c.Undecomposed("it is a poem"))
    talk.advance()
    assert talk.out(DECOMPOSE).complaint.endswith("They said: less. it is a poem")
    talk.answer_phase()
    talk.settle()
    assert talk.question().title == "Run these tasks?"


def test_a_question_without_an_answer_confirms_nothing() -> None:
    talk = confirming()
    question = talk.state.questions[talk.question().request_id]
    builder = ConversationDecider(talk.state, c.Moment(talk.now))
    builder.answered(Answered(question, None, CLOCK, UNANSWERED, {}))
    assert (builder.state.phase, builder.state.error) == (EngineState.ERROR, UNANSWERED)
    assert not builder.state.confirmed


def test_a_person_may_stop_at_the_tasks_and_is_asked_again_when_it_goes_on() -> None:
    talk = confirming()
    talk.answer("stop")
    assert talk.state.error == f"ended by {WILL}"
    talk.go_on()
    talk.settle()
    assert talk.question().title == "Run these tasks?"
    talk.answer("run")
    assert talk.settle().phase is EngineState.COMPLETED


def test_what_was_confirmed_is_not_asked_again_after_a_failure() -> None:
    talk = confirming(*several("a"))
    talk.answer("run")
    talk.until(EngineState.EXECUTING).fill()
    talk.fails("a", PERMANENT)
    talk.advance()
    assert talk.state.phase is EngineState.ERROR
    talk.go_on()
    assert talk.settle().phase is EngineState.COMPLETED
    assert len(talk.state.questions) == 1


def test_a_snapshot_of_tasks_that_nobody_has_confirmed_asks_elsewhere() -> None:
    other = carried_over(confirming(), confirm_tasks=True)
    other.settle()
    assert other.question().title == "Run these tasks?"
    other.answer("run")
    third = carried_over(other, confirm_tasks=True)
    assert third.settle().phase is EngineState.COMPLETED
