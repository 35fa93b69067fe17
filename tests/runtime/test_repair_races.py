"""Two people decide on a repair at the same time: one of them does, and the other is told.

`python tests/runtime/test_repair_races.py 1000` has as many pairs, on each kind of store.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TypeAlias

if __name__ == "__main__":
    ROOT = Path(__file__).parents[2]
    SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["pytest"]
    sys.path[:0] = [str(ROOT / one) for one in ("tests", *SETTINGS["ini_options"]["pythonpath"])]

import pytest
from repair_scenes import REPAIRED, UNREPAIRED, Staff, given_up, proposal
from scenes import assert_sound, history, no_task_left_behind, of_kind

from holdfast.app import Holdfast
from holdfast.errors import AlreadyAnswered, CallerError, NotAllowed, TooLate
from holdfast.model import events as e
from holdfast.model.repair import CaseStatus
from holdfast.runs.handles import PlanInstance
from installation import SECRET_KEY
from postgresql_server import Server, migrated

PAIRS = 100
AT_ONCE = 50
"""How many runs have failed and wait for their pair."""

Said: TypeAlias = Awaitable[object]
"""A word about a run: an answer to a question, or a command."""


def approve(app: Holdfast, question: str) -> Said:
    return app.answer(question, option_id="apply", by="who approves")


def approve_as_well(app: Holdfast, question: str) -> Said:
    return app.answer(question, option_id="apply", by="who approves too")


def refuse(app: Holdfast, question: str) -> Said:
    return app.answer(question, option_id="refuse", feedback="never", by="who refuses")


async def at_once(first: Said, second: Said) -> list[CallerError | None]:
    """Why each of two words was refused, if it was."""
    said = await asyncio.gather(first, second, return_exceptions=True)
    for one in said:
        assert not isinstance(one, BaseException) or isinstance(one, CallerError), one
    return [one if isinstance(one, CallerError) else None for one in said]


async def contest(one: Holdfast, other: Holdfast, staff: Staff, count: int) -> Counter[str]:
    """An approval against a refusal for each of so many runs, by turns through either application
    and by turns said first; how often which has won."""
    won: Counter[str] = Counter()
    for start in range(0, count, AT_ONCE):
        names = [f"WZ{number:05}" for number in range(start, min(start + AT_ONCE, count))]
        waiting = await given_up(one, names)
        pairs = [
            pair((one, other) if number % 4 < 2 else (other, one), question, number % 2)
            for number, (_, question) in enumerate(waiting)
        ]
        for name, (instance, _), winner in zip(
            names, waiting, await asyncio.gather(*pairs), strict=True
        ):
            await check(one, staff, name, instance, winner)
            won[winner] += 1
    return won


async def pair(apps: Sequence[Holdfast], question: str, turn: int) -> str:
    """Which of the two has won; the other was told who and how."""
    words: list[Callable[[Holdfast, str], Said]] = [approve, refuse]
    said = [word(app, question) for word, app in zip(words, apps, strict=True)]
    told = await at_once(*(said if turn else said[::-1]))
    approval, refusal = told if turn else told[::-1]
    winner, loser = ("apply", refusal) if approval is None else ("refuse", approval)
    by = {"apply": "who approves", "refuse": "who refuses"}[winner]
    assert isinstance(loser, AlreadyAnswered), told
    assert told.count(None) == 1, told
    assert (loser.by, loser.option_id) == (by, winner)
    assert f"answered by {by}" in str(loser)
    return winner


async def check(
    app: Holdfast, staff: Staff, name: str, instance: PlanInstance, winner: str
) -> None:
    """One patch where the approval has won, and nothing where it has not."""
    applied = winner == "apply"
    if applied:
        await app.engine.wait_for(instance.id, lambda state: state.status == "done", 60)
    state, events = await assert_sound(app, instance.id), await history(app, instance.id)
    assert len(of_kind(events, e.PlanPatched)) == len(state.repair.patches) == applied
    assert len(of_kind(events, e.PatchRefused)) == (not applied)
    assert (state.plan.digest == (state.origin or state.plan).digest) == (not applied)
    case = state.repair.cases["case_1"]
    assert case.status is (CaseStatus.PROVEN if applied else CaseStatus.OPEN)
    assert state.status == ("done" if applied else "error")
    assert staff.counts(name) == (REPAIRED if applied else UNREPAIRED)
    assert not state.open_questions


async def test_of_a_hundred_approvals_and_refusals_at_once_one_of_each_pair_counts() -> None:
    staff = Staff()
    async with no_task_left_behind(), staff.furnish(Holdfast.in_memory(max_retry_count=0)) as app:
        won = await contest(app, app, staff, PAIRS)
    assert set(won) == {"apply", "refuse"}


async def test_a_hundred_of_them_on_disk(tmp_path: Path) -> None:
    staff = Staff()
    async with no_task_left_behind(), staff.furnish(Holdfast(tmp_path, max_retry_count=0)) as app:
        won = await contest(app, app, staff, PAIRS)
    assert set(won) == {"apply", "refuse"}


@asynccontextmanager
async def two(database: str, staff: Staff) -> AsyncIterator[tuple[Holdfast, Holdfast]]:
    """A worker, and a server that only decides, on one database."""
    worker = staff.furnish(Holdfast(database=database, max_retry_count=0))
    server = staff.furnish(Holdfast(database=database, drives=False, max_retry_count=0))
    async with worker, server:
        yield worker, server


async def test_a_hundred_of_them_through_two_applications_on_one_database(database: str) -> None:
    staff = Staff()
    async with two(database, staff) as apps:
        won = await contest(*apps, staff, PAIRS)
    assert set(won) == {"apply", "refuse"}


async def test_two_approvals_at_once_change_the_plan_once() -> None:
    staff = Staff()
    async with staff.furnish(Holdfast.in_memory(max_retry_count=0)) as app:
        names = [f"WZ{number:05}" for number in range(AT_ONCE)]
        for name, (instance, question) in zip(names, await given_up(app, names), strict=True):
            told = await at_once(approve(app, question), approve_as_well(app, question))
            assert {type(one) for one in told} == {type(None), AlreadyAnswered}
            await check(app, staff, name, instance, "apply")


async def test_the_same_approval_twice_at_once_is_one() -> None:
    staff = Staff()
    async with staff.furnish(Holdfast.in_memory(max_retry_count=0)) as app:
        [(instance, question)] = await given_up(app, ["WZ001"])
        assert await at_once(approve(app, question), approve(app, question)) == [None, None]
        await check(app, staff, "WZ001", instance, "apply")


@pytest.mark.parametrize("first", ["approve", "resume"])
async def test_an_approval_and_a_resume_at_once_are_never_both_done(first: str) -> None:
    """The resume runs into the same failure, for which there is another proposal then."""
    staff = Staff()
    async with staff.furnish(Holdfast.in_memory(max_retry_count=0)) as app:
        names = [f"WZ{number:05}" for number in range(AT_ONCE)]
        for name, (instance, question) in zip(names, await given_up(app, names), strict=True):
            said = [approve(app, question), app.resume(instance.id)]
            told = await at_once(*(said if first == "approve" else said[::-1]))
            approval, resume = told if first == "approve" else told[::-1]
            if approval is None:
                assert isinstance(resume, NotAllowed)
                await check(app, staff, name, instance, "apply")
            else:
                assert (type(approval), resume) == (TooLate, None)
                await check_resumed(app, staff, name, instance, question)


async def check_resumed(
    app: Holdfast, staff: Staff, name: str, instance: PlanInstance, question: str
) -> None:
    """The plan is what it was, and the other proposal still helps."""
    anew = await proposal(app, instance.id, besides=question)
    assert staff.counts(name) == {"grant_access": 2}
    assert of_kind(await history(app, instance.id), e.PlanPatched) == []
    await approve(app, anew.question_id)
    await app.engine.wait_for(instance.id, lambda state: state.status == "done", 60)
    await assert_sound(app, instance.id)
    assert staff.counts(name) == {**REPAIRED, "grant_access": 3}


async def campaign(count: int) -> None:
    os.environ["HOLDFAST_SECRET_KEY"] = SECRET_KEY
    async with AsyncExitStack() as stack:
        home = stack.enter_context(tempfile.TemporaryDirectory())
        server = stack.enter_context(Server(fsync=False, max_connections=200))
        for store in ("memory", "SQLite"):
            staff = Staff()
            bare = Holdfast(home, max_retry_count=0)
            if store == "memory":
                bare = Holdfast.in_memory(max_retry_count=0)
            async with staff.furnish(bare) as app:
                await timed(store, count, contest(app, app, staff, count))
        staff = Staff()
        async with two(server.create_database(migrated), staff) as apps:
            await timed("PostgreSQL, two applications", count, contest(*apps, staff, count))


async def timed(store: str, count: int, contested: Awaitable[Counter[str]]) -> None:
    began = time.monotonic()
    won = dict(await contested)
    print(f"{store}: {count} pairs in {time.monotonic() - began:.1f} s, won by {won}", flush=True)


if __name__ == "__main__":
    asyncio.run(campaign(int(sys.argv[1])))
