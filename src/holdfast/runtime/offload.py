"""Long work beside the event loop, one piece at a time.

It is for work that gives the interpreter up between its steps, as reading a plan or drawing one
does: the loop then waits for a few milliseconds at most. With several workers it would wait for
each of them in turn, so there is one for all. At most `MOST_WAITING` pieces wait for it: beyond
that the caller gets Busy, before anything of the request is kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import Any, Final, ParamSpec, TypeVar

from holdfast.errors import Busy
from holdfast.i18n.message import msg

P = ParamSpec("P")
R = TypeVar("R")

MOST_WAITING: Final = 50

_WORKER: Final = ThreadPoolExecutor(1, "holdfast-aside")
_waiting: Final = set[Future[Any]]()


async def aside(work: Callable[P, R], *args: P.args, **options: P.kwargs) -> R:
    """What `work` returns, done in the worker's turn; Busy where too much waits already."""
    if len(_waiting) >= MOST_WAITING:
        raise Busy(msg("too much long work is waiting already: try again in a moment"))
    future = _WORKER.submit(partial(copy_context().run, work, *args, **options))
    _waiting.add(future)
    future.add_done_callback(_waiting.discard)
    return await asyncio.wrap_future(future)
