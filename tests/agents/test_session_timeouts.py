"""What the clock does to a session's questions: it expires, reminds, escalates, never approves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from session_scenes import (
    DeafClock,
    Ledger,
    asked,
    assert_sound,
    begin,
    ended,
    history,
    of_kind,
    open_requests,
    row_of,
    until,
)

from holdfast.app import Holdfast
from holdfast.errors import AuthorError, InvalidAnswer, TooLate
from holdfast.model import agent_events as r
from holdfast.model import commands as c
from holdfast.model import events as e
from holdfast.model.interaction import (
    Asking,
    InteractionAction,
    InteractionOption,
    InteractionRequest,
    InteractionType,
)
from holdfast.model.message import ToolReturned
from holdfast.testing.clock import ManualClock
from holdfast.testing.model_script import Entry, Seen, call
from holdfast.testing.scripted_model import ScriptedModel

HOUR = 3600.0
APPROVE = InteractionOption("approve", "Run it", InteractionAction.APPROVE_AND_EXECUTE)
SKIP = InteractionOption("skip", "Skip it", InteractionAction.SKIP)
REJECT = InteractionOption("reject", "Refuse", InteractionAction.REJECT_WITH_REASON)


def pay_once(seen: Seen) -> Entry:
    return "I see." if seen.results else call("pay", amount=5)


def desk(home: Path, clock: ManualClock, asking: Asking) -> tuple[Holdfast, Ledger]:
    ledger = Ledger(home / "ledger.jsonl")
    app = Holdfast(home, model=ScriptedModel(pay_once), clock=clock)

    @app.tool(approval="require")
    async def pay(amount: int) -> dict[str, Any]:
        ledger.note("pay", amount=amount)
        return {"paid": amount}

    app.agent("clerk", name="Clerk", tools=["pay"], asking=asking)
    return app, ledger


def told(app: Holdfast) -> ToolReturned:
    """What the model heard of its call."""
    [result] = app.models.default_model.seen[-1].results  # type: ignore[union-attr]
    return result


async def test_without_a_default_the_question_expires_and_the_model_is_told_that_nobody_answered(
    tmp_path: Path, clock: ManualClock
) -> None:
    app, ledger = desk(tmp_path, clock, Asking(timeout_seconds=HOUR))
    async with app:
        session = await begin(app)
        [question] = await asked(app, session.id)
        clock.advance(HOUR)
        assert await ended(session) == "done"
        assert session.answer == "I see."
        events = await history(app, session.id)
        [expired] = of_kind(events, e.QuestionExpired)
        [end] = of_kind(events, r.StepEnded)
        assert (expired.question_id, expired.option_id) == (question.request_id, None)
        assert (end.how, end.content) == ("expired", {"error": "nobody answered in time"})
        assert of_kind(events, e.QuestionAnswered) == []
        assert told(app).failed
        assert "nobody answered" in str(told(app).content)
        assert (await row_of(app, question.request_id)).status == "expired"
        assert await open_requests(app) == []
        await assert_sound(app, session.id)
    assert ledger.counts == {}


@pytest.mark.parametrize(("default", "how"), [(SKIP, "skipped"), (REJECT, "rejected")])
async def test_a_default_is_taken_when_due_by_the_clock_and_by_no_person(
    tmp_path: Path, clock: ManualClock, default: InteractionOption, how: str
) -> None:
    asking = Asking(
        timeout_seconds=HOUR, options=(APPROVE, default), default_option_id=default.option_id
    )
    app, ledger = desk(tmp_path, clock, asking)
    async with app:
        session = await begin(app)
        [question] = await asked(app, session.id)
        clock.advance(HOUR)
        assert await ended(session) == "done"
        events = await history(app, session.id)
        [expired] = of_kind(events, e.QuestionExpired)
        [end] = of_kind(events, r.StepEnded)
        assert (expired.option_id, end.how) == (default.option_id, how)
        assert of_kind(events, e.QuestionAnswered) == [], "a person is never made up"
        kept = (await app.engine.state(session.id)).questions[question.request_id]
        assert (kept.status, kept.by) == ("expired", None)
        assert "clock" in str(told(app).content)
    assert ledger.counts == {}


@pytest.mark.parametrize("default", ["approve", "provide"])
async def test_an_agent_whose_default_would_consent_cannot_even_be_declared(
    tmp_path: Path, clock: ManualClock, default: str
) -> None:
    provide = InteractionOption("provide", "Complete", InteractionAction.PROVIDE_INFO)
    options = (APPROVE, provide, REJECT)
    asking = Asking(timeout_seconds=HOUR, options=options, default_option_id=default)
    with pytest.raises(AuthorError, match="the clock may not take"):
        desk(tmp_path, clock, asking)


async def test_a_dangerous_default_is_refused_when_the_request_is_made(
    tmp_path: Path, clock: ManualClock
) -> None:
    app, _ = desk(tmp_path, clock, Asking())
    async with app:
        session = await app.sessions.open("clerk")
        request = InteractionRequest(
            "", "", InteractionType.TOOL_APPROVAL, "Run?", default_option_id="approve"
        )
        with pytest.raises(InvalidAnswer, match="dangerous"):
            await app.sessions.request_interaction(session.id, request)
        wipe = InteractionOption("wipe", "Wipe", InteractionAction.SKIP, is_dangerous=True)
        wire = InteractionRequest(
            "",
            "",
            InteractionType.USER_CONFIRMATION,
            "Wipe?",
            options=(wipe,),
            timeout_seconds=HOUR,
            default_option_id="wipe",
        )
        with pytest.raises(InvalidAnswer, match="dangerous"):
            await app.sessions.request_interaction(session.id, wire)
        assert await open_requests(app) == []
        assert session.version == 1


@pytest.mark.parametrize("rings", [True, False], ids=["timer fired", "timer has not fired yet"])
async def test_an_answer_after_the_deadline_is_too_late_and_changes_nothing(
    tmp_path: Path, rings: bool
) -> None:
    clock = ManualClock() if rings else DeafClock()
    app, ledger = desk(tmp_path, clock, Asking(timeout_seconds=HOUR))
    async with app:
        session = await begin(app)
        [question] = await asked(app, session.id)
        clock.advance(HOUR)
        if rings:
            assert await ended(session) == "done"
        before = await history(app, session.id)
        for option in ("approve", "reject"):
            with pytest.raises(TooLate):
                await app.answer(question.request_id, option_id=option, feedback="late")
        with pytest.raises(TooLate):
            await app.keep_draft(question.request_id, {"amount": 1})
        assert await history(app, session.id) == before
        if not rings:
            assert session.status == "pause"
            await app.engine.submit(session.id, c.Tick())
            assert await ended(session) == "done"
        assert len(of_kind(await history(app, session.id), e.QuestionExpired)) == 1
        await assert_sound(app, session.id)
    assert ledger.counts == {}


async def test_the_last_moment_before_the_deadline_still_counts(
    tmp_path: Path, clock: ManualClock
) -> None:
    app, ledger = desk(tmp_path, clock, Asking(timeout_seconds=HOUR))
    async with app:
        session = await begin(app)
        [question] = await asked(app, session.id)
        clock.advance(HOUR - 0.001)
        await app.answer(question.request_id, option_id="approve")
        clock.advance(HOUR)
        assert await ended(session) == "done"
        assert of_kind(await history(app, session.id), e.QuestionExpired) == []
    assert ledger.counts == {"pay": 1}


async def test_a_clock_that_jumps_an_hour_back_and_forth_fires_nothing_early_or_twice(
    tmp_path: Path, clock: ManualClock
) -> None:
    asking = Asking(
        timeout_seconds=3 * HOUR, reminders=(HOUR,), escalate_after=2 * HOUR, escalate_to="boss"
    )
    app, ledger = desk(tmp_path, clock, asking)
    timed = e.QuestionReminded | e.QuestionEscalated | e.QuestionExpired
    async with app:
        session = await begin(app)
        [question] = await asked(app, session.id)

        async def fired_after(seconds: float) -> list[str]:
            clock.advance(seconds)
            await app.engine.submit(session.id, c.Tick())
            events = of_kind(await history(app, session.id), timed)
            return [type(one).__name__ for one in events]

        assert await fired_after(HOUR / 2) == []
        assert await fired_after(-HOUR) == []
        assert await fired_after(HOUR) == []
        once = ["QuestionReminded"]
        assert await fired_after(HOUR / 2) == once
        assert await fired_after(-HOUR) == once
        assert await fired_after(HOUR) == once
        twice = [*once, "QuestionEscalated"]
        assert await fired_after(HOUR) == twice
        assert await fired_after(-HOUR) == twice
        assert await fired_after(HOUR) == twice
        assert await fired_after(HOUR) == [*twice, "QuestionExpired"]
        assert await fired_after(-HOUR) == [*twice, "QuestionExpired"]
        with pytest.raises(TooLate):
            await app.answer(question.request_id, option_id="approve")
        assert await ended(session) == "done"
        await assert_sound(app, session.id)
    assert ledger.counts == {}


async def test_reminders_and_escalation_come_once_over_restarts(
    tmp_path: Path, clock: ManualClock
) -> None:
    asking = Asking(
        role="clerks", reminders=(60.0, 120.0, 180.0), escalate_after=240.0, escalate_to="boss"
    )
    app, _ = desk(tmp_path, clock, asking)
    async with app:
        session = await begin(app)
        [question] = await asked(app, session.id)
        clock.advance(60)
        await until(app, session.id, lambda s: s.questions[question.request_id].reminded == 1)
    clock.advance(120)
    app, _ = desk(tmp_path, clock, asking)
    async with app:
        await until(app, "chat_000001", lambda s: s.questions[question.request_id].reminded == 3)
        assert [q.request_id for q in await open_requests(app, role="clerks")] == [
            question.request_id
        ]
        clock.advance(60)
        await until(app, "chat_000001", lambda s: s.questions[question.request_id].role == "boss")
        assert await open_requests(app, role="clerks") == []
        assert len(await open_requests(app, role="boss")) == 1
    clock.advance(1000)
    app, ledger = desk(tmp_path, clock, asking)
    async with app:
        await app.engine.submit("chat_000001", c.Tick())
        events = await history(app, "chat_000001")
        reminded = [one.count for one in of_kind(events, e.QuestionReminded)]
        assert reminded == [1, 3], "those missed while nobody ran are one"
        assert len(of_kind(events, e.QuestionEscalated)) == 1
        await app.answer(question.request_id, option_id="approve")
        assert await ended(await app.sessions.session("chat_000001")) == "done"
    assert ledger.counts == {"pay": 1}


async def test_a_deadline_that_passed_while_nobody_ran_is_kept_at_the_start(
    tmp_path: Path, clock: ManualClock
) -> None:
    asking = Asking(timeout_seconds=HOUR)
    app, _ = desk(tmp_path, clock, asking)
    async with app:
        session = await begin(app)
        await asked(app, session.id)
    clock.advance(40 * 24 * HOUR)
    app, ledger = desk(tmp_path, clock, asking)
    async with app:
        session = await app.sessions.session("chat_000001")
        assert await ended(session) == "done"
        assert "nobody answered" in str(told(app).content)
    assert ledger.counts == {}


async def test_waiting_for_a_person_uses_up_no_time_of_the_tool(
    tmp_path: Path, clock: ManualClock
) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl")
    app = Holdfast(tmp_path, model=ScriptedModel(pay_once), clock=clock)

    @app.tool(approval="require", timeout=1.0)
    async def pay(amount: int) -> dict[str, Any]:
        ledger.note("pay", amount=amount)
        return {"paid": amount}

    app.agent("clerk", tools=["pay"])
    async with app:
        session = await begin(app)
        [question] = await asked(app, session.id)
        clock.advance(40 * 24 * HOUR)
        await app.answer(question.request_id, option_id="approve")
        assert await ended(session) == "done"
    assert ledger.counts == {"pay": 1}
