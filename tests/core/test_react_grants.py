"""Remembered approvals, and calls that somebody proposes: what needs no further consent."""

from __future__ import annotations

from dataclasses import replace

import pytest
from react_machine import TOOLS, TRANSIENT, WILL, Chat, opened

from holdfast.errors import InvalidAnswer, NotFound
from holdfast.model import agent_events as r
from holdfast.model import commands as c
from holdfast.model.message import ToolCall
from holdfast.model.run import RunStatus
from holdfast.model.values import Json


def ran(chat: Chat) -> list[dict[str, Json]]:
    return [dict(one.args) for one in chat.happened(r.CallStarted)]


def remember(chat: Chat, **changes: object) -> str:
    """A remembered approval of payments; gives its id."""
    wanted = {"tool": "pay", "version": "1", "by": WILL, **changes}
    (event,) = chat.submit(c.RememberApproval(**wanted)).events  # type: ignore[arg-type]
    assert isinstance(event, r.ApprovalRemembered)
    return event.grant.grant_id


def test_a_remembered_approval_covers_what_fits_and_is_named() -> None:
    chat = opened()
    granted = remember(chat, pattern={"amount": 5})
    chat.say()
    chat.calls(chat.want("pay", amount=5), chat.want("pay", amount=6))
    (started,) = chat.happened(r.CallStarted)
    assert (started.step_id, started.grant_id) == ("c1", granted)
    assert started.consent is not None
    assert chat.question().context["args"] == {"amount": 6}


def test_uses_are_counted_and_spent() -> None:
    chat = opened()
    granted = remember(chat, uses=2)
    chat.say()
    chat.calls(*(chat.want("pay", amount=n) for n in (1, 2, 3)))
    assert [one.step_id for one in chat.happened(r.CallStarted)] == ["c1", "c2"]
    assert chat.state.grants[granted].uses == 0
    assert chat.question().context["args"] == {"amount": 3}


def test_the_approval_that_costs_no_use_is_taken_first() -> None:
    chat = opened()
    remember(chat, uses=2)
    free = remember(chat)
    chat.say()
    chat.calls(chat.want("pay", amount=1))
    assert chat.happened(r.CallStarted)[0].grant_id == free


def test_another_attempt_costs_no_further_use() -> None:
    chat = opened()
    granted = remember(chat, uses=2)
    chat.say()
    chat.calls(chat.want("pay", amount=1))
    chat.report(chat.out("c1"), c.NotSent())
    chat.start("c1")
    assert len(ran(chat)) == 2
    assert chat.state.grants[granted].uses == 1


def backing_off(**limits: object) -> tuple[Chat, str]:
    """A call under a remembered approval has failed, and will be tried again."""
    chat = opened()
    granted = remember(chat, **limits)
    chat.say()
    chat.calls(chat.want("pay", amount=1))
    chat.report(chat.out("c1"), TRANSIENT)
    return chat, granted


def test_a_revoked_approval_covers_no_further_attempt() -> None:
    chat, granted = backing_off()
    chat.submit(c.RevokeApproval(granted, WILL))
    chat.wait(60)
    chat.start("c1")
    assert len(ran(chat)) == 1
    chat.answer("approve")
    chat.start("c1")
    assert len(ran(chat)) == 2, "the person's own consent does not hang on the approval"
    chat.report(chat.out("c1"), TRANSIENT)
    chat.wait(60)
    chat.start("c1")
    assert len(ran(chat)) == 3


def test_an_expired_approval_covers_no_further_attempt() -> None:
    chat, _ = backing_off(expires_at=1_700_000_060.0)
    chat.wait(60)
    chat.start("c1")
    assert len(ran(chat)) == 1
    assert chat.question().title == "Run pay?"


def test_another_approval_takes_the_place_of_one_that_was_revoked() -> None:
    chat, granted = backing_off()
    other = remember(chat)
    chat.submit(c.RevokeApproval(granted, WILL))
    chat.wait(60)
    chat.start("c1")
    assert [one.grant_id for one in chat.happened(r.CallStarted)] == [granted, other]


