"""Ends and crashes of a session: cancelling in every stage, recovery, quarantine."""

from __future__ import annotations

from dataclasses import replace

import pytest
from react_machine import (
    DISABLED,
    PERMANENT,
    REQUIRE,
    TRANSIENT,
    UNKNOWN,
    WILL,
    Chat,
    begun,
    opened,
    request,
)

from holdfast.core.agent.decide import goes_on_by_itself
from holdfast.core.agent.state import THINK
from holdfast.core.run.tables import StepStatus
from holdfast.errors import NotAllowed, TooLate
from holdfast.model import agent_events as r
from holdfast.model import commands as c
from holdfast.model import effects as f
from holdfast.model import events as e
from holdfast.model.form import Field, Form
from holdfast.model.interaction import InteractionStatus, InteractionType
from holdfast.model.message import ModelReply, ToolCall, Usage
from holdfast.model.run import RunStatus

REPLY = c.Replied(ModelReply("Too late.", (ToolCall("k9", "look", {}),), Usage(), "scripted"))


def calling(tool: str = "look") -> Chat:
    chat = begun()
    chat.calls(chat.want(tool))
    return chat


def test_an_idle_session_is_cancelled_at_once() -> None:
    chat = opened()
    chat.submit(c.Cancel(WILL, "enough"))
    assert (chat.state.status, chat.state.cancelled_by) == (RunStatus.CANCELLED, WILL)


def test_thinking_that_has_not_begun_never_begins() -> None:
    chat = begun()
    chat.submit(c.Cancel(WILL))
    assert chat.state.status is RunStatus.CANCELLED
    assert chat.start(THINK).events == ()


def test_a_thinking_model_is_stopped() -> None:
    chat = begun()
    asked = chat.think()
    decision = chat.submit(c.Cancel(WILL))
    assert decision.effects == (f.StopModel(asked.work),)
    assert chat.state.status is RunStatus.CANCELLING


@pytest.mark.parametrize("word", [REPLY, c.NotSent(), PERMANENT, TRANSIENT, UNKNOWN, c.Lost("?")])
def test_whatever_a_stopped_model_still_says_ends_the_session_and_leads_to_nothing(
    word: c.Outcome,
) -> None:
    chat = begun()
    asked = chat.think()
    chat.submit(c.Cancel(WILL))
    chat.report(asked, word)
    assert chat.state.status is RunStatus.CANCELLED
    assert not chat.happened(r.ModelReplied)
    assert not len(chat.state.calls)


def test_a_call_in_flight_may_finish_within_the_grace() -> None:
    chat = calling()
    chat.submit(c.Cancel(WILL, grace=10))
    assert chat.submit(c.Cancel("操作员")).events == (), "a second wish changes nothing"
    chat.returns("c1", "seen")
    assert chat.state.status is RunStatus.CANCELLED
    assert chat.happened(r.StepEnded) == [r.StepEnded("c1", "done", "seen")]
    assert not chat.ready(), "nobody thinks any more"


@pytest.mark.parametrize("word", [TRANSIENT, PERMANENT])
def test_a_failure_while_cancelling_is_not_tried_again(word: c.Outcome) -> None:
    chat = calling()
    chat.submit(c.Cancel(WILL))
    chat.report(chat.out("c1"), word)
    assert chat.state.status is RunStatus.CANCELLED


@pytest.mark.parametrize("tool", ["look", "keyed"])
@pytest.mark.parametrize("word", [c.Lost("cut off"), UNKNOWN])
def test_an_outcome_lost_while_cancelling_asks_nobody(tool: str, word: c.Outcome) -> None:
    chat = calling(tool)
    chat.submit(c.Cancel(WILL))
    chat.report(chat.out("c1"), word)
    assert (chat.state.status, len(chat.state.questions)) == (RunStatus.CANCELLED, 0)
    assert chat.happened(e.OutcomeLost) == [e.OutcomeLost("c1", 1, "cut off")]


@pytest.mark.parametrize("word", [c.NotSent(), c.Missing(Form((Field("size"),)))])
def test_a_call_that_would_lead_to_more_leads_to_nothing_while_cancelling(
    word: c.Outcome,
) -> None:
    chat = calling()
    chat.submit(c.Cancel(WILL))
    chat.report(chat.out("c1"), word)
    assert (chat.state.status, len(chat.state.questions)) == (RunStatus.CANCELLED, 0)
    assert chat.state.steps["c1"].status is StepStatus.STOPPED


def test_after_the_grace_what_is_still_out_is_lost() -> None:
    chat = calling()
    chat.submit(c.Cancel(WILL, grace=10))
    assert chat.wait(9).events == ()
    chat.wait(1)
    assert chat.state.status is RunStatus.CANCELLED
    (lost,) = chat.happened(e.OutcomeLost)
    assert lost.reason == "it had not ended when the grace was over"
    late = chat.report(chat.out("c1"), c.Succeeded("seen"))
    assert late.events == (e.LateResultKept("c1", 1, "seen"),)


