"""Conversations begun over HTTP on a shared database are pursued by their driver alone."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import cast

import psycopg
import pytest

from holdfast import Holdfast
from holdfast.conversations.runner import open_conversation
from holdfast.journal.port import Drive
from holdfast.journal.shared import SharedJournal
from holdfast.model import commands as c
from holdfast.model.conversation import ConversationSettings
from holdfast.model.run import RunStatus
from holdfast.runs import driving
from holdfast.runtime.drives import HandedBack
from holdfast.server.supervisor import Supervisor

OVER = frozenset({RunStatus.DONE, RunStatus.ERROR, RunStatus.CANCELLED})


async def worker(stack: AsyncExitStack, database: str) -> Holdfast:
    app = await stack.enter_async_context(Holdfast(database=database))
    supervisor = Supervisor(app)
    await supervisor.start()
    stack.push_async_callback(supervisor.close)
    assert app.dispatcher is not None
    await app.dispatcher.ready.wait()
    return app


async def test_a_server_that_only_decides_leaves_it_to_a_worker(database: str) -> None:
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(Holdfast(database=database, drives=False))
        await Supervisor(server).start()
        run_id = await open_conversation(server.engine, None, ConversationSettings(), "will")
        await server.engine.submit(run_id, c.Converse("hire Will Zhang", "will"))
        row = await server.journal.run(run_id)
        assert row is not None
        assert row.active, "it waits for a driver"
        before = await server.journal.version(run_id)
        assert run_id not in server.engine.worker.conversations
        await worker(stack, database)
        async with asyncio.timeout(60):
            state = await server.engine.wait_for_status(run_id, OVER)
        assert state.status is RunStatus.DONE
        assert state.version > before
        row = await server.journal.run(run_id)
        assert row is not None
        assert not row.active, "its driver has ended"


async def test_a_program_that_consumes_it_for_a_while_leaves_it_to_a_worker(database: str) -> None:
    async with AsyncExitStack() as stack:
        program = await stack.enter_async_context(Holdfast(database=database, drives=False))
        run_id = await open_conversation(program.engine, None, ConversationSettings(), "will")
        await program.engine.attend(run_id)
        await program.engine.submit(run_id, c.Converse("hire Will Zhang", "will"))
        row = await program.journal.run(run_id)
        assert row is not None
        assert not row.active, "its consumer moves it"
        await program.engine.leave(run_id)
        row = await program.journal.run(run_id)
        assert row is not None
        assert row.active, "it waits for a driver"
        await worker(stack, database)
        async with asyncio.timeout(60):
            state = await program.engine.wait_for_status(run_id, OVER)
        assert state.status is RunStatus.DONE


async def test_who_pursues_none_leaves_it_to_another(database: str) -> None:
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(Holdfast(database=database, drives=False))
        refusing = await stack.enter_async_context(Holdfast(database=database))
        prompt = await stack.enter_async_context(
            await psycopg.AsyncConnection.connect(database, autocommit=True)
        )
        run_id = await open_conversation(server.engine, None, ConversationSettings(), "will")
        await server.engine.submit(run_id, c.Converse("hire Will Zhang", "will"))
        refused: dict[str, bool] = {}
        async with asyncio.timeout(60):
            while not refused:
                found = await prompt.execute("SELECT args -> 'refused' FROM procrastinate_jobs")
                refused = (await found.fetchall() or [({},)])[0][0] or {}
                await asyncio.sleep(0.02)
        assert refused == {str(refusing.journal.worker_id): True}  # type: ignore[attr-defined]
        await worker(stack, database)
        async with asyncio.timeout(60):
            state = await server.engine.wait_for_status(run_id, OVER)
        assert state.status is RunStatus.DONE


async def test_one_that_cannot_be_pursued_here_is_handed_back(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model may be configured at another worker."""
    monkeypatch.setattr(driving, "TRY_SECONDS", 0.01)

    async def in_vain(run_id: str) -> None: ...

    async with Holdfast(database=database, drives=False) as app:
        run_id = await open_conversation(app.engine, None, ConversationSettings(), "will")
        await app.engine.submit(run_id, c.Converse("hire Will Zhang", "will"))
        [job] = await cast(SharedJournal, app.journal).reserve_jobs(1)
        driver = driving.RunDriver(app.engine, app.tools, lambda: in_vain)
        async with asyncio.timeout(60):
            with pytest.raises(HandedBack, match="it cannot be pursued here"):
                await driver.drive(run_id, Drive(job, 0))


async def test_a_second_message_finds_a_driver_again(database: str) -> None:
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(Holdfast(database=database, drives=False))
        await worker(stack, database)
        run_id = await open_conversation(server.engine, None, ConversationSettings(), "will")
        for turn in (1, 2):
            await server.engine.submit(run_id, c.Converse(f"goal {turn}", "will"))
            async with asyncio.timeout(60):
                state = await server.engine.wait_for_status(run_id, OVER)
            assert (state.status, getattr(state, "turn", 0)) == (RunStatus.DONE, turn)
