"""The hub: tells the living what has been committed.

It holds no events. A subscriber reads the journal from where it stands and waits
here for word that there is more, so a slow one costs nothing and misses nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import TypeVar

from holdfast.core.plan.state import PlanState
from holdfast.errors import OperatorError
from holdfast.journal.codec import decode
from holdfast.journal.port import Journal, Record
from holdfast.model.events import Event

log = logging.getLogger("holdfast")


@dataclass(frozen=True, slots=True)
class Recorded:
    """An event with its place in the run's journal."""

    seq: int
    at: float
    event: Event


Watcher = Callable[[PlanState], None]

T = TypeVar("T")


class Hub:
    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._listeners: dict[str, set[asyncio.Event]] = defaultdict(set)
        self._watchers: dict[str, set[Watcher]] = defaultdict(set)
        self._closed = False

    def publish(self, state: PlanState) -> None:
        """Everything up to `state.version` is on disk."""
        for listener in self._listeners.get(state.run_id, ()):
            listener.set()
        for watcher in tuple(self._watchers.get(state.run_id, ())):
            try:
                watcher(state)
            except Exception:
                log.exception("a watcher of %s failed", state.run_id)

    def close(self) -> None:
        """End every subscription."""
        self._closed = True
        for listeners in self._listeners.values():
            for listener in listeners:
                listener.set()

    async def subscribe(self, run_id: str, after: int = 0) -> AsyncIterator[Recorded]:
        """The run's events from `after` on, and then each as it is committed."""
        more = asyncio.Event()
        self._listeners[run_id].add(more)
        try:
            while True:
                more.clear()
                for record in await self._read(run_id, after):
                    after = record.seq
                    yield Recorded(record.seq, record.at, decode(record))
                if self._closed:
                    return
                await more.wait()
        finally:
            _drop(self._listeners, run_id, more)

    async def _read(self, run_id: str, after: int) -> list[Record]:
        try:
            return await self._journal.read(run_id, after)
        except OperatorError:
            if self._closed:
                return []
            raise

    def watch(self, run_id: str, watcher: Watcher) -> Callable[[], None]:
        """Call `watcher` with each committed state, until the returned function is called."""
        self._watchers[run_id].add(watcher)
        return lambda: _drop(self._watchers, run_id, watcher)


def _drop(registry: dict[str, set[T]], run_id: str, entry: T) -> None:
    registry[run_id].discard(entry)
    if not registry[run_id]:
        del registry[run_id]
