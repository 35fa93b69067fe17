"""Two repairs of one tree of runs, approved at the same time, that would each have the same thing
done: one is made, the other is refused and proposed anew, with a warning.

`python tests/runtime/test_repair_claims.py 500` has as many pairs, on each kind of store.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import tomllib
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

if __name__ == "__main__":
    ROOT = Path(__file__).parents[2]
    SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["pytest"]
    sys.path[:0] = [str(ROOT / one) for one in ("tests", *SETTINGS["ini_options"]["pythonpath"])]

import pytest
from repair_scenes import WHO, proposal
from repair_trees import HR, REFUSED, WARNING, Offices, failed_trees, warnings
from scenes import assert_sound, history, no_task_left_behind, of_kind

from holdfast.app import Holdfast
from holdfast.errors import NotAllowed
from holdfast.journal.port import QuestionRow
from holdfast.model import events as e
from holdfast.model.repair import CaseStatus
from holdfast.model.rows import request_of
from holdfast.model.values import JsonObject
from holdfast.runs.handles import PlanInstance
from installation import SECRET_KEY
from postgresql_server import Server, migrated

PAIRS = 30
AT_ONCE = 15
BADGE: JsonObject = {
    "op": "insert_before",
    "listener_id": "L001",
    "task": {"task_id": "R2", "name": "A badge"},
    "listener": {
        "listener_id": "R2",
        "listener_type": "tool",
        "tool": "print_badge",
        "args": {"id": "{001.context.id}"},
    },
}
PROFILE: JsonObject = {
    "op": "insert_before",
    "listener_id": "L001",
    "task": {"task_id": "R1", "name": "A profile"},
    "listener": {
        "listener_id": "R1",
        "listener_type": "tool",
        "tool": HR,
        "args": {"id": "{001.context.id}", "name": "{001.context.name}"},
    },
}


async def at_once(apps: Sequence[Holdfast], asked: Sequence[QuestionRow]) -> list[bool]:
    """Approvals of these, by turns through either application; whether each was taken. The others
    were told why not."""
    said = (
        apps[number % len(apps)].answer(one.question_id, option_id="apply", by=WHO)
        for number, one in enumerate(asked)
    )
    told = await asyncio.gather(*said, return_exceptions=True)
    for one in told:
        assert not isinstance(one, BaseException) or isinstance(one, NotAllowed), one
    return [not isinstance(one, BaseException) for one in told]


async def contest(one: Holdfast, other: Holdfast, offices: Offices, count: int) -> list[bool]:
    """So many trees, each with two repairs approved at once; whether the first was taken."""
    won = []
    for start in range(0, count, AT_ONCE):
        names = [f"WZ{number:05}" for number in range(start, min(start + AT_ONCE, count))]
        trees = await failed_trees(one, names)
        pairs = [(one, other) if number % 2 else (other, one) for number in range(len(trees))]
        told = await asyncio.gather(
            *(at_once(pair, asked) for pair, (_, asked) in zip(pairs, trees, strict=True))
        )
        for name, (instance, asked), taken in zip(names, trees, told, strict=True):
            assert sorted(taken) == [False, True], name
            await check(one, offices, name, instance, asked, taken)
            won.append(taken[0])
    return won


async def check(
    app: Holdfast,
    offices: Offices,
    name: str,
    instance: PlanInstance,
    asked: Sequence[QuestionRow],
    taken: Sequence[bool],
) -> None:
    """The one was made, the other is proposed anew; without it the run is done as well."""
    first, second = asked if taken[0] else asked[::-1]
    await app.engine.wait_for(first.run_id, lambda state: state.status == "done", 60)
    anew = await proposal(app, second.run_id, besides=second.question_id)
    if "would call" in (words := warnings(anew)):
        assert words.startswith(WARNING)
    state = await assert_sound(app, second.run_id)
    assert state.repair.patches == ()
    assert state.repair.cases["case_1"].status is CaseStatus.CLOSED
    patched = of_kind(await history(app, first.run_id), e.PlanPatched)
    assert len(patched) == 1
    await app.resume(second.run_id, by=WHO)
    await app.engine.wait_for(instance.id, lambda state: state.status == "done", 60)
    assert offices.done[HR, name] == 1


async def test_of_two_approvals_at_once_in_one_tree_one_counts() -> None:
    offices = Offices()
    app = offices.furnish(Holdfast.in_memory(max_retry_count=0))
    async with no_task_left_behind(), app:
        await contest(app, app, offices, PAIRS)


async def test_so_it_is_on_disk(tmp_path: Path) -> None:
    offices = Offices()
    app = offices.furnish(Holdfast(tmp_path, max_retry_count=0))
    async with no_task_left_behind(), app:
        await contest(app, app, offices, PAIRS)


@asynccontextmanager
async def two(
    database: str, offices: Offices, *, drives: bool
) -> AsyncIterator[tuple[Holdfast, Holdfast]]:
    """Two applications on one database, of which the second may only decide."""
    apps = [
        offices.furnish(Holdfast(database=database, drives=own, max_retry_count=0))
        for own in (True, drives)
    ]
    async with apps[0], apps[1]:
        yield apps[0], apps[1]


@pytest.mark.parametrize("drives", [True, False])
async def test_so_it_is_through_two_applications_on_one_database(
    database: str, drives: bool
) -> None:
    offices = Offices()
    async with two(database, offices, drives=drives) as apps:
        won = await contest(*apps, offices, 2 * PAIRS)
    assert set(won) == {True, False}


async def one_tree(app: Holdfast, doors: int = 2) -> tuple[PlanInstance, list[QuestionRow]]:
    [found] = await failed_trees(app, ["WZ001"], doors)
    return found


async def test_the_second_is_proposed_anew_with_a_warning_that_a_person_may_accept() -> None:
    offices = Offices()
    async with offices.furnish(Holdfast.in_memory(max_retry_count=0)) as app:
        instance, asked = await one_tree(app)
        assert [warnings(one) for one in asked] == ["", ""]
        await app.answer(asked[0].question_id, option_id="apply", by=WHO)
        with pytest.raises(NotAllowed, match=REFUSED):
            await app.answer(asked[1].question_id, option_id="apply", by=WHO)
        anew = await proposal(app, asked[1].run_id, besides=asked[1].question_id)
        assert warnings(anew).startswith(WARNING)
        assert request_of(anew).context["level"] == "act"
        await app.answer(anew.question_id, option_id="apply", by=WHO)
        await app.engine.wait_for(instance.id, lambda state: state.status == "done", 60)
        assert offices.done[HR, "WZ001"] == 2, "a person has consented to both"


async def test_nothing_is_proposed_over_and_over_where_nobody_answers() -> None:
    offices = Offices()
    async with offices.furnish(Holdfast.in_memory(max_retry_count=0)) as app:
        _, asked = await one_tree(app)
        await app.answer(asked[0].question_id, option_id="apply", by=WHO)
        with pytest.raises(NotAllowed):
            await app.answer(asked[1].question_id, option_id="apply", by=WHO)
        await proposal(app, asked[1].run_id, besides=asked[1].question_id)
        await app.engine.wait_for(asked[0].run_id, lambda state: state.status == "done", 60)
        before = await assert_sound(app, asked[1].run_id)
        for _ in range(50):
            await asyncio.sleep(0)
        assert (await assert_sound(app, asked[1].run_id)).version == before.version
        events = await history(app, asked[1].run_id)
        assert len(of_kind(events, e.CaseOpened)) == len(of_kind(events, e.PatchProposed)) == 2


async def test_a_call_that_waits_for_its_own_approval_counts_as_well() -> None:
    """HR's tool requires one: what the first repair has brought in is asked about, not made."""
    offices = Offices()
    app = offices.furnish(Holdfast.in_memory(max_retry_count=0), approval="require")
    async with app:
        _, asked = await one_tree(app)
        taken = await at_once([app], asked)
        assert sorted(taken) == [False, True]
        second = asked[taken.index(False)]
        anew = await proposal(app, second.run_id, besides=second.question_id)
        assert warnings(anew).startswith(WARNING)
        assert offices.done[HR, "WZ001"] == 0


