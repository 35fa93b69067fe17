"""Consent in a session: each action on an approval, bound bytes, and whose rule holds."""

from __future__ import annotations

from dataclasses import replace

import pytest
from react_machine import (
    AUTO,
    DISABLED,
    REQUIRE,
    TOOLS,
    TRANSIENT,
    WILL,
    Chat,
    begun,
    clerk,
    option,
)

from holdfast.core.agent.state import THINK
from holdfast.core.interactions.calls import bind_consent
from holdfast.errors import AlreadyAnswered, InvalidAnswer
from holdfast.model import agent_events as r
from holdfast.model import commands as c
from holdfast.model import events as e
from holdfast.model.agent import Agent
from holdfast.model.approval import ApprovalMode, ApprovalRule, Rules
from holdfast.model.interaction import Asking, InteractionAction, InteractionType, Resolution
from holdfast.model.message import ToolCall
from holdfast.model.run import RunStatus
from holdfast.model.values import Json

CLERK = clerk()
ACTION = InteractionAction


def asking(agent: Agent = CLERK, **session: object) -> tuple[Chat, ToolCall]:
    """A session that waits for consent to one payment."""
    chat = begun(agent, **session)
    pay = chat.want("pay", amount=5)
    chat.calls(pay)
    return chat, pay


def offering(*actions: InteractionAction) -> Agent:
    options = tuple(option(one.value.split("_")[0].lower(), one) for one in actions)
    return clerk(asking=Asking(options=options))


def ran(chat: Chat) -> list[dict[str, Json]]:
    return [dict(one.args) for one in chat.happened(r.CallStarted)]


def test_consent_is_asked_for_with_the_executors_own_data() -> None:
    chat, pay = asking()
    asked = chat.question()
    assert (asked.type, asked.title) == (InteractionType.TOOL_APPROVAL, "Run pay?")
    assert asked.message == "Clerk wants to call pay with these arguments."
    assert asked.context == {
        "tool": "pay",
        "args": {"amount": 5},
        "tool_version": "1",
        "call_id": pay.call_id,
    }
    assert [one.option_id for one in asked.options] == ["approve", "retry", "reject", "terminate"]
    assert (asked.session_id, chat.state.status) == (chat.state.run_id, RunStatus.PAUSE)
    assert ran(chat) == []


def test_an_agent_without_a_name_is_called_by_its_id() -> None:
    chat, _ = asking(clerk(name=""))
    assert chat.question().message.startswith("clerk wants")


def test_approved_it_runs_exactly_what_was_shown_once() -> None:
    chat, pay = asking()
    chat.answer("approve")
    assert chat.ready() == ["c1"]
    chat.start("c1")
    sent = chat.out("c1")
    assert (sent.args, sent.consent) == (
        {"amount": 5},
        bind_consent("chat_000001:c1:1", "pay", "1", {"amount": 5}),
    )
    chat.returns("c1", {"paid": 5})
    assert chat.result(pay).content == {"paid": 5}
    assert ran(chat) == [{"amount": 5}]


def test_edited_arguments_are_what_runs_and_the_model_is_told() -> None:
    chat, pay = asking()
    chat.answer("approve", amount=9, note="rent")
    chat.start("c1")
    assert chat.out("c1").args == {"amount": 9, "note": "rent"}
    chat.returns("c1", {"paid": 9})
    assert chat.result(pay).content == {"paid": 9}
    assert chat.heard()[-1] == (
        '[pay was called with {"amount":9,"note":"rent"}, as a person chose]'
    )


def test_edited_arguments_that_do_not_fit_are_refused_and_nothing_changes() -> None:
    chat, _ = asking()
    with pytest.raises(InvalidAnswer) as refused:
        chat.answer("approve", amount="much")
    assert set(refused.value.fields) == {"amount"}
    assert chat.question().title == "Run pay?"


def test_provided_arguments_complete_the_call_and_it_runs() -> None:
    chat, _ = asking(offering(ACTION.PROVIDE_INFO, ACTION.SKIP))
    chat.answer("provide", note="rent")
    chat.start("c1")
    assert chat.out("c1").args == {"amount": 5, "note": "rent"}


