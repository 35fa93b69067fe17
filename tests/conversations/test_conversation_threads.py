"""A tool that blocks when another task fails: it is heard late, and never runs twice at once."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from conversation_scenes import GOAL, ONCE, Llm
from session_scenes import PATIENCE

from holdfast import Holdfast
from holdfast.conversations.engine import ConversationEngine, EngineState
from holdfast.core.conversation.state import ConversationState
from holdfast.errors import PermanentError

TASKS: list[dict[str, Any]] = [{"id": "pay", "type": "pay"}, {"id": "mail", "type": "mail"}]


class Office:
    """Paying takes until `pays` is set, and mail fails once paying has begun."""

    def __init__(self) -> None:
        self.app = Holdfast.in_memory()
        self.begun, self.pays = threading.Event(), threading.Event()
        self.calls: list[str] = []
        self.down = True
        self.app.tool(self.pay)
        self.app.tool(self.mail)

    def pay(self) -> dict[str, Any]:
        self.calls.append("pay")
        self.begun.set()
        assert self.pays.wait(PATIENCE)
        return {"paid": True}

    async def mail(self) -> dict[str, Any]:
        assert await asyncio.to_thread(self.begun.wait, PATIENCE)
        if self.down:
            raise PermanentError("the mail server is down")
        return {}

    async def failed(self) -> ConversationEngine:
        engine = ConversationEngine(app=self.app, llm=Llm(TASKS), retry=ONCE, max_parallel=2)
        async for _ in engine.run(GOAL):
            pass
        assert engine.state is EngineState.ERROR
        self.down = False
        return engine


async def consumed(engine: ConversationEngine) -> None:
    async for _ in engine.run():
        pass


async def until(
    office: Office, engine: ConversationEngine, there: Callable[[Any], bool]
) -> ConversationState:
    state = await office.app.engine.wait_for(engine.id, there, PATIENCE)
    assert isinstance(state, ConversationState)
    assert there(state)
    return state


async def asked(office: Office, engine: ConversationEngine) -> str:
    (found,) = (await until(office, engine, lambda one: one.open_questions)).open_questions
    return str(found)


@pytest.mark.parametrize("how", ["retry", "skip"])
async def test_a_late_result_answers_whether_it_happened(how: str) -> None:
    office = Office()
    async with office.app:
        engine = await office.failed()
        assert engine.resume(failed=how)
        going_on = asyncio.create_task(consumed(engine))
        await asked(office, engine)
        office.pays.set()
        await asyncio.wait_for(going_on, PATIENCE)
        assert engine.state is EngineState.COMPLETED
        assert engine.tasks[0].result == {"paid": True}
        assert not await office.app.inbox()
    assert office.calls == ["pay"]


async def test_run_again_waits_for_the_thread_that_still_runs() -> None:
    office = Office()
    async with office.app:
        engine = await office.failed()
        assert engine.resume(failed="retry")
        going_on = asyncio.create_task(consumed(engine))
        await engine.answer(await asked(office, engine), option_id="run_again")
        office.pays.set()
        await asyncio.wait_for(going_on, PATIENCE)
        assert (engine.state, engine.tasks[0].result) == (EngineState.COMPLETED, {"paid": True})
    assert office.calls == ["pay"]


async def test_a_result_that_comes_before_anybody_goes_on_is_kept() -> None:
    office = Office()
    async with office.app:
        engine = await office.failed()
        office.pays.set()
        await until(office, engine, lambda one: "t1" not in one.former)
        assert engine.resume(failed="retry")
        await asyncio.wait_for(consumed(engine), PATIENCE)
        assert (engine.state, engine.tasks[0].result) == (EngineState.COMPLETED, {"paid": True})
    assert office.calls == ["pay"]
