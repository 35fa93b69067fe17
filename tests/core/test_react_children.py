"""Helpers: agents that a session hands work to, each a child run with its own journal."""

from __future__ import annotations

import pytest
from react_machine import AUTO, DISABLED, REQUIRE, WILL, Chat, begun, clerk, opened

from holdfast.core.agent.state import THINK
from holdfast.errors import NotAllowed
from holdfast.model import agent_events as r
from holdfast.model import commands as c
from holdfast.model import effects as f
from holdfast.model.approval import ApprovalRule
from holdfast.model.interaction import InteractionType
from holdfast.model.message import ToolCall
from holdfast.model.run import RunStatus

CHILD = "chat_000001.c1.1"


def scouting(*more: str) -> tuple[Chat, ToolCall]:
    """A session whose helper is at work, perhaps beside other calls."""
    chat = begun()
    scout = chat.want("ask_scout", task="Find the way.")
    chat.calls(scout, *(chat.want(tool) for tool in more))
    return chat, scout


def failed(*more: str) -> tuple[Chat, ToolCall]:
    chat, scout = scouting(*more)
    chat.hear(CHILD, "error")
    return chat, scout


def test_a_helper_is_a_child_run_born_with_the_start_of_its_call() -> None:
    chat = begun()
    chat.reply("", chat.want("ask_scout", task="Find the way."))
    (effect,) = chat.start("c1").effects
    assert isinstance(effect, f.StartAgent)
    assert (effect.child_id, effect.agent_id) == (CHILD, "scout")
    assert (effect.prompt, effect.root_id) == ("Find the way.", "chat_000001")
    assert not effect.verifies
    assert chat.state.resting == 1, "a session that waits for a helper costs nothing"


@pytest.mark.parametrize(
    ("result", "failure"),
    [({"answer": "Left."}, False), ({"success": False, "error": "no way"}, True), (None, False)],
)
def test_what_the_helper_found_is_the_result_of_the_call(result: object, failure: bool) -> None:
    chat, scout = scouting()
    chat.hear(CHILD, "done", result)
    assert chat.ready() == ["c1"]
    chat.start("c1")
    assert chat.result(scout).content == result
    assert chat.result(scout).failed is failure
    assert len(chat.happened(r.CallStarted)) == 1, "the work is never redone"
    chat.reply("Go left.")
    assert chat.state.status is RunStatus.DONE


def test_a_helper_that_waits_for_a_person_pauses_the_session() -> None:
    chat, _ = scouting()
    chat.hear(CHILD, "pause")
    assert chat.state.status is RunStatus.PAUSE
    with pytest.raises(NotAllowed, match="is still at work"):
        chat.say()
    chat.hear(CHILD, "running")
    assert chat.state.status is RunStatus.RUNNING


def test_a_word_is_heard_once() -> None:
    chat, _ = scouting()
    chat.hear(CHILD, "done", "found")
    again = c.HearChild(CHILD, chat.children[CHILD].seq, "c1", 1, "done", "", "found")
    assert chat.submit(again).events == ()
    assert chat.submit(c.HearChild("stranger", 9, "c1", 1, "done")).events == ()
    assert chat.submit(c.HearChild(CHILD, 9, "c7", 1, "done")).events == ()


def test_a_helper_that_fails_fails_the_turn_and_is_resumed_with_it() -> None:
    chat, scout = failed()
    assert (chat.state.status, chat.state.failed) == (RunStatus.ERROR, ("c1",))
    assert chat.state.error == f"{CHILD}: as it said"
    decision = chat.submit(c.Resume(WILL))
    assert decision.effects == (f.ResumeChild(CHILD, WILL),)
    assert chat.state.status is RunStatus.RUNNING
    assert not chat.ready()
    chat.hear(CHILD, "running")
    chat.hear(CHILD, "done", "found")
    chat.start("c1")
    assert chat.result(scout).content == "found"
    assert len(chat.happened(r.CallStarted)) == 1


def test_a_call_that_ends_beside_a_failed_helper_does_not_make_the_model_think() -> None:
    chat, _ = failed("look")
    chat.returns("c2", "seen")
    assert (chat.state.status, chat.ready()) == (RunStatus.ERROR, [])
    chat.submit(c.Resume(WILL))
    assert not chat.ready(), "the helper has not ended"
    chat.hear(CHILD, "done", "found")
    chat.start("c1")
    assert chat.ready() == [THINK]
    assert len(chat.think().messages) == 4


