"""How one run's records are told in a stream: as they are published, as entries of its timeline, or
as the events that a conversation's consumer hears.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from holdfast.i18n.catalogue import said
from holdfast.interactions.cards import request_from_wire
from holdfast.model.conversation import EngineEventType
from holdfast.runtime.offload import aside
from holdfast.server.questions import card
from holdfast.server.streams.frames import moved, told
from holdfast.server.streams.sse import Frame, encoded, spliced
from holdfast.views.conversation import Narration
from holdfast.views.published import StoredEvent
from holdfast.views.reader import RunReader, RunVersion
from holdfast.views.timeline import Following
from holdfast.views.wire import in_language, to_text

ENTRY: Final = "entry"
VIEW: Final = "view"


class Telling:
    """Each record as it is published; its id is its place in the run."""

    def __init__(self, run_id: str, language: str) -> None:
        self.run_id = run_id
        self.language = language

    async def told(self, records: Sequence[StoredEvent]) -> bytes:
        return b"".join(told(self.run_id, one, one.seq) for one in records)

    async def then(self) -> bytes:
        """What follows each page of records."""
        return b""


class TimelineTelling(Telling):
    """Each record as an entry of the timeline, and with `views` the run after each page."""

    def __init__(
        self, reader: RunReader, following: Following, language: str, *, views: bool
    ) -> None:
        super().__init__(following.run_id, language)
        self._reader = reader
        self._following = following
        self._views = views

    async def told(self, records: Sequence[StoredEvent]) -> bytes:
        entries = await self._reader.told(self._following, records)
        texts = ((one.seq, to_text(in_language(one, self.language))) for one in entries)
        return b"".join(spliced(ENTRY, seq, text) for seq, text in texts)

    async def then(self) -> bytes:
        """The run after the last entry; of a large one this takes a while."""
        if not self._views:
            return b""
        return spliced(VIEW, None, await aside(self._view, self._reader.clock()))

    def _view(self, now: float) -> str:
        return to_text(in_language(self._following.view(now), self.language))


class ConversationTelling(Telling):
    """As the engine's consumer hears the records of a conversation, in the seed's words: the ten
    types, and ours beside them.

    What a record means to a consumer depends on the state that it led to, so this carries one
    along, `run` at first. Records that a consumer does not hear of move its cursor all the same.
    """

    def __init__(self, run: RunVersion, language: str) -> None:
        super().__init__(run.run_id, language)
        self._narration = Narration(run, lambda text: said(text, language))

    async def told(self, records: Sequence[StoredEvent]) -> bytes:
        frames = [frame for one in records if (frame := self._event(one)) is not None]
        return b"".join((*frames, moved(records[-1].seq)))

    def _event(self, record: StoredEvent) -> bytes | None:
        event = self._narration.tell(record)
        if event is None:
            return None
        if event.event_type is EngineEventType.INTERACTION:
            event = replace(event, data=card(request_from_wire(event.data), self.language))
        data = {
            "event_type": event.event_type.value,
            "data": dict(event.data),
            "seq": event.seq,
            "at": event.at,
            "conversation_id": self.run_id,
        }
        return encoded(Frame(data, event.event_type.name, event.seq))
