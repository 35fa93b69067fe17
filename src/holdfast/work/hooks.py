"""Calling an application's own hook, which may be slow, or broken.

Whatever it does, who asks goes on: a hook that raises, or takes too long, comes to an AuthorError
in words for people, and the log has the rest for its author.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from holdfast.errors import AuthorError
from holdfast.i18n.message import msg
from holdfast.work.tools import called

log = logging.getLogger("holdfast")


async def asked(hook: Callable[..., Any], *given: Any, limit: float) -> object:
    """What the hook, async or not, returns within so many seconds."""
    name = getattr(hook, "__qualname__", None) or repr(hook)
    asking = await over(hook, *given, limit=limit)
    if asking is None:
        log.error("%s took longer than %g s", name, limit)
        raise AuthorError(msg("{hook} took too long", hook=name))
    if (error := raised(asking)) is not None:
        log.error("%s failed", name, exc_info=error)
        kind = type(error).__name__
        raise AuthorError(msg("{hook} raised {error}; the log says where", hook=name, error=kind))
    return asking.result()


async def over(
    hook: Callable[..., Any], *given: Any, limit: float
) -> asyncio.Future[object] | None:
    """The call of a hook once it is over; None where it takes longer than so many seconds."""
    asking = asyncio.ensure_future(_called(hook, given))
    asking.add_done_callback(raised)
    try:
        done, _ = await asyncio.wait((asking,), timeout=limit)
    finally:
        # A hook that does not let itself be cancelled is not waited for either.
        asking.cancel()
    return asking if done else None


async def _called(hook: Callable[..., Any], given: tuple[Any, ...]) -> object:
    try:
        return await called(hook, *given)
    except SystemExit as error:
        raise RuntimeError(f"it raised SystemExit: {error}") from error


def raised(asking: asyncio.Future[object]) -> BaseException | None:
    """Looked at once it is done, for asyncio tells of what is not."""
    return asyncio.CancelledError() if asking.cancelled() else asking.exception()
