"""Four eyes on a shared journal: what people did through another process is known to this one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import TypeAlias

import pytest
from scenes import plan

from holdfast import Holdfast
from holdfast.runtime.registry import ActorRegistry

Both: TypeAlias = tuple[Holdfast, Holdfast]

ASKS = """
plan_id: asks
main_task_id: "001"
tasks: [{task_id: "001"}]
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: human
    title: Which one?
    form: {model: {type: text, label: Model}}
    success_output: {task_id: "001", status: Done}
"""

ABOVE = """
plan_id: above
main_task_id: "001"
tasks: [{task_id: "001"}]
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: plan
    plan_id: asks
    success_output: {task_id: "001", status: Done}
"""


@pytest.fixture
async def both(database: str) -> AsyncIterator[Both]:
    """The first drives runs, the second only decides."""
    async with AsyncExitStack() as stack:
        apps = [
            Holdfast(database=database, drives=drives, four_eyes=True) for drives in (True, False)
        ]
        for app in apps:
            app.add_plan(plan(ASKS))
            app.add_plan(plan(ABOVE))
            await stack.enter_async_context(app)
        yield apps[0], apps[1]


async def asked(app: Holdfast) -> tuple[str, str]:
    """A run, and the one below it, which asks."""
    instance = await app.plans.start_plan_by_prompt("", "above", by="will")
    await instance.wait_until_settled(30)
    [question] = await app.inbox()
    assert question.run_id != instance.id
    return instance.id, question.run_id


async def test_what_was_done_through_another_process_is_known(both: Both) -> None:
    first, second = both
    root, below = await asked(first)
    for n, (app, other, run_id) in enumerate(
        [(first, second, root), (first, second, below), (second, first, below)]
    ):
        assert f"ann{n}" not in await other.engine.four_eyes.known(root)
        await app.edit_context(run_id, "001", {"n": n}, by=f"ann{n}")
        assert f"ann{n}" in await other.engine.four_eyes.known(root)


async def test_a_tree_in_which_nothing_has_moved_is_not_read_again(
    both: Both, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = both
    root, below = await asked(first)
    before = dict(await second.engine.four_eyes.known(root))
    read: list[str] = []

    async def counted(self: ActorRegistry, run_id: str) -> object:
        read.append(run_id)
        return await original(self, run_id)

    original = ActorRegistry.read
    monkeypatch.setattr(ActorRegistry, "read", counted)
    for _ in range(3):
        assert await second.engine.four_eyes.known(root) == before
    assert read == []
    await second.edit_context(below, "001", {"mine": True}, by="ann")
    read.clear()
    assert "ann" in await second.engine.four_eyes.known(root)
    assert read == []
