"""What work raised, as the outcome of its attempt."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Final

from holdfast.i18n.message import msg
from holdfast.model import commands as c
from holdfast.model.retry import Failure, FailureKind
from holdfast.work.ending import ends_from_without
from holdfast.work.failures import classify, words_of
from holdfast.work.retry_after import asked_by
from holdfast.work.traces import traceback_of

LONGEST_MESSAGE: Final = 2_000


async def settled(work: Awaitable[c.Outcome]) -> c.Outcome:
    """What came of work, whatever it raised: not even SystemExit ends more than the work."""
    task = asyncio.current_task()
    try:
        return await work
    except BaseException as error:
        if ends_from_without(error, task):
            raise
        return failed(error)


def failed(error: BaseException) -> c.Outcome:
    if isinstance(error, asyncio.CancelledError):
        return c.Lost(msg("the work was cancelled from within"))
    kind, message = classify(error), kept_text(words_of(error))
    asked, traceback = asked_by(error), sound(traceback_of(error))
    if kind is FailureKind.UNKNOWN:
        return c.Lost(message, asked, traceback)
    return c.Failed(Failure(kind, message, asked), traceback=traceback)


def kept_text(said: object) -> str:
    """Foreign words as the journal can keep them: real Unicode, and not without end."""
    given = str(said)
    text = sound(given)
    if len(text) > LONGEST_MESSAGE:
        return f"{text[:LONGEST_MESSAGE]}…"
    return given if text == given else text


def sound(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()
