"""The engine's background tasks: none is lost, none fails in silence, all end at the end.

They act for nobody, whoever's command has set them off.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from contextvars import Context
from typing import Any

from holdfast.runtime.identity import nobodys

log = logging.getLogger("holdfast")


class BackgroundTasks:
    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def spawn(
        self, work: Coroutine[Any, Any, None], context: Context | None = None
    ) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(
            work, context=nobodys() if context is None else context
        )
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    async def finish(self, grace: float) -> None:
        """Let what is under way end; what never ends must not hold us."""
        give_up_at = asyncio.get_running_loop().time() + grace
        while self._tasks:
            left = give_up_at - asyncio.get_running_loop().time()
            if left <= 0:
                for task in self._tasks:
                    task.cancel()
            await asyncio.wait(tuple(self._tasks), timeout=max(left, 0.1))

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a background task failed", exc_info=error)
