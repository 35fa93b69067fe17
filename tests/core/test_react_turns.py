"""Turns of a session: what the model is asked, what it hears, and how a turn ends."""

from __future__ import annotations

from itertools import permutations

import pytest
from react_machine import PERMANENT, WILL, begun, clerk, helping, opened

from holdfast.core.agent.state import THINK
from holdfast.core.agent.tables import ReActStage
from holdfast.errors import InvalidAnswer, NotAllowed
from holdfast.model import agent_events as r
from holdfast.model import commands as c
from holdfast.model import effects as f
from holdfast.model.message import ModelReply, ModelSaid, ToolCall, ToolReturned, Usage, UserSaid
from holdfast.model.run import Parent, RunStatus


def test_a_message_leads_to_an_answer_and_the_session_rests() -> None:
    chat = opened()
    assert chat.state.status is RunStatus.DONE
    chat.say("How much is owed?")
    asked = chat.think()
    assert asked.messages == (UserSaid("How much is owed?"),)
    assert (asked.system, asked.tools) == ("You pay.", chat.state.tools)
    assert (asked.agents, asked.asks_people) == (("scout",), True)
    chat.reply("Five euros.")
    assert chat.state.status is RunStatus.DONE
    assert (chat.state.answer, chat.state.turn) == ("Five euros.", 1)
    assert chat.happened(r.TurnCompleted) == [r.TurnCompleted(1, "Five euros.")]


def test_a_further_message_is_the_next_turn_and_the_model_sees_the_last_one() -> None:
    chat = begun()
    chat.reply("Done.")
    chat.say("And now?")
    assert chat.think().messages == (
        UserSaid("Pay, please."),
        ModelSaid("Done."),
        UserSaid("And now?"),
    )
    chat.reply("Nothing more.")
    assert chat.state.turn == 2
    assert [one.firing for one in chat.happened(r.ThinkingStarted)] == [1, 2]


def test_a_reply_without_words_leaves_no_message() -> None:
    chat = begun()
    chat.reply("")
    assert [*chat.state.messages] == [UserSaid("Pay, please.")]


def test_a_message_without_words_is_refused() -> None:
    with pytest.raises(InvalidAnswer, match="needs words") as refused:
        opened().say("  \n")
    assert refused.value.fields == {"text": "needed"}


def test_what_the_model_costs_is_summed_over_the_session() -> None:
    chat = begun()
    chat.calls(chat.want("look"))
    chat.returns("c1")
    chat.reply("Done.")
    assert chat.state.usage == Usage(20, 10, 0.5, 3.0)
    assert chat.state.requests == 2


def test_a_cost_that_nobody_knows_stays_unknown() -> None:
    chat = begun()
    chat.report(chat.think(), c.Replied(ModelReply("Yes.", (), Usage(1, 1), "local")))
    assert chat.state.usage == Usage(1, 1, None)


def test_the_stage_follows_from_what_is_under_way() -> None:
    chat = begun()
    assert chat.state.stage is ReActStage.OBSERVING
    chat.think()
    assert chat.state.stage is ReActStage.THINKING
    chat.reply("", chat.want("look"))
    assert chat.state.stage is ReActStage.ACTING
    chat.start("c1")
    chat.returns("c1")
    assert chat.state.stage is ReActStage.OBSERVING


@pytest.mark.parametrize("order", list(permutations(["c1", "c2", "c3"])))
def test_three_calls_two_approvals_in_any_order_and_the_model_is_asked_once(
    order: tuple[str, ...],
) -> None:
    chat = begun()
    look, pay, again = chat.want("look"), chat.want("pay", amount=5), chat.want("pay", amount=7)
    chat.calls(look, pay, again)
    assert [one.step_id for one in chat.happened(r.CallStarted)] == ["c1"], "the free one runs"
    assert len(chat.state.open_questions) == 2
    for step_id in order:
        assert THINK not in chat.ready()
        if step_id == "c1":
            chat.returns("c1", {"sun": True})
            continue
        chat.answer("approve", at=step_id)
        chat.start(step_id)
        chat.returns(step_id, {"paid": step_id})
    assert chat.ready() == [THINK]
    chat.reply("All done.")
    assert len(chat.happened(r.ThinkingStarted)) == 2
    assert sorted(one.step_id for one in chat.happened(r.CallStarted)) == ["c1", "c2", "c3"]
    assert chat.result(look).content == {"sun": True}
    assert chat.result(pay).content == {"paid": "c2"}
    assert chat.result(again).content == {"paid": "c3"}
    behind = [type(one) for one in chat.messages[2:5]]
    assert behind == [ToolReturned] * 3, "results stand directly behind their calls"


def test_words_of_people_come_behind_the_results_never_between_them() -> None:
    chat = begun()
    chat.calls(chat.want("look"), chat.want("pay", amount=5))
    chat.answer("approve", at="c2", amount=9)
    chat.start("c2")
    chat.returns("c2", "paid")
    chat.returns("c1", "seen")
    asked = chat.think()
    assert asked.messages[-1] == UserSaid('[pay was called with {"amount":9}, as a person chose]')
    assert [type(one) for one in asked.messages[2:4]] == [ToolReturned, ToolReturned]


def test_nothing_is_noted_where_the_call_was_made_as_wanted() -> None:
    chat = begun()
    chat.calls(chat.want("pay", amount=5))
    chat.answer("approve")
    chat.start("c1")
    chat.returns("c1", "paid")
    assert chat.heard() == ["Pay, please."]


