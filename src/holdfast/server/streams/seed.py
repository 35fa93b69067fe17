"""An EventSource on the seed's path: one session that it names, or whatever the caller speaks in.

Without a name it follows the session that the caller last spoke in, and each newer one besides,
as long as a turn of one of them is open; it starts none. Until there is something to tell it
stays open and waits. It ends with DONE like every stream; the EventSource comes back by itself
with the last id it saw, which has its place in each session that it followed
(`17@chat_000001,9@chat_000002`).

The seed's page shows one question at a time, the last it heard of. So when that one is closed
and others are still open, the oldest of them is told once more.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from contextlib import ExitStack, aclosing
from dataclasses import dataclass, field
from typing import Final

from holdfast.agents.events import AgentEventType, AgentExecutionEvent
from holdfast.errors import InvalidAnswer, NotFound
from holdfast.interactions.cards import request_from_wire, request_to_wire
from holdfast.model.interaction import InteractionStatus
from holdfast.runs.handles import AT_REST
from holdfast.server.auth.authentication import Caller
from holdfast.server.routes.chats import CHATS
from holdfast.server.seed_cards import seed_card
from holdfast.server.services import Services
from holdfast.server.streams.frames import moved
from holdfast.server.streams.newest import Newest
from holdfast.server.streams.sse import Frame, Frames
from holdfast.views.reader import RunVersion

MOST_FOLLOWED: Final = 4
"""Sessions that one EventSource follows at once: the newest."""

_PLACE: Final = re.compile(r"(?P<seq>\d{1,18})(@(?P<session>[A-Za-z0-9][\w.:-]{0,255}))?")

Places = Mapping[str, int]
"""What was heard of each session; under an empty name, of whichever is the newest."""


def frame(event: AgentExecutionEvent, language: str, place: str | None = None) -> Frame:
    """An event for the seed's page; `place` is what an EventSource comes back with."""
    wire = event.to_wire()
    if event.type is AgentEventType.INTERACTION:
        request = request_from_wire(event.data)
        wire["data"] = {**event.data, **seed_card(request, language)}
    told = event.seq if place is None else place
    return Frame(wire, event.type.value, None if event.seq is None else told)


def places_in(text: str | None) -> Places | None:
    """Where an EventSource was; None for a newcomer."""
    if not text:
        return None
    found = [_PLACE.fullmatch(one) for one in text.split(",")]
    if not all(found) or len(found) > MOST_FOLLOWED:
        raise InvalidAnswer(
            "after is the id of an event, as 17@chat_000001", {"after": "no event has such an id"}
        )
    return {one["session"] or "": int(one["seq"]) for one in found if one}


