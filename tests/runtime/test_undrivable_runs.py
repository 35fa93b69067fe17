"""Runs that a worker cannot drive: it lacks a tool, or goes down with it."""

from __future__ import annotations

import json
import signal

import psycopg

from holdfast.model.run import RunStatus
from holdfast.runtime import dispatch
from installation import Installation, becomes, begun, over

HASTY = {"WORKSHOP_HASTY": "2.5"}


async def test_a_run_whose_tool_a_worker_lacks_waits_for_one_that_has_it(
    installation: Installation,
) -> None:
    workshop, installation.variables = installation.workshop, installation.variables | HASTY
    having = installation.worker("--concurrency", "1")
    async with installation.decider() as app:
        busy = await begun(app, "weld")
        await becomes(workshop.calls)
        lacking = installation.worker("--log-level", "info", WORKSHOP_LACKS="cut")
        run = await begun(app, "line")
        await becomes(lambda: tries(installation) > dispatch.MOST_TRIES + 2)
        workshop.let_go()
        for one in (busy, run):
            assert await over(app, one.id) is RunStatus.DONE
    assert {pid for _, _, pid in workshop.calls()} == {having.pid}
    _, log = lacking.stop()
    assert f"[run={run.id}]: run {run.id} was handed back: this process has no tool cut" in log


def tries(installation: Installation) -> int:
    """How often the run's job was returned."""
    with psycopg.connect(installation.database) as connection:
        rows = connection.execute("SELECT max(attempts) FROM procrastinate_jobs").fetchall()
    return rows[0][0] or 0


async def test_after_some_tries_a_person_is_told_which_tool_is_missing_and_what_to_do(
    installation: Installation,
) -> None:
    lacking = installation.worker(**HASTY, WORKSHOP_LACKS="cut")
    async with installation.decider() as app:
        run = await begun(app, "line")
        assert await over(app, run.id) is RunStatus.ERROR
        told = installation.run("history", run.id).stdout
        assert "there is no tool cut in the process that runs this: add it there" in told
        assert lacking.stop()[0] == 0
        installation.worker()
        await app.resume(run.id)
        assert await over(app, run.id) is RunStatus.DONE


async def test_a_run_that_takes_three_drivers_down_is_shown_to_a_person_who_may_release_it(
    installation: Installation,
) -> None:
    workshop, pids = installation.workshop, []
    installation.variables |= HASTY
    async with installation.decider() as app:
        run = await begun(app, "blast")
        for deaths in (1, 2, 3):
            worker = installation.worker()
            assert worker.ends()[0] == -signal.SIGKILL
            pids.append(worker.pid)
            assert len(workshop.calls()) == deaths
        installation.worker()
        other = await begun(app, "line")
        assert await over(app, other.id) is RunStatus.DONE
        assert await over(app, run.id) is RunStatus.ERROR
        assert [pid for tool, _, pid in workshop.calls() if tool == "blast"] == pids
        assert "quarantined" in installation.run("history", run.id).stdout
        assert json.loads(installation.run("runs", "--json").stdout)[-1]["status"] == "error"
        workshop.let_go()
        await app.resume(run.id)
        assert await over(app, run.id) is RunStatus.DONE
    assert [tool for tool, _, _ in workshop.calls()].count("blast") == 4
