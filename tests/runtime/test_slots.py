"""A limit is the installation's, however many workers share it."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import cast

import pytest

import workshop
from holdfast import Holdfast
from holdfast.errors import InternalError, JournalUnavailable
from holdfast.journal.postgres import PostgresJournal
from holdfast.model.run import RunStatus
from holdfast.runtime.actor import Actor
from holdfast.runtime.slots import ASK_SECONDS, SharedLimit
from installation import Installation, Started, becomes, begun, over

PLAN = """
plan_id: errands
main_task_id: "001"
tasks: [{task_id: "001", name: Errands}, {task_id: "002", name: First}]
listeners:
  - {listener_id: A, trigger_task_id: "001", trigger_condition: "001.status == Running",
     listener_type: tool, tool: errand, success_output: {task_id: "002", status: Done}}
  - {listener_id: B, trigger_task_id: "002", trigger_condition: Done,
     listener_type: tool, tool: errand, success_output: {task_id: "001", status: Done}}
"""


class Errands:
    """Counts who calls, and how many are at it at once."""

    def __init__(self) -> None:
        self.under_way = self.most = 0
        self.by: set[int] = set()

    def of(self, number: int, **options: object) -> Holdfast:
        app = Holdfast(**options)  # type: ignore[arg-type]

        @app.tool(idempotent=True)
        async def errand() -> dict[str, bool]:
            self.under_way += 1
            self.most = max(self.most, self.under_way)
            self.by.add(number)
            for _ in range(5):
                await asyncio.sleep(0)
            self.under_way -= 1
            return {"done": True}

        app.load_plan_text(PLAN)
        return app


@pytest.mark.parametrize("limit", [1, 3])
async def test_a_limit_holds_for_all_workers_and_each_gets_its_turn(
    database: str, limit: int
) -> None:
    errands = Errands()
    async with AsyncExitStack() as stack:
        apps = [
            await stack.enter_async_context(
                errands.of(number, database=database, max_effects=limit)
            )
            for number in range(4)
        ]
        for app in apps:
            assert app.dispatcher is not None
            await app.dispatcher.ready.wait()
        starts = [app.plans.start_plan_by_prompt("", "errands") for app in apps for _ in range(3)]
        instances = await asyncio.gather(*starts)
        ended = [await one.wait_for_completion() for one in instances]
    assert ended == ["done"] * 12
    assert errands.most <= limit
    assert errands.by == {0, 1, 2, 3}


async def test_a_slot_is_one_workers_until_it_is_returned(database: str) -> None:
    async with AsyncExitStack() as stack:
        one, other = PostgresJournal(database), PostgresJournal(database)
        for journal in (one, other):
            await journal.open()
            stack.push_async_callback(journal.close)
        async with one._connections.one() as connection:
            query = b"INSERT INTO procrastinate_workers DEFAULT VALUES RETURNING id"
            workers = [(await (await connection.execute(query)).fetchall())[0][0] for _ in "ab"]
        first, second = workers
        taken = await asyncio.gather(
            *(
                journal.slots.take(number, 2, 3)
                for journal, number in ((one, first), (other, second))
            )
        )
        assert sum(taken) == 3
        assert await one.slots.take(first, 3, 3) == 0
        await other.slots.give_back(second, 2)
        assert (await one.slots.held(second))[0] == 0
        assert await one.slots.take(first, 3, 3) == taken[1]
        assert await one.slots.held(first) == (3, 2)


async def test_slots_are_asked_for_again_whatever_went_wrong() -> None:
    class Faulty:
        asked = 0

        async def held(self, worker: int) -> tuple[int, int]:
            return 0, 2

        async def give_back(self, worker: int, count: int) -> None: ...

        async def take(self, worker: int, count: int, limit: int) -> int:
            self.asked += 1
            if self.asked == 1:
                raise InternalError("a mistake of ours")
            return 1

    limit, granted = SharedLimit(1), asyncio.Event()
    limit.waiting.append(cast(Actor, object()))
    limit.start(Faulty(), lambda: 1, granted.set)
    async with asyncio.timeout(60):
        await granted.wait()
    await limit.stop()
    assert limit.free == 1


async def test_a_database_that_is_away_is_not_asked_all_the_time() -> None:
    class Away:
        asked = 0

        async def held(self, worker: int) -> tuple[int, int]:
            self.asked += 1
            raise JournalUnavailable("the database is away")

        async def give_back(self, worker: int, count: int) -> None: ...

        async def take(self, worker: int, count: int, limit: int) -> int:
            return 0

    limit, store = SharedLimit(1), Away()
    limit.waiting.append(cast(Actor, object()))
    limit.start(store, lambda: 1, lambda: None)
    await asyncio.sleep(8 * ASK_SECONDS)
    await limit.stop()
    assert store.asked == 1


async def test_a_limit_of_one_holds_while_workers_are_killed_stopped_and_started(
    installation: Installation,
) -> None:
    calls, one = installation.workshop.calls, {workshop.LIMIT: "1"}
    workers = {each.pid: each for each in [installation.worker(**one) for _ in range(4)]}
    async with installation.decider() as app:
        runs = []
        for end in (Started.kill, Started.stop, Started.kill):
            already = len(calls())
            runs += [await begun(app, "turn") for _ in range(6)]
            await becomes(lambda already=already: len(calls()) > already)
            _, _, at_it = calls()[-1]
            end(workers.pop(at_it))
            worker = installation.worker(**one)
            workers[worker.pid] = worker
        runs.append(await begun(app, "turn"))
        assert {await over(app, run.id) for run in runs} == {RunStatus.DONE}
    assert {tool for tool, _, _ in calls()} == {"turn"}
    assert len({pid for _, _, pid in calls()}) > 1
