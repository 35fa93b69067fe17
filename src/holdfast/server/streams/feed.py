"""The feed: every run's events in the order of their commits, for all who may see them.

One tailer reads new commits once, encodes each record once and keeps the last of them in a
ring that is bounded by count and bytes. Clients go along the ring at their own pace. One that
has fallen out of it reads the journal until it has caught up, so it misses nothing, and what
it costs is its own time. Only a cursor from before what the journal has forgotten cannot be
served: `event: resync` says so and moves the client to now.

A cursor is a record's position among all records; to clients it is opaque. A client that sees
little is told where it stands now and then, by an id without an event.

Alerts are told as they come, to those who see everything. They stand in no journal, so an event of
one has no id, and who was not there has missed it.

Without clients nothing is watched or read. With many the tailer paces itself: what is
committed meanwhile goes out together, and not more at once than the runs can spare the time
for. In a storm of events the crowd hears of them later; what it has not heard yet waits in
the journal and not in memory.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict, deque
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Final, NamedTuple, Self

from holdfast.errors import HoldfastError, InvalidAnswer, JournalDamaged
from holdfast.i18n.message import msg
from holdfast.model.rows import QuestionQuery, QuestionRow
from holdfast.repair.alerts import Alert
from holdfast.runtime.clock import Clock
from holdfast.runtime.hub import Hub
from holdfast.server.auth.principal import run_of
from holdfast.server.streams.frames import alarm, moved, open_questions, told
from holdfast.server.streams.sse import Frame, Frames, encoded
from holdfast.views.published import StoredEvent
from holdfast.views.reader import CommittedEvent, RunReader

log = logging.getLogger("holdfast")

MOST_ENTRIES: Final = 16_384
MOST_BYTES: Final = 4 * 1024 * 1024
"""What the ring holds at most."""

CHUNK: Final = 128 * 1024
"""Bytes that a client is handed at once."""

PAGE: Final = 400
"""Records that are read at once, unless they are large: then as many as fill a chunk."""

DAMAGED: Final = "RecordDamaged"
"""What stands in the place of a record that cannot be read any more."""

UNSEEN: Final = 500
"""Records that a client does not see before it is told where it stands."""

AT_ONCE: Final = 800
LONGEST_PACE: Final = 0.5
PACE_PER_CLIENT: Final = 0.0025
"""Tuning: how many records go out at once, and how long after that the next may."""

RETRY_JOURNAL: Final = 0.25
MOST_NAMES: Final = 10_000

RESYNC: Final = "resync"
NOW: Final = "now"

MOST_ALERTS: Final = 100
"""Alerts that wait for one client; it is told the newest."""

Names = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Sight:
    """What a client may see: `everything`, or the runs of plans and agents by name; `language` is
    what open questions are told in."""

    sees: Names
    everything: bool = False
    language: str = "en"


def position_of(cursor: str) -> int:
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) <= 15):
        message = msg("must be the id of an event of this feed, or `now`")
        told = msg("{name} {problem}", name="after", problem=message)
        raise InvalidAnswer(told, {"after": message})
    return int(cursor)


class Entry(NamedTuple):
    """A record as it is told; `name` is what its run is judged by."""

    name: str
    body: bytes


class Page(NamedTuple):
    """Records as they are told, each with its position; a `full` one had no room for more."""

    entries: list[tuple[int, Entry]]
    full: bool


REMOVED: Final = Entry("", b"")
"""What stands where the journal has a hole."""


class Ring:
    """The newest records, encoded, by position: from `low` to `high`, none if `low` is above."""

    def __init__(self, most_entries: int = MOST_ENTRIES, most_bytes: int = MOST_BYTES) -> None:
        self._most_entries = most_entries
        self._most_bytes = most_bytes
        self._entries: dict[int, Entry] = {}
        self._chunks: dict[int, tuple[bytes, int]] = {}
        self.bytes = 0
        self.low = 1
        self.high = 0

    def __len__(self) -> int:
        return len(self._entries)

    def begin(self, high: int) -> None:
        """Forget everything: what comes next follows `high`."""
        self._entries.clear()
        self._chunks.clear()
        self.bytes, self.low, self.high = 0, high + 1, high

    def add(self, position: int, entry: Entry) -> None:
        self._chunks.clear()
        if position - self.high > self._most_entries:
            self.begin(position - 1)
        while self.high < position - 1:
            self._put(REMOVED)
        self._put(entry)

    def _put(self, entry: Entry) -> None:
        self.high += 1
        self._entries[self.high] = entry
        self.bytes += len(entry.body)
        while len(self._entries) > self._most_entries or self.bytes > self._most_bytes:
            self.bytes -= len(self._entries.pop(self.low).body)
            self.low += 1

    def chunk(self, after: int, sight: Sight) -> tuple[bytes, int]:
        """What a client is handed next, and where it stands then.

        Those who see everything, and most stand at the same place, share one.
        """
        if not sight.everything:
            return self._joined(after, sight.sees)
        if after not in self._chunks:
            self._chunks[after] = self._joined(after, lambda name: True)
        return self._chunks[after]

    def _joined(self, after: int, sees: Names) -> tuple[bytes, int]:
        parts, size = [], 0
        while after < self.high and size < CHUNK:
            after += 1
            name, body = self._entries[after]
            if sees(name):
                parts.append(body)
                size += len(body)
        return b"".join(parts), after


class Bell(asyncio.Event):
    """Rings for one client; `alerts` are those that it has yet to be told of."""

    def __init__(self) -> None:
        super().__init__()
        self.alerts: deque[Alert] = deque(maxlen=MOST_ALERTS)


class Feed:
    def __init__(self, reader: RunReader, hub: Hub, clock: Clock, ring: Ring | None = None) -> None:
        self._reader = reader
        self._hub = hub
        self._clock = clock
        self.ring = Ring() if ring is None else ring
        self.resyncs = 0
        self._bells: set[Bell] = set()
        self._woken = asyncio.Event()
        self._names: OrderedDict[str, str] = OrderedDict()
        self._tails = False
        self._unwatch: Callable[[], None] = lambda: None

    @property
    def clients(self) -> int:
        return len(self._bells)

    async def __aenter__(self) -> Self:
        self._tailer = asyncio.create_task(self._tail())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._tailer.cancel()
        await asyncio.wait({self._tailer})

    async def frames(self, sight: Sight, cursor: str | None) -> Frames:
        """The feed from a cursor on; without one from now, after the open questions."""
        start = None if cursor in (None, NOW) else position_of(str(cursor))
        with self._listening() as bell:
            if start is None:
                start = await self.last()
                async with aclosing(self._questions(sight)) as asked:
                    async for frame in asked:
                        yield frame
                yield moved(start)
            async with aclosing(_Follower(self, sight, bell).follow(start)) as parts:
                async for part in parts:
                    yield part

    def tell(self, alert: Alert) -> None:
        """Have all who listen, and may, be told of an alert."""
        for bell in self._bells:
            bell.alerts.append(alert)
            bell.set()

    def tails(self, position: int) -> bool:
        """Whether what comes after a position is in the ring, or will be."""
        return self._tails and self.ring.low <= position + 1

    async def last(self) -> int:
        return await self._reader.last_position()

    async def after(self, position: int) -> Page | None:
        """What follows a position, as much as fills a chunk; None when it is forgotten."""
        wanted = await self._reader.committed(position, PAGE)
        if wanted is None:
            return None
        entries = [one async for one in self._entries(wanted)]
        return Page(entries, len(entries) == PAGE or len(entries) < len(wanted))

    async def _entries(
        self, wanted: Sequence[CommittedEvent]
    ) -> AsyncGenerator[tuple[int, Entry], None]:
        """Those of these records that fill a chunk, the first in any case.

        A run's records lie side by side, so those of one run are read together, as many as
        its share of the chunk allows: what is read and does not fit is read in vain.
        """
        ends = {run_id: seq for _, run_id, seq in wanted}
        read: dict[tuple[str, int], StoredEvent] = {}
        room, share = CHUNK, CHUNK // max(len(ends), 1)
        for place, run_id, seq in wanted:
            if (run_id, seq) not in read:
                if room <= 0:
                    return
                for one in await self._read(run_id, seq, ends[run_id], share):
                    read[run_id, one.seq] = one
                    room -= len(one.payload)
            record = read.pop((run_id, seq), None)
            if record is None:  # its run was removed a moment ago
                yield place, REMOVED
                continue
            yield place, Entry(await self.name_of(run_id), told(run_id, record, place))

    async def _read(self, run_id: str, first: int, last: int, most_text: int) -> list[StoredEvent]:
        """Of a run that is damaged its followers hear that, and of the others everything."""
        try:
            return await self._reader.records(run_id, first - 1, last - first + 1, most_text)
        except JournalDamaged as error:
            log.error(
                "the feed leaves out records of run %s: %s", run_id, error, extra={"run": run_id}
            )
            return [StoredEvent(seq, 0.0, DAMAGED, "{}") for seq in range(first, last + 1)]

    async def name_of(self, run_id: str) -> str:
        """What the run is judged by: the subject of its root run."""
        known = self._names.get(run_id)
        if known is None:
            root = await self._reader.root(run_id)
            known = self._names[run_id] = "" if root is None else run_of(root.kind, root.name)
            if len(self._names) > MOST_NAMES:
                self._names.popitem(last=False)
        self._names.move_to_end(run_id)
        return known

    @contextmanager
    def _listening(self) -> Iterator[Bell]:
        bell = Bell()
        if not self._bells:
            self._unwatch = self._hub.watch_all(self._woken.set)
        self._bells.add(bell)
        self._woken.set()
        try:
            yield bell
        finally:
            self._bells.discard(bell)
            if not self._bells:
                self._unwatch()
                self._woken.set()

    async def _questions(self, sight: Sight) -> AsyncGenerator[Frame, None]:
        async def may_see(row: QuestionRow) -> bool:
            return sight.sees(await self.name_of(row.root_id))

        reader, now = self._reader, self._clock.now
        found = open_questions(reader, QuestionQuery(), may_see, now, sight.language)
        async with aclosing(found) as frames:
            async for frame in frames:
                yield frame

    async def _tail(self) -> None:
        while True:
            await self._woken.wait()
            self._woken.clear()
            if not self._bells:
                self._tails = False
                continue
            try:
                await self._take_in()
            except HoldfastError as error:
                log.warning("the feed waits for the journal: %s", error)
                await asyncio.sleep(RETRY_JOURNAL)
                self._woken.set()
            await asyncio.sleep(min(LONGEST_PACE, PACE_PER_CLIENT * len(self._bells)))

    async def _take_in(self) -> None:
        if not self._tails:
            self.ring.begin(await self.last())
            self._tails = True
        taken, full = 0, True
        while full and taken < AT_ONCE:
            page = await self.after(self.ring.high)
            if page is None:
                self.ring.begin(await self.last())
            for position, entry in page.entries if page else ():
                self.ring.add(position, entry)
                taken += 1
            full = page is None or page.full
            await asyncio.sleep(0)
        if full:
            self._woken.set()
        for bell in self._bells:
            bell.set()


class _Follower:
    """One client on its way along the ring, or behind it."""

    def __init__(self, feed: Feed, sight: Sight, bell: Bell) -> None:
        self._feed = feed
        self._sight = sight
        self._bell = bell
        self._at = 0

    async def follow(self, start: int) -> AsyncGenerator[bytes, None]:
        self._at = last_told = start
        if start > await self._feed.last():
            yield await self._resync("this cursor is ahead of the journal")
        while True:
            self._bell.clear()
            while self._bell.alerts:
                alert = self._bell.alerts.popleft()
                if self._sight.everything:
                    yield encoded(alarm(alert, self._sight.language))
            before = self._at
            part = await self._next()
            if part or self._at - last_told >= UNSEEN:
                last_told = self._at
                yield part or moved(self._at)
            elif self._at == before:
                await self._bell.wait()

    async def _next(self) -> bytes:
        if not self._feed.tails(self._at):
            return await self._behind()
        part, self._at = self._feed.ring.chunk(self._at, self._sight)
        return part

    async def _behind(self) -> bytes:
        await asyncio.sleep(0)
        page = await self._feed.after(self._at)
        if page is None:
            return await self._resync("events after this cursor are no longer listed")
        parts, size = [], 0
        for position, entry in page.entries:
            self._at = position
            if self._sight.sees(entry.name):
                parts.append(entry.body)
                size += len(entry.body)
            if size >= CHUNK:
                break
        return b"".join(parts)

    async def _resync(self, reason: str) -> bytes:
        """What was missed is not known any more: the client looks at everything again."""
        self._feed.resyncs += 1
        self._at = await self._feed.last()
        return encoded(Frame({"reason": reason}, RESYNC, self._at))
