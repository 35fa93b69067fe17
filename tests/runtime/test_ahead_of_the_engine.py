"""An event is on disk a moment before the engine knows: who reads it then must not be misled."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from holdfast import AgentEventType
from holdfast.app import Holdfast
from holdfast.cli.driver import Driver
from holdfast.cli.home_backend import HomeBackend
from holdfast.cli.shell import Settings
from holdfast.journal.memory import MemoryJournal
from holdfast.journal.port import Append
from holdfast.testing.scripted_model import ScriptedModel

pytestmark = pytest.mark.own_store  # its journal tells of commits before they are known

LOOKS = 20
"""How often the others have their turn between the commit and the engine's learning of it."""


class EarlyJournal(MemoryJournal):
    """A journal whose commits are seen by followers before the engine hears of them."""

    app: Holdfast

    async def append(self, append: Append) -> int:
        before = await self.app.engine.state(append.run_id) if append.expected else None
        position = await super().append(append)
        if before is not None:
            self.app.engine.hub.publish(before, before)
        for _ in range(LOOKS):
            await asyncio.sleep(0)
        return position


@asynccontextmanager
async def early_app(**options: object) -> AsyncIterator[Holdfast]:
    journal = EarlyJournal()
    app = Holdfast(journal=journal, **options)  # type: ignore[arg-type]
    journal.app = app
    async with app:
        yield app


PLAN = """
plan_id: shaky
name: Shaky
main_task_id: "001"
tasks: [{task_id: "001", name: Shaky}, {task_id: "002", name: Called}]
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: "001.status == Running"
    listener_type: tool
    tool: shaky
    retry: {attempts: 1}
    success_output: {task_id: "002", status: Done}
  - listener_id: L002
    trigger_task_id: "002"
    trigger_condition: Done
    listener_type: code
    code_snippet: "result = {'success': True}"
    success_output: {task_id: "001", status: Done}
"""


async def test_a_run_that_was_seen_through_is_over_for_the_engine_too() -> None:
    calls = 0
    async with early_app() as app:

        @app.tool
        async def shaky() -> dict[str, bool]:
            nonlocal calls
            calls += 1
            return {"success": calls == 3}

        app.load_plan_text(PLAN)
        run = await app.plans.start_plan_by_prompt("go", "shaky")
        backend = HomeBackend(app)
        driver = Driver(backend, Settings(as_json=True))
        seen = await driver.see_through(await backend.run(run.id), after=0)
        known = await app.engine.state(run.id)
        assert (seen.status, known.status, run.status, calls) == ("done", "done", "done", 3)


async def test_a_follower_of_a_session_hears_the_end_and_is_let_go() -> None:
    async with early_app(model=ScriptedModel(["Hello.", "Again."])) as app:
        app.agent("clerk")
        session = await app.sessions.open("clerk")
        for words in ("Good morning", "And now?"):
            await app.sessions.say(session.id, words)
            async with asyncio.timeout(30):
                heard = [event async for event in app.sessions.subscribe(session.id, 0)]
            assert heard[-1].type is AgentEventType.DONE
