"""The plan pages: all plans, one plan to read, change and start, a new plan."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body, Query, Request, Response

from holdfast.console.rendering import language, show_page
from holdfast.console.views.plans import BLANK, MOST_RUNS, may_write, plan_rows, plan_view
from holdfast.errors import NotPermitted
from holdfast.forms.validation import visible_fields
from holdfast.i18n.message import msg
from holdfast.server.auth.authentication import Called
from holdfast.server.auth.principal import Permission
from holdfast.server.schemas.runs import PlanId
from holdfast.server.services import Served
from holdfast.server.showing import readable_plan

Version = Annotated[str | None, Query(pattern="^[0-9a-f]{64}$")]

router = APIRouter()


@router.get("/plans")
async def plans(request: Request, served: Served, caller: Called) -> Response:
    await caller.require(served, Permission.READ)
    return await show_page(
        request,
        served,
        caller,
        "plans.html",
        rows=await plan_rows(served, caller),
        most=MOST_RUNS,
        writes=may_write(served, caller),
    )


@router.get("/plans/~new")
async def new_plan(request: Request, served: Served, caller: Called) -> Response:
    if not may_write(served, caller):
        raise NotPermitted(msg("registering a plan needs the role author"))
    return await show_page(request, served, caller, "plan_new.html", source=BLANK)


@router.get("/plans/{plan_id}")
async def plan(
    request: Request, plan_id: PlanId, served: Served, caller: Called, version: Version = None
) -> Response:
    view = await plan_view(served, caller, plan_id, version, language(request))
    return await show_page(request, served, caller, "plan.html", view=view)


@router.post("/parts/plans/{plan_id}/asked")
async def asked_inputs(
    plan_id: PlanId,
    values: Annotated[dict[str, Any], Body(embed=True)],
    served: Served,
    caller: Called,
) -> dict[str, list[str]]:
    """The inputs that are visible with these values."""
    inputs = readable_plan(served, caller, plan_id).plan.inputs
    return {"asked": [field.name for field in visible_fields(inputs, values)]}
