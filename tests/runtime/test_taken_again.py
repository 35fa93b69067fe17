"""A driver that was thought dead, and is given its run once more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

import pytest
from scenes import history, of_kind

from holdfast import Holdfast
from holdfast.journal.port import Append, Drive
from holdfast.model import events as e
from holdfast.runs.handles import PlanInstance

PLAN = """
plan_id: errand
main_task_id: "001"
tasks: [{task_id: "001", name: Errand}]
listeners:
  - {listener_id: A, trigger_task_id: "001", trigger_condition: "001.status == Running",
     listener_type: tool, tool: errand, success_output: {task_id: "001", status: Done}}
"""
PATIENCE = 60.0


@dataclass
class Scene:
    """A server, and a worker with a tool that cannot be repeated and ends when it is told to."""

    server: Holdfast
    worker: Holdfast
    begun: int = 0
    end: asyncio.Event = field(default_factory=asyncio.Event)

    def furnish(self) -> None:
        async def errand() -> dict[str, bool]:
            self.begun += 1
            await self.end.wait()
            return {"done": True}

        for app in (self.server, self.worker):
            app.tool(errand)
            app.load_plan_text(PLAN)

    def drives(self) -> set[Drive | None]:
        assert self.worker.engine.drives is not None
        return {one.drive for one in self.worker.engine.drives.driven.values()}

    def under_way(self) -> int:
        """Jobs that the worker has begun and not ended."""
        assert self.worker.dispatcher is not None
        return self.worker.dispatcher.driving

    async def begin(self) -> PlanInstance:
        run = await self.server.plans.start_plan_by_prompt("", "errand")
        await met(lambda: self.begun == 1)
        return run

    async def give_again(self) -> None:
        """The worker is thought dead, and the job that others return is given to it."""
        [drive] = self.drives()
        assert drive is not None
        assert self.worker.dispatcher is not None
        await self.worker.dispatcher._jobs.give_back(drive.job, drive.attempt)
        await met(lambda: self.drives() == {Drive(drive.job, drive.attempt + 1)})


async def met(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110 - what is awaited has no event of its own
            await asyncio.sleep(0.01)


@pytest.fixture
async def scene(database: str) -> AsyncIterator[Scene]:
    """Closing is a part of it: whoever waits for a drive that never ends keeps its process."""
    made = Scene(Holdfast(database=database, drives=False), Holdfast(database=database))
    made.furnish()
    async with made.server, asyncio.timeout(2 * PATIENCE), made.worker:
        yield made


async def test_who_is_given_its_own_run_again_goes_on_with_it_and_lets_go_of_the_former(
    scene: Scene,
) -> None:
    run = await scene.begin()
    await scene.give_again()
    await met(lambda: scene.under_way() == 1)
    scene.end.set()
    assert await run.wait_for_completion(PATIENCE) == "done"
    await met(lambda: scene.under_way() == 0)
    assert scene.begun == 1
    assert of_kind(await history(scene.server, run.id), e.RunRecovered) == []


async def test_what_its_former_drive_could_not_append_does_not_end_the_drive_that_it_has_now(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    append, waiting, let = scene.worker.journal.append, asyncio.Event(), asyncio.Event()

    def held_back(given: Append) -> Awaitable[int]:
        async def later() -> int:
            waiting.set()
            await let.wait()
            return await append(given)

        return later()

    run = await scene.begin()
    monkeypatch.setattr(scene.worker.journal, "append", held_back)
    scene.end.set()
    await waiting.wait()
    monkeypatch.undo()
    await scene.give_again()
    let.set()
    assert await run.wait_for_completion(PATIENCE) == "done"
    assert scene.begun == 1
    assert "has another driver now" not in caplog.text
    assert of_kind(await history(scene.server, run.id), e.RunRecovered) == []
