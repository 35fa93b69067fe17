"""Plans over HTTP, and the seeds' two paths for their instances.

A plan is registered whole or refused with every mistake. Editing one affects new instances
only, so every version that was ever registered or run stays readable.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from fastapi import Request, Response
from fastapi.responses import JSONResponse

from holdfast.core.storing import plan_digest, record_to_json
from holdfast.drawing.graph import render_svg
from holdfast.errors import NotFound, NotPermitted
from holdfast.forms.schemas import json_schema
from holdfast.i18n.message import msg, term
from holdfast.model.plan import AgentAction, CodeAction, Plan, PlanAction, ToolAction
from holdfast.runtime.offload import aside
from holdfast.runtime.registry import CompiledPlan
from holdfast.runtime.store import StoredDefinition
from holdfast.server.auth.authentication import Called, Caller, identify
from holdfast.server.auth.principal import Permission, agent, plan, tool
from holdfast.server.middleware.idempotency import Claimed, answered_again
from holdfast.server.routing import new_router
from holdfast.server.schemas.runs import (
    Checked,
    Digest,
    PlanId,
    PlanLine,
    PlanLines,
    PlanShown,
    Source,
    VersionLine,
    VersionLines,
    VersionShown,
)
from holdfast.server.services import Served, Services
from holdfast.server.showing import readable_plan

router = new_router("plans")

SVG = "image/svg+xml"
SVG_ANSWER: dict[int | str, dict[str, Any]] = {
    200: {"description": "The graph", "content": {SVG: {"schema": {"type": "string"}}}}
}


@router.get("/plans")
async def list_plans(served: Served, caller: Called) -> PlanLines:
    """The plans that new instances may be started of, as far as the caller may read them."""
    await caller.require(served, Permission.READ)
    library = served.app.engine.definitions
    seen = [one for one in sorted(library.plan_ids()) if caller.sees(plan(one))]
    return PlanLines(plans=[_line(served, library.current(one)) for one in seen])


async def _registered_again(claimed: Claimed, request: Request, served: Services) -> Response:
    """The plan as the request named it."""
    caller = await identify(request)
    plan = await served.plans.check(json.loads(await request.body())["source"], caller.sees)
    shown = await aside(_shown, served, served.app.engine.definitions.current(plan.plan_id))
    return JSONResponse(shown.model_dump(mode="json"), 201)


@router.post("/plans", status_code=201)
@answered_again(_registered_again)
async def register_plan(body: Source, served: Served, caller: Called) -> PlanShown:
    """Register a plan; new instances use it at once, running ones keep theirs.

    422 has every mistake with its line and column. Plans and agents that it runs must be such
    as the caller may start. Tools that it calls must be granted to a caller who is no author
    everywhere, or be called by the plan as it is.
    """
    checked = await served.plans.check(body.source, caller.sees)
    await caller.require(served, Permission.AUTHOR, subject=plan(checked.plan_id))
    for subject in _runs_others(checked):
        await caller.require(served, Permission.OPERATE, subject=subject)
    _refuse_other_tools(served, caller, checked)
    made = await served.plans.register(body.source, caller.sees, by=caller.principal.id)
    return await aside(_shown, served, served.app.engine.definitions.current(made.plan_id))


def _runs_others(checked: Plan) -> Iterator[str]:
    for listener in checked.listeners:
        match listener.action:
            case PlanAction(plan_id=name) if name != checked.plan_id:
                yield plan(name)
            case AgentAction(agent_id=name):
                yield agent(name)


def _refuse_other_tools(served: Services, caller: Caller, checked: Plan) -> None:
    """The permission to write one plan is no permission to call every tool."""
    library = served.app.engine.definitions
    known = checked.plan_id in library.plan_ids()
    before = set(_tools(library.current(checked.plan_id).plan)) if known else set[str]()
    wanted = sorted(set(_tools(checked)) - before)
    lacking = [one for one in wanted if not caller.may(Permission.AUTHOR, tool(one))]
    if lacking:
        raise NotPermitted(
            msg(
                "your grants do not permit {plan} to call {tools}: ask an admin for a grant of "
                "the role author, as {tool}",
                plan=checked.plan_id,
                tools=", ".join(lacking),
                tool=tool(lacking[0]),
            )
        )


def _tools(checked: Plan) -> Iterator[str]:
    yield from (one.tool for one in checked.verify)
    for listener in checked.listeners:
        match listener.action:
            case ToolAction(tool=name):
                yield name
            case CodeAction(functions=names):
                yield from names


@router.post("/plans/check")
async def check_plan(body: Source, served: Served, caller: Called) -> Checked:
    """Say everything that is wrong with a plan; nothing changes."""
    await caller.require(served, Permission.READ)
    plan = await served.plans.check(body.source, caller.sees)
    return Checked(plan_id=plan.plan_id, name=plan.name, digest=await aside(plan_digest, plan))


@router.get("/plans/{plan_id}")
async def get_plan(plan_id: PlanId, served: Served, caller: Called) -> PlanShown:
    """A plan as new instances use it."""
    return await aside(_shown, served, readable_plan(served, caller, plan_id))


@router.get("/plans/{plan_id}/versions")
async def list_plan_versions(plan_id: PlanId, served: Served, caller: Called) -> VersionLines:
    """Every version that was registered or run, the newest first."""
    versions = await _versions(served, caller, plan_id)
    lines = [VersionLine.model_validate(one, from_attributes=True) for one in versions]
    return VersionLines(plan_id=plan_id, versions=lines)


@router.get("/plans/{plan_id}/versions/{digest}")
async def get_plan_version(
    plan_id: PlanId, digest: Digest, served: Served, caller: Called
) -> VersionShown:
    """One version, by its content's digest."""
    versions = await _versions(served, caller, plan_id)
    one = next((one for one in versions if one.digest == digest), None)
    if one is None:
        raise NotFound(msg("there is no version {version} of {plan}", version=digest, plan=plan_id))
    return one


