"""Consent is bound to what was shown: a tool that has changed since asks again.

Forty days pass on the manual clock while an approval is open; the application is started again
with another body of the tool. The ledger says what has really run.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from session_scenes import (
    Ledger,
    asked,
    assert_sound,
    begin,
    ended,
    history,
    of_kind,
    open_requests,
)

from holdfast.app import Holdfast
from holdfast.errors import AlreadyAnswered, InvalidAnswer
from holdfast.model import agent_events as r
from holdfast.model import events as e
from holdfast.testing.clock import ManualClock
from holdfast.testing.model_script import Entry, Seen, call
from holdfast.testing.scripted_model import ScriptedModel

DAY = 86_400.0


def pay_once(seen: Seen) -> Entry:
    return "Paid, or not." if seen.results else call("pay", amount=5)


def desk(home: Path, clock: ManualClock, version: int) -> tuple[Holdfast, Ledger]:
    """The same agent over the first or the second edition of its tool, or over none."""
    ledger = Ledger(home / "ledger.jsonl")
    app = Holdfast(home, model=ScriptedModel(pay_once), clock=clock)
    if version == 1:

        @app.tool(approval="require")
        async def pay(amount: int) -> dict[str, Any]:
            ledger.note("pay", "v1", amount=amount)
            return {"paid": amount}

    if version == 2:

        @app.tool(name="pay", approval="require")
        async def pay_otherwise(amount: int) -> dict[str, Any]:
            ledger.note("pay", "v2", amount=amount)
            return {"paid": amount, "fee": 1}

    app.agent("clerk", name="Clerk", tools=["pay"])
    return app, ledger


async def ask_and_wait_forty_days(home: Path, clock: ManualClock) -> str:
    app, ledger = desk(home, clock, 1)
    async with app:
        session = await begin(app)
        [question] = await asked(app, session.id)
    clock.advance(40 * DAY)
    assert ledger.counts == {}
    return question.request_id


async def test_forty_days_change_nothing_about_an_open_approval(
    tmp_path: Path, clock: ManualClock
) -> None:
    question_id = await ask_and_wait_forty_days(tmp_path, clock)
    app, ledger = desk(tmp_path, clock, 1)
    async with app:
        session = await app.sessions.session("chat_000001")
        assert session.status == "pause"
        await app.answer(question_id, option_id="approve")
        assert await ended(session) == "done"
        await assert_sound(app, session.id)
    assert [one["key"] for one in ledger.calls] == ["v1"]


@pytest.mark.parametrize("data", [{}, {"amount": 7}])
async def test_consent_to_an_older_version_of_the_tool_runs_nothing_and_asks_again(
    tmp_path: Path, clock: ManualClock, data: dict[str, int]
) -> None:
    question_id = await ask_and_wait_forty_days(tmp_path, clock)
    app, ledger = desk(tmp_path, clock, 2)
    amount = data.get("amount", 5)
    async with app:
        session = await app.sessions.session("chat_000001")
        await app.answer(question_id, option_id="approve", data=data, by="will.zhang")
        [again] = await asked(app, session.id)
        assert ledger.counts == {}, "nothing runs on the old consent"
        assert again.request_id != question_id
        assert "the tool pay itself is another version" in again.details
        assert "amount" not in again.details, "what was consented to is what is shown again"
        assert again.context["args"] == {"amount": amount}
        assert again.context["before"]["args"] == {"amount": amount}
        assert again.context["before"]["tool_version"] != again.context["tool_version"]
        with pytest.raises(AlreadyAnswered):
            await app.answer(question_id, option_id="approve", data=data, by="somebody.else")
        await app.answer(question_id, option_id="approve", data=data, by="will.zhang")
        assert ledger.counts == {}, "the old answer again changes nothing"
        await app.answer(again.request_id, option_id="approve")
        assert await ended(session) == "done"
        [started] = of_kind(await history(app, session.id), r.CallStarted)
        answers = of_kind(await history(app, session.id), e.QuestionAnswered)
        assert (len(answers), started.args) == (2, {"amount": amount})
        await assert_sound(app, session.id)
    assert ledger.calls == [{"tool": "pay", "key": "v2", "args": {"amount": amount}}]


async def test_the_new_version_may_be_refused_as_well(tmp_path: Path, clock: ManualClock) -> None:
    question_id = await ask_and_wait_forty_days(tmp_path, clock)
    app, ledger = desk(tmp_path, clock, 2)
    async with app:
        session = await app.sessions.session("chat_000001")
        await app.answer(question_id, option_id="approve")
        [again] = await asked(app, session.id)
        await app.answer(again.request_id, option_id="reject", feedback="not with a fee")
        assert await ended(session) == "done"
        [result] = app.models.default_model.seen[-1].results  # type: ignore[union-attr]
        assert "not with a fee" in str(result.content)
    assert ledger.counts == {}


async def test_a_tool_that_is_gone_cannot_run_on_old_consent(
    tmp_path: Path, clock: ManualClock
) -> None:
    question_id = await ask_and_wait_forty_days(tmp_path, clock)
    app, ledger = desk(tmp_path, clock, 0)
    async with app:
        session = await app.sessions.session("chat_000001")
        await app.answer(question_id, option_id="approve")
        assert await ended(session) == "done"
        [end] = of_kind(await history(app, session.id), r.StepEnded)
        assert end.how == "refused"
        assert "not available" in end.content["error"]
        assert await open_requests(app) == []
    assert ledger.counts == {}


async def test_edited_arguments_are_checked_before_they_are_consented_to(
    tmp_path: Path, clock: ManualClock
) -> None:
    app, ledger = desk(tmp_path, clock, 1)
    async with app:
        session = await begin(app)
        [question] = await asked(app, session.id)
        version = session.version
        with pytest.raises(InvalidAnswer) as refused:
            await app.answer(question.request_id, option_id="approve", data={"amount": "much"})
        assert set(refused.value.fields) == {"amount"}
        with pytest.raises(InvalidAnswer):
            await app.answer(question.request_id, option_id="approve", data={"to": "me"})
        assert (await app.engine.state(session.id)).version == version
        await app.answer(question.request_id, option_id="approve", data={"amount": 3})
        assert await ended(session) == "done"
    assert [one["args"] for one in ledger.calls] == [{"amount": 3}]
