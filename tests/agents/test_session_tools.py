"""Tools that raise, hang, flood or answer nonsense: a person understands, and can go on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import permutations
from pathlib import Path
from typing import Any, cast

import pytest
from session_scenes import (
    ONCE,
    QUICK,
    Ledger,
    asked,
    assert_sound,
    begin,
    clerks_office,
    ended,
    history,
    of_kind,
    open_requests,
    until,
)

from holdfast.agents.sessions import AgentSession
from holdfast.app import Holdfast
from holdfast.errors import (
    ForbiddenError,
    NotAllowed,
    OutcomeUnknown,
    PermanentError,
    TooLate,
    TransientError,
)
from holdfast.model import agent_events as r
from holdfast.model import events as e
from holdfast.model.message import ToolReturned
from holdfast.model.retry import RetryPolicy
from holdfast.testing.clock import ManualClock
from holdfast.testing.model_script import Entry, Seen, call, say
from holdfast.testing.scripted_model import ScriptedModel
from holdfast.work.tools import CallInfo


def work_once(seen: Seen) -> Entry:
    if seen.results:
        return "I have seen it."
    return call("work", note="x") if seen.asked == "please" else f"You said: {seen.asked}"


def desk(
    home: Path, tool: Callable[..., Any], *, retry: RetryPolicy = ONCE, **options: Any
) -> Holdfast:
    app = Holdfast(home, model=ScriptedModel(work_once))
    app.tool(tool, name="work", **options)
    app.agent("clerk", name="Clerk", tools=["work"], retry=retry)
    return app


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger.jsonl")


def told(app: Holdfast) -> ToolReturned:
    """What the model heard of its last call."""
    found = app.models.default_model.seen[-1].result_of("work")  # type: ignore[union-attr]
    assert found is not None
    return found


async def goes_on(app: Holdfast, session: AgentSession) -> None:
    """A further message finds everything in order."""
    await app.sessions.say(session.id, "and now?")
    assert await ended(session) == "done"
    assert session.answer == "You said: and now?"
    await assert_sound(app, session.id)


@pytest.mark.parametrize(
    ("error", "kind", "attempts"),
    [
        (RuntimeError("the printer burns"), "transient", 3),
        (TransientError("the printer burns"), "transient", 3),
        (PermanentError("the printer burns"), "permanent", 1),
        (ForbiddenError("the printer burns"), "forbidden", 1),
    ],
)
async def test_a_tool_that_raises_is_tried_as_often_as_it_helps_and_then_told_to_the_model(
    tmp_path: Path, ledger: Ledger, error: Exception, kind: str, attempts: int
) -> None:
    async def work(note: str, call: CallInfo) -> None:
        ledger.note("work", call.key)
        raise error

    app = desk(tmp_path, work, retry=QUICK)
    async with app:
        session = await begin(app)
        assert await ended(session) == "done"
        assert told(app).failed
        assert told(app).content == {"error": "the printer burns", "kind": kind}
        await goes_on(app, session)
    keys = [one["key"] for one in ledger.calls]
    assert len(keys) == len(set(keys)) == attempts, "what the tool answered is not repeated"


async def test_what_the_tool_raises_may_be_any_text(tmp_path: Path) -> None:
    async def work(note: str) -> None:
        raise PermanentError("half a sign \ud800, " + "and so on " * 1000)

    app = desk(tmp_path, work)
    async with app:
        session = await begin(app)
        assert await ended(session) == "done"
        assert told(app).content["error"].startswith("half a sign \\ud800, and so on")
        await goes_on(app, session)


@pytest.mark.parametrize("choice", ["happened", "run_again", "stop"])
async def test_a_tool_that_hangs_is_a_question_to_a_person(
    tmp_path: Path, ledger: Ledger, choice: str
) -> None:
    hangs = asyncio.Event()

    async def work(note: str, call: CallInfo) -> dict[str, bool]:
        ledger.note("work", call.key)
        if len(ledger.calls) == 1:
            await hangs.wait()
        return {"worked": True}

    app = desk(tmp_path, work, timeout=0.05)
    async with app:
        session = await begin(app)
        [question] = await asked(app, session.id)
        assert question.title == "Did work happen?"
        assert "no answer within 0.05 s" in question.message
        await app.answer(question.request_id, option_id=choice, by="will.zhang")
        assert await ended(session) == ("cancelled" if choice == "stop" else "done")
        if choice != "stop":
            await goes_on(app, session)
    keys = [one["key"] for one in ledger.calls]
    assert len(keys) == (2 if choice == "run_again" else 1)
    assert len(set(keys)) == 1, "run again means under the same key"


async def test_a_result_that_comes_after_all_withdraws_the_question(tmp_path: Path) -> None:
    late = asyncio.Event()

    async def work(note: str) -> dict[str, bool]:
        await late.wait()
        return {"worked": True}

    app = desk(tmp_path, work, timeout=0.05)
    async with app:
        session = await begin(app)
        [question] = await asked(app, session.id)
        late.set()
        assert await ended(session) == "done"
        assert told(app).content == {"worked": True}
        with pytest.raises(TooLate, match="withdrawn"):
            await app.answer(question.request_id, option_id="run_again")
        await goes_on(app, session)


async def test_a_repeatable_tool_that_hangs_is_tried_again_under_its_key(
    tmp_path: Path, ledger: Ledger
) -> None:
    hangs = asyncio.Event()

    async def work(note: str, call: CallInfo) -> dict[str, bool]:
        ledger.note("work", call.key)
        if len(ledger.calls) == 1:
            await hangs.wait()
        return {"worked": True}

    app = desk(tmp_path, work, timeout=0.05, idempotent=True, retry=QUICK)
    async with app:
        session = await begin(app)
        assert await ended(session) == "done"
        assert of_kind(await history(app, session.id), e.QuestionOpened) == []
    assert len({one["key"] for one in ledger.calls}) == 1
    assert len(ledger.calls) == 2


async def test_a_connection_lost_after_sending_is_a_question_too(tmp_path: Path) -> None:
    async def work(note: str) -> None:
        raise OutcomeUnknown("the line went dead")

    app = desk(tmp_path, work)
    async with app:
        session = await begin(app)
        [question] = await asked(app, session.id)
        assert "the line went dead" in question.message
        data = {"result": "it is done"}
        await app.answer(question.request_id, option_id="happened", data=data)
        assert await ended(session) == "done"
        assert told(app).content == {"result": "it is done"}
        assert not told(app).failed


async def test_a_large_result_is_kept_whole_and_shown_to_the_model_cut(tmp_path: Path) -> None:
    async def work(note: str) -> dict[str, str]:
        return {"text": "x" * 900_000}

    app = desk(tmp_path, work)
    async with app:
        session = await begin(app)
        assert await ended(session) == "done"
        shown = told(app).content
        assert "characters left out" in shown
        assert len(shown) <= 20_000
        [end] = of_kind(await history(app, session.id), r.StepEnded)
        assert len(end.content["text"]) == 900_000
    app = desk(tmp_path, work)
    async with app:
        await goes_on(app, await app.sessions.session("chat_000001"))


async def test_five_megabytes_are_refused_with_a_remedy_and_not_called_for_again(
    tmp_path: Path, ledger: Ledger
) -> None:
    async def work(note: str) -> dict[str, str]:
        ledger.note("work")
        return {"text": "x" * 5_000_000}

    app = desk(tmp_path, work, retry=QUICK)
    async with app:
        session = await begin(app)
        assert await ended(session) == "done"
        assert told(app).failed
        assert "work ran, but what it returned cannot be kept" in told(app).content["error"]
        assert "store it elsewhere, send a reference" in told(app).content["error"]
        await goes_on(app, session)
    assert ledger.counts == {"work": 1}


@pytest.mark.parametrize("value", [{1, 2}, float("nan"), b"bytes", {"a": object()}, {1: 2}])
async def test_a_result_that_is_no_json_is_a_failure_that_says_that_it_ran(
    tmp_path: Path, ledger: Ledger, value: object
) -> None:
    async def work(note: str) -> Any:
        ledger.note("work")
        return value

    app = desk(tmp_path, work, retry=QUICK)
    async with app:
        session = await begin(app)
        assert await ended(session) == "done"
        assert told(app).failed
        assert "work ran, but what it returned cannot be kept" in str(told(app).content)
        await goes_on(app, session)
    assert ledger.counts == {"work": 1}, "it ran, so it is not tried again"


async def test_a_tool_that_says_success_false_has_failed(tmp_path: Path, ledger: Ledger) -> None:
    async def work(note: str, call: CallInfo) -> dict[str, Any]:
        ledger.note("work", call.key)
        return {"success": False, "error": "out of paper", "error_class": "permanent"}

    app = desk(tmp_path, work, retry=QUICK)
    async with app:
        session = await begin(app)
        assert await ended(session) == "done"
        assert told(app).failed
        assert session.result["success"] is False, "whatever the model says of it"
        assert "out of paper" in str(session.result["error"])
        await goes_on(app, session)
    assert ledger.counts == {"work": 1}


async def test_a_tool_that_lacks_something_has_a_person_asked_and_goes_on_at_that_call(
    tmp_path: Path, ledger: Ledger
) -> None:
    async def work(note: str, paper: str = "") -> dict[str, Any]:
        ledger.note("work", note=note, paper=paper)
        if not paper:
            wanted = {"paper": {"type": "text", "label": "Paper"}}
            return {"success": False, "reason": "missing_params", "required_params": wanted}
        return {"printed": True}

    app = desk(tmp_path, work)
    async with app:
        session = await begin(app)
        [question] = await asked(app, session.id)
        assert question.message == "Needed to go on: Paper"
        await app.answer(question.request_id, data={"paper": "A4"})
        assert await ended(session) == "done"
        assert told(app).content == {"printed": True}
    assert [one["args"]["paper"] for one in ledger.calls] == ["", "A4"]


def one_free_two_to_approve(seen: Seen) -> Entry:
    if seen.results:
        return "All done."
    return say("", call("look", city="Paris"), call("pay", amount=5), call("pay", amount=7))


@pytest.mark.parametrize("order", list(permutations([5, 7])))
@pytest.mark.parametrize("refused", [(), (5,), (5, 7)])
async def test_the_free_call_runs_at_once_and_the_others_wait_each_for_its_own_answer(
    tmp_path: Path, order: tuple[int, ...], refused: tuple[int, ...]
) -> None:
    app, ledger = clerks_office(tmp_path, one_free_two_to_approve)
    model = cast(ScriptedModel, app.models.default_model)
    async with app:
        session = await begin(app)
        questions = await asked(app, session.id, 2)
        await until(app, session.id, lambda state: state.steps["c1"].status == "done")
        assert ledger.counts == {"look": 1}
        by_amount = {one.context["args"]["amount"]: one.request_id for one in questions}
        for count, amount in enumerate(order):
            assert len(model.seen) == 1, "the model waits for the whole turn"
            assert await open_requests(app) != []
            option = "reject" if amount in refused else "approve"
            await app.answer(by_amount[amount], option_id=option, feedback="I have looked")
            assert len(await open_requests(app)) == 1 - count
        assert await ended(session) == "done"
        assert len(model.seen) == 2, "once per completed turn"
        await assert_sound(app, session.id)
    assert ledger.counts["look"] == 1
    assert sorted(one["args"]["amount"] for one in ledger.of("pay")) == [
        amount for amount in (5, 7) if amount not in refused
    ]


def two_calls(seen: Seen) -> Entry:
    if seen.results:
        return "All done."
    return say("", call("work", note="one"), call("work", note="two"))


def busy_desk(home: Path, ledger: Ledger, clock: ManualClock) -> tuple[Holdfast, asyncio.Event]:
    """Two calls, of which one at a time may run, and neither ends before it is let go."""
    gate = asyncio.Event()
    app = Holdfast(home, model=ScriptedModel(two_calls), clock=clock, max_effects=1)

    @app.tool
    async def work(note: str) -> dict[str, bool]:
        ledger.note("work", note=note)
        await gate.wait()
        return {"worked": True}

    app.agent("clerk", tools=["work"])
    return app, gate


async def a_tool_runs(app: Holdfast, session: AgentSession, ledger: Ledger) -> None:
    await until(app, session.id, lambda state: state.in_flight == 1 and "c1" in state.steps)
    async with asyncio.timeout(10):
        while not ledger.calls:  # noqa: ASYNC110 - the file has no event of its own
            await asyncio.sleep(0)


async def test_cancelling_a_running_tool_starts_nothing_more_and_ends_after_the_grace(
    tmp_path: Path, ledger: Ledger, clock: ManualClock
) -> None:
    app, gate = busy_desk(tmp_path, ledger, clock)
    async with app:
        session = await begin(app)
        await a_tool_runs(app, session, ledger)
        await app.sessions.cancel(session.id, by="will.zhang", reason="enough")
        assert session.status == "cancelling"
        clock.advance(10)
        assert await ended(session) == "cancelled"
        [lost] = of_kind(await history(app, session.id), e.OutcomeLost)
        assert lost.step_id == "c1"
        with pytest.raises(NotAllowed, match=r"will\.zhang"):
            await app.sessions.say(session.id, "go on")
        gate.set()
    assert [one["args"]["note"] for one in ledger.calls] == ["one"]


async def test_a_tool_that_ends_within_the_grace_is_recorded_and_nothing_follows(
    tmp_path: Path, ledger: Ledger, clock: ManualClock
) -> None:
    app, gate = busy_desk(tmp_path, ledger, clock)
    async with app:
        session = await begin(app)
        await a_tool_runs(app, session, ledger)
        await app.sessions.cancel(session.id)
        gate.set()
        assert await ended(session) == "cancelled"
        events = await history(app, session.id)
        [end] = of_kind(events, r.StepEnded)
        assert (end.step_id, end.how) == ("c1", "done")
        assert of_kind(events, e.OutcomeLost) == []
        assert len(of_kind(events, r.ThinkingStarted)) == 1, "nor is the model asked again"
        await assert_sound(app, session.id)
    assert [one["args"]["note"] for one in ledger.calls] == ["one"]


async def test_cancelling_withdraws_what_is_asked(tmp_path: Path, ledger: Ledger) -> None:
    async def work(note: str) -> None:
        ledger.note("work")

    app = desk(tmp_path, work, approval="require")
    async with app:
        session = await begin(app)
        [question] = await asked(app, session.id)
        await app.sessions.cancel(session.id)
        assert await ended(session) == "cancelled"
        with pytest.raises(TooLate, match="withdrawn"):
            await app.answer(question.request_id, option_id="approve")
    assert ledger.counts == {}
