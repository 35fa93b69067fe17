"""A conversation's events over HTTP, in the seed's words: the ten types, and ours beside them.

What a record means to a consumer depends on the state that it led to, so a stream carries one
along; whoever comes back in the middle has it replayed up to there. Records that a consumer
does not hear of move its cursor all the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from fastapi import Request, Response

from holdfast.conversations.events import narrate
from holdfast.core.conversation.briefing import summary
from holdfast.core.conversation.decide import blank, replay
from holdfast.core.conversation.state import ConversationState
from holdfast.i18n.spoken import said
from holdfast.journal.codec import decode
from holdfast.journal.port import Record
from holdfast.model.conversation import EngineEvent
from holdfast.model.conversation_events import AnswerWritten
from holdfast.model.events import QuestionOpened
from holdfast.model.values import Json
from holdfast.runtime.machines import as_conversation
from holdfast.server.auth.authentication import Called
from holdfast.server.auth.principal import Permission
from holdfast.server.cards import card
from holdfast.server.routes.conversations import ConversationId
from holdfast.server.routes.events import OVER, STREAM, After, LastEventId
from holdfast.server.routing import new_router
from holdfast.server.services import Served, Services
from holdfast.server.streams.frames import moved
from holdfast.server.streams.run import place, run_frames
from holdfast.server.streams.sse import Frame, encoded, sse

router = new_router("conversations")

_PAGE: Final = 500


class EngineTelling:
    """Tells records as the engine's consumer hears them."""

    def __init__(self, state: ConversationState, language: str) -> None:
        self._state = state
        self._language = language

    def __call__(self, records: Sequence[Record]) -> bytes:
        frames = [frame for one in records if (frame := self._told(one)) is not None]
        return b"".join((*frames, moved(records[-1].seq)))

    def _told(self, record: Record) -> bytes | None:
        event = decode(record)
        self._state = replay(self._state, [(record.at, event)])  # type: ignore[list-item]
        told = narrate(self._state, record.seq, record.at, event)
        if told is None:
            return None
        spoken = replace(told, data=self._spoken(event, told.data))
        return encoded(_frame(self._state.run_id, spoken))

    def _spoken(self, event: Any, data: Mapping[str, Json]) -> Mapping[str, Json]:
        """Our own words in the reader's language."""
        match event:
            case QuestionOpened(request=request):
                return card(request, self._language)
            case AnswerWritten(text=""):
                return {"answer": summary(self._state, self._say)}
            case _:
                ours = [name for name in ("reason", "error") if name in data]
                return {**data, **{name: self._say(data[name]) for name in ours}}

    def _say(self, text: str) -> str:
        return said(text, self._language)

    @property
    def version(self) -> int:
        return self._state.version


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
    definition = as_conversation(await services.app.engine.state(run_id)).definition
    telling = EngineTelling(blank(run_id, definition), language)
    while telling.version < after:
        page = await services.journal.read(run_id, telling.version, limit=_PAGE)
        telling([one for one in page if one.seq <= after])
    return telling


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
    start = await place(services, conversation_id, last_event_id or after)
    telling = await _telling(services, conversation_id, start.after, caller.language)
    if start.at_the_end:
        return Response(status_code=204)
    return await sse(
        services, run_frames(services, start, caller.language, telling), request=request
    )
