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


class Cause(TextEnum):
    """What is wrong with the world, the call or the plan; the cause decides what may help."""

    OUTAGE = "outage"
    RATE_LIMIT = "rate_limit"
    CREDENTIALS = "credentials"
    RIGHTS = "rights"
    ARGUMENT = "argument"
    PRECONDITION = "precondition"
    CONFLICT = "conflict"
    RESULT_SHAPE = "result_shape"
    WRONG_RESULT = "wrong_result"
    DOUBT = "doubt"
    REFUSED = "refused"
    PLAN = "plan"
    UNKNOWN = "unknown"


@record
class Failure:
    """`retry_after` is how many seconds the service asked to be left alone. `status` is an HTTP
    answer's, `code` the service's own word for the error, `field` the argument that it names.
    `fingerprint` is the same for failures that are alike."""

    kind: FailureKind
    message: str
    retry_after: float | None = None
    cause: Cause | None = None
    status: int | None = None
    code: str = ""
    field: str = ""
    fingerprint: str = ""


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
