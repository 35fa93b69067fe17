"""Fault points that kill: SIGKILL at the n-th time a named point is reached."""

from __future__ import annotations

import os
import signal
from collections import Counter


class KillAt:
    """Kills the process, without any chance to tidy up, at `point` for the `nth` time."""

    def __init__(self, point: str, nth: int) -> None:
        self._point = point
        self._nth = nth
        self.reached: Counter[str] = Counter()

    def reach(self, point: str) -> None:
        self.reached[point] += 1
        if point == self._point and self.reached[point] == self._nth:
            os.kill(os.getpid(), signal.SIGKILL)


class CountFaults:
    """Counts how often each point is reached, to know where one may kill."""

    def __init__(self) -> None:
        self.reached: Counter[str] = Counter()

    def reach(self, point: str) -> None:
        self.reached[point] += 1
