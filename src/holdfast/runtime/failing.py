"""What work raised, as the outcome of its attempt."""

from __future__ import annotations

from typing import Final

from holdfast.model import commands as c
from holdfast.model.retry import Failure, FailureKind
from holdfast.work.failures import classify, words_of
from holdfast.work.retry_after import asked_by

LONGEST_MESSAGE: Final = 2_000


def failed(error: BaseException) -> c.Outcome:
    kind, message = classify(error), kept_text(words_of(error))
    if kind is FailureKind.UNKNOWN:
        return c.Lost(message)
    return c.Failed(Failure(kind, message, asked_by(error)))


def kept_text(said: object) -> str:
    """Foreign words as the journal can keep them: real Unicode, and not without end."""
    sound = str(said).encode("utf-8", "backslashreplace").decode()
    return sound if len(sound) <= LONGEST_MESSAGE else f"{sound[:LONGEST_MESSAGE]}…"
