"""What a tool raised is found again: in the log with run and step, and beside the run."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest
from plan_texts import end, load, start, step
from session_scenes import PATIENCE

from holdfast import ConversationEngine, Holdfast
from holdfast.errors import OutcomeUnknown, PermanentError, TransientError
from holdfast.model import commands as c
from holdfast.model.effects import Work
from holdfast.model.retry import RetryPolicy
from holdfast.runtime.tracebacks import LONGEST, noted, tracebacks_of
from holdfast.testing.model_script import Entry, Seen, call
from holdfast.testing.scripted_model import ScriptedModel
from holdfast.work.tracebacks import traceback_of

QUICK = {"attempts": 2, "initial": 0.001, "maximum": 0.001}
BY_SNIPPET = "result = {'paid': pay(amount=7)}"


def reckon(amount: int) -> int:
    return amount // 0


def clerk(seen: Seen) -> Entry:
    return "Seen." if seen.results else call("pay", amount=7)


class Llm:
    async def decompose_goal(self, text: str) -> Any:
        return [{"id": "t1", "type": "pay", "args": {"amount": 7}}]


async def in_a_plan(app: Holdfast) -> tuple[str, str]:
    load(app, step("L1", "001", "001", tool="pay", args={"amount": 7}, retry=QUICK))
    instance = await start(app)
    await instance.wait_until_settled(PATIENCE)
    return instance.id, "L1"


async def in_a_snippet(app: Holdfast) -> tuple[str, str]:
    load(app, step("L1", "001", "001", code_snippet=BY_SNIPPET, functions=["pay"], retry=QUICK))
    instance = await start(app)
    await instance.wait_until_settled(PATIENCE)
    return instance.id, "L1"


async def in_a_chat(app: Holdfast) -> tuple[str, str]:
    app.agent("clerk", tools=["pay"], retry=RetryPolicy(**QUICK))  # type: ignore[arg-type]
    session = await app.sessions.open("clerk")
    await app.sessions.say(session.id, "please")
    await session.wait_until_settled(PATIENCE)
    return session.id, "c1"


async def in_a_conversation(app: Holdfast) -> tuple[str, str]:
    retry = RetryPolicy(**QUICK)  # type: ignore[arg-type]
    engine = ConversationEngine(llm=Llm(), app=app, retry=retry)
    async with asyncio.timeout(PATIENCE):
        async for _ in engine.run("pay"):
            pass
    return engine.id, "t1"


PLACES = [in_a_plan, in_a_snippet, in_a_chat, in_a_conversation]


@pytest.mark.parametrize("asynchronous", [True, False])
@pytest.mark.parametrize("place", PLACES)
async def test_a_tool_that_raises_leaves_its_traceback(
    caplog: pytest.LogCaptureFixture, place: Any, asynchronous: bool
) -> None:
    app = Holdfast.in_memory(model=ScriptedModel(clerk))

    async def pay(amount: int) -> int:
        return reckon(amount)

    def pay_in_a_thread(amount: int) -> int:
        return reckon(amount)

    app.tool(pay if asynchronous else pay_in_a_thread, name="pay")
    async with app:
        run_id, step_id = await place(app)
        [kept] = await tracebacks_of(app.journal, run_id, app.engine.clock.now())
    assert kept.text.startswith("Traceback (most recent call last):\n")
    assert "return amount // 0" in kept.text
    assert kept.text.endswith("ZeroDivisionError: integer division or modulo by zero\n")
    assert "holdfast/work" not in kept.text, "it begins where the author's code does"
    assert kept.step_id.startswith(step_id)
    logged = [one for one in caplog.messages if "ZeroDivisionError" in one]
    assert len(logged) >= 2, "of each attempt"
    assert logged[0].startswith(f"run {run_id}: step {kept.step_id} raised at attempt 1\n")
    assert all(one.levelno == logging.WARNING for one in caplog.records)


async def test_doubt_leaves_one_too() -> None:
    app = Holdfast.in_memory()

    @app.tool
    async def pay(amount: int) -> None:
        raise OutcomeUnknown("the line went dead")

    async with app:
        run_id, _ = await in_a_plan(app)
        [kept] = await tracebacks_of(app.journal, run_id, app.engine.clock.now())
    assert 'raise OutcomeUnknown("the line went dead")' in kept.text


async def test_it_survives_a_restart_and_goes_after_a_month(tmp_path: Path) -> None:
    app = Holdfast(tmp_path)
    app.tool(lambda amount: reckon(amount), name="pay")
    async with app:
        run_id, _ = await in_a_plan(app)
        now = app.engine.clock.now()
    async with Holdfast(tmp_path) as again:
        assert len(await tracebacks_of(again.journal, run_id, now)) == 1
        assert await tracebacks_of(again.journal, run_id, now + 31 * 86_400) == []


async def test_what_answers_in_its_own_words_leaves_none(
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = Holdfast.in_memory()

    @app.tool
    async def pay(amount: int) -> dict[str, Any]:
        return {"success": False, "error": "the till is empty"}

    async with app:
        load(app, step("L1", "001", "002", tool="pay", args={"amount": 7}), end("002"))
        load(app, step("L1", "001", "001", tool="pay", args={"amount": "x"}), plan_id="wrong")
        for plan_id in ("p", "wrong"):
            instance = await start(app, plan_id)
            await instance.wait_until_settled(PATIENCE)
            assert await tracebacks_of(app.journal, instance.id, 0.0) == []
    assert "Traceback" not in caplog.text


def outcome(traceback: str) -> c.Outcome:
    return c.Lost("x", traceback=traceback)


def test_it_is_bounded_and_obeyed_by_no_terminal(caplog: pytest.LogCaptureFixture) -> None:
    work = Work("r", "s", 1, 1, 1, "k")
    [kept] = noted(work, outcome("y" * 50_000 + "\x1b[2J\u202e中文\tthe end\n"), 7.0).kept
    assert len(kept.body) < LONGEST + 200
    assert kept.body.endswith('the end\\n"}')
    assert "\\x1b[2J\\u202e中文\tthe end\n" in caplog.text
    assert noted(work, outcome(""), 7.0).kept == ()
    assert noted(work, c.Succeeded({}), 7.0).kept == ()


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


class Worse(Exception):
    @property
    def __notes__(self) -> Any:
        raise RuntimeError("not even that")


@pytest.mark.parametrize("error", [Unspeakable(), Worse(), ExceptionGroup("two", [ValueError()])])
def test_whatever_was_raised_has_some_traceback(error: Exception) -> None:
    with pytest.raises(type(error)) as caught:
        raise error
    assert type(error).__name__ in traceback_of(caught.value)


def test_what_is_told_instead_is_told() -> None:
    error = TransientError("x")
    error.traceback = "scrubbed"
    assert traceback_of(error) == "scrubbed"
    assert traceback_of(PermanentError("never raised")) == ""
