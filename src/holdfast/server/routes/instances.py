"""Instances over HTTP: start a plan, see how it stands, and help it along.

Who may see an instance may not always command it: that needs the permission to operate its
plan. A command answers after its commit with the instance as it then stands; the instance
goes on by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import Response
from fastapi.responses import PlainTextResponse

from holdfast.model.run import RunKind
from holdfast.runtime.offload import aside
from holdfast.server.auth.authentication import Called, Caller
from holdfast.server.auth.principal import Permission, plan
from holdfast.server.commands import continued, continued_again
from holdfast.server.middleware.idempotency import answered_again
from holdfast.server.openapi import NOT_FOUND
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


@router.post("/instances", status_code=201)
@answered_again(INSTANCES.again(201))
async def start_instance(body: Start, served: Served, caller: Called) -> InstanceShown:
    """Start a plan; the instance drives itself from then on.

    Without `plan_id` the planner chooses from all plans, so one must be permitted to run any.
    """
    subject = None if body.plan_id is None else plan(body.plan_id)
    await caller.require(served, Permission.OPERATE, subject=subject)
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
