"""Live events over HTTP: of one run in three ways of telling, and of all runs that the caller may
see."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import Header, Query, Request, Response

from holdfast.server.auth.authentication import Called
from holdfast.server.auth.principal import Permission, sees_all
from holdfast.server.routes.conversations import CONVERSATIONS, ConversationId
from holdfast.server.routing import new_router
from holdfast.server.schemas.runs import RunId
from holdfast.server.services import Served, Services
from holdfast.server.streams.feed import NOW, Sight, position_of
from holdfast.server.streams.run import StreamStart, run_frames, stream_start
from holdfast.server.streams.sse import sse
from holdfast.server.streams.telling import ConversationTelling, Telling, TimelineTelling

router = new_router("runs")

_FRAMES: Final = """\
retry: 1000

id: 2
event: StepStarted
data: {"run_id": "inst_000001", "seq": 2, "at": 1767225600.0, "type": "StepStarted", "data": {}}

: beat

"""

STREAM: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "Events for as long as the connection lasts",
        "content": {"text/event-stream": {"schema": {"type": "string"}, "example": _FRAMES}},
    }
}
OVER: Final[dict[int | str, dict[str, Any]]] = {
    204: {"description": "The run is over and has no event after this one: do not come back"}
}

LastEventId = Annotated[
    str | None,
    Header(alias="Last-Event-ID", max_length=100, description="Where to go on; beats `after`"),
]
After = Annotated[
    str | None,
    Query(
        max_length=100,
        description="The id of the last event seen, or `now`",
        examples=["now"],
    ),
]


async def _stream(
    request: Request, services: Services, start: StreamStart, telling: Telling
) -> Response:
    if start.at_the_end:
        return Response(status_code=204)
    return await sse(services, run_frames(services, start, telling), request)


@router.get("/runs/{run_id}/events", responses=STREAM | OVER, response_class=Response)
async def stream_run_events(
    run_id: RunId,
    request: Request,
    services: Served,
    caller: Called,
    last_event_id: LastEventId = None,
    after: After = None,
) -> Response:
    """A run's events from the first on, or after a given one; `id` is its place in the run."""
    await caller.require(services, Permission.READ, run_id)
    start = await stream_start(services, run_id, last_event_id or after)
    return await _stream(request, services, start, Telling(run_id, caller.language))


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
    reader, language = services.reader, caller.language
    following = await reader.following(run_id, start.after)
    telling = TimelineTelling(reader, following, language, views=views)
    return await _stream(request, services, start, telling)


conversations = new_router("conversations")


@conversations.get(
    "/conversations/{conversation_id}/events",
    responses=STREAM | OVER,
    response_class=Response,
)
async def stream_conversation_events(
    conversation_id: ConversationId,
    request: Request,
    services: Served,
    caller: Called,
    last_event_id: LastEventId = None,
    after: After = None,
) -> Response:
    """A conversation's events as its consumer hears them (`STATE_CHANGED`, `TASK_COMPLETED`, …),
    from the first on, or after a given one; `id` is the event's place in the journal."""
    await caller.require(services, Permission.READ, conversation_id)
    start = await stream_start(services, conversation_id, last_event_id or after)
    await CONVERSATIONS.read(services, conversation_id)
    run = await services.reader.at(conversation_id, start.after)
    return await _stream(request, services, start, ConversationTelling(run, caller.language))


router.routes.extend(conversations.routes)


@router.get("/events", responses=STREAM, response_class=Response)
async def stream_events(
    request: Request,
    services: Served,
    caller: Called,
    last_event_id: LastEventId = None,
    after: After = None,
) -> Response:
    """The events of all runs that the caller may see, from now on; `id` is an opaque cursor."""
    await caller.require(services, Permission.READ)
    cursor = last_event_id or after
    if cursor is not None and cursor != NOW:
        position_of(cursor)

    sight = Sight(caller.sees, sees_all(caller.principal), caller.language)
    return await sse(services, services.feed.frames(sight, cursor), request)
