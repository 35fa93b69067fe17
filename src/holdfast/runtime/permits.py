"""Permits: how many effects may be out in the world at once.

A listener is started, and its start journaled, only when a permit is already
held; so a thousand ready listeners are not a thousand started ones.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable


class Permits:
    def __init__(self, limit: int) -> None:
        if limit < 1:
            raise ValueError("at least one effect must be allowed at a time")
        self._free = limit
        self._hungry: deque[Callable[[], None]] = deque()

    def take(self) -> bool:
        if self._free == 0:
            return False
        self._free -= 1
        return True

    def give_back(self) -> None:
        """Free a permit and call whoever has waited longest for one."""
        self._free += 1
        if self._hungry:
            self._hungry.popleft()()

    def when_free(self, call: Callable[[], None]) -> None:
        self._hungry.append(call)
