"""What a server offers, noun by noun, one method for each of its operations."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from holdfast.client.administration import Agents, Audit, Housekeeping, Tokens, Tools
from holdfast.client.event_stream import EventStream, ServerEvent
from holdfast.client.experience import Experience, Lessons
from holdfast.client.interactions import Chats, Conversations, Interactions
from holdfast.client.plans import Instances, Plans, Runs
from holdfast.client.resource import Answer, answered
from holdfast.client.transport import Transport, in_language, path_of

PATIENCE: Final = 30.0
"""How long a request is tried for."""

STREAM_PATIENCE: Final = 600.0
"""How long a stream is tried to be taken up for."""

SILENCE: Final = 45.0
"""A server that has said nothing for so long, not even a heartbeat, is not there."""


COPYING: Final = 3600.0
"""How long a server may be copying its journal before the first of it comes."""


class Client:
    """A server from outside; `async with` closes its connections."""

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        timeout: float = 30.0,
        patience: float = PATIENCE,
        stream_patience: float = STREAM_PATIENCE,
        silence: float = SILENCE,
    ) -> None:
        self._transport = transport = Transport(url, token, timeout, patience)
        self._silence = silence
        self._stream_patience = stream_patience
        self.url = transport.url
        self.plans = Plans(transport)
        self.instances = Instances(transport)
        self.runs = Runs(transport)
        self.interactions = Interactions(transport)
        self.chats = Chats(transport)
        self.conversations = Conversations(transport)
        self.agents = Agents(transport)
        self.tools = Tools(transport)
        self.tokens = Tokens(transport)
        self.audit = Audit(transport)
        self.housekeeping = Housekeeping(transport)
        self.experience = Experience(transport)
        self.lessons = Lessons(transport)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self._transport.close()

    async def me(self) -> Answer:
        """Who the server takes us for."""
        return answered(await self._transport.get("/me"))

    async def health(self) -> Answer:
        return answered(await self._transport.get("/healthz"))

    async def readiness(self) -> Answer:
        """JournalUnavailable while the server cannot acknowledge anything."""
        return answered(await self._transport.get("/readyz"))

    async def metrics(self) -> str:
        return await self._transport.text("/metrics")

    async def backup(
        self, target: Path, progress: Callable[[int, int], None] = lambda done, total: None
    ) -> None:
        """The server's journal, as it is at one moment, into a file; `progress` hears how many
        bytes of how many have come."""
        await self._transport.download("/backup", target, progress, COPYING)

    def events(
        self, run_id: str, after: str | int | None = None
    ) -> AsyncGenerator[ServerEvent, None]:
        """A run's events, from its first, after a given one or from `now`, until it is over."""
        return self._following(path_of("runs", run_id, "events"), after).events()

    def timeline(
        self,
        run_id: str,
        after: str | int | None = None,
        *,
        views: bool = False,
        language: str | None = None,
    ) -> AsyncGenerator[ServerEvent, None]:
        """A run's events in words of a language (`entry`), until it is over; with `views` the run
        itself after each page of them (`view`)."""
        path = path_of("runs", run_id, "timeline", "stream")
        return self._following(path, after, language, views=views or None).events()

    def all_events(self, cursor: str | None = None) -> AsyncGenerator[ServerEvent, None]:
        """The events of all runs that we may see, after a cursor or from now on, without end.

        An event of the type `resync` says that some cannot be told any more: look again at
        whatever was built from them.
        """
        return self._following("/events", cursor).events()

    def _following(
        self, path: str, after: str | int | None, language: str | None = None, **more: Any
    ) -> EventStream:
        return EventStream(
            self._transport,
            path,
            {"after": after, **more},
            self._silence,
            self._stream_patience,
            in_language(language),
        )
