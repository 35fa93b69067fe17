"""Who waits for a run hears of what other processes have appended to it."""

from __future__ import annotations

import asyncio

from scenes import until

from holdfast import Holdfast
from holdfast.model.run import RunStatus

PLAN = """
plan_id: errand
main_task_id: "001"
tasks: [{task_id: "001", name: Errand}]
listeners:
  - {listener_id: A, trigger_task_id: "001", trigger_condition: "001.status == Running",
     listener_type: tool, tool: errand, success_output: {task_id: "001", status: Done}}
"""
SECONDS = 60


def furnished(app: Holdfast) -> Holdfast:
    @app.tool(idempotent=True)
    async def errand() -> dict[str, bool]:
        return {"done": True}

    app.load_plan_text(PLAN)
    return app


async def test_who_waits_hears_of_a_run_that_was_read_anew_before_its_hint_came(
    database: str,
) -> None:
    async with (
        asyncio.timeout(SECONDS),
        furnished(Holdfast(database=database, drives=False)) as app,
    ):
        run = await app.plans.start_plan_by_prompt("", "errand")
        follower = app.engine.follower
        assert follower is not None
        await follower.stop()
        waiting = asyncio.create_task(app.engine.wait_for_status(run.id, {RunStatus.DONE}))
        await until(lambda: app.engine.hub.follows(run.id))
        await app.engine.state(run.id)
        app.engine._actors.by_id.clear()  # as where many other runs were asked for
        async with furnished(Holdfast(database=database)) as worker:
            await worker.engine.wait_for_status(run.id, {RunStatus.DONE})
        assert (await app.engine.state(run.id)).status is RunStatus.DONE
        assert not waiting.done()
        await follower.sweep()
        assert (await waiting).status is RunStatus.DONE
