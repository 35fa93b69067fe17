"""The runs page: a live table with filters, and actions on several runs at once."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import RedirectResponse

from holdfast.console.rendering import show_page, show_part
from holdfast.console.views.runs import Filters, names_of_runs, runs_page, startable_plans
from holdfast.model.run import RunKind
from holdfast.server.auth.authentication import Called
from holdfast.server.auth.principal import Permission
from holdfast.server.mount import CONSOLE, root_of_console
from holdfast.server.schemas.runs import PlanName, RunName
from holdfast.server.services import Served

Status = Literal["", "running", "pause", "error", "done", "cancelled"]

router = APIRouter()


def filters(
    status: Status = "",
    plan: PlanName | Literal[""] = "",
    kind: RunKind | Literal[""] = "",
    before: RunName | None = None,
) -> Filters:
    return Filters(status or None, plan or None, kind or None, before)


Filtered = Annotated[Filters, Depends(filters)]


@router.get("/")
async def start(request: Request) -> Response:
    return RedirectResponse(f"{root_of_console(request)}{CONSOLE}/runs", 303)


@router.get("/runs")
async def runs(request: Request, served: Served, caller: Called, asked: Filtered) -> Response:
    await caller.require(served, Permission.READ)
    page = await runs_page(served, caller, asked)
    return await show_page(
        request,
        served,
        caller,
        "runs.html",
        page=page,
        names=names_of_runs(served, caller),
        plans=startable_plans(served, caller),
    )


@router.get("/parts/runs")
async def runs_part(request: Request, served: Served, caller: Called, asked: Filtered) -> Response:
    await caller.require(served, Permission.READ)
    page = await runs_page(served, caller, asked)
    return show_part(request, caller, "runs_table.html", page=page)
