"""The hub: tells the living what has been committed, and what a model is saying just now.

It holds no events. A subscriber reads the journal from where it stands and waits
here for word that there is more, so a slow one costs nothing and misses nothing.

What a model says while it speaks is for eyes only: it has no place in the journal, and
whoever was not there has missed nothing, because the finished reply is recorded.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict, deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TypeVar

from holdfast.core.run.state import RunState
from holdfast.errors import OperatorError
from holdfast.journal.codec import decode
from holdfast.journal.port import Journal, Record
from holdfast.model.react_events import ModelReplied
from holdfast.model.recorded import Event

log = logging.getLogger("holdfast")

MOST_UNREAD = 10_000
"""Pieces of a model's speech that wait for a slow listener; older ones are dropped."""

PAGE = 100
PAGE_TEXT = 128 * 1024
"""Records that are read at once, and their characters: a long run is never in memory as a
whole, nor are many large records."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """An event with its place in the run's journal."""

    seq: int
    at: float
    event: Event


@dataclass(frozen=True, slots=True)
class Spoken:
    """A piece of the reply that began with record `began`; None takes it all back."""

    began: int
    text: str | None


@dataclass(frozen=True, slots=True)
class AskedBelow:
    """A run below this one has opened or closed a question."""


@dataclass(slots=True, eq=False)
class _Listener:
    more: asyncio.Event = field(default_factory=asyncio.Event)
    asked_below: bool = False
    spoken: deque[Spoken] = field(default_factory=lambda: deque(maxlen=MOST_UNREAD))


class Latest:
    """A run's newest committed state, for one who looks at it now and then."""

    __slots__ = ("state",)

    def __init__(self, state: RunState) -> None:
        self.state = state


Watcher = Callable[[RunState], None]
Taker = Callable[[Sequence[Record]], None]

T = TypeVar("T")