@pytest.mark.parametrize(
    ("choice", "how", "told"),
    [
        ("retry", "retry", "It was not run: Will Zhang asks for something else. Think again."),
        ("reject", "rejected", "It was not run: Will Zhang refused."),
    ],
)
def test_what_a_person_refuses_does_not_run_and_the_model_hears_why(
    choice: str, how: str, told: str
) -> None:
    chat, pay = asking()
    chat.answer(choice, "too much")
    assert chat.result(pay).content == {how: told, "reason": "too much"}
    assert chat.result(pay).failed
    assert chat.ready() == [THINK]
    assert chat.start("c1").events == ()
    assert ran(chat) == []
    chat.reply("As you wish.")
    assert chat.state.did[-1][1] == how


def test_a_skipped_call_does_not_run_and_the_model_goes_on_without() -> None:
    chat, pay = asking(offering(ACTION.APPROVE_AND_EXECUTE, ACTION.SKIP))
    chat.answer("skip")
    told = {"skipped": "It was not run: Will Zhang skipped it. Go on without it."}
    assert chat.result(pay).content == told
    assert ran(chat) == []


def test_after_terminate_nothing_more_runs_and_it_says_who_ended_it() -> None:
    chat = begun()
    chat.calls(chat.want("pay", amount=5), chat.want("pay", amount=7))
    chat.answer("terminate", at="c1")
    assert (chat.state.status, chat.state.cancelled_by) == (RunStatus.CANCELLED, WILL)
    assert not chat.state.open_questions
    assert ran(chat) == []
    (ended,) = chat.happened(e.CancelRequested)
    assert (ended.by, ended.reason) == (WILL, "Will Zhang chose to stop")


def test_a_reason_given_at_the_end_is_kept() -> None:
    chat, _ = asking()
    chat.answer("terminate", "the budget is spent")
    assert chat.happened(e.CancelRequested)[0].reason == "the budget is spent"


def test_the_first_answer_wins_and_the_same_answer_again_is_harmless() -> None:
    chat, _ = asking()
    asked = chat.question().request_id
    chat.answer("approve")
    chat.start("c1")
    assert chat.submit(c.Answer(asked, WILL, "approve")).events == ()
    with pytest.raises(AlreadyAnswered, match="already answered by Will Zhang"):
        chat.submit(c.Answer(asked, WILL, "reject", feedback="no"))
    assert len(ran(chat)) == 1


def test_a_custom_option_comes_to_what_its_handler_decided() -> None:
    chat, pay = asking(offering(ACTION.CUSTOM, ACTION.SKIP))
    asked = chat.question().request_id
    with pytest.raises(InvalidAnswer, match="no handler is registered"):
        chat.answer("custom")
    resolved = Resolution(ACTION.REJECT_WITH_REASON, feedback="over the limit")
    chat.submit(c.Answer(asked, WILL, "custom", resolution=resolved))
    assert chat.result(pay).content["reason"] == "over the limit"
    assert ran(chat) == []


def test_a_handler_may_approve_and_change_the_arguments() -> None:
    chat, _ = asking(offering(ACTION.CUSTOM))
    resolved = Resolution(ACTION.APPROVE_AND_EXECUTE, {"amount": 3})
    chat.submit(c.Answer(chat.question().request_id, WILL, "custom", resolution=resolved))
    chat.start("c1")
    assert chat.out("c1").args == {"amount": 3}


def test_consent_does_not_hold_for_another_version_of_the_tool() -> None:
    chat, _ = asking()
    chat.answer("approve")
    chat.tools["pay"] = replace(TOOLS["pay"], version="2")
    chat.now += 40 * 86_400
    chat.start("c1")
    assert ran(chat) == []
    asked = chat.question()
    assert asked.details == (
        "This was consented to, but it has changed since:\n- the tool pay itself is another version"
    )
    assert asked.context["tool_version"] == "2"
    assert asked.context["before"]["tool_version"] == "1"
    chat.answer("approve")
    chat.start("c1")
    assert ran(chat) == [{"amount": 5}]


def test_consent_to_edited_arguments_is_shown_when_it_no_longer_holds() -> None:
    chat, pay = asking()
    chat.answer("approve", amount=9)
    chat.tools["pay"] = replace(TOOLS["pay"], version="2")
    chat.start("c1")
    asked = chat.question()
    assert asked.context["args"] == asked.context["before"]["args"] == {"amount": 9}
    chat.answer("reject", "no longer")
    assert ran(chat) == []
    assert chat.result(pay).content["reason"] == "no longer"
    assert len(chat.heard()) == 1, "what never ran is not said to have been called"