def test_after_the_grace_a_model_that_says_nothing_is_not_waited_for() -> None:
    chat = begun()
    chat.think()
    chat.submit(c.Cancel(WILL, grace=10))
    chat.wait(10)
    assert chat.state.status is RunStatus.CANCELLED


def test_an_open_question_is_withdrawn_and_can_no_longer_be_answered() -> None:
    chat = begun()
    chat.calls(chat.want("pay", amount=5), chat.want("look"))
    asked = chat.question().request_id
    chat.submit(c.Cancel(WILL))
    assert chat.state.questions[asked].status is InteractionStatus.WITHDRAWN
    with pytest.raises(TooLate, match="is withdrawn"):
        chat.submit(c.Answer(asked, WILL, "approve"))
    chat.returns("c2")
    assert chat.state.status is RunStatus.CANCELLED
    assert [one.step_id for one in chat.happened(r.CallStarted)] == ["c2"]


def test_a_question_between_turns_is_withdrawn() -> None:
    chat = opened()
    chat.submit(c.Ask(request(type=InteractionType.USER_CONFIRMATION)))
    chat.submit(c.Cancel(WILL))
    assert chat.state.status is RunStatus.CANCELLED
    assert not chat.state.open


def test_a_call_that_waits_for_its_next_attempt_is_not_tried_again() -> None:
    chat = calling()
    chat.report(chat.out("c1"), TRANSIENT)
    chat.submit(c.Cancel(WILL))
    assert (chat.state.status, len(chat.state.timers)) == (RunStatus.CANCELLED, 0)
    assert chat.wait(3600).events == ()


def test_an_approved_call_that_has_not_started_never_does() -> None:
    chat = begun()
    chat.calls(chat.want("pay", amount=5))
    chat.answer("approve")
    chat.submit(c.Cancel(WILL))
    assert chat.start("c1").events == ()
    assert not chat.happened(r.CallStarted)


def test_a_session_in_error_is_cancelled_at_once() -> None:
    chat = begun()
    chat.report(chat.think(), PERMANENT)
    chat.submit(c.Cancel(WILL))
    assert (chat.state.status, chat.state.failed) == (RunStatus.CANCELLED, ())
    with pytest.raises(NotAllowed):
        chat.submit(c.Resume(WILL))


def test_after_a_crash_the_model_is_simply_asked_again() -> None:
    chat = begun()
    asked = chat.think()
    decision = chat.crash()
    assert decision.events == (e.RunRecovered(1),)
    assert decision.effects == (asked,)
    chat.reply("Here I am.")
    assert (chat.state.status, chat.state.recoveries) == (RunStatus.DONE, 0)


def test_after_a_crash_an_idempotent_call_runs_again_under_its_key() -> None:
    chat = calling("keyed")
    sent = chat.out("c1")
    decision = chat.crash()
    assert decision.effects == ()
    assert decision.events == (e.StepReleased("c1", 1), e.RunRecovered(1))
    chat.start("c1")
    again = chat.out("c1")
    assert (again.work.key, again.work.attempt) == (sent.work.key, sent.work.attempt)


def test_after_a_crash_a_call_that_was_disabled_meanwhile_does_not_run() -> None:
    chat = begun()
    keyed = chat.want("keyed")
    chat.calls(keyed)
    chat.crash()
    chat.tools["keyed"] = replace(chat.tools["keyed"], approval=DISABLED)
    chat.start("c1")
    assert chat.result(keyed).content == {"error": "the tool keyed is disabled"}
    assert len(chat.happened(r.CallStarted)) == 1


def test_after_a_crash_a_call_that_needs_consent_now_asks_for_it() -> None:
    chat = calling("keyed")
    key = chat.out("c1").work.key
    chat.crash()
    chat.tools["keyed"] = replace(chat.tools["keyed"], approval=REQUIRE)
    chat.start("c1")
    assert chat.question().title == "Run keyed?"
    chat.answer("approve")
    chat.start("c1")
    assert chat.out("c1").work.key == key


def consented() -> Chat:
    chat = begun(approval={"keyed": REQUIRE})
    chat.calls(chat.want("keyed"))
    chat.answer("approve")
    chat.start("c1")
    return chat


def test_after_a_crash_a_consented_call_runs_again_as_it_was() -> None:
    chat = consented()
    sent = chat.out("c1")
    chat.crash()
    chat.start("c1")
    assert (chat.out("c1").work.key, chat.out("c1").consent) == (sent.work.key, sent.consent)


def test_after_a_crash_another_version_of_a_consented_call_is_asked_about_again() -> None:
    chat = consented()
    chat.crash()
    chat.tools["keyed"] = replace(chat.tools["keyed"], version="2")
    chat.start("c1")
    assert not chat.flying
    assert "the tool keyed itself is another version" in str(chat.question().details)