async def test_the_word_of_another_process_counts(database: str) -> None:
    """The one drives the runs; the other, which only decides, reads of the call in the journal."""
    offices = Offices()
    async with two(database, offices, drives=False) as (worker, server):
        _, asked = await one_tree(worker)
        await worker.answer(asked[0].question_id, option_id="apply", by=WHO)
        with pytest.raises(NotAllowed, match=REFUSED):
            await server.answer(asked[1].question_id, option_id="apply", by=WHO)
        anew = await proposal(server, asked[1].run_id, besides=asked[1].question_id)
        assert warnings(anew).startswith(WARNING)


async def test_a_call_that_came_to_nothing_hinders_nobody() -> None:
    offices = Offices()
    offices.unknown.add("WZ001")
    async with offices.furnish(Holdfast.in_memory(max_retry_count=0)) as app:
        _, asked = await one_tree(app)
        await app.answer(asked[0].question_id, option_id="apply", by=WHO)
        await tried_in_vain(app, asked[0].run_id)
        offices.unknown.clear()
        await app.answer(asked[1].question_id, option_id="apply", by=WHO)
        await app.engine.wait_for(asked[1].run_id, lambda state: state.status == "done", 60)
        assert offices.done[HR, "WZ001"] == 2


async def tried_in_vain(app: Holdfast, run_id: str) -> None:
    """The call that the repair has brought in has failed for good."""
    await app.engine.wait_for(run_id, lambda state: "R1" in getattr(state, "failed", ()), 60)


