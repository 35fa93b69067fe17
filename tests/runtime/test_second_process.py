"""A process that comes to runs which another drives does them no harm."""

from __future__ import annotations

import asyncio

import psycopg

from holdfast.model.run import RunStatus
from installation import PATIENCE, Installation, becomes, begun, over

WATCHFUL = {"WORKSHOP_HASTY": "6"}
"""Processes that look around more often."""


def beats(installation: Installation, seen: set[object]) -> int:
    """How many beats of workers' hearts have been seen."""
    with psycopg.connect(installation.database) as connection:
        rows = connection.execute("SELECT id, last_heartbeat FROM procrastinate_workers").fetchall()
    seen.update(rows)
    return len(seen)


async def has_looked_around(installation: Installation, workers: int) -> None:
    """All workers have had the time to find what was left behind, if anything were."""
    seen: set[object] = set()
    await becomes(lambda: beats(installation, seen) >= workers * 10)


async def test_opening_another_while_calls_are_in_flight_causes_none_and_no_question(
    installation: Installation,
) -> None:
    installation.variables |= WATCHFUL
    workshop, first = installation.workshop, installation.worker()
    async with installation.decider() as app:
        runs = [await begun(app, plan, plan) for plan in ("weld", "paint")]
        await becomes(lambda: len(workshop.calls()) == 2)
        before = {run.id: await app.journal.version(run.id) for run in runs}
        await asyncio.to_thread(installation.worker)
        server = await asyncio.to_thread(installation.server)
        working = await asyncio.to_thread(installation.server, "--work")
        token = await asyncio.to_thread(installation.token)
        for one in (server, working):
            with installation.client(one, token) as client:
                for run in runs:
                    assert client.get(f"/instances/{run.id}").json()["status"] == "running"
        for command in (["runs"], ["history", runs[0].id], ["inbox"], ["doctor"]):
            told = await asyncio.to_thread(installation.run, *command)
            assert told.returncode == 0, told.stdout + told.stderr
        async with installation.decider():
            await has_looked_around(installation, 3)
        assert len(workshop.calls()) == 2
        assert await app.inbox() == []
        assert before == {run.id: await app.journal.version(run.id) for run in runs}
        workshop.let_go()
        for run in runs:
            assert await over(app, run.id) is RunStatus.DONE
    assert sorted(workshop.calls()) == [("paint", "paint", first.pid), ("weld", "weld", first.pid)]


async def test_an_answer_through_a_server_whose_copy_is_old_causes_no_call_and_no_question(
    installation: Installation,
) -> None:
    installation.variables |= WATCHFUL
    workshop, server = installation.workshop, installation.server()
    token = installation.token()
    async with installation.decider() as app:
        with installation.client(server, token) as client:
            body = {"plan_id": "both"}
            started = client.post("/instances", json=body)
            assert started.status_code == 201, started.text
            run_id = started.json()["id"]  # this server has it as it was begun
            assert workshop.calls() == []
            worker = installation.worker()
            await becomes(workshop.calls)
            await app.engine.wait_for(run_id, lambda state: bool(state.questions), PATIENCE)
            [question] = await app.inbox()
            path = f"/interactions/{question.question_id}/answer"
            answered = client.post(path, json={"data": {"colour": "red"}})
            assert answered.status_code == 200, answered.text
            await becomes(lambda: len(workshop.calls()) > 1)
            await has_looked_around(installation, 1)
            assert await app.inbox() == []
            workshop.let_go()
            assert await over(app, run_id) is RunStatus.DONE
        assert await app.inbox() == []
    assert workshop.calls() == [("weld", "part", worker.pid), ("choose", "part", worker.pid)]
