"""A conversation's events over HTTP, in the seed's words: the ten types, and ours beside them.

What a record means to a consumer depends on the state that it led to, so a stream carries one
along; for a client that comes back in the middle it is replayed up to there. Records that a
consumer does not hear of move its cursor all the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fastapi import Request, Response

from holdfast.i18n.catalogue import said
from holdfast.interactions.cards import request_from_wire
from holdfast.model.conversation import EngineEvent, EngineEventType
from holdfast.server.auth.authentication import Called
from holdfast.server.auth.principal import Permission
from holdfast.server.questions import card
from holdfast.server.routes.conversations import CONVERSATIONS, ConversationId
from holdfast.server.routes.events import OVER, STREAM, After, LastEventId
from holdfast.server.routing import new_router
from holdfast.server.services import Served, Services
from holdfast.server.streams.frames import moved
from holdfast.server.streams.run import run_frames, stream_start
from holdfast.server.streams.sse import Frame, encoded, sse
from holdfast.views.conversation import Narration
from holdfast.views.published import StoredEvent
from holdfast.views.reader import RunVersion

router = new_router("conversations")


class EngineTelling:
    """Tells records as the engine's consumer hears them."""

    def __init__(self, run: RunVersion, language: str) -> None:
        self._run_id = run.run_id
        self._language = language
        self._narration = Narration(run, lambda text: said(text, language))

    async def __call__(self, records: Sequence[StoredEvent]) -> bytes:
        frames = [frame for one in records if (frame := self._told(one)) is not None]
        return b"".join((*frames, moved(records[-1].seq)))

    def _told(self, record: StoredEvent) -> bytes | None:
        told = self._narration.tell(record)
        if told is None:
            return None
        if told.event_type is EngineEventType.INTERACTION:
            told = replace(told, data=card(request_from_wire(told.data), self._language))
        return encoded(_frame(self._run_id, told))


def _frame(run_id: str, told: EngineEvent) -> Frame:
    data = {
        "event_type": told.event_type.value,
        "data": dict(told.data),
        "seq": told.seq,
        "at": told.at,
        "conversation_id": run_id,
    }
    return Frame(data, told.event_type.name, told.seq)


async def _telling(services: Services, run_id: str, after: int, language: str) -> EngineTelling:
    """One that knows what came before `after`."""
    await CONVERSATIONS.read(services, run_id)
    return EngineTelling(await services.reader.at(run_id, after), language)


@router.get(
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
    telling = await _telling(services, conversation_id, start.after, caller.language)
    if start.at_the_end:
        return Response(status_code=204)
    return await sse(
        services, run_frames(services, start, caller.language, telling), request=request
    )