def test_the_next_message_goes_on_without_the_failed_helper_which_is_cancelled() -> None:
    chat, scout = failed()
    decision = chat.say("Never mind the way.")
    reason = "the next turn began without it"
    assert decision.effects == (f.CancelChild(CHILD, WILL, reason),)
    assert chat.result(scout).content == {"error": "Will Zhang went on without it"}
    chat.hear(CHILD, "cancelled")
    chat.reply("Fine.")
    assert (chat.state.status, chat.state.turn) == (RunStatus.DONE, 2)


def test_no_message_goes_on_without_a_call_that_is_still_out() -> None:
    chat, _ = failed("look")
    with pytest.raises(NotAllowed, match="failed in the middle of calls; resume or cancel it"):
        chat.say()


def test_a_helper_that_was_cancelled_elsewhere_is_a_failed_call() -> None:
    chat, scout = scouting()
    chat.hear(CHILD, "cancelled")
    assert chat.result(scout).content == {"error": f"{CHILD} was cancelled"}
    assert chat.result(scout).failed
    assert chat.ready() == [THINK]


def test_a_failed_helper_that_is_cancelled_elsewhere_is_not_waited_for() -> None:
    chat, scout = failed()
    assert chat.hear(CHILD, "cancelled").effects == ()
    assert chat.result(scout).content == {"error": f"{CHILD} was cancelled"}
    assert (chat.state.status, chat.state.failed) == (RunStatus.ERROR, ())
    assert chat.submit(c.Resume(WILL)).effects == ()
    chat.reply("Then not.")
    assert chat.state.status is RunStatus.DONE


def test_a_failed_helper_that_goes_on_elsewhere_takes_its_call_along() -> None:
    chat, scout = failed()
    chat.hear(CHILD, "running")
    assert chat.state.failed == ()
    chat.hear(CHILD, "done", "found")
    assert chat.state.status is RunStatus.ERROR
    chat.submit(c.Resume(WILL))
    chat.start("c1")
    assert chat.result(scout).content == "found"


def test_two_helpers_may_fail_and_both_are_resumed() -> None:
    chat = begun()
    chat.calls(chat.want("ask_scout", task="Left."), chat.want("ask_scout", task="Right."))
    for step_id in ("c1", "c2"):
        chat.hear(f"chat_000001.{step_id}.1", "error")
    assert chat.state.failed == ("c1", "c2")
    effects = chat.submit(c.Resume(WILL)).effects
    assert [one.child_id for one in effects if isinstance(one, f.ResumeChild)] == [
        "chat_000001.c1.1",
        "chat_000001.c2.1",
    ]


def test_a_helper_that_was_never_started_is_started_again() -> None:
    chat, _ = scouting()
    claim = chat.state.steps["c1"].claim
    chat.submit(c.ReportOutcome("c1", 1, claim, c.NotSent()))
    (effect,) = chat.start("c1").effects
    assert isinstance(effect, f.StartAgent)
    assert effect.child_id == CHILD


def test_cancelling_a_session_cancels_its_helper_and_waits_for_it() -> None:
    chat, _ = scouting()
    decision = chat.submit(c.Cancel(WILL, "too far"))
    assert decision.effects == (f.CancelChild(CHILD, WILL, "too far"),)
    assert chat.state.status is RunStatus.CANCELLING
    chat.hear(CHILD, "pause")
    chat.hear(CHILD, "error")
    assert chat.state.status is RunStatus.CANCELLING
    chat.hear(CHILD, "cancelled")
    assert chat.state.status is RunStatus.CANCELLED


def test_a_helper_that_was_done_before_it_could_be_cancelled_counts() -> None:
    chat, scout = scouting()
    chat.submit(c.Cancel(WILL))
    chat.hear(CHILD, "done", "found")
    assert chat.state.status is RunStatus.CANCELLED
    assert chat.result(scout).content == "found"


def test_cancelling_after_an_error_cancels_the_failed_helper_too() -> None:
    chat, _ = failed()
    decision = chat.submit(c.Cancel(WILL, "enough"))
    assert decision.effects == (f.CancelChild(CHILD, WILL, "enough"),)
    assert chat.state.status is RunStatus.CANCELLED