@router.get("/plans/{plan_id}/graph.svg", response_class=Response, responses=SVG_ANSWER)
async def draw_plan(plan_id: PlanId, served: Served, caller: Called) -> Response:
    """The plan as a graph."""
    plan = readable_plan(served, caller, plan_id).plan
    return Response(await aside(render_svg, plan), media_type=SVG)


async def _versions(served: Services, caller: Caller, plan_id: str) -> list[VersionShown]:
    if not caller.sees(plan(plan_id)):
        raise NotFound(msg("there is no {kind} {name!r}", kind=term("plan"), name=plan_id))
    library = served.app.engine.definitions
    current = library.current(plan_id) if plan_id in library.plan_ids() else None
    stored = await served.reader.plan_versions(plan_id)
    versions = [_version(one, current) for one in stored]
    if current is not None and not any(one.current for one in versions):
        versions.insert(0, _never_run(current))
    if not versions:
        raise NotFound(msg("there is no {kind} {name!r}", kind=term("plan"), name=plan_id))
    return versions


def _version(stored: StoredDefinition, current: CompiledPlan | None) -> VersionShown:
    return VersionShown(
        plan_id=stored.name,
        digest=stored.digest,
        stored_at=stored.stored_at,
        current=current is not None and stored.digest == current.digest,
        definition=json.loads(stored.body),
    )


def _never_run(plan: CompiledPlan) -> VersionShown:
    """A plan of the application is stored with its first run, and is a version before that."""
    return VersionShown(
        plan_id=plan.plan.plan_id,
        digest=plan.digest,
        stored_at=None,
        current=True,
        definition=record_to_json(plan.plan),
    )


def _line(served: Services, compiled: CompiledPlan) -> PlanLine:
    plan, origin = compiled.plan, served.plans.origin(compiled.plan.plan_id)
    return PlanLine(
        plan_id=plan.plan_id,
        name=plan.name,
        description=plan.description,
        digest=compiled.digest,
        origin="registered" if origin.registered else "application",
        registered_by=origin.by,
        registered_at=origin.at,
        tasks=len(plan.tasks),
        listeners=len(plan.listeners),
    )


def _shown(served: Services, compiled: CompiledPlan) -> PlanShown:
    plan = compiled.plan
    return PlanShown(
        **_line(served, compiled).model_dump(),
        definition=record_to_json(plan),
        inputs=json_schema(plan.inputs),
        source=served.plans.origin(plan.plan_id).source,
    )