def test_after_a_crash_a_person_is_asked_about_any_other_call() -> None:
    chat = calling()
    decision = chat.crash()
    assert decision.effects == ()
    asked = chat.question()
    assert asked.title == "Did look happen?"
    assert "the process that ran it went down" in asked.message
    chat.answer("happened", result="seen")
    chat.settle()
    assert len(chat.happened(r.CallStarted)) == 1
    assert chat.state.status is RunStatus.DONE


def test_a_session_that_waits_for_a_person_has_lost_nothing() -> None:
    chat = begun()
    chat.calls(chat.want("pay", amount=5))
    assert chat.crash().events == ()
    chat.answer("approve")
    chat.settle()
    assert len(chat.happened(r.CallStarted)) == 1


@pytest.mark.parametrize("rests", [opened, lambda: _in_error()])
def test_a_session_that_rests_is_not_recovered(rests: object) -> None:
    chat = rests()  # type: ignore[operator]
    assert chat.crash().events == ()


def _in_error() -> Chat:
    chat = begun()
    chat.report(chat.think(), PERMANENT)
    return chat


def test_a_call_beside_an_error_is_taken_up_again_with_the_turn() -> None:
    chat = begun()
    chat.calls(chat.want("ask_scout", task="Go."), chat.want("keyed"))
    chat.hear("chat_000001.c1.1", "error")
    assert chat.crash().effects == ()
    assert (chat.state.status, chat.ready()) == (RunStatus.ERROR, ["c2"])
    assert chat.start("c2").events == (), "nothing starts in an error"
    chat.submit(c.Resume(WILL))
    chat.start("c2")
    assert chat.out("c2").work.key == "chat_000001:c2:1:0"


def test_a_cancellation_goes_on_after_a_crash_and_asks_nobody() -> None:
    chat = begun()
    chat.calls(chat.want("look"), chat.want("keyed"))
    chat.submit(c.Cancel(WILL))
    decision = chat.crash()
    assert chat.state.status is RunStatus.CANCELLED
    assert (decision.effects, len(chat.state.questions)) == ((), 0)


def test_a_session_that_keeps_taking_its_process_down_is_left_to_a_person() -> None:
    chat = begun()
    chat.think()
    chat.crash()
    chat.crash()
    decision = chat.crash()
    assert decision.effects == ()
    assert (chat.state.status, chat.state.failed) == (RunStatus.ERROR, (THINK,))
    assert chat.state.error == "quarantined: the process went down 3 times while this ran"
    chat.submit(c.Resume(WILL))
    assert chat.state.recoveries == 0
    chat.reply("All is well.")
    assert chat.state.status is RunStatus.DONE


def test_quarantined_calls_run_again_only_when_they_may() -> None:
    chat = begun()
    keyed, look = chat.want("keyed"), chat.want("look")
    chat.calls(keyed, look)
    for _ in range(3):
        chat.start_ready()
        chat.crash()
    assert chat.state.failed == ("c1",)
    assert chat.question().title == "Did look happen?"
    chat.submit(c.Resume(WILL))
    assert chat.ready() == ["c1"]
    chat.start("c1")
    assert chat.out("c1").work.key == "chat_000001:c1:1:0"
    chat.returns("c1", 1)
    chat.answer("happened", result="seen")
    chat.start("c2")
    assert (chat.result(keyed).content, chat.result(look).content) == (1, {"result": "seen"})


def test_the_next_message_goes_on_without_a_quarantined_call() -> None:
    chat = begun()
    keyed = chat.want("keyed")
    chat.calls(keyed)
    for _ in range(3):
        chat.start_ready()
        chat.crash()
    assert chat.say("Leave it.").effects == ()
    assert chat.result(keyed).content == {"error": "Will Zhang went on without it"}
    chat.reply("Left.")
    assert chat.state.status is RunStatus.DONE


def test_progress_makes_earlier_crashes_not_count() -> None:
    chat = begun()
    chat.calls(chat.want("keyed"))
    for _ in range(2):
        chat.crash()
        chat.start("c1")
    chat.returns("c1")
    chat.think()
    chat.crash()
    assert (chat.state.status, chat.state.recoveries) == (RunStatus.RUNNING, 1)


def test_a_session_of_which_nothing_is_recorded_has_nothing_to_recover() -> None:
    chat = Chat()
    assert chat.submit(c.Recover()).events == ()
    assert not goes_on_by_itself(chat.state)
    assert chat.submit(c.Tick()).events == ()


def test_a_cancelled_session_has_nothing_to_recover() -> None:
    chat = opened()
    chat.submit(c.Cancel(WILL))
    assert chat.submit(c.Recover()).events == ()
    assert not goes_on_by_itself(chat.state)
