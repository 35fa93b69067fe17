"""What work raised, as the outcome of its attempt."""

from __future__ import annotations

from typing import Final

from holdfast.model import commands as c
from holdfast.model.retry import Failure, FailureKind
from holdfast.work.failures import classify, words_of
from holdfast.work.retry_after import asked_by
from holdfast.work.traces import traceback_of

LONGEST_MESSAGE: Final = 2_000


def failed(error: BaseException) -> c.Outcome:
    kind, message = classify(error), kept_text(words_of(error))
    asked, traceback = asked_by(error), sound(traceback_of(error))
    if kind is FailureKind.UNKNOWN:
        return c.Lost(message, asked, traceback)
    return c.Failed(Failure(kind, message, asked), traceback=traceback)


def kept_text(said: object) -> str:
    """Foreign words as the journal can keep them: real Unicode, and not without end."""
    text = sound(str(said))
    return text if len(text) <= LONGEST_MESSAGE else f"{text[:LONGEST_MESSAGE]}…"


def sound(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()