def test_a_paused_helper_lost_in_a_cancellation_is_no_longer_waited_for() -> None:
    chat, _ = scouting()
    chat.hear(CHILD, "pause")
    chat.submit(c.Cancel(WILL, grace=10))
    chat.wait(10)
    assert (chat.state.status, chat.state.paused_children) == (RunStatus.CANCELLED, 0)


def test_a_new_owner_takes_up_what_was_said_to_helpers() -> None:
    chat, _ = failed()
    chat.submit(c.Resume(WILL))
    assert chat.crash().effects == (f.ResumeChild(CHILD, WILL),)
    chat.submit(c.Cancel("操作员"))
    assert chat.crash().effects == (f.CancelChild(CHILD, "操作员", "cancelled"),)


def test_a_new_owner_of_a_session_that_waits_for_its_helper_has_nothing_to_do() -> None:
    chat, _ = scouting()
    decision = chat.crash()
    assert (decision.events, decision.effects) == ((), ())


def test_a_new_owner_leaves_a_helper_alone_that_looks_after_itself() -> None:
    chat, _ = scouting("keyed")
    assert chat.crash().effects == ()
    assert chat.ready() == ["c2"]


def handing(task: str = "Find the way.", **rules: ApprovalRule) -> tuple[Chat, ToolCall]:
    """A session with rules of its own hands work to its helper."""
    chat = begun(approval=rules)
    scout = chat.want("ask_scout", task=task)
    chat.calls(scout)
    return chat, scout


@pytest.mark.parametrize("name", ["ask_scout", "scout", "*"])
def test_a_helper_that_is_disabled_is_not_born(name: str) -> None:
    chat, scout = handing(**{name: DISABLED})
    assert chat.result(scout).content == {"error": "the tool ask_scout is disabled"}
    assert not chat.children


@pytest.mark.parametrize("name", ["ask_scout", "scout", "*"])
def test_work_is_handed_over_with_consent_where_that_is_required(name: str) -> None:
    chat, _ = handing(**{name: REQUIRE})
    asked = chat.question()
    assert (asked.type, asked.title) == (InteractionType.TOOL_APPROVAL, "Run ask_scout?")
    assert asked.context["args"] == {"task": "Find the way."}
    assert not chat.children
    chat.answer("approve")
    (effect,) = chat.start("c1").effects
    assert isinstance(effect, f.StartAgent)
    assert effect.prompt == "Find the way."
    assert effect.approval == {name: REQUIRE}, "the session's rules go on to the helper"
    assert chat.happened(r.CallStarted)[0].consent == chat.state.steps["c1"].consent is not None


def test_the_helper_hears_the_task_as_a_person_changed_it() -> None:
    chat, _ = handing(scout=REQUIRE)
    chat.answer("approve", task="Find another way.")
    (effect,) = chat.start("c1").effects
    assert isinstance(effect, f.StartAgent)
    assert effect.prompt == "Find another way."


def test_a_rejected_helper_is_not_born() -> None:
    chat, _ = handing(scout=REQUIRE)
    chat.answer("reject", "not now")
    assert not chat.children
    assert not chat.happened(r.CallStarted)


def test_an_agents_own_rule_holds_unless_the_session_says_otherwise() -> None:
    strict = clerk(approval={"scout": REQUIRE})
    for session, born in (({}, False), ({"ask_scout": AUTO}, True)):
        chat = begun(strict, approval=session)
        chat.calls(chat.want("ask_scout", task="Go."))
        assert bool(chat.children) is born


def test_what_an_agents_author_has_disabled_no_session_opens() -> None:
    chat = begun(clerk(approval={"scout": DISABLED}), approval={"ask_scout": AUTO})
    chat.calls(chat.want("ask_scout", task="Go."))
    assert not chat.children


def test_of_two_rules_for_one_helper_the_stricter_holds() -> None:
    chat, _ = handing(scout=REQUIRE, ask_scout=AUTO)
    assert chat.question().title == "Run ask_scout?"


def test_a_remembered_approval_covers_a_helper() -> None:
    chat = opened(approval={"scout": REQUIRE})
    chat.submit(c.RememberApproval("ask_scout", "agent", WILL, {"task": "Find *"}))
    chat.say()
    chat.calls(chat.want("ask_scout", task="Find it."), chat.want("ask_scout", task="Burn it."))
    assert set(chat.children) == {CHILD}
    assert chat.question().context["args"] == {"task": "Burn it."}
