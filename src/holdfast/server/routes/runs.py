"""Runs of every kind, to be read: plans' instances, chats and conversations side by side."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

from fastapi import Query

from holdfast.model.run import RunKind
from holdfast.server.auth.authentication import Called
from holdfast.server.auth.principal import Permission
from holdfast.server.openapi import NOT_FOUND
from holdfast.server.routing import new_router
from holdfast.server.schemas.runs import (
    Before,
    EventShown,
    History,
    InstanceShown,
    Limit,
    RunId,
    RunLines,
    RunName,
    RunShown,
    Statuses,
    Tracebacks,
    TracebackShown,
)
from holdfast.server.services import Served
from holdfast.server.showing import listed, query_of, run_shown
from holdfast.views.records import EventRecord

router = new_router("runs")

LONGEST_HISTORY = 1000
LATEST = 10**15


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
    shown = [TracebackShown(**asdict(one)) for one in found]
    return Tracebacks(tracebacks=shown, server_time=served.now())


def _event(one: EventRecord) -> EventShown:
    data = json.loads(one.payload)
    return EventShown(run_id=one.run_id, seq=one.seq, at=one.at, type=one.type, data=data)
