"""Workers of one database that are killed, stopped and drained while calls are in flight."""

from __future__ import annotations

import asyncio
import signal
from collections import Counter

import httpx
import psycopg
import pytest

from holdfast import Holdfast
from holdfast.model.run import RunStatus
from installation import PATIENCE, Installation, Started, becomes, begun, over


async def events(app: Holdfast, run_id: str) -> list[str]:
    """The kinds of what is recorded, in order."""
    return [record.type.partition("@")[0] for record in await app.journal.read(run_id)]


# -- a worker that is killed


async def test_a_run_whose_worker_is_killed_is_driven_by_another(
    installation: Installation,
) -> None:
    workshop, first = installation.workshop, installation.worker()
    async with installation.decider() as app:
        run = await begun(app, "paint")
        await becomes(workshop.calls)
        second = installation.worker()
        first.kill()
        await becomes(lambda: len(workshop.calls()) > 1)
        workshop.let_go()
        assert await over(app, run.id) is RunStatus.DONE
        assert await app.inbox() == []
    assert workshop.calls() == [("paint", "part", first.pid), ("paint", "part", second.pid)]


async def test_what_may_have_happened_when_a_worker_was_killed_is_asked_once(
    installation: Installation,
) -> None:
    workshop, first = installation.workshop, installation.worker()
    async with installation.decider() as app:
        run = await begun(app, "weld")
        await becomes(workshop.calls)
        workers = [installation.worker() for _ in range(2)]
        first.kill()
        await app.engine.wait_for_status(run.id, frozenset({RunStatus.PAUSE}), 60)
        [question] = await app.inbox()
        workshop.let_go()
        await app.answer(question.question_id, option_id="run_again")
        assert await over(app, run.id) is RunStatus.DONE
        assert await app.inbox() == []
    [before, after] = workshop.calls()
    assert before == ("weld", "part", first.pid)
    assert after[2] in {one.pid for one in workers}


# -- a worker that was thought dead


async def test_a_worker_that_was_stopped_past_its_rescue_appends_nothing(
    installation: Installation,
) -> None:
    workshop, first = installation.workshop, installation.worker()
    async with installation.decider() as app:
        run = await begun(app, "paint")
        await becomes(workshop.calls)
        first.signal(signal.SIGSTOP)
        second = installation.worker()
        await becomes(lambda: len(workshop.calls()) > 1)
        workshop.let_go()
        assert await over(app, run.id) is RunStatus.DONE
        before = await events(app, run.id)
        first.signal(signal.SIGCONT)
        late = await moved_on(app, run.id, len(before))
        assert late == ["LateResultKept"]
        other = await begun(app, "paint", "other")
        assert await over(app, other.id) is RunStatus.DONE
        code, log = first.stop()
        assert code == 0
        assert f"run {run.id} has another driver now" in log
        assert await events(app, run.id) == [*before, *late]
        assert await app.inbox() == []
    assert workshop.calls()[:2] == [("paint", "part", first.pid), ("paint", "part", second.pid)]
    assert len(workshop.calls()) == 3


async def test_what_a_stopped_worker_has_done_answers_what_was_asked_about_it(
    installation: Installation,
) -> None:
    workshop, first = installation.workshop, installation.worker()
    async with installation.decider() as app:
        run = await begun(app, "weld")
        await becomes(workshop.calls)
        first.signal(signal.SIGSTOP)
        installation.worker()
        await app.engine.wait_for_status(run.id, frozenset({RunStatus.PAUSE}), PATIENCE)
        assert len(await app.inbox()) == 1
        workshop.let_go()
        first.signal(signal.SIGCONT)
        assert await over(app, run.id) is RunStatus.DONE
        assert await app.inbox() == []
    assert workshop.calls() == [("weld", "part", first.pid)]


async def moved_on(app: Holdfast, run_id: str, version: int) -> list[str]:
    """What is appended to a run after `version`."""
    async with asyncio.timeout(PATIENCE):
        while len(found := await events(app, run_id)) == version:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    return found[version:]


# -- a worker that is told to stop


async def test_a_worker_that_is_drained_loses_and_repeats_nothing(
    installation: Installation,
) -> None:
    workshop, first = installation.workshop, installation.worker()
    parts = [f"part {number}" for number in range(30)]
    async with installation.decider() as app:
        beginning = asyncio.gather(*(begun(app, "line", part) for part in parts))
        await becomes(lambda: len(workshop.calls()) >= 10)
        assert first.stop() == (0, "")
        second = installation.worker()
        for run in await beginning:
            assert await over(app, run.id) is RunStatus.DONE
        assert await app.inbox() == []
    done = Counter(part for _, part, _ in workshop.calls())
    assert done == dict.fromkeys(parts, 6)
    assert {pid for _, _, pid in workshop.calls()} == {first.pid, second.pid}


async def test_what_is_in_flight_ends_before_a_worker_does(installation: Installation) -> None:
    workshop, first = installation.workshop, installation.worker()
    async with installation.decider() as app:
        run = await begun(app, "weld")
        await becomes(workshop.calls)
        first.signal(signal.SIGTERM)
        await becomes(lambda: readiness(first) == 503)
        workshop.let_go()
        assert first.ends() == (0, "")
        assert "ListenerSucceeded" in await events(app, run.id)
        installation.worker()
        assert await over(app, run.id) is RunStatus.DONE
    assert workshop.calls() == [("weld", "part", first.pid)]


async def test_what_does_not_end_in_time_is_handed_back(installation: Installation) -> None:
    workshop, first = installation.workshop, installation.worker("--grace", "0.2")
    async with installation.decider() as app:
        run = await begun(app, "paint")
        await becomes(workshop.calls)
        assert first.stop()[0] == 0
        assert jobs(installation) == [(run.id, "todo")], "nobody need find out that it is gone"
        second = installation.worker()
        await becomes(lambda: len(workshop.calls()) > 1)
        workshop.let_go()
        assert await over(app, run.id) is RunStatus.DONE
    assert workshop.calls() == [("paint", "part", first.pid), ("paint", "part", second.pid)]


def jobs(installation: Installation) -> list[tuple[str, str]]:
    """The runs that have a drive job, and how that stands."""
    with psycopg.connect(installation.database) as connection:
        return connection.execute("SELECT lock, status FROM procrastinate_jobs").fetchall()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_second_signal_ends_a_worker_at_once(
    installation: Installation, number: signal.Signals
) -> None:
    workshop, first = installation.workshop, installation.worker("--grace", "1000")
    async with installation.decider() as app:
        await begun(app, "weld")
        await becomes(workshop.calls)
        first.signal(number)
        await becomes(lambda: readiness(first) == 503)
        first.signal(number)
        assert first.ends() == (128 + number, "")


def readiness(worker: Started) -> int:
    return httpx.get(f"{worker.health}/readyz").status_code
