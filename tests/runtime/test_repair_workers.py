"""A server that only decides and workers that drive, each in a process of its own: whoever is
killed in between, the plan is changed once and the run ends done."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from repair_scenes import RULE, WHO, proposal
from repair_workshop import ACCESS, HR, MAIL, MODEL, REQUEST, furnish
from scenes import assert_sound, of_kind
from scenes import history as events_of

from holdfast import Holdfast, PlanInstance
from holdfast.model import events as e
from holdfast.model.repair import CaseStatus
from holdfast.model.rows import request_of
from holdfast.model.run import RunStatus
from installation import Installation, Started, becomes, over
from workshop import HASTY

APP = ("--app", "runtime.repair_workshop:app")
SOON = {HASTY: "1"}
"""For workers: how soon another is taken for gone."""
EMPLOYEE = "WZ001"


@asynccontextmanager
async def decider(installation: Installation) -> AsyncIterator[Holdfast]:
    """An application in this process that drives nothing."""
    app = Holdfast(database=installation.database, drives=False, max_retry_count=0)
    async with furnish(app, installation.workshop):
        yield app


async def begun(app: Holdfast, plan: str = "access") -> PlanInstance:
    return await app.plans.start_plan_by_prompt("", plan, values={"id": EMPLOYEE})


def answered(installation: Installation, server: Started, question: str, option: str) -> int:
    """The status of the server's reply."""
    with installation.client(server, installation.token()) as client:
        answer = {"selectedOptionId": option, "feedback": "never"}
        if option == "apply":
            del answer["feedback"]
        return client.post(f"/interactions/{question}/answer", json=answer).status_code


def calls(installation: Installation) -> Counter[str]:
    return Counter(tool for tool, _, _ in installation.workshop.calls())


def callers(installation: Installation) -> set[int]:
    return {process for _, _, process in installation.workshop.calls()}


async def asked(installation: Installation, times: int) -> None:
    await becomes(lambda: calls(installation)[REQUEST] >= times)


async def repaired_once(app: Holdfast, run_id: str) -> None:
    state, events = await assert_sound(app, run_id), await events_of(app, run_id)
    for kind in (e.PatchProposed, e.PlanPatched, e.RunResumed, e.RepairProven):
        assert len(of_kind(events, kind)) == 1, kind
    assert [one.status for one in state.repair.cases.values()] == [CaseStatus.PROVEN]
    assert await app.inbox() == []


async def test_a_worker_diagnoses_a_server_takes_the_consent_and_the_worker_goes_on(
    installation: Installation,
) -> None:
    worker, server = installation.worker(*APP), installation.server(*APP)
    installation.workshop.let_go()
    async with decider(installation) as app:
        run = await begun(app)
        question = await proposal(app, run.id)
        assert answered(installation, server, question.question_id, "apply") == 200
        assert await over(app, run.id) is RunStatus.DONE
        await repaired_once(app, run.id)
        again = answered(installation, server, question.question_id, "refuse")
        assert again == 409
        await repaired_once(app, run.id)
    assert calls(installation) == {ACCESS: 2, HR: 1, MAIL: 1}
    assert callers(installation) == {worker.pid}, "the server only decides"


async def test_a_consent_while_no_worker_is_there_is_carried_out_by_the_next(
    installation: Installation,
) -> None:
    first = installation.worker(*APP, **SOON)
    installation.workshop.let_go()
    async with decider(installation) as app:
        run = await begun(app)
        question = await proposal(app, run.id)
        first.kill()
        await app.answer(question.question_id, option_id="apply", by=WHO)
        assert calls(installation) == {ACCESS: 1}
        second = installation.worker(*APP, **SOON)
        assert await over(app, run.id) is RunStatus.DONE
        await repaired_once(app, run.id)
    assert calls(installation) == {ACCESS: 2, HR: 1, MAIL: 1}
    assert callers(installation) == {first.pid, second.pid}


async def test_a_worker_that_is_killed_in_the_midst_of_the_repair_is_replaced(
    installation: Installation,
) -> None:
    """HR honours keys, so its call is made again; nobody has to decide anything anew."""
    first = installation.worker(*APP, **SOON)
    async with decider(installation) as app:
        run = await begun(app)
        question = await proposal(app, run.id)
        await app.answer(question.question_id, option_id="apply", by=WHO)
        await becomes(lambda: calls(installation)[HR] == 1)
        second = installation.worker(*APP, **SOON)
        first.kill()
        await becomes(lambda: calls(installation)[HR] == 2)
        installation.workshop.let_go()
        assert await over(app, run.id) is RunStatus.DONE
        await repaired_once(app, run.id)
    assert calls(installation) == {ACCESS: 2, HR: 2, MAIL: 1}
    assert callers(installation) == {first.pid, second.pid}


async def test_what_was_refused_at_the_server_is_proposed_by_no_other_worker(
    installation: Installation,
) -> None:
    first, server = installation.worker(*APP, **SOON), installation.server(*APP)
    async with decider(installation) as app:
        run = await begun(app)
        question = await proposal(app, run.id)
        first.kill()
        assert answered(installation, server, question.question_id, "refuse") == 200
        installation.worker(*APP, **SOON)
        await app.resume(run.id, by=WHO)
        await proposal(app, run.id, besides=question.question_id)
        state, events = await assert_sound(app, run.id), await events_of(app, run.id)
        assert (state.status, state.repair.patches) == (RunStatus.ERROR, ())
        refused, other = [one for one in events if isinstance(one, e.PatchProposed)]
        assert refused.proposal.patch.operations != other.proposal.patch.operations
    assert calls(installation) == {ACCESS: 2}


async def test_a_run_goes_on_with_its_child_that_was_repaired(installation: Installation) -> None:
    first = installation.worker(*APP, **SOON)
    installation.workshop.let_go()
    async with decider(installation) as app:
        run = await begun(app, "above")
        child = f"{run.id}.L001.1"
        await app.engine.wait_for_status(run.id, frozenset({RunStatus.ERROR}), 60)
        question = await proposal(app, child)
        first.kill()
        await app.answer(question.question_id, option_id="apply", by=WHO)
        installation.worker(*APP, **SOON)
        reached = await app.engine.wait_for_status(run.id, frozenset({RunStatus.DONE}), 60)
        assert reached.status is RunStatus.DONE
        await repaired_once(app, child)
    assert calls(installation) == {ACCESS: 2, HR: 1, MAIL: 1}


async def test_workers_that_are_killed_while_a_model_thinks_ask_no_more_often_than_they_may(
    installation: Installation,
) -> None:
    """Once the budget is spent, what rules have found is proposed."""
    asking = {**SOON, MODEL: "1"}
    workers = [installation.worker(*APP, **asking)]
    async with decider(installation) as app:
        run = await begun(app)
        for number in (1, 2):
            await asked(installation, number)
            workers.append(installation.worker(*APP, **asking))
            workers[-2].kill()
        question = await proposal(app, run.id)
        assert request_of(question).context["source"] == RULE
        events = await events_of(app, run.id)
        received = [one for one in events if isinstance(one, e.DiagnosisReceived)]
        assert [(one.number, one.lost) for one in received] == [(1, True), (2, True)]
    assert calls(installation) == {ACCESS: 1, REQUEST: 2}
