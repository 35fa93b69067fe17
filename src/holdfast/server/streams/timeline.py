"""A run's records as entries of its timeline, for one stream."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from holdfast.runtime.offload import aside
from holdfast.server.streams.sse import spliced
from holdfast.views.published import StoredEvent
from holdfast.views.reader import RunReader
from holdfast.views.records import TimelineEntry
from holdfast.views.timeline import Following
from holdfast.views.wire import in_language, to_text

ENTRY: Final = "entry"
VIEW: Final = "view"


class Telling:
    def __init__(
        self,
        reader: RunReader,
        following: Following,
        now: Callable[[], float],
        language: str,
        *,
        views: bool,
    ) -> None:
        self._reader = reader
        self._language = language
        self._following = following
        self._now = now
        self._views = views

    async def told(self, records: Sequence[StoredEvent]) -> bytes:
        entries = await self._reader.told(self._following, records)
        return b"".join(spliced(ENTRY, one.seq, self._text(one)) for one in entries)

    def _text(self, entry: TimelineEntry) -> str:
        return to_text(in_language(entry, self._language))

    async def view(self) -> bytes:
        """The run after the last entry; of a large one this takes a while."""
        if not self._views:
            return b""
        text = await aside(lambda: to_text(self._following.view(self._now())))
        return spliced(VIEW, None, text)
