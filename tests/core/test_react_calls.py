"""Calls of a session: what may start, what is refused, and what becomes of a failure."""

from __future__ import annotations

import pytest
from react_machine import (
    DISABLED,
    PERMANENT,
    TOOLS,
    TRANSIENT,
    UNKNOWN,
    WILL,
    Chat,
    begun,
    clerk,
    opened,
)

from holdfast.core.agent.state import THINK
from holdfast.core.run.tables import StepStatus
from holdfast.model import agent_events as r
from holdfast.model import commands as c
from holdfast.model import events as e
from holdfast.model.approval import ApprovalMode, ApprovalRule
from holdfast.model.form import Field, FieldType, Form
from holdfast.model.interaction import InteractionStatus, InteractionType
from holdfast.model.message import ToolCall
from holdfast.model.retry import Failure, FailureKind, RetryPolicy
from holdfast.model.run import RunStatus
from holdfast.model.values import Json

SIZE = Form((Field("size", label="Size"),))


def looking(tool: str = "look", **args: Json) -> tuple[Chat, ToolCall]:
    """A session with one call out in the world."""
    chat = begun()
    call = chat.want(tool, **args)
    chat.calls(call)
    return chat, call


def test_a_call_runs_and_the_model_hears_what_came_of_it() -> None:
    chat, look = looking()
    call = chat.out("c1")
    assert (call.tool, call.args, call.consent) == ("look", {}, None)
    assert call.work.key == "chat_000001:c1:1:0"
    chat.returns("c1", {"sun": True})
    assert chat.result(look).content == {"sun": True}
    assert not chat.result(look).failed
    chat.reply("The sun shines.")
    assert chat.state.did == (("look", "done", {"sun": True}),)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (
            ToolCall("k1", "fly", {}),
            "there is no tool 'fly'; you have look, keyed, pay, shut, picky, absent, ask_scout",
        ),
        (
            ToolCall("k1", "look", {}, '{"to": '),
            'the arguments are not a JSON object: {"to": ',
        ),
        (ToolCall("k1", "shut", {}), "the tool shut is disabled"),
        (ToolCall("k1", "absent", {}), "the tool 'absent' is not available now"),
        (ToolCall("k1", "ask_scout", {}), "say in `task` what is to be done"),
        (ToolCall("k1", "ask_scout", {"task": " "}), "say in `task` what is to be done"),
        (ToolCall("k1", "ask_scout", {"task": 7}), "say in `task` what is to be done"),
        (ToolCall("k1", "ask_person", {}), "say in `question` what you want to know"),
        (
            ToolCall("k1", "ask_person", {"question": " "}),
            "say in `question` what you want to know",
        ),
        (ToolCall("k1", "ask_person", {"question": 7}), "say in `question` what you want to know"),
    ],
)
def test_a_call_that_cannot_be_is_refused_and_the_model_thinks_again(
    call: ToolCall, told: str
) -> None:
    chat = begun()
    chat.calls(call)
    assert chat.result(call).content == {"error": told}
    assert chat.result(call).failed
    assert not chat.happened(r.CallStarted)
    assert chat.ready() == [THINK]


@pytest.mark.parametrize(
    ("properties", "told"),
    [
        ({"amount": {}, "note": {}}, "the tool pay does not take bogus; it takes amount, note"),
        ({}, "the tool pay does not take amount, bogus; it takes no arguments at all"),
    ],
)
@pytest.mark.parametrize("approval", list(ApprovalMode)[:2])
def test_nobody_is_asked_about_arguments_that_the_tool_shuts_out(
    approval: ApprovalMode, properties: dict[str, Json], told: str
) -> None:
    chat = begun()
    closed: dict[str, Json] = {"properties": properties, "additionalProperties": False}
    chat.tools["pay"] = c.ToolFacts(closed, "1", approval=ApprovalRule(approval))
    call = chat.want("pay", amount="lots", bogus=1)
    chat.calls(call)
    assert chat.result(call).content == {"error": told}
    assert not chat.happened(r.CallStarted)
    assert not chat.happened(e.QuestionOpened)