@dataclass(eq=False)
class Following:
    """One EventSource of one caller; `only` is the session that it names."""

    served: Services
    caller: Caller
    only: str | None = None
    _places: dict[str, int] = field(default_factory=dict)
    _stirred: asyncio.Event = field(default_factory=asyncio.Event)
    _told: asyncio.Queue[AgentExecutionEvent] = field(
        default_factory=lambda: asyncio.Queue(maxsize=1)
    )
    _pumps: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _shown: str | None = None
    _failure: Exception | None = None
    _unwatch: Callable[[], None] = lambda: None

    async def frames(self, places: Places | None) -> Frames:
        with ExitStack() as watching:
            who = self.caller.principal.id
            watching.callback(self.served.newest.watch(who, self._stirred.set))
            try:
                if places is None or not self._is_ours(places):
                    yield moved(await self._newcomer())
                else:
                    await self._come_back(places)
                await self._news()
                async with aclosing(self._follow()) as told:
                    async for one in told:
                        yield one
            finally:
                await self._end()

    def _is_ours(self, places: Places) -> bool:
        return self.only is None or set(places) == {self.only}

    async def _newcomer(self) -> str:
        """Where the newest session is now; one that is under way is told from here on."""
        newest = await self._newest()
        if newest is None:
            self._places = {} if self.only is None else {self.only: 0}
            return "0" if self.only is None else f"0@{self.only}"
        state = await self._state(newest.session_id)
        self._places = {state.run_id: state.version}
        if state.status not in AT_REST:
            self._pump(state.run_id, None)
        return self._cursor()

    async def _come_back(self, places: Places) -> None:
        """What has become of each of several since. One alone that is at rest is told of only if
        it is still the newest."""
        if list(places) == [""]:
            newest = await self._newest()
            self._places = {} if newest is None else {newest.session_id: places[""]}
        else:
            self._places = {name: seq for name, seq in places.items() if name}
        for session_id, seq in list(self._places.items()):
            state = await self._visible(session_id)
            if state is None or seq > state.version:
                del self._places[session_id]
            elif state.status not in AT_REST or (len(places) > 1 and await self._tells(state, seq)):
                self._pump(session_id, seq)

    async def _news(self) -> None:
        """Waits until there is something to tell."""
        with ExitStack() as watching:
            watched: set[str | None] = set()
            while True:
                self._stirred.clear()
                newest = await self._newest()
                name = self.only if newest is None else newest.session_id
                if name is not None and name not in watched:
                    watched.add(name)
                    hub = self.served.app.engine.hub
                    watching.callback(hub.watch(name, self._stir))
                    continue
                await self._look(newest)
                if self._pumps:
                    return
                await self._stirred.wait()

    async def _look(self, newest: Newest | None) -> None:
        """Follow the newest session, if it is not followed and something is to be told of it."""
        if newest is None or newest.session_id in self._pumps:
            return
        seq = self._places.get(newest.session_id, newest.since)
        state = await self._state(newest.session_id)
        if await self._tells(state, seq):
            self._pump(newest.session_id, seq)

    def _stir(self, _: object) -> None:
        self._stirred.set()

    def _pump(self, session_id: str, after: int | None) -> None:
        if after is not None:
            self._places[session_id] = after
        while len(self._places) > MOST_FOLLOWED:
            oldest = next(iter(self._places))
            del self._places[oldest]
            if oldest in self._pumps:
                self._pumps.pop(oldest).cancel()
        task = asyncio.create_task(self._tell(session_id, after))
        self._pumps[session_id] = task

    async def _tell(self, session_id: str, after: int | None) -> None:
        events = self.served.app.sessions.subscribe(session_id, after)
        try:
            async with aclosing(events):
                async for event in events:
                    await self._told.put(event)
        except Exception as error:
            self._failure = error
        finally:
            self._pumps.pop(session_id, None)
            self._stirred.set()

    async def _follow(self) -> Frames:
        """What the followed sessions tell, and newer ones as soon as they are spoken in."""
        while self._pumps or not self._told.empty():
            if self._failure is not None:
                raise self._failure
            event = await self._next()
            if event is None:
                self._stirred.clear()
                if self.only is None:
                    await self._look(await self._newest())
                if (again := await self._still_open()) is not None:
                    yield again
                continue
            if event.seq is not None:
                self._places[event.session_id] = event.seq
            if event.type is AgentEventType.INTERACTION:
                self._note(event)
            yield frame(event, self.caller.language, self._cursor())

    async def _next(self) -> AgentExecutionEvent | None:
        """The next event; None when there may be another session to follow."""
        told = asyncio.ensure_future(self._told.get())
        stirred = asyncio.ensure_future(self._stirred.wait())
        try:
            await asyncio.wait({told, stirred}, return_when=asyncio.FIRST_COMPLETED)
            return told.result() if told.done() else None
        finally:
            stirred.cancel()
            told.cancel()

    def _note(self, event: AgentExecutionEvent) -> None:
        """What the page shows now, and whose news may close it: a run below may have asked."""
        self._shown = str(event.data["requestId"])
        self._unwatch()
        asker = str(event.data["sessionId"])
        self._unwatch = self.served.app.engine.hub.watch(asker, self._stir)

    async def _still_open(self) -> Frame | None:
        """Another question, where the one that the page shows is closed."""
        shown = None if self._shown is None else await self.served.reader.question_row(self._shown)
        if shown is None or shown.status == InteractionStatus.OPEN:
            return None
        self._shown = None
        for session_id in list(self._pumps):
            for point in await self.served.app.sessions.resume_points(session_id):
                data = request_to_wire(point.interaction_request)
                again = AgentExecutionEvent(AgentEventType.INTERACTION, session_id, data)
                self._note(again)
                return frame(again, self.caller.language)
        return None

    async def _end(self) -> None:
        self._unwatch()
        pumps = list(self._pumps.values())
        for pump in pumps:
            pump.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)

    def _cursor(self) -> str:
        return ",".join(f"{seq}@{session_id}" for session_id, seq in self._places.items())

    async def _state(self, session_id: str) -> RunVersion:
        return await CHATS.read(self.served, session_id)

    async def _visible(self, session_id: str) -> RunVersion | None:
        try:
            return await CHATS.find(self.served, self.caller, session_id)
        except NotFound:
            return None

    async def _newest(self) -> Newest | None:
        """The session that is followed by its name, or the caller's newest; None if not theirs."""
        served, who = self.served, self.caller.principal.id
        newest = Newest(self.only, 0) if self.only is not None else await served.newest.of(who)
        if newest is None or await self._visible(newest.session_id) is None:
            return None
        return newest

    async def _tells(self, state: RunVersion, after: int) -> bool:
        """Whether a follower would hear anything but DONE."""
        if state.status not in AT_REST:
            return True
        entries = await self.served.reader.timeline(state.run_id, after)
        return any(one.narrated is not None for one in entries)
