"""The page of one run of any kind, and its parts."""

from __future__ import annotations

import json
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query, Request, Response

from holdfast.console.attempts import pretty
from holdfast.console.phrases import phrases_in
from holdfast.console.rendering import language, show_page, show_part
from holdfast.console.replayed import Past
from holdfast.console.views.graph import graph_of
from holdfast.console.views.node import node_of
from holdfast.console.views.run import (
    children_of,
    failures_of,
    head_of,
    may_operate,
    open_cards,
    raised_in,
    task_rows,
)
from holdfast.console.views.timeline import timeline_of
from holdfast.core.run.state import RunState
from holdfast.errors import NotPermitted
from holdfast.model.run import RunStatus
from holdfast.runtime.machines import machine_of
from holdfast.server.auth.authentication import Called
from holdfast.server.auth.principal import Permission
from holdfast.server.schemas.runs import RunId
from holdfast.server.services import Served
from holdfast.views.about import about
from holdfast.views.actions import STEP, CheckedAction, check_action
from holdfast.views.dry_run import consequences
from holdfast.views.stories.phrases import Voice
from holdfast.views.stories.storyteller import storyteller

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


async def seen_run(run_id: RunId, served: Served, caller: Called) -> RunState:
    """The run, if the caller may see it."""
    await caller.require(served, Permission.READ, run_id)
    return await served.app.engine.state(run_id)


def reader_phrases(request: Request) -> Voice:
    return phrases_in(language(request))


def kept_past(request: Request) -> Past:
    """The server's cache of replayed states."""
    if not hasattr(request.app.state, "past"):
        request.app.state.past = Past()
    past: Past = request.app.state.past
    return past


Seen = Annotated[RunState, Depends(seen_run)]
Said = Annotated[Voice, Depends(reader_phrases)]
Replays = Annotated[Past, Depends(kept_past)]


@router.get("/runs/{run_id}")
async def run(
    request: Request, served: Served, caller: Called, state: Seen, say: Said, past: Replays
) -> Response:
    return await show_page(
        request,
        served,
        caller,
        "run.html",
        kind=machine_of(state).kind,
        head=await head_of(served, caller, state, say),
        graph=await graph_of(served, past, state, say, None),
        about=about(state, say),
        tasks=task_rows(state, say),
        failures=await failures_of(served, caller, state, say),
        tracebacks=await raised_in(served, caller, state, say),
        children=await children_of(served, caller, state),
        cards=await open_cards(served, caller, state),
        timeline=await timeline_of(served, state, say, None),
    )


@router.get("/parts/runs/{run_id}/head")
async def head_part(
    request: Request, served: Served, caller: Called, state: Seen, say: Said
) -> Response:
    head = await head_of(served, caller, state, say)
    return show_part(request, caller, "run_head.html", head=head)


@router.get("/parts/runs/{run_id}/graph")
async def graph_part(
    request: Request,
    served: Served,
    caller: Called,
    state: Seen,
    say: Said,
    past: Replays,
    at: Seq = None,
) -> Response:
    graph = await graph_of(served, past, state, say, at)
    return show_part(request, caller, "run_graph.html", graph=graph, run_id=state.run_id)


@router.get("/parts/runs/{run_id}/beside")
async def beside_part(
    request: Request, served: Served, caller: Called, state: Seen, say: Said
) -> Response:
    """Inputs, results, failures, tasks and sub-runs, which change together."""
    return show_part(
        request,
        caller,
        "run_beside.html",
        run_id=state.run_id,
        about=about(state, say),
        tasks=task_rows(state, say),
        failures=await failures_of(served, caller, state, say),
        tracebacks=await raised_in(served, caller, state, say),
        children=await children_of(served, caller, state),
    )


@router.get("/parts/runs/{run_id}/questions")
async def questions_part(request: Request, served: Served, caller: Called, state: Seen) -> Response:
    cards = await open_cards(served, caller, state)
    return show_part(request, caller, "run_questions.html", cards=cards, run_id=state.run_id)


@router.get("/parts/runs/{run_id}/timeline")
async def timeline_part(
    request: Request,
    served: Served,
    caller: Called,
    state: Seen,
    say: Said,
    before: Seq = None,
    since: Seq = None,
) -> Response:
    timeline = await timeline_of(served, state, say, before, since)
    return show_part(request, caller, "run_timeline.html", timeline=timeline)


@router.get("/parts/runs/{run_id}/node")
async def node_part(
    request: Request,
    served: Served,
    caller: Called,
    state: Seen,
    say: Said,
    past: Replays,
    node: NodeId,
    at: Seq = None,
) -> Response:
    shown = state if at is None else await past.state(served.journal, state, at)
    operates = await may_operate(served, caller, state.run_id)
    view = await node_of(served, shown, say, node, operates=operates, past=at is not None)
    return show_part(request, caller, "run_node.html", node=view)


@router.get("/parts/runs/{run_id}/deed")
async def action_part(
    request: Request,
    served: Served,
    caller: Called,
    state: Seen,
    say: Said,
    name: ActionName,
    of: Annotated[str, Query(max_length=500)] = "",
) -> Response:
    """The dialog that asks for confirmation, and says what the action would do."""
    if not await may_operate(served, caller, state.run_id):
        raise NotPermitted("your roles do not permit you to operate this run")
    checked = check_action(state, name, of, caller.principal.id, served.now())
    return show_part(request, caller, "run_action.html", **_dialog(state, say, checked))


def _dialog(state: RunState, say: Voice, checked: CheckedAction) -> dict[str, object]:
    action, kind = checked.action, machine_of(state).kind
    teller = storyteller(state, say)
    other = kind if action.name == "resume" and kind != "plan" else "text"
    return {
        "action": action,
        "run_id": state.run_id,
        "version": state.version,
        "about": teller.step(action.of) if action.name in STEP else action.of,
        "explained": f"run.ask.{action.name}.{other}",
        "will": consequences(state, say, checked.dry_run),
        "stopped": checked.dry_run.status is RunStatus.ERROR and action.name != "context",
        "body": json.dumps(dict(action.body)),
        "context": pretty(dict(action.context)),
    }
