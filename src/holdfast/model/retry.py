"""How a listener fails, and how often it is tried again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from holdfast.model.record import TextEnum, record


class FailureKind(TextEnum):
    """Why an attempt failed; the kind decides what happens next."""

    TRANSIENT = "transient"
    PERMANENT = "permanent"
    FORBIDDEN = "forbidden"
    MISSING = "missing"
    UNKNOWN = "unknown"


@record
class Failure:
    """`retry_after` is how many seconds the service asked to be left alone."""

    kind: FailureKind
    message: str
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """The driver's attempts of one firing: exponential backoff in seconds, with jitter.

    The backoff goes on over the planner's retries. `longest_wait` is the longest Retry-After
    that is obeyed; a service that asks for more is left to a person.
    """

    attempts: int = 3
    initial: float = 0.5
    factor: float = 2.0
    maximum: float = 60.0
    jitter: float = 0.2
    longest_wait: float = 3_600.0


@record
class Retry:
    """Fire the listener again, up to `most` times in all: after `delay` seconds, or when its
    backoff, and what the service asked for, are over. `why` is shown to people."""

    most: int
    delay: float | None = None
    why: str = ""


@record
class GiveUp:
    """Wait for a person; `why` is shown to people."""

    why: str = ""


Advice: TypeAlias = Retry | GiveUp