def test_too_many_rounds_fail_the_turn_and_a_resume_grants_as_many_again() -> None:
    chat = begun(clerk(max_iterations=2))
    for number in (1, 2):
        chat.calls(chat.want("look"))
        chat.returns(f"c{number}")
    decision = chat.start(THINK)
    message = "no answer after 2 rounds of thinking (max_iterations)"
    assert decision.events == (r.TurnFailed(message, (THINK,)),)
    assert decision.effects == ()
    assert (chat.state.status, chat.state.error) == (RunStatus.ERROR, message)
    chat.submit(c.Resume(WILL))
    assert (chat.state.status, chat.state.error) == (RunStatus.RUNNING, "")
    chat.reply("There it is.")
    assert chat.state.status is RunStatus.DONE


def test_thinking_that_was_never_sent_is_no_round_of_thinking() -> None:
    chat = begun(clerk(max_iterations=1))
    for _ in range(3):
        chat.report(chat.think(), c.NotSent())
    chat.reply("Here.")
    assert chat.state.status is RunStatus.DONE


@pytest.mark.parametrize("outcome", [PERMANENT, c.Lost("the line went dead")])
def test_a_model_that_cannot_be_asked_leaves_an_error_that_can_be_resumed(
    outcome: c.Outcome,
) -> None:
    chat = begun()
    chat.report(chat.think(), outcome)
    assert chat.state.status is RunStatus.ERROR
    assert chat.state.error.startswith("the model could not be asked: ")
    assert chat.state.failed == (THINK,)
    chat.submit(c.Resume(WILL))
    assert chat.think().messages == (UserSaid("Pay, please."),)
    chat.reply("Back again.")
    assert chat.state.status is RunStatus.DONE


def test_after_an_error_somebody_may_say_something_else() -> None:
    chat = begun()
    chat.report(chat.think(), PERMANENT)
    chat.say("Never mind. What is the time?")
    assert chat.heard() == ["Pay, please.", "Never mind. What is the time?"]
    chat.reply("Noon.")
    assert (chat.state.turn, chat.state.error, chat.state.failed) == (2, "", ())


@pytest.mark.parametrize(
    ("finish", "why"), [("length", "its reply was cut off"), ("stop", "it stopped by 'stop'")]
)
def test_a_reply_without_words_and_calls_is_no_answer(finish: str, why: str) -> None:
    chat = begun()
    chat.reply("  ", finish=finish)
    assert chat.state.error == f"the model gave no answer: {why}"
    assert chat.state.status is RunStatus.ERROR
    chat.submit(c.Resume(WILL))
    chat.reply("Here it is.")
    assert chat.state.answer == "Here it is."


def test_words_with_calls_are_kept_and_the_turn_goes_on() -> None:
    chat = begun()
    look = chat.want("look")
    chat.reply("Let me see.", look)
    assert chat.state.status is RunStatus.RUNNING
    assert chat.messages[-1] == ModelSaid("Let me see.", (look,))


def test_a_session_that_works_for_another_takes_no_second_message() -> None:
    chat = helping()
    chat.reply("Done.")
    assert chat.state.parent == Parent("chat_000000", "c1", 1)
    assert chat.state.root_id == "chat_000000"
    with pytest.raises(NotAllowed, match="chat_000001 works for chat_000000 alone"):
        chat.say("And now?")


def test_a_long_session_keeps_only_what_is_under_way() -> None:
    chat = opened()
    for turn in range(1, 30):
        chat.say(f"Turn {turn}")
        (step_id,) = chat.calls(chat.want("look"))
        chat.returns(step_id, {"turn": turn})
        chat.reply("Seen.")
    assert len(chat.state.steps) <= 2
    assert len(chat.state.calls) <= 1
    assert len(chat.state.did) == 1
    assert not len(chat.state.timers)
    assert chat.state.numbered == 29


def test_the_model_is_shown_no_more_than_its_limit() -> None:
    chat = begun(clerk(context_limit=2_000))
    look = chat.want("look")
    chat.calls(look)
    chat.returns("c1", "x" * 50_000)
    shown = chat.think().messages[-1]
    assert isinstance(shown, ToolReturned)
    assert len(str(shown.content)) <= 500
    assert chat.result(look).content == "x" * 50_000, "nothing is lost, only not shown"


def test_an_agent_that_only_looks_has_no_helpers_and_asks_nobody() -> None:
    chat = begun(only=("look",))
    asked = chat.think()
    assert (asked.tools, asked.agents, asked.asks_people) == (("look",), (), False)
    calls = [chat.want("pay", amount=1), chat.want("ask_scout", task="x"), chat.want("ask_person")]
    chat.calls(*calls)
    for call in calls:
        assert chat.result(call).content == {
            "error": f"there is no tool {call.tool!r}; you have look"
        }


def test_starting_what_is_not_ready_changes_nothing() -> None:
    chat = begun()
    chat.think()
    for step_id in (THINK, "c1", "nowhere"):
        assert chat.start(step_id).events == ()


def test_a_reply_under_an_old_claim_is_ignored() -> None:
    chat = begun()
    asked = chat.think()
    chat.reply("First.")
    late = ModelReply("Second.", (ToolCall("k9", "look", {}),), Usage(), "scripted")
    assert chat.report(asked, c.Replied(late)).events == ()
    assert chat.state.answer == "First."


def test_an_effect_carries_the_key_of_its_step() -> None:
    chat = begun()
    asked = chat.think()
    assert asked.work == f.Work("chat_000001", THINK, 1, 1, 3, "chat_000001:think:1:0")
