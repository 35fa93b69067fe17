"""Refusals of several servers count together.

Each server keeps one row in their store, with what it has refused lately, and reads those of the
others: once a second, and it writes only where it has refused something. So a client has its limit
at each server for a second at most. A good request costs nothing.
"""

from __future__ import annotations

import json
from typing import Final
from uuid import uuid4

from holdfast.model.rows import Attached, ExpiringValue
from holdfast.runtime.store import Store
from holdfast.server.auth.authentication import Attempts, Key, Now

KIND: Final = "refused"
MOST_CLIENTS: Final = 100
"""Of how many clients, those that were refused last, the others are told."""


class SharedRefusals:
    def __init__(self, attempts: Attempts, store: Store, clock: Now) -> None:
        self._attempts = attempts
        self._store = store
        self._clock = clock
        self._ourselves = uuid4().hex
        self._told = 0

    async def exchange(self) -> None:
        """Tell the other servers what was refused here, and hear what they have."""
        now = self._clock.now()
        if self._told != self._attempts.refusals:
            refusals, times = self._attempts.refusals, self._attempts.latest(MOST_CLIENTS)
            body = json.dumps([[*key, list(at)] for key, at in times.items()])
            until = now + self._attempts.longest
            kept = ExpiringValue(KIND, self._ourselves, body, until)
            await self._store.attach(Attached(kept=(kept,)))
            self._told = refusals
        elsewhere: dict[Key, list[float]] = {}
        for row in await self._store.all_kept(KIND, now):
            if row.key != self._ourselves:
                for kind, who, at in json.loads(row.body):
                    elsewhere.setdefault((kind, who), []).extend(at)
        self._attempts.elsewhere = elsewhere
