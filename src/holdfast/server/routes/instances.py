"""Instances over HTTP: start a plan, see how it stands, and help it along.

Who may see an instance may not always command it: that needs the permission to operate its
plan. A command answers after its commit with the instance as it then stands; the instance
goes on by itself.

Values for several forms are several commits, and the server may fall between them. Where each
value goes is kept before the first, under the request's name: a repeat answers the same
questions, even if others ask for the same by then.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Final

from fastapi import Body, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse

from holdfast.model.rows import Attached, ExpiringValue
from holdfast.model.run import RunKind
from holdfast.plans.results import Taken, result_of_answer
from holdfast.plans.routing import Routed
from holdfast.runtime.audit import CLAIM_SECONDS
from holdfast.runtime.identity import acting, current
from holdfast.runtime.offload import aside
from holdfast.server.auth.authentication import Called, Caller, identify
from holdfast.server.auth.principal import Permission, plan
from holdfast.server.middleware.idempotency import Claimed, answered_again
from holdfast.server.openapi import NOT_FOUND
from holdfast.server.questions import Questions, refuse_raw_secrets
from holdfast.server.routes.plans import SVG, SVG_ANSWER
from holdfast.server.routing import new_router
from holdfast.server.schemas.runs import (
    Before,
    Continue,
    Continued,
    EditTask,
    InstanceLines,
    InstanceShown,
    Limit,
    OneTask,
    PlanName,
    Rerun,
    RunId,
    Skip,
    Start,
    Statuses,
    Wait,
)
from holdfast.server.services import Served, Services
from holdfast.server.showing import INSTANCES, listed, query_of, readable_plan
from holdfast.views.pictures import plan_svg, plan_text

router = new_router("instances")

_ROUTES: Final = "routes"


async def continued_again(claimed: Claimed, request: Request, services: Services) -> Response:
    """It went on before, and the caller did not hear it."""
    instance_id = request.path_params.get("plan_instance_id") or request.path_params["instance_id"]
    instance = await INSTANCES.find(services, await identify(request), instance_id)
    return JSONResponse(Continued(status=instance.status, result=None).model_dump(mode="json"))


@router.post("/instances", status_code=201)
@answered_again(INSTANCES.again(201))
async def start_instance(body: Start, served: Served, caller: Called) -> InstanceShown:
    """Start a plan; the instance drives itself from then on.

    Without `plan_id` the planner chooses from all plans, so one must be permitted to run any.
    """
    subject = None if body.plan_id is None else plan(body.plan_id)
    await caller.require(served, Permission.OPERATE, subject=subject)
    await served.plans.refresh()
    if body.plan_id is not None:
        readable_plan(served, caller, body.plan_id)
    instance = await served.app.plans.start_plan_by_prompt(
        body.prompt, body.plan_id, values=body.values, by=caller.principal.id
    )
    return await _shown(served, caller, instance.id)


@router.get("/instances", responses=NOT_FOUND)
async def list_instances(
    served: Served,
    caller: Called,
    status: Statuses = None,
    plan_id: PlanName | None = None,
    before: Before = None,
    limit: Limit = 50,
) -> InstanceLines:
    """Instances that the caller may see, the newest first; sub-plans' stand in theirs."""
    await caller.require(served, Permission.READ)
    query = query_of(RunKind.PLAN, status, name=plan_id, before=before, limit=limit)
    lines, following = await listed(served, caller, query)
    return InstanceLines(instances=lines, next=following, server_time=served.now())


@router.get("/instances/{instance_id}")
async def get_instance(instance_id: RunId, served: Served, caller: Called) -> InstanceShown:
    """An instance whole: tasks, steps, what it waits for, what a resume would do."""
    return await _shown(served, caller, instance_id)


@router.get("/instances/{instance_id}/graph.svg", response_class=Response, responses=SVG_ANSWER)
async def draw_instance(instance_id: RunId, served: Served, caller: Called) -> Response:
    """The instance's plan as a graph, with the status of its tasks and steps."""
    drawn = await aside(plan_svg, await INSTANCES.find(served, caller, instance_id))
    return Response(drawn, media_type=SVG)


@router.get("/instances/{instance_id}/graph.txt", response_class=PlainTextResponse)
async def outline_instance(instance_id: RunId, served: Served, caller: Called) -> PlainTextResponse:
    """As `graph.svg`, in lines of text."""
    drawn = await aside(plan_text, await INSTANCES.find(served, caller, instance_id))
    return PlainTextResponse(drawn)


@router.post("/instances/{instance_id}/continue")
@answered_again(continued_again)
async def continue_instance(
    instance_id: RunId, body: Continue, served: Served, caller: Called, wait: Wait = 0.0
) -> Continued:
    """Give a paused instance what it asks for; all values must fit, or nothing changes."""
    return await continued(served, caller, instance_id, body.provided_params, wait)


seeds = new_router("plans")


@seeds.post("/plans/{plan_instance_id}/continue", tags=["instances"])
@answered_again(continued_again)
async def continue_plan(
    plan_instance_id: RunId,
    params: Annotated[
        dict[str, Any], Body(examples=[{"computer_model": "MacBook Pro"}], title="Parameters")
    ],
    served: Served,
    caller: Called,
    wait: Wait = 0.0,
) -> Continued:
    """Give a paused instance what it asks for: the body is the parameters themselves."""
    return await continued(served, caller, plan_instance_id, params, wait)


