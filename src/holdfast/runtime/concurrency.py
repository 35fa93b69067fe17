"""Permits: how many effects may be out in the world at once.

A listener is started, and its start journaled, only when a permit is already
held; so a thousand ready listeners are not a thousand started ones.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable


class ConcurrencyLimit:
    def __init__(self, limit: int) -> None:
        if limit < 1:
            raise ValueError("at least one effect must be allowed at a time")
        self.free = limit
        """What is out already counts even beyond the limit, and makes it negative."""
        self.hungry: deque[Callable[[], None]] = deque()

    def give_back(self) -> None:
        """Free a permit, or pass it on to whoever has waited longest for one."""
        if self.hungry and self.free >= 0:
            self.hungry.popleft()()
        else:
            self.free += 1

    def when_free(self, call: Callable[[], None]) -> None:
        """Call back, once, with a permit in hand, which must be used or given back."""
        self.hungry.append(call)
