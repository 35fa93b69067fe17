"""Tasks of the engine's own, which act for no caller."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from contextvars import Context, copy_context
from typing import Any

from holdfast.runtime.identity import ACTING
from holdfast.runtime.log_context import REQUEST

log = logging.getLogger("holdfast")


class BackgroundTasks:
    """The engine's tasks: none is lost, a failure is logged, all end with the engine. They act for
    no caller, whatever command has started them."""

    def __init__(self) -> None:
        self.running: set[asyncio.Task[Any]] = set()

    def spawn(
        self, work: Coroutine[Any, Any, None], context: Context | None = None
    ) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(
            work, context=_unattributed() if context is None else context
        )
        self.running.add(task)
        task.add_done_callback(self._ended)
        return task

    async def finish(self, grace: float) -> None:
        """Wait for what is under way, and cancel what has not ended after `grace`."""
        give_up_at = asyncio.get_running_loop().time() + grace
        while self.running:
            left = give_up_at - asyncio.get_running_loop().time()
            if left <= 0:
                for task in self.running:
                    task.cancel()
            await asyncio.wait(tuple(self.running), timeout=max(left, 0.1))

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self.running.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a background task failed", exc_info=error)


def _unattributed() -> Context | None:
    """A context without an identity and its request; None when this one has none."""
    if ACTING.get() is None:
        return None
    context = copy_context()
    context.run(ACTING.set, None)
    context.run(REQUEST.set, None)
    return context