class Hub:
    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._listeners: dict[str, set[_Listener]] = defaultdict(set)
        self._watchers: dict[str, set[Watcher]] = defaultdict(set)
        self._status_watchers: dict[str, set[Watcher]] = defaultdict(set)
        self._latest: dict[str, set[Latest]] = defaultdict(set)
        self._takers: dict[str, set[Taker]] = defaultdict(set)
        self._attendants: dict[str, set[Callable[[], None]]] = defaultdict(set)
        self._onlookers: set[Callable[[], None]] = set()
        self._closed = False

    @property
    def closed(self) -> bool:
        return self._closed

    def publish(self, before: RunState, state: RunState, records: Sequence[Record] = ()) -> None:
        """Everything up to `state.version` is on disk, and `records` were the last of it."""
        run_id = state.run_id
        for listener in self._listeners.get(run_id, ()):
            listener.more.set()
        for latest in self._latest.get(run_id, ()):
            latest.state = state
        if state.status is not before.status:
            self._call(self._status_watchers, state)
        if run_id in self._watchers:
            self._call(self._watchers, state)
        for taker in tuple(self._takers.get(run_id, ())):
            taker(records)
        for onlooker in tuple(self._onlookers):
            try:
                onlooker()
            except Exception:
                log.exception("one who watches all runs failed")

    def _call(self, watchers: dict[str, set[Watcher]], state: RunState) -> None:
        for watcher in tuple(watchers.get(state.run_id, ())):
            try:
                watcher(state)
            except Exception:
                log.exception("a watcher of %s failed", state.run_id)

    def speak(self, run_id: str, began: int, text: str | None) -> None:
        """A piece of a model's reply, for those who listen now."""
        for listener in self._listeners.get(run_id, ()):
            listener.spoken.append(Spoken(began, text))
            listener.more.set()

    def ask_below(self, run_id: str) -> None:
        """This run's questions have changed: those who follow a run above it may want to look."""
        above = run_id
        while "." in above:
            above = above.rpartition(".")[0]
            for listener in self._listeners.get(above, ()):
                listener.asked_below = True
                listener.more.set()
            for stirred in tuple(self._attendants.get(above, ())):
                stirred()

    def close(self) -> None:
        """End every subscription."""
        self._closed = True
        for listeners in self._listeners.values():
            for listener in listeners:
                listener.more.set()
        for attendants in tuple(self._attendants.values()):
            for stirred in tuple(attendants):
                stirred()

    async def subscribe(self, run_id: str, after: int = 0) -> AsyncIterator[Recorded]:
        """The run's events from `after` on, and then each as it is committed."""
        async with aclosing(self.listen(run_id, after)) as heard:
            async for one in heard:
                if isinstance(one, Recorded):
                    yield one

    async def listen(
        self, run_id: str, after: int = 0
    ) -> AsyncGenerator[Recorded | Spoken | AskedBelow, None]:
        """As `subscribe`, and in between what a model is saying and that runs below ask."""
        async with aclosing(self.follow(run_id, after)) as followed:
            async for one in followed:
                if isinstance(one, list):
                    for record in one:
                        yield Recorded(record.seq, record.at, decode(record))
                else:
                    yield one

    async def follow(
        self, run_id: str, after: int = 0
    ) -> AsyncGenerator[list[Record] | Spoken | AskedBelow, None]:
        """As `listen`, with the records as they are stored, in pages: a page that is not full,
        and it may be empty, says that there are no more for now."""
        listener = _Listener()
        replied = 0
        self._listeners[run_id].add(listener)
        try:
            while True:
                listener.more.clear()
                full = True
                while full:
                    page = await self._read(run_id, after)
                    full = is_full(page)
                    after = page[-1].seq if page else after
                    replied = _last_reply(page) or replied
                    yield page
                if listener.asked_below:
                    listener.asked_below = False
                    yield AskedBelow()
                while listener.spoken:
                    spoken = listener.spoken.popleft()
                    if spoken.began > replied:
                        yield spoken
                if self._closed:
                    return
                await listener.more.wait()
        finally:
            _drop(self._listeners, run_id, listener)

    async def _read(self, run_id: str, after: int) -> list[Record]:
        try:
            return await self._journal.read(run_id, after, PAGE, PAGE_TEXT)
        except OperatorError:
            if self._closed:
                return []
            raise

    def watch(self, run_id: str, watcher: Watcher) -> Callable[[], None]:
        """Call `watcher` with each committed state, until the returned function is called."""
        self._watchers[run_id].add(watcher)
        return lambda: _drop(self._watchers, run_id, watcher)

    def watch_status(self, run_id: str, watcher: Watcher) -> Callable[[], None]:
        """As `watch`, with the states whose status is another one than before."""
        self._status_watchers[run_id].add(watcher)
        return lambda: _drop(self._status_watchers, run_id, watcher)

    def keep_current(self, latest: Latest) -> Callable[[], None]:
        """Give `latest` each committed state of its run, until the returned function is called."""
        self._latest[latest.state.run_id].add(latest)
        return lambda: _drop(self._latest, latest.state.run_id, latest)

    def take(self, run_id: str, taker: Taker) -> Callable[[], None]:
        """Call `taker` with the records of each commit that is made here from now on. Those of a
        commit that was not acknowledged it never gets; they are in the journal."""
        self._takers[run_id].add(taker)
        return lambda: _drop(self._takers, run_id, taker)

    def watch_all(self, onlooker: Callable[[], None]) -> Callable[[], None]:
        """Call `onlooker` whenever any run has committed something."""
        self._onlookers.add(onlooker)
        return lambda: self._onlookers.discard(onlooker)

    def when_stirred(self, run_id: str, stirred: Callable[[], None]) -> Callable[[], None]:
        """Call `stirred` when a run below asks something, and when the hub closes."""
        self._attendants[run_id].add(stirred)
        return lambda: _drop(self._attendants, run_id, stirred)


def is_full(page: list[Record]) -> bool:
    """Whether there may be more than this page has room for."""
    return len(page) == PAGE or sum(len(one.payload) for one in page) >= PAGE_TEXT


def _drop(registry: dict[str, set[T]], run_id: str, entry: T) -> None:
    registry[run_id].discard(entry)
    if not registry[run_id]:
        del registry[run_id]


def _last_reply(page: list[Record]) -> int:
    replies = (one.seq for one in page if one.type.partition("@")[0] == ModelReplied.__name__)
    return max(replies, default=0)
