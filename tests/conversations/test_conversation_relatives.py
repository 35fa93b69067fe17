"""What a conversation has called, as a repair of a plan that it runs must know it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from conversation_scenes import GOAL, Llm, heard, kinds
from plan_texts import end, load, step

from holdfast import Holdfast
from holdfast.conversations.engine import ConversationEngine
from holdfast.model.conversation import SubTask
from holdfast.runtime.machines import as_plan
from holdfast.runtime.relatives import called_elsewhere

TASKS: list[dict[str, Any]] = [
    {"id": "paid", "type": "pay"},
    {"id": "tour", "type": "tour", "dependencies": ["paid"]},
    {"id": "noted", "type": "note", "dependencies": ["tour"]},
    {"id": "told", "type": "mail", "dependencies": ["noted"]},
]


async def test_a_plan_that_a_conversation_runs_knows_what_that_has_called_so_far(
    tmp_path: Path,
) -> None:
    seen: dict[str, frozenset[str]] = {}

    async def note(task: SubTask) -> str:
        [row] = [one for one in await app.runs() if one.kind == "plan"]
        state = as_plan(await app.engine.state(row.run_id))
        seen["before the mail"] = await called_elsewhere(app.engine, state)
        return row.run_id

    async def done() -> dict[str, Any]:
        return {}

    async with Holdfast(tmp_path) as app:
        for name in ("pay", "mail", "look"):
            app.tool(done, name=name)
        load(app, step("L", "001", "002", tool="look"), end("002"), plan_id="tour")
        engine = ConversationEngine(llm=Llm(TASKS), app=app, executors={"note": note})
        assert kinds(await heard(engine.run(GOAL)))[-1] == "engine_completed"
        [tour] = [one.run_id for one in await app.runs() if one.kind == "plan"]
        state = as_plan(await app.engine.state(tour))
        assert seen == {"before the mail": {"pay"}}
        assert await called_elsewhere(app.engine, state) == {"pay", "mail"}