router.routes.extend(seeds.routes)


async def continued(
    services: Services,
    caller: Caller,
    instance_id: str,
    params: Mapping[str, Any],
    wait: float,
) -> Continued:
    """Answer the open forms, each as its role permits; with `wait` see what comes of it."""
    await INSTANCES.find(services, caller, instance_id)
    answers = await _routed_before(services, params)
    answers = answers or await services.app.plans.routed(instance_id, params)
    await _refuse_unauthorised(services, caller, answers)
    await _keep_routes(services, answers)
    taken = await _provided(services, answers, caller.principal.id)
    result = await _result(services, taken, wait) if wait else None
    state = await services.app.engine.state(instance_id)
    return Continued(status=state.status, result=result)


def _routes_key() -> str | None:
    acts = current()
    if acts is None or acts.claim is None:
        return None
    return f"{acts.claim.key} {acts.claim.fingerprint}"


async def _keep_routes(services: Services, answers: Sequence[Routed]) -> None:
    key = _routes_key()
    if key is None or len(answers) < 2:
        return
    routes = [(run_id, one.request.request_id, sorted(values)) for run_id, one, values in answers]
    kept = ExpiringValue(_ROUTES, key, json.dumps(routes), services.now() + CLAIM_SECONDS)
    await services.store.attach(Attached(kept=(kept,)))


async def _routed_before(services: Services, params: Mapping[str, Any]) -> list[Routed]:
    """Where the values of this very request went, as far as it came the first time."""
    key = _routes_key()
    if key is None or len(params) < 2:
        return []
    kept = await services.store.kept(_ROUTES, key, services.now())
    routed: list[Routed] = []
    for run_id, question_id, names in json.loads(kept.body) if kept is not None else ():
        state = await services.app.engine.state(run_id)
        values = {name: params[name] for name in names}
        routed.append((run_id, state.questions[question_id], values))
    return routed


async def _provided(services: Services, answers: Sequence[Routed], by: str) -> list[Taken]:
    """Several answers cannot share one claim: the last one has it, when all are taken."""
    acts = current()
    assert acts is not None
    *others, last = answers
    with acting(replace(acts, claim=None)):
        taken = await services.app.plans.provide(others, by)
    return taken + await services.app.plans.provide([last], by)


async def _refuse_unauthorised(
    services: Services, caller: Caller, answers: Sequence[Routed]
) -> None:
    """A value that fits a form is no authority to answer it."""
    questions = Questions(services, caller)
    for _, question, values in answers:
        found = await questions.find(question.request.request_id)
        await questions.refuse_unauthorised(found)
        refuse_raw_secrets(found.request, values)


async def _result(services: Services, taken: Sequence[Taken], wait: float) -> Any:
    try:
        async with asyncio.timeout(wait):
            return await result_of_answer(services.app.engine, *taken[0])
    except TimeoutError:
        return None


@router.post("/instances/{instance_id}/skip")
@answered_again(INSTANCES.again())
async def skip_listener(
    instance_id: RunId, body: Skip, served: Served, caller: Called
) -> InstanceShown:
    """Pass a listener over: it does not run, and its task is Skipped."""
    await INSTANCES.operable(served, caller, instance_id)
    listener_id = _inside(instance_id, body.listener_id)
    await served.app.skip(instance_id, listener_id, by=caller.principal.id, reason=body.reason)
    return await _shown(served, caller, instance_id)


@router.post("/instances/{instance_id}/mark-done")
@answered_again(INSTANCES.again())
async def mark_task_done(
    instance_id: RunId, body: OneTask, served: Served, caller: Called
) -> InstanceShown:
    """A task is done by hand; `context` is what its listener would have brought."""
    await INSTANCES.operable(served, caller, instance_id)
    context: Mapping[str, Any] = body.context
    await served.app.mark_done(instance_id, body.task_id, context=context, by=caller.principal.id)
    return await _shown(served, caller, instance_id)


@router.post("/instances/{instance_id}/context")
@answered_again(INSTANCES.again())
async def edit_task_context(
    instance_id: RunId, body: EditTask, served: Served, caller: Called
) -> InstanceShown:
    """Change values of a task's context; those that are not named stay."""
    await INSTANCES.operable(served, caller, instance_id)
    await served.app.edit_context(instance_id, body.task_id, body.context, by=caller.principal.id)
    return await _shown(served, caller, instance_id)


@router.post("/instances/{instance_id}/rerun")
@answered_again(INSTANCES.again())
async def rerun_from_listener(
    instance_id: RunId, body: Rerun, served: Served, caller: Called
) -> InstanceShown:
    """Run the plan again from a listener on, and whatever follows from it."""
    await INSTANCES.operable(served, caller, instance_id)
    listener_id = _inside(instance_id, body.listener_id)
    await served.app.rerun_from(instance_id, listener_id, by=caller.principal.id)
    return await _shown(served, caller, instance_id)


async def _shown(served: Services, caller: Caller, instance_id: str) -> InstanceShown:
    run = await INSTANCES.find(served, caller, instance_id)
    shown: InstanceShown = await INSTANCES.show(served, caller, run)
    return shown


def _inside(instance_id: str, listener_id: str) -> str:
    """A listener as its plan names it; people see it with the instance before it."""
    return listener_id.removeprefix(f"{instance_id}_")
