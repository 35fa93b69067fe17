"""Runs of every kind, as they are read: plans' instances, chats and conversations side by side."""

from __future__ import annotations

import json
from typing import Annotated

from fastapi import Query, Response

from holdfast.errors import NotFound
from holdfast.i18n.message import msg
from holdfast.model.run import RunKind
from holdfast.runtime.machines import definition_of, kind_and_body
from holdfast.runtime.offload import aside
from holdfast.server.auth.authentication import Called
from holdfast.server.auth.principal import Permission
from holdfast.server.openapi import NOT_FOUND
from holdfast.server.problems import JSON
from holdfast.server.routing import new_router
from holdfast.server.schemas.runs import (
    Before,
    DefinitionShown,
    EventShown,
    History,
    InstanceShown,
    Limit,
    RunId,
    RunLines,
    RunName,
    RunShown,
    Statuses,
    TimelinePage,
    Tracebacks,
    TracebackShown,
)
from holdfast.server.services import Served, Services
from holdfast.server.showing import listed, query_of, run_shown
from holdfast.views.reader import RunVersion
from holdfast.views.records import EventRecord, RunView
from holdfast.views.repairs import definition_then
from holdfast.views.wire import in_language, to_text

router = new_router("runs")

LONGEST_HISTORY = 1000
LONGEST_PAGE = 500
LATEST = 10**15

At = Annotated[
    int | None,
    Query(ge=0, le=LATEST, description="A sequence number: what held after that event."),
]

_WITHHELD = frozenset({"system_context"})
"""What an agent is told is its author's business; no fold needs it."""


@router.get("/runs", responses=NOT_FOUND)
async def list_runs(
    served: Served,
    caller: Called,
    kind: RunKind | None = None,
    status: Statuses = None,
    name: Annotated[
        str | None, Query(min_length=1, max_length=200, description="A plan or an agent.")
    ] = None,
    parent: Annotated[
        RunName | None, Query(description="Only runs that work for this one.")
    ] = None,
    roots: Annotated[bool, Query(description="Leave out runs that work for others.")] = True,
    before: Before = None,
    limit: Limit = 50,
) -> RunLines:
    """Runs that the caller may see, the newest first."""
    await caller.require(served, Permission.READ)
    only_roots = roots and parent is None
    query = query_of(
        kind, status, name=name, parent_id=parent, roots_only=only_roots, before=before, limit=limit
    )
    lines, following = await listed(served, caller, query)
    return RunLines(runs=lines, next=following, server_time=served.now())


@router.get("/runs/{run_id}")
async def get_run(run_id: RunId, served: Served, caller: Called) -> InstanceShown | RunShown:
    """A run of any kind; an instance with all that is particular to it."""
    await caller.require(served, Permission.READ, run_id)
    return await run_shown(served, run_id)


@router.get("/runs/{run_id}/history")
async def get_run_history(
    run_id: RunId,
    served: Served,
    caller: Called,
    after: Annotated[int, Query(ge=0, le=LATEST, description="A sequence number.")] = 0,
    limit: Annotated[int, Query(ge=1, le=LONGEST_HISTORY)] = 200,
) -> History:
    """What happened in a run, by whom and when: its journal, in order."""
    await caller.require(served, Permission.READ, run_id)
    records = await served.reader.events(run_id, after, limit + 1)
    page = records[:limit]
    return History(
        events=[_event(one) for one in page],
        next=page[-1].seq if len(records) > limit else None,
        server_time=served.now(),
    )


@router.get("/runs/{run_id}/tracebacks")
async def get_run_tracebacks(run_id: RunId, served: Served, caller: Called) -> Tracebacks:
    """What the run's tools raised: the last traceback of each step, the newest first."""
    await caller.require(served, Permission.OPERATE, run_id)
    found = await served.reader.tracebacks(run_id)
    shown = [TracebackShown.model_validate(one) for one in found]
    names = {one.step_id: one.name for one in found}
    return Tracebacks(tracebacks=shown, names=names, server_time=served.now())


@router.get("/runs/{run_id}/definition")
async def get_run_definition(
    run_id: RunId, served: Served, caller: Called, at: At = None
) -> DefinitionShown:
    """The plan, agent or settings of a run, as they were when it began, or after an event.

    Of an instance whose plan was patched, `at` has the plan that held then.
    """
    await caller.require(served, Permission.READ, run_id)
    if at is None:
        held = definition_of(await served.app.engine.state(run_id))
    else:
        held = definition_then(await _after(served, run_id, at))
    kind, name, body = await aside(kind_and_body, held)
    shown = {key: value for key, value in body.items() if key not in _WITHHELD}
    return DefinitionShown(
        run_id=run_id, kind=kind, name=name, digest=held.digest, definition=shown
    )


async def _after(served: Services, run_id: str, seq: int) -> RunVersion:
    run = await served.reader.at(run_id, seq)
    if run.version < seq:
        last = run.version
        raise NotFound(
            msg("{id} has no event {seq}: its last is {last}", id=run_id, seq=seq, last=last)
        )
    return run


@router.get("/runs/{run_id}/view", response_model=RunView)
async def get_run_view(run_id: RunId, served: Served, caller: Called) -> Response:
    """A run of any kind, folded: how it is, and the tasks, messages or steps that it has."""
    await caller.require(served, Permission.READ, run_id)
    run = await served.reader.at(run_id)
    told = await aside(lambda: to_text(in_language(run.view(), caller.language)))
    return Response(told, media_type=JSON)


@router.get("/runs/{run_id}/timeline")
async def get_run_timeline(
    run_id: RunId,
    served: Served,
    caller: Called,
    after: Annotated[int, Query(ge=0, le=LATEST, description="A sequence number.")] = 0,
    limit: Annotated[int, Query(ge=1, le=LONGEST_PAGE)] = 200,
) -> TimelinePage:
    """What happened in a run, in the reader's words, with how the run was after each event."""
    await caller.require(served, Permission.READ, run_id)
    entries = await served.reader.timeline(run_id, after, limit + 1)
    page = [in_language(one, caller.language) for one in entries[:limit]]
    return TimelinePage(
        entries=page,
        next=page[-1].seq if len(entries) > limit else None,
        server_time=served.now(),
    )


def _event(one: EventRecord) -> EventShown:
    data = json.loads(one.payload)
    return EventShown(run_id=one.run_id, seq=one.seq, at=one.at, type=one.type, data=data)
