"""Whether an exception is the work's own, or ends the work from without."""

from __future__ import annotations

import asyncio
import threading
from typing import Any


def ends_from_without(error: BaseException, task: asyncio.Task[Any] | None) -> bool:
    """Called off by another, interrupted at the terminal, or thrown away; `task` did the work."""
    match error:
        case asyncio.CancelledError():
            return task is not None and bool(task.cancelling())
        case KeyboardInterrupt():
            return threading.current_thread() is threading.main_thread()
        case GeneratorExit():
            return running_task() is not task
    return False


def running_task() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None
