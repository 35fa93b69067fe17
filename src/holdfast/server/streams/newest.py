"""Which session each principal last started or spoke in, and word of the next one.

An EventSource names no session and sends no message: it follows the caller's newest one. That
is kept in the store, so that it is known after a restart too; `since` is the record
after which the newest turn begins. What another server has noted, `look` finds.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Final

from holdfast.model.rows import Attached, ExpiringValue
from holdfast.runtime.clock import Clock
from holdfast.runtime.housekeeping import NEWEST
from holdfast.runtime.store import Store

KIND: Final = NEWEST


@dataclass(frozen=True, slots=True)
class Newest:
    session_id: str
    since: int


class NewestSessions:
    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._watchers: defaultdict[str, set[Callable[[], None]]] = defaultdict(set)
        self._seen: dict[str, Newest | None] = {}

    async def note(self, who: str, newest: Newest) -> None:
        kept = ExpiringValue(KIND, who, json.dumps(asdict(newest)))
        await self._store.attach(Attached(kept=(kept,)))
        self._tell(who)

    def _tell(self, who: str) -> None:
        for told in tuple(self._watchers.get(who, ())):
            told()

    async def look(self) -> None:
        """Tell those who watch a principal that has spoken elsewhere; and each of them once."""
        self._seen = {who: one for who, one in self._seen.items() if who in self._watchers}
        for who in tuple(self._watchers):
            newest = await self.of(who)
            if who not in self._seen or self._seen[who] != newest:
                self._seen[who] = newest
                self._tell(who)

    async def of(self, who: str) -> Newest | None:
        kept = await self._store.kept(KIND, who, self._clock.now())
        return None if kept is None else Newest(**json.loads(kept.body))

    def watch(self, who: str, told: Callable[[], None]) -> Callable[[], None]:
        """Call `told` whenever this principal speaks, until the returned function is called."""
        self._watchers[who].add(told)

        def unwatch() -> None:
            self._watchers[who].discard(told)
            if not self._watchers[who]:
                del self._watchers[who]

        return unwatch