def test_an_agent_without_tools_says_so() -> None:
    chat = begun(clerk(tools=(), agents=(), asks_people=False))
    call = chat.want("ask_person", question="Who?")
    chat.calls(call)
    told = "there is no tool 'ask_person'; you have no tools at all"
    assert chat.result(call).content == {"error": told}


def test_a_failure_is_tried_again_under_a_new_generation_and_then_told() -> None:
    chat, look = looking()
    keys = []
    for _ in range(2):
        keys.append(chat.out("c1").work.key)
        chat.report(chat.out("c1"), TRANSIENT)
        assert chat.state.steps["c1"].status is StepStatus.BACKOFF
        chat.wait(60)
        chat.start("c1")
    keys.append(chat.out("c1").work.key)
    chat.report(chat.out("c1"), TRANSIENT)
    assert keys == [f"chat_000001:c1:1:{generation}" for generation in range(3)]
    assert chat.result(look).content == {"error": "out of order", "kind": "transient"}
    assert chat.result(look).failed
    assert chat.ready() == [THINK]


def test_a_retry_waits_for_its_time() -> None:
    chat, _ = looking()
    chat.report(chat.out("c1"), TRANSIENT)
    due = chat.state.timers["retry:c1"]
    assert chat.wait(0.1).events == ()
    assert chat.start("c1").events == ()
    chat.now = due
    assert chat.submit(c.Tick()).events == (e.StepWoken("c1", 1),)


def test_what_cannot_help_is_not_tried_again() -> None:
    chat, look = looking()
    chat.report(chat.out("c1"), PERMANENT)
    assert chat.result(look).content == {"error": "no such thing", "kind": "permanent"}


def test_a_tools_own_words_about_its_failure_are_what_the_model_hears() -> None:
    chat, look = looking()
    said = {"success": False, "error": "sold out"}
    failure = Failure(FailureKind.PERMANENT, "sold out")
    chat.report(chat.out("c1"), c.Failed(failure, result=said))
    assert chat.result(look).content == said


def test_a_call_that_was_never_sent_is_ready_again_as_if_nothing_had_been() -> None:
    chat, _ = looking()
    first = chat.out("c1")
    chat.report(first, c.NotSent())
    assert chat.ready() == ["c1"]
    chat.start("c1")
    again = chat.out("c1")
    assert again.work.key == first.work.key
    assert (again.work.attempt, again.work.claim > first.work.claim) == (1, True)


@pytest.mark.parametrize("outcome", [c.Lost("cut off"), UNKNOWN])
def test_an_idempotent_call_that_was_lost_is_tried_again_under_the_same_key(
    outcome: c.Outcome,
) -> None:
    chat, keyed = looking("keyed")
    first = chat.out("c1")
    chat.report(first, outcome)
    chat.wait(60)
    chat.start("c1")
    assert chat.out("c1").work.key == first.work.key
    chat.report(chat.out("c1"), outcome)
    chat.wait(60)
    chat.start("c1")
    chat.report(chat.out("c1"), outcome)
    assert chat.result(keyed).content == {"error": "cut off", "kind": "unknown"}


def lost() -> tuple[Chat, ToolCall]:
    chat, look = looking()
    chat.report(chat.out("c1"), c.Lost("the line went dead"))
    return chat, look


def test_of_any_other_lost_call_a_person_is_asked() -> None:
    chat, _ = lost()
    asked = chat.question()
    assert asked.title == "Did look happen?"
    assert "its outcome is unknown: the line went dead" in asked.message
    assert [one.option_id for one in asked.options] == ["happened", "run_again", "stop"]
    assert asked.context == {"tool": "look", "args": {}}
    assert chat.state.status is RunStatus.PAUSE
    assert not chat.ready()


def test_it_happened_so_nothing_is_called_again() -> None:
    chat, look = lost()
    chat.answer("happened", result="paid in full")
    chat.start("c1")
    assert chat.result(look).content == {"result": "paid in full"}
    assert not chat.result(look).failed
    assert len(chat.happened(r.CallStarted)) == 1