def test_an_approval_that_the_call_itself_has_used_up_covers_its_attempts() -> None:
    chat, granted = backing_off(uses=1, expires_at=1_800_000_000.0)
    for attempts in (2, 3):
        chat.wait(60)
        chat.start("c1")
        assert len(ran(chat)) == attempts
        if attempts == 2:
            chat.report(chat.out("c1"), TRANSIENT)
    assert chat.state.grants[granted].uses == 0
    assert chat.state.steps["c1"].grant_id == granted


def test_an_expired_approval_covers_nothing() -> None:
    chat = opened()
    remember(chat, expires_at=chat.now + 60)
    chat.now += 60
    chat.say()
    chat.calls(chat.want("pay", amount=1))
    assert ran(chat) == []


def test_a_revoked_approval_covers_nothing() -> None:
    chat = opened()
    granted = remember(chat)
    chat.submit(c.RevokeApproval(granted, WILL))
    chat.say()
    chat.calls(chat.want("pay", amount=1))
    assert ran(chat) == []
    with pytest.raises(NotFound, match="remembers no approval"):
        chat.submit(c.RevokeApproval(granted, WILL))


def test_an_approval_of_another_version_covers_nothing() -> None:
    chat = opened()
    remember(chat, version="0")
    chat.say()
    chat.calls(chat.want("pay", amount=1))
    assert ran(chat) == []


def test_a_new_version_after_a_remembered_approval_asks_and_says_that_it_changed() -> None:
    chat = opened()
    remember(chat)
    chat.say()
    chat.calls(chat.want("pay", amount=1))
    chat.report(chat.out("c1"), TRANSIENT)
    chat.tools["pay"] = replace(TOOLS["pay"], version="2")
    chat.wait(60)
    chat.start("c1")
    assert len(ran(chat)) == 1
    assert chat.question().details == "What was consented to has changed."


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"uses": 0}, "uses"),
        ({"uses": True}, "uses"),
        ({"uses": 1.5}, "uses"),
        ({"expires_at": 1.0}, "expires_at"),
        ({"expires_at": float("inf")}, "expires_at"),
        ({"expires_at": float("nan")}, "expires_at"),
    ],
)
def test_an_approval_that_could_cover_nothing_is_not_remembered(
    wrong: dict[str, float], field: str
) -> None:
    chat = opened()
    with pytest.raises(InvalidAnswer) as refused:
        remember(chat, **wrong)
    assert set(refused.value.fields) == {field}
    assert not len(chat.state.grants)


def test_a_proposed_call_needs_consent_even_where_the_tool_is_free() -> None:
    chat = opened()
    chat.submit(c.Propose("look", {}, "p1", WILL))
    assert (chat.state.turn, chat.state.status) == (1, RunStatus.RUNNING)
    chat.start("c1")
    assert ran(chat) == []
    chat.answer("approve")
    chat.start("c1")
    chat.returns("c1", "seen")
    assert chat.result(ToolCall("p1", "look", {})).content == "seen"
    assert chat.heard() == ["[Will Zhang proposes to call look]"]
    chat.reply("I see.")
    assert chat.state.status is RunStatus.DONE


def test_no_remembered_approval_covers_what_somebody_proposes() -> None:
    chat = opened()
    remember(chat)
    chat.submit(c.Propose("pay", {"amount": 1}, "p1", WILL))
    chat.start("c1")
    assert ran(chat) == []
    assert chat.question().type == "TOOL_APPROVAL"


def test_a_proposed_call_that_is_rejected_does_not_run_and_the_model_hears_it() -> None:
    chat = opened()
    chat.submit(c.Propose("pay", {"amount": 5}, "p1", WILL))
    chat.start("c1")
    chat.answer("reject", "not today")
    assert ran(chat) == []
    assert chat.think().messages[-1].content["reason"] == "not today"  # type: ignore[union-attr]


def test_what_is_closed_cannot_be_proposed_open_and_what_is_unknown_not_at_all() -> None:
    chat = opened()
    chat.submit(c.Propose("shut", {}, "p1", WILL))
    chat.start("c1")
    assert chat.result(ToolCall("p1", "shut", {})).failed
    fresh = opened()
    with pytest.raises(NotFound, match="clerk has no tool 'fly'"):
        fresh.submit(c.Propose("fly", {}, "p1", WILL))
