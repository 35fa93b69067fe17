"""One run's events: its records from a place on, and then each as it is committed.

A client without a cursor is a newcomer: it is told all open questions and then the run from its
first record; with `after=now` the records begin with the next one. Questions of runs below
are not among this run's records, so a client that comes back is told the open ones again.

A run that is over has a last event, `end`, without an id. A browser's EventSource comes back
after every end: with the last record's id it is told 204, and that is what makes it stop.
A plan that failed, and a session between two turns, are not over: they can go on.
"""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass
from typing import Final

from holdfast.errors import InvalidAnswer, NotAllowed, NotFound
from holdfast.i18n.message import msg, term
from holdfast.model.run import RunStatus
from holdfast.runtime.hub import AskedBelow, Spoken, is_full
from holdfast.runtime.machines import PLAN
from holdfast.server.services import Services
from holdfast.server.streams.frames import asked, moved
from holdfast.server.streams.sse import Frame, Frames
from holdfast.server.streams.telling import Telling
from holdfast.views.published import StoredEvent

NOW: Final = "now"
END: Final = "end"
SPOKEN: Final = "Spoken"


def is_over(kind: str, status: str) -> bool:
    """Nothing can move this run any more."""
    return status == RunStatus.CANCELLED or (kind == PLAN.kind and status == RunStatus.DONE)


@dataclass(frozen=True, slots=True)
class StreamStart:
    """Where a stream begins; `ends` is the version at which the run was over, if it is."""

    run_id: str
    root_id: str
    kind: str
    after: int
    newcomer: bool
    ends: int | None

    @property
    def at_the_end(self) -> bool:
        return self.ends is not None and self.after >= self.ends and not self._from_the_start

    @property
    def _from_the_start(self) -> bool:
        return self.newcomer and self.after == 0


async def stream_start(services: Services, run_id: str, cursor: str | None) -> StreamStart:
    """Where a client's cursor stands in the run, or why it cannot."""
    row = await services.reader.row(run_id)
    if row is None:
        raise NotFound(msg("there is no {kind} {name}", kind=term("run"), name=run_id))
    version = await services.reader.version(run_id)
    after = {None: 0, NOW: version}.get(cursor)
    if after is None:
        after = _number(str(cursor))
    if after > version:
        raise NotAllowed(
            msg(
                "{id} has {version} events so far, and none after {after}",
                id=run_id,
                version=version,
                after=after,
            )
        )
    ends = version if is_over(row.kind, row.status) else None
    newcomer = cursor is None or cursor == NOW
    return StreamStart(run_id, row.root_id, row.kind, after, newcomer, ends)


def _number(cursor: str) -> int:
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) <= 15):
        message = msg("must be the id of an event of this run, or `now`")
        told = msg("{name} {problem}", name="after", problem=message)
        raise InvalidAnswer(told, {"after": message})
    return int(cursor)


async def run_frames(services: Services, start: StreamStart, telling: Telling) -> Frames:
    """The run's records and questions; those that are open come first, in the reader's language."""
    stream = _RunStream(services, start, telling)
    async with aclosing(stream.questions(own=start.newcomer)) as questions:
        async for frame in questions:
            yield frame
    yield moved(start.after)
    async with aclosing(stream.frames()) as frames:
        async for part in frames:
            yield part


class _RunStream:
    def __init__(self, services: Services, start: StreamStart, telling: Telling) -> None:
        self._services = services
        self._telling = telling
        self._start = start
        self._seen = start.after
        self._ends = start.ends
        self._caught_up = False
        self._asked: str | None = None

    async def frames(self) -> Frames:
        hub, run_id = self._services.app.engine.hub, self._start.run_id
        unwatch = self._services.reader.watch(run_id, self._moved)
        try:
            await self._look()
            async with aclosing(hub.follow(run_id, self._start.after)) as followed:
                async for one in followed:
                    async for frame in self._told(one):
                        yield frame
                    if self._over:
                        yield await self._end()
                        return
        finally:
            unwatch()

    async def _look(self) -> None:
        """It may have ended before we watched."""
        now = await stream_start(self._services, self._start.run_id, NOW)
        self._ends = now.ends if self._ends is None else self._ends

    def _moved(self, status: RunStatus, version: int) -> None:
        if self._ends is None and is_over(self._start.kind, status.value):
            self._ends = version

    @property
    def _over(self) -> bool:
        return self._ends is not None and self._seen >= self._ends

    async def _told(self, one: list[StoredEvent] | Spoken | AskedBelow) -> Frames:
        match one:
            case Spoken():
                yield _spoken(self._start.run_id, one)
                return
            case list() if one:
                self._seen = one[-1].seq
                yield await self._telling.told(one)
                if more := await self._telling.then():
                    yield more
        if self._may_be_asked_below(one):
            async for frame in self.questions(own=False):
                yield frame

    def _may_be_asked_below(self, one: list[StoredEvent] | AskedBelow) -> bool:
        """A run below may have asked before we listened: that is looked for once."""
        if isinstance(one, AskedBelow):
            return True
        first = not is_full(one) and not self._caught_up
        self._caught_up = self._caught_up or first
        return first

    async def _end(self) -> Frame:
        row = await self._services.reader.row(self._start.run_id)
        return Frame({"run_id": self._start.run_id, "status": row.status if row else ""}, END)

    async def questions(self, *, own: bool) -> Frames:
        """Those of runs below, and `own` ones, that are open and were asked since the last look."""
        services, run_id = self._services, self._start.run_id
        found = services.reader.open_rows(run_id, self._start.root_id, self._asked)
        async with aclosing(found) as rows:
            async for row in rows:
                self._asked = row.question_id
                if own or row.run_id != run_id:
                    yield asked(row, services.now(), self._telling.language)


def _spoken(run_id: str, one: Spoken) -> Frame:
    return Frame({"run_id": run_id, "began": one.began, "text": one.text}, SPOKEN)
