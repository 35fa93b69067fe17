"""The hub: tells subscribers what has been committed, and what a model is saying just now.

It holds no events. A subscriber reads the journal from where it stands and is told here that there
is more, so a slow one costs nothing and misses nothing.

The pieces of a model's reply are shown while they come and are not recorded; the finished reply is.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from holdfast.core.run.state import RunState
from holdfast.errors import OperatorError
from holdfast.journal.codec import decode
from holdfast.journal.port import Attached, Journal, Record, Written
from holdfast.model.agent_events import ModelReplied
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


@dataclass(slots=True, eq=False)
class Latest:
    """A run's newest committed state, to be read now and then."""

    state: RunState


Watcher = Callable[[RunState], None]
Taker = Callable[[Sequence[Record]], None]
Companion = Callable[[], Attached]


@dataclass(slots=True, eq=False)
class _Audience:
    """All that follow one run, each in its own way."""

    listeners: set[_Listener] = field(default_factory=set)
    watchers: set[Watcher] = field(default_factory=set)
    status_watchers: set[Watcher] = field(default_factory=set)
    latest: set[Latest] = field(default_factory=set)
    takers: set[Taker] = field(default_factory=set)
    stirred: set[Callable[[], None]] = field(default_factory=set)
    companions: set[Companion] = field(default_factory=set)

    @property
    def gone(self) -> bool:
        return not (self.status_watchers or self.hears_all)

    @property
    def hears_all(self) -> bool:
        """Whether it wants to hear of every commit, not only of those that change the status."""
        followed = self.listeners or self.watchers or self.latest
        return bool(followed or self.takers or self.stirred or self.companions)


_NOBODY = _Audience()


class Hub:
    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._audiences: dict[str, _Audience] = {}
        self._onlookers: set[Callable[[], None]] = set()
        self.closed = False

    def publish(self, before: RunState, state: RunState, records: Sequence[Written] = ()) -> None:
        """Everything up to `state.version` is on disk, and `records` were the last of it."""
        audience = self._audiences.get(state.run_id)
        if audience is not None:
            for latest in audience.latest:
                latest.state = state
            if audience.listeners:
                for listener in audience.listeners:
                    listener.more.set()
            if audience.watchers:
                _call(audience.watchers, state.run_id, state)
            if audience.status_watchers and state.status is not before.status:
                _call(audience.status_watchers, state.run_id, state)
            if audience.takers:
                named = [Record(*one) for one in records]
                for taker in tuple(audience.takers):
                    taker(named)
        if self._onlookers:
            _call(self._onlookers, "all runs")
        if state.open_questions is not before.open_questions:
            self._ask_below(state.run_id)

    def renew(self, state: RunState) -> None:
        """As `publish`, where it is not known which state its followers have seen last."""
        audience = self._of(state.run_id)
        for latest in audience.latest:
            latest.state = state
        for listener in audience.listeners:
            listener.more.set()
        _call(audience.watchers, state.run_id, state)
        _call(audience.status_watchers, state.run_id, state)
        self._ask_below(state.run_id)

    def followed(self) -> Collection[str]:
        """The runs that are followed by anything."""
        return tuple(self._audiences)

    def follows(self, run_id: str, turned: bool = True) -> bool:
        """Whether the run, or one above it, is followed by anything that wants to hear of it where
        it has `turned`, that is, has another status or came to rest, or else of all it does."""
        while True:
            audience = self._audiences.get(run_id)
            if audience is not None and (turned or audience.hears_all):
                return True
            if "." not in run_id:
                return False
            run_id = run_id.rpartition(".")[0]

    def rouse(self) -> None:
        """Others may have appended something: those that follow all runs are to look."""
        if self._onlookers:
            _call(self._onlookers, "all runs")

    def _of(self, run_id: str) -> _Audience:
        return self._audiences.get(run_id, _NOBODY)

    def speak(self, run_id: str, began: int, text: str | None) -> None:
        """A piece of a model's reply, for those who listen now."""
        for listener in self._of(run_id).listeners:
            listener.spoken.append(Spoken(began, text))
            listener.more.set()

    def _ask_below(self, run_id: str) -> None:
        """This run's questions have changed: those who follow a run above it may want to look."""
        above = run_id
        while "." in above:
            above = above.rpartition(".")[0]
            audience = self._of(above)
            for listener in audience.listeners:
                listener.asked_below = True
                listener.more.set()
            for stirred in tuple(audience.stirred):
                stirred()

    def close(self) -> None:
        """End every subscription."""
        self.closed = True
        for audience in tuple(self._audiences.values()):
            for listener in audience.listeners:
                listener.more.set()
            for stirred in tuple(audience.stirred):
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
        leave = self._join(run_id, "listeners", listener)
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
                if self.closed:
                    return
                await listener.more.wait()
        finally:
            leave()

    async def _read(self, run_id: str, after: int) -> list[Record]:
        try:
            return await self._journal.read(run_id, after, PAGE, PAGE_TEXT)
        except OperatorError:
            if self.closed:
                return []
            raise

    def watch(self, run_id: str, watcher: Watcher) -> Callable[[], None]:
        """Call `watcher` with each committed state, until the returned function is called."""
        return self._join(run_id, "watchers", watcher)

    def watch_status(self, run_id: str, watcher: Watcher) -> Callable[[], None]:
        """As `watch`, with the states whose status is another one than before."""
        return self._join(run_id, "status_watchers", watcher)

    def keep_current(self, latest: Latest) -> Callable[[], None]:
        """Give `latest` each committed state of its run, until the returned function is called."""
        return self._join(latest.state.run_id, "latest", latest)

    def take(self, run_id: str, taker: Taker) -> Callable[[], None]:
        """Call `taker` with the records of each commit that is made here from now on. Those of a
        commit that was not acknowledged it never gets; they are in the journal."""
        return self._join(run_id, "takers", taker)

    def accompany(self, run_id: str, companion: Companion) -> Callable[[], None]:
        """Commit what `companion` says together with each append of a run that is pulled."""
        return self._join(run_id, "companions", companion)

    def along(self, run_id: str) -> list[Attached]:
        """What goes with the run's next append."""
        return [companion() for companion in self._of(run_id).companions]

    def watch_all(self, onlooker: Callable[[], None]) -> Callable[[], None]:
        """Call `onlooker` whenever any run has committed something."""
        self._onlookers.add(onlooker)
        return lambda: self._onlookers.discard(onlooker)

    def when_stirred(self, run_id: str, stirred: Callable[[], None]) -> Callable[[], None]:
        """Call `stirred` when a run below asks something, and when the hub closes."""
        return self._join(run_id, "stirred", stirred)

    def _join(self, run_id: str, way: str, follower: Any) -> Callable[[], None]:
        audience = self._audiences.setdefault(run_id, _Audience())
        followers: set[Any] = getattr(audience, way)
        followers.add(follower)

        def leave() -> None:
            followers.discard(follower)
            if audience.gone and self._audiences.get(run_id) is audience:
                del self._audiences[run_id]

        return leave


def is_full(page: list[Record]) -> bool:
    """Whether there may be more than this page has room for."""
    return len(page) == PAGE or sum(len(one.payload) for one in page) >= PAGE_TEXT


def _call(watchers: Collection[Callable[..., None]], of: str, *told: RunState) -> None:
    for watcher in tuple(watchers):
        try:
            watcher(*told)
        except Exception:
            log.exception("a watcher of %s failed", of)


def _last_reply(page: list[Record]) -> int:
    replies = (one.seq for one in page if one.type.partition("@")[0] == ModelReplied.__name__)
    return max(replies, default=0)
