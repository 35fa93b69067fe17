"""Lessons and curves as an installation has them that has had trouble."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast import Holdfast
from holdfast.model.repair import Level
from holdfast.repair.facts import Mended, Took, Tried
from holdfast.repair.lessons import id_of, key_of
from holdfast.runtime.machines import as_plan, blank

FINGERPRINT = "fp1:0123456789abcdef"


async def learned(
    app: Holdfast, plan_id: str, listener_id: str, operation: Mapping[str, Any], wins: int = 1
) -> str:
    """A lesson about a listener of a plan, kept; its id."""
    state = as_plan(blank("", app.engine.definitions.current(plan_id)))
    tool = state.plan.listeners[listener_id].tool
    facts = app.engine.worker.tool_facts(tool or "")
    key = key_of(state, listener_id, facts.version if facts else "", FINGERPRINT)
    keeper, now = await app.engine.learning.experience(), app.engine.clock.now()
    for number in range(1, wins + 1):
        keeper._take([Mended(key, (operation,), Level.ACT, True, f"inst_{number:06d}", now)])
    await keeper.save()
    return id_of(key, (operation,))


async def recovered(app: Holdfast, tool: str, cases: int, after: float) -> None:
    """So many calls of the tool were down, and worked again after so many seconds."""
    keeper, now = await app.engine.learning.experience(), app.engine.clock.now()
    for number in range(1, cases + 1):
        run_id = f"inst_{number:06d}"
        tried = Tried(tool, FINGERPRINT, "outage", 0, after, True, run_id, "L001", now)
        keeper._take([tried, Took(tool, 0.2, run_id, now)])
    await keeper.save()