async def proposed(app: Holdfast, run_id: str, *operations: JsonObject) -> QuestionRow:
    assert app.planner_agent.repairer is not None
    before = await proposal(app, run_id)
    await app.planner_agent.repairer.propose(run_id, operations, by="operator")
    return await proposal(app, run_id, besides=before.question_id)


async def test_whatever_else_they_would_call_both_contend_for_the_tool_that_they_share() -> None:
    """The profile was tried before, without success, so that the first repair is refused its first
    claim; meanwhile the second, sooner or later, claims the badge that both would have printed."""
    offices = Offices()
    async with offices.furnish(Holdfast.in_memory(max_retry_count=0), doors=3) as app:
        for turns in range(40):
            offices.unknown.add(f"WZ{turns:05}")
            [(_, asked)] = await failed_trees(app, [f"WZ{turns:05}"], doors=3)
            await app.answer(asked[0].question_id, option_id="apply", by=WHO)
            await tried_in_vain(app, asked[0].run_id)
            whole = await proposed(app, asked[1].run_id, PROFILE, {**BADGE, "listener_id": "R1"})
            badge = await proposed(app, asked[2].run_id, BADGE)
            told = await asyncio.gather(
                app.answer(whole.question_id, option_id="apply", by=WHO),
                after(turns, app, badge),
                return_exceptions=True,
            )
            assert sorted(type(one) is NotAllowed for one in told) == [False, True], turns


async def after(turns: int, app: Holdfast, asked: QuestionRow) -> object:
    for _ in range(turns):
        await asyncio.sleep(0)
    return await app.answer(asked.question_id, option_id="apply", by=WHO)


async def test_an_answer_that_comes_at_once_finds_what_is_asked() -> None:
    """The inbox may show a question a moment before the engine knows that it is kept."""
    offices = Offices()
    async with offices.furnish(Holdfast.in_memory(max_retry_count=0)) as app:
        for number in range(30):
            values = {"id": f"WZ{number:05}", "name": WHO}
            instance = await app.plans.start_plan_by_prompt("", "door", values=values)
            while not (rows := await app.inbox()):  # noqa: ASYNC110
                await asyncio.sleep(0)
            await app.answer(rows[0].question_id, option_id="apply", by=WHO)
            await app.engine.wait_for(instance.id, lambda state: state.status == "done", 60)


async def test_a_run_by_itself_claims_nothing() -> None:
    offices = Offices()
    async with offices.furnish(Holdfast.in_memory(max_retry_count=0)) as app:
        values = {"id": "WZ001", "name": WHO}
        instance = await app.plans.start_plan_by_prompt("", "door", values=values)
        asked = await proposal(app, instance.id)
        await app.answer(asked.question_id, option_id="apply", by=WHO)
        await app.engine.wait_for(instance.id, lambda state: state.status == "done", 60)
        now = app.engine.clock.now()
        assert await app.journal.kept("repair", f"{instance.id}:{HR}:0", now) is None


async def test_a_refusal_claims_nothing() -> None:
    offices = Offices()
    async with offices.furnish(Holdfast.in_memory(max_retry_count=0)) as app:
        _, asked = await one_tree(app)
        await app.answer(asked[0].question_id, option_id="refuse", feedback="no", by=WHO)
        await app.answer(asked[1].question_id, option_id="apply", by=WHO)
        await app.engine.wait_for(asked[1].run_id, lambda state: state.status == "done", 60)
        assert offices.done[HR, "WZ001"] == 1


async def test_the_same_approval_twice_at_once_is_one_in_a_tree_too() -> None:
    offices = Offices()
    async with offices.furnish(Holdfast.in_memory(max_retry_count=0)) as app:
        _, asked = await one_tree(app)
        assert await at_once([app], [asked[0], asked[0]]) == [True, True]
        await app.engine.wait_for(asked[0].run_id, lambda state: state.status == "done", 60)
        assert offices.done[HR, "WZ001"] == 1


async def campaign(count: int) -> None:
    os.environ["HOLDFAST_SECRET_KEY"] = SECRET_KEY
    async with AsyncExitStack() as stack:
        home = stack.enter_context(tempfile.TemporaryDirectory())
        server = stack.enter_context(Server(fsync=False, max_connections=200))
        for bare in (Holdfast.in_memory(max_retry_count=0), Holdfast(home, max_retry_count=0)):
            offices = Offices()
            async with offices.furnish(bare) as app:
                won = await contest(app, app, offices, count)
                print(f"{len(won)} pairs, {won.count(True)} won by the first", flush=True)
        for drives in (True, False):
            offices = Offices()
            url = server.create_database(migrated)
            async with two(url, offices, drives=drives) as apps:
                won = await contest(*apps, offices, count)
                print(f"PostgreSQL: {len(won)} pairs, {won.count(True)} by the first", flush=True)


if __name__ == "__main__":
    asyncio.run(campaign(int(sys.argv[1])))
