"""Long work beside the event loop, one piece at a time.

It is for work that gives the interpreter up between its steps, as reading a plan or drawing one
does: the loop then waits for a few milliseconds at most. With several workers it would wait for
each of them in turn, so there is one, whoever asks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import Final, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

_WORKER: Final = ThreadPoolExecutor(1, "holdfast-aside")


async def aside(work: Callable[P, R], *args: P.args, **options: P.kwargs) -> R:
    """What `work` returns, done in the worker's turn."""
    loop = asyncio.get_running_loop()
    called = partial(copy_context().run, work, *args, **options)
    return await loop.run_in_executor(_WORKER, called)
