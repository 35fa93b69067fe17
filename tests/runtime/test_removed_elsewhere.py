"""A run that another process has removed is none here either, whatever was known of it."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from holdfast import Holdfast
from holdfast.errors import NotFound
from holdfast.journal.port import PrunedJournal
from holdfast.model import commands as c
from holdfast.model.rows import Removal

PLAN = """
plan_id: note
main_task_id: "001"
tasks: [{task_id: "001", name: Note}]
listeners:
  - {listener_id: A, trigger_task_id: "001", trigger_condition: "001.status == Running",
     listener_type: code, code_snippet: "result = {'success': True}",
     success_output: {task_id: "001", status: Done}}
"""


@pytest.mark.parametrize("known", [True, False])
async def test_a_removed_run_is_not_found_by_any_command(database: str, known: bool) -> None:
    async with (
        Holdfast(database=database) as worker,
        Holdfast(database=database, drives=False) as server,
    ):
        worker.load_plan_text(PLAN)
        instance = await worker.plans.start_plan_by_prompt("", "note")
        assert await instance.wait_for_completion() == "done"
        if known:
            assert (await server.engine.state(instance.id)).status == "done"
        journal = cast(PrunedJournal, worker.journal)
        removal = Removal({instance.id: await journal.version(instance.id)})
        assert await journal.remove([removal]) == [], "nothing stays"
        async with asyncio.timeout(60):
            with pytest.raises(NotFound):
                await server.engine.submit(instance.id, c.Cancel("will", ""))
            with pytest.raises(NotFound):
                await server.engine.state(instance.id)
