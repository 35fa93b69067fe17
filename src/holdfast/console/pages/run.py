"""The page of one run of any kind, and its parts."""

from __future__ import annotations

import json
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query, Request, Response

from holdfast.console.rendering import language, show_page, show_part
from holdfast.console.views.graph import graph_of
from holdfast.console.views.node import node_of
from holdfast.console.views.repair_card import drawn
from holdfast.console.views.repairs import repairs_of
from holdfast.console.views.run import (
    SeenRun,
    children_of,
    failures_of,
    head_of,
    open_cards,
    raised_in,
    see,
    tasks_of,
)
from holdfast.console.views.timeline import timeline_of
from holdfast.errors import NotPermitted
from holdfast.i18n.message import msg
from holdfast.language.display import pretty
from holdfast.model.run import JOURNAL_KINDS, RunKind, RunStatus
from holdfast.runtime.offload import aside
from holdfast.server.auth.authentication import Called
from holdfast.server.schemas.repairs import PatchId
from holdfast.server.schemas.runs import RunId
from holdfast.server.services import Served
from holdfast.views.about import about
from holdfast.views.actions import CheckedAction, check_action
from holdfast.views.reader import RunVersion

router = APIRouter()

Seq = Annotated[int | None, Query(ge=1, le=10**12)]
NodeId = Annotated[str, Query(min_length=1, max_length=500)]
ActionName = Literal[
    "resume",
    "go-on-retry",
    "go-on-skip",
    "go-on-stop",
    "pause",
    "cancel",
    "rerun",
    "skip",
    "mark-done",
    "context",
]


async def seen_run(run_id: RunId, served: Served, caller: Called) -> SeenRun:
    """The run, if the caller may see it."""
    return await see(served, caller, run_id)


Seen = Annotated[SeenRun, Depends(seen_run)]


@router.get("/runs/{run_id}")
async def run_page(request: Request, served: Served, caller: Called, seen: Seen) -> Response:
    run = seen.run
    failed = await failures_of(served, seen)
    return await show_page(
        request,
        served,
        caller,
        "run.html",
        kind=run.kind,
        head=await head_of(seen),
        graph=await graph_of(served, run, language(request), None),
        about=about(run),
        tasks=await tasks_of(run),
        failures=failed,
        repairs=await repairs_of(served, caller, run, failed),
        tracebacks=await raised_in(served, seen),
        children=await children_of(served, caller, run.run_id),
        cards=await open_cards(served, caller, seen.view, language(request)),
        timeline=await timeline_of(served, run, None),
    )


@router.get("/parts/runs/{run_id}/head")
async def head_part(request: Request, served: Served, caller: Called, seen: Seen) -> Response:
    head = await head_of(seen)
    return show_part(request, caller, "run_head.html", head=head)


@router.get("/parts/runs/{run_id}/graph")
async def graph_part(
    request: Request,
    served: Served,
    caller: Called,
    seen: Seen,
    at: Seq = None,
) -> Response:
    graph = await graph_of(served, seen.run, language(request), at)
    return show_part(request, caller, "run_graph.html", graph=graph, run_id=seen.run.run_id)


@router.get("/parts/runs/{run_id}/beside")
async def beside_part(request: Request, served: Served, caller: Called, seen: Seen) -> Response:
    """Inputs, results, failures, repairs, tasks and sub-runs, which change together."""
    run = seen.run
    failed = await failures_of(served, seen)
    return show_part(
        request,
        caller,
        "run_beside.html",
        run_id=run.run_id,
        about=about(run),
        tasks=await tasks_of(run),
        failures=failed,
        repairs=await repairs_of(served, caller, run, failed),
        tracebacks=await raised_in(served, seen),
        children=await children_of(served, caller, run.run_id),
    )


@router.get("/parts/runs/{run_id}/patches/{patch_id}")
async def patch_part(
    request: Request, patch_id: PatchId, served: Served, caller: Called, seen: Seen
) -> Response:
    """The picture of a change that the run's plan has seen."""
    picture = await aside(drawn, seen.run, patch_id, language(request))
    return show_part(request, caller, "repair_picture.html", picture=picture, id=patch_id)


@router.get("/parts/runs/{run_id}/questions")
async def questions_part(request: Request, served: Served, caller: Called, seen: Seen) -> Response:
    cards = await open_cards(served, caller, seen.view, language(request))
    return show_part(request, caller, "run_questions.html", cards=cards, run_id=seen.run.run_id)


@router.get("/parts/runs/{run_id}/timeline")
async def timeline_part(
    request: Request,
    served: Served,
    caller: Called,
    seen: Seen,
    before: Seq = None,
    since: Seq = None,
) -> Response:
    timeline = await timeline_of(served, seen.run, before, since)
    return show_part(request, caller, "run_timeline.html", timeline=timeline)


@router.get("/parts/runs/{run_id}/node")
async def node_part(
    request: Request,
    served: Served,
    caller: Called,
    seen: Seen,
    node: NodeId,
    at: Seq = None,
) -> Response:
    run = seen.run
    shown = run if at is None else await served.reader.at(run.run_id, at)
    view = await node_of(served, shown, node, operates=seen.operates, past=at is not None)
    return show_part(request, caller, "run_node.html", node=view)


@router.get("/parts/runs/{run_id}/action")
async def action_part(
    request: Request,
    served: Served,
    caller: Called,
    seen: Seen,
    name: ActionName,
    of: Annotated[str, Query(max_length=500)] = "",
) -> Response:
    """The dialog that asks for confirmation, and says what the action would do."""
    if not seen.operates:
        raise NotPermitted(msg("your roles do not permit you to operate this run"))
    checked = await seen.run.beside(check_action, seen.run, name, of, caller.principal.id)
    return show_part(request, caller, "run_action.html", **_dialog(seen.run, checked))


def _dialog(run: RunVersion, checked: CheckedAction) -> dict[str, object]:
    action = checked.action
    special = action.name == "resume" and run.kind is not RunKind.PLAN
    return {
        "action": action,
        "run_id": run.run_id,
        "version": run.version,
        "about": checked.about,
        "explained": f"resume.{JOURNAL_KINDS[run.kind]}" if special else action.name,
        "will": checked.consequences,
        "stopped": checked.status is RunStatus.ERROR and action.name != "context",
        "body": json.dumps(dict(action.body)),
        "context": pretty(dict(action.context)),
    }
