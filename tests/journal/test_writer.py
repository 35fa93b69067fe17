"""Those who write together go on in the turn of the loop that commits, whatever they do."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NoReturn

import pytest

from holdfast.errors import JournalUnavailable
from holdfast.journal import writer
from holdfast.journal.sqlite import SqliteJournal
from holdfast.testing.journal_samples import birth, step

RUNS = [f"inst_{n:06d}" for n in range(20)]


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine's mood must not decide what counts as a slow disk."""
    monkeypatch.setattr(writer, "SLOW_SECONDS", 3600.0)


@pytest.fixture
async def journal(tmp_path: Path) -> AsyncIterator[SqliteJournal]:
    journal = SqliteJournal(tmp_path / "journal.db")
    await journal.open()
    await asyncio.gather(*(journal.append(birth(one)) for one in RUNS))
    yield journal
    await journal.close()


async def live(journal: SqliteJournal, run_id: str, steps: int) -> None:
    for version in range(1, steps + 1):
        assert await journal.append(step(run_id, version)) == version + 1


async def test_a_step_of_many_runs_takes_one_turn_of_the_loop(journal: SqliteJournal) -> None:
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    await asyncio.gather(*(live(journal, one, 40) for one in RUNS))
    counting.cancel()
    assert 40 <= turns < 50


async def test_one_that_is_cancelled_holds_up_nobody_and_is_written(journal: SqliteJournal) -> None:
    tasks = [asyncio.create_task(live(journal, one, 1)) for one in RUNS]
    await asyncio.sleep(0)
    tasks[7].cancel()
    told = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(one) for one in told] == [
        asyncio.CancelledError if n == 7 else type(None) for n in range(20)
    ]
    assert {await journal.version(one) for one in RUNS} == {2}


async def test_each_goes_on_in_its_own_context(journal: SqliteJournal) -> None:
    mine: contextvars.ContextVar[str] = contextvars.ContextVar("mine")

    async def one(run_id: str) -> str:
        mine.set(run_id)
        await live(journal, run_id, 3)
        return mine.get()

    assert await asyncio.gather(*map(one, RUNS)) == RUNS


def test_an_interrupt_in_the_middle_of_a_commit_leaves_nobody_waiting(tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path / "journal.db")

    async def begin() -> None:
        await journal.open()
        await asyncio.gather(*(journal.append(birth(one)) for one in RUNS))

    def interrupted(writes: object) -> NoReturn:
        raise KeyboardInterrupt

    with asyncio.Runner() as runner:
        runner.run(begin())
        loop = runner.get_loop()
        together = [loop.create_task(live(journal, one, 1)) for one in RUNS]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(journal._committer, "commit", interrupted)
            with pytest.raises(KeyboardInterrupt):
                loop.run_until_complete(asyncio.wait(together, timeout=20))
        told, waiting = loop.run_until_complete(asyncio.wait(together, timeout=20))
        assert not waiting
        assert {type(one.exception()) for one in told} == {JournalUnavailable}
        assert runner.run(journal.version(RUNS[0])) == 1
        runner.run(live(journal, RUNS[0], 1))
        runner.run(asyncio.wait_for(journal.close(), 20))
