"""Runs in the read model's own form, for programs that show them: the CLI reads these.

They are folded here, so that no client needs to know what an event does to a run.
"""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import Query, Request, Response

from holdfast.runtime.offload import aside
from holdfast.server.auth.authentication import Called
from holdfast.server.auth.principal import Permission
from holdfast.server.problems import JSON
from holdfast.server.routes.events import OVER, STREAM, After, LastEventId
from holdfast.server.routing import new_router
from holdfast.server.schemas.runs import RunId, TimelinePage
from holdfast.server.services import Served
from holdfast.server.streams.run import run_frames, stream_start
from holdfast.server.streams.sse import sse
from holdfast.server.streams.timeline import Telling
from holdfast.views.records import RunView
from holdfast.views.wire import in_language, to_text

router = new_router("runs")

LATEST: Final = 10**15
LONGEST_PAGE: Final = 500


@router.get("/runs/{run_id}/view", response_model=RunView)
async def get_run_view(run_id: RunId, served: Served, caller: Called) -> Response:
    """A run of any kind, folded: how it is, and the tasks, messages or steps that it has."""
    await caller.require(served, Permission.READ, run_id)
    run = await served.reader.at(run_id)
    return Response(await aside(lambda: to_text(run.view())), media_type=JSON)


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


@router.get("/runs/{run_id}/timeline/stream", responses=STREAM | OVER, response_class=Response)
async def stream_run_timeline(
    run_id: RunId,
    request: Request,
    services: Served,
    caller: Called,
    last_event_id: LastEventId = None,
    after: After = None,
    views: Annotated[
        bool, Query(description="Tell the run itself, as `view`, after each page of entries.")
    ] = False,
) -> Response:
    """As `/timeline`, live: each event as an `entry` whose `id` is its place in the run."""
    await caller.require(services, Permission.READ, run_id)
    start = await stream_start(services, run_id, last_event_id or after)
    if start.at_the_end:
        return Response(status_code=204)
    following = await services.reader.following(run_id, start.after)
    telling = Telling(services.reader, following, services.now, caller.language, views=views)
    frames = run_frames(services, start, caller.language, telling.told, telling.view)
    return await sse(services, frames, request)
