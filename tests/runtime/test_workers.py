"""Workers of one database that are killed, stopped and drained while calls are in flight."""

from __future__ import annotations

from holdfast import Holdfast
from holdfast.model.run import RunStatus
from installation import Installation, becomes, begun, over


async def events(app: Holdfast, run_id: str) -> list[str]:
    return [record.type for record in await app.journal.read(run_id)]


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