def test_run_again_keeps_the_key() -> None:
    chat, look = lost()
    chat.answer("run_again")
    chat.start("c1")
    again = chat.out("c1")
    assert (again.work.key, again.work.attempt) == ("chat_000001:c1:1:0", 2)
    chat.returns("c1", "seen")
    assert chat.result(look).content == "seen"


def test_stop_ends_the_session_and_says_who_did() -> None:
    chat, _ = lost()
    chat.answer("stop")
    assert (chat.state.status, chat.state.cancelled_by) == (RunStatus.CANCELLED, WILL)
    assert len(chat.happened(r.CallStarted)) == 1


@pytest.mark.parametrize("late", [c.Succeeded("seen"), PERMANENT])
def test_a_late_result_withdraws_the_question(late: c.Outcome) -> None:
    chat, look = lost()
    (asked,) = chat.state.open_questions
    chat.report(chat.past[-1], late)
    assert chat.state.questions[asked].status is InteractionStatus.WITHDRAWN
    assert chat.result(look).failed == (late is PERMANENT)
    assert (chat.state.status, chat.ready()) == (RunStatus.RUNNING, [THINK])


def test_a_late_failure_that_may_pass_is_tried_again() -> None:
    chat, _ = lost()
    chat.report(chat.past[-1], TRANSIENT)
    assert chat.state.steps["c1"].status is StepStatus.BACKOFF


@pytest.mark.parametrize("late", [c.Lost("again"), UNKNOWN, c.NotSent()])
def test_a_late_word_that_tells_nothing_leaves_the_question_open(late: c.Outcome) -> None:
    chat, _ = lost()
    assert chat.report(chat.past[-1], late).events == ()
    assert chat.question().title == "Did look happen?"


def test_a_late_result_after_the_answer_is_only_kept() -> None:
    chat, look = lost()
    chat.answer("happened", result="paid")
    chat.start("c1")
    kept = chat.report(chat.past[-1], c.Succeeded("late"))
    assert kept.events == (e.LateResultKept("c1", 1, "late"),)
    assert chat.result(look).content == {"result": "paid"}


def test_missing_arguments_are_asked_for_and_the_same_call_goes_on() -> None:
    chat, picky = looking("picky")
    asked = chat.question()
    assert asked.type is InteractionType.MISSING_INFO
    assert asked.title == "picky needs more"
    shown = {"tool": "picky", "args": {}, "call_id": picky.call_id}
    assert asked.context == {**shown, "tool_version": "1"}
    assert not chat.happened(r.CallStarted)
    chat.answer(None, size="XL")
    chat.start("c1")
    assert chat.out("c1").args == {"size": "XL"}
    chat.returns("c1", "fits")
    assert chat.result(picky).content == "fits"
    assert chat.heard()[-1] == '[picky was called with {"size":"XL"}, as a person chose]'
    assert chat.think().messages[-2].content == "fits"  # type: ignore[union-attr]


def test_a_call_that_lacks_arguments_may_be_skipped() -> None:
    chat, picky = looking("picky")
    assert [one.option_id for one in chat.question().options] == ["provide", "skip"]
    chat.answer("skip")
    assert "skipped" in chat.result(picky).content
    assert not chat.happened(r.CallStarted)
    assert chat.ready() == [THINK]


def test_missing_arguments_come_before_consent_and_consent_covers_them() -> None:
    chat, pay = looking("pay", note="rent")
    assert chat.question().type is InteractionType.MISSING_INFO
    chat.answer("provide", amount=5)
    chat.start("c1")
    assert chat.question().context["args"] == {"note": "rent", "amount": 5}
    chat.answer("approve")
    chat.start("c1")
    assert chat.out("c1").args == {"note": "rent", "amount": 5}
    chat.returns("c1")
    assert not chat.result(pay).failed