def test_a_version_that_needs_more_asks_for_it_and_then_again_for_consent() -> None:
    chat, _ = asking()
    chat.answer("approve")
    schema = dict(TOOLS["pay"].parameters)
    schema["properties"] = {**schema["properties"], "iban": {"type": "string"}}
    schema["required"] = [*schema["required"], "iban"]
    chat.tools["pay"] = replace(TOOLS["pay"], version="2", parameters=schema)
    chat.start("c1")
    assert chat.question().type is InteractionType.MISSING_INFO
    chat.answer("provide", iban="DE02")
    chat.start("c1")
    asked = chat.question()
    assert asked.details == (
        "This was consented to, but it has changed since:\n"
        '- the tool pay itself is another version\n- iban: new, "DE02"'
    )
    assert asked.context["before"]["args"] == {"amount": 5}
    assert ran(chat) == []
    chat.answer("approve")
    chat.start("c1")
    assert ran(chat) == [{"amount": 5, "iban": "DE02"}]


def test_consent_covers_the_attempts_of_one_call() -> None:
    chat, _ = asking()
    chat.answer("approve")
    chat.start("c1")
    chat.report(chat.out("c1"), TRANSIENT)
    chat.wait(60)
    chat.start("c1")
    assert ran(chat) == [{"amount": 5}] * 2
    assert len(chat.happened(e.QuestionOpened)) == 1


def test_a_new_version_between_two_attempts_needs_a_new_consent() -> None:
    chat, _ = asking()
    chat.answer("approve")
    chat.start("c1")
    chat.report(chat.out("c1"), TRANSIENT)
    chat.tools["pay"] = replace(TOOLS["pay"], version="2")
    chat.wait(60)
    chat.start("c1")
    assert len(ran(chat)) == 1
    assert chat.question().context["before"]["args"] == {"amount": 5}


def test_consent_to_one_call_covers_no_other_with_the_same_arguments() -> None:
    chat, _ = asking()
    chat.answer("approve")
    chat.start("c1")
    chat.returns("c1")
    chat.calls(chat.want("pay", amount=5))
    assert len(ran(chat)) == 1
    assert chat.question().title == "Run pay?"


@pytest.mark.parametrize(
    ("own", "agent", "session", "expected"),
    [
        (AUTO, {}, {}, "runs"),
        (REQUIRE, {"pay": AUTO}, {}, "runs"),
        (REQUIRE, {"*": AUTO}, {"pay": REQUIRE}, "asks"),
        (AUTO, {"pay": REQUIRE}, {"pay": AUTO}, "runs"),
        (DISABLED, {"pay": AUTO}, {"pay": AUTO}, "refuses"),
        (AUTO, {}, {"*": DISABLED}, "refuses"),
    ],
)
def test_the_rule_nearest_to_the_call_holds_and_closed_stays_closed(
    own: ApprovalRule, agent: Rules, session: Rules, expected: str
) -> None:
    chat = begun(clerk(approval=agent), approval=session)
    chat.tools["pay"] = replace(TOOLS["pay"], approval=own)
    pay = chat.want("pay", amount=5)
    chat.calls(pay)
    assert (len(ran(chat)) == 1) == (expected == "runs")
    assert bool(chat.state.open_questions) == (expected == "asks")
    if expected == "refuses":
        assert chat.result(pay).content == {"error": "the tool pay is disabled"}


@pytest.mark.parametrize(("amount", "asks"), [(1000, False), (1001, True)])
def test_a_rule_may_depend_on_the_arguments(amount: int, asks: bool) -> None:
    rule = ApprovalRule(ApprovalMode.REQUIRE_APPROVAL, "amount > 1000")
    chat = begun(clerk(approval={"pay": rule}))
    chat.calls(chat.want("pay", amount=amount))
    assert bool(chat.state.open_questions) == asks


def test_how_consent_is_asked_for_goes_by_the_agent() -> None:
    chat, _ = asking(clerk(asking=Asking(title="May I?", role="treasurer")))
    assert (chat.question().title, chat.question().role) == ("May I?", "treasurer")


def test_consent_that_cannot_be_asked_for_refuses_the_call() -> None:
    chat, pay = asking(clerk(asking=Asking(timeout_seconds=10, default_option_id="approve")))
    assert "the clock may not take" in chat.result(pay).content["error"]
    assert ran(chat) == []
    assert chat.ready() == [THINK]
