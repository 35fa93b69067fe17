"""Tells functions of the application's own of alerts: each in turn, and beside the runs.

A function that takes its time is told of the next alert when it is done with the last; of what
comes meanwhile the newest are kept.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from contextvars import Context
from typing import Any, Final

from holdfast.repair.alerts import Alert
from holdfast.runtime.background import BackgroundTasks
from holdfast.work.tools import called

log = logging.getLogger("holdfast")

MOST_WAITING: Final = 1_000


class AlertHook:
    def __init__(self, function: Callable[[Alert], Any], background: BackgroundTasks) -> None:
        self._function = function
        self._background = background
        self._waiting: deque[Alert] = deque()
        self._telling: asyncio.Task[None] | None = None

    def __call__(self, alert: Alert) -> None:
        self._waiting.append(alert)
        if len(self._waiting) > MOST_WAITING:
            log.warning("%s is not told: %s", self._name, self._waiting.popleft().message)
        if self._telling is None or self._telling.done():
            # Not in the context of the run in which it came true: it is no work of that run's.
            self._telling = self._background.spawn(self._tell(), Context())

    async def _tell(self) -> None:
        while self._waiting:
            alert = self._waiting.popleft()
            try:
                await called(self._function, alert)
            except Exception:
                log.exception("%s failed, told of: %s", self._name, alert.message)

    @property
    def _name(self) -> str:
        return getattr(self._function, "__qualname__", None) or repr(self._function)