def test_a_secret_that_is_missing_is_asked_for_and_comes_as_a_reference() -> None:
    pin: dict[str, Json] = {"pin": {"type": "string", "format": "password"}}
    chat = begun()
    chat.tools["picky"] = c.ToolFacts({"properties": pin, "required": ["pin"]}, "1")
    chat.calls(chat.want("picky"))
    assert [one.type for one in chat.question().form.fields] == [FieldType.SECRET]
    reference = f"secret:{'0' * 32}"
    chat.answer("provide", pin=reference)
    chat.start("c1")
    assert chat.out("c1").args == {"pin": reference}


def test_a_tool_that_asks_for_more_gets_it_under_a_new_generation() -> None:
    chat, look = looking()
    chat.report(chat.out("c1"), c.Missing(SIZE))
    assert chat.question().message == "Needed to go on: Size"
    chat.answer("provide", size="XL")
    chat.start("c1")
    again = chat.out("c1")
    assert (again.args, again.work.key) == ({"size": "XL"}, "chat_000001:c1:1:1")
    chat.returns("c1", "fits")
    assert chat.result(look).content == "fits"


def test_a_tool_that_asks_for_more_after_consent_needs_consent_to_all_of_it() -> None:
    chat, pay = looking("pay", amount=5)
    chat.answer("approve", amount=9)
    chat.start("c1")
    chat.report(chat.out("c1"), c.Missing(SIZE))
    chat.answer("provide", size="XL")
    assert chat.state.steps["c1"].consent is None, "it was to other arguments"
    assert not chat.happened(r.CallStarted)[1:]
    chat.start("c1")
    shown = chat.question().context["args"]
    assert shown == {"amount": 9, "size": "XL"}, "what the person had chosen stays chosen"
    chat.answer("approve")
    chat.start("c1")
    assert chat.out("c1").args == shown
    chat.returns("c1")
    assert not chat.result(pay).failed


def test_a_tool_that_asks_for_what_the_journal_could_not_keep_is_refused() -> None:
    chat, look = looking()
    chat.report(chat.out("c1"), c.Missing(Form((Field("pin", label="\ud800"),))))
    assert "cannot be asked" in chat.result(look).content["error"]
    assert not chat.state.open_questions


def test_a_tool_that_was_closed_after_consent_does_not_run() -> None:
    chat, pay = looking("pay", amount=5)
    chat.answer("approve")
    chat.tools["pay"] = c.ToolFacts(TOOLS["pay"].parameters, "1", approval=DISABLED)
    chat.start("c1")
    assert chat.result(pay).content == {"error": "the tool pay is disabled"}
    assert not chat.happened(r.CallStarted)


def test_attempts_go_by_the_agents_policy() -> None:
    chat = begun(clerk(retry=RetryPolicy(attempts=1)))
    look = chat.want("look")
    chat.calls(look)
    chat.report(chat.out("c1"), TRANSIENT)
    assert chat.result(look).failed


def test_a_result_for_a_call_of_long_ago_is_only_kept() -> None:
    chat, _ = looking()
    first = chat.out("c1")
    chat.returns("c1", "seen")
    chat.reply("Seen.")
    chat.say("Again.")
    chat.reply("Fine.")
    assert "c1" not in chat.state.steps
    assert chat.report(first, c.Succeeded("late")).events == (e.LateResultKept("c1", 1, "late"),)


def test_a_word_about_a_call_that_never_was_changes_nothing() -> None:
    chat = opened()
    assert chat.submit(c.ReportOutcome("c7", 1, 9, c.Lost("?"))).events == ()


def test_one_who_only_looks_asks_nobody_for_what_a_call_lacks() -> None:
    chat = begun(only=("picky",))
    picky = chat.want("picky")
    chat.calls(picky)
    assert chat.result(picky).content == {"error": "required arguments are missing: size"}
    assert not chat.state.open_questions


def test_a_call_without_a_name_never_passes_for_a_persons_answer() -> None:
    chat = begun()
    nameless = ToolCall("k1", "", {})
    chat.calls(nameless)
    assert chat.result(nameless).failed
    assert chat.heard() == ["Pay, please."]
