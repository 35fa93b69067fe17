"""How a listener fails, and how often it is tried again."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from holdfast.model.record import record


class FailureKind(StrEnum):
    """Why an attempt failed; the kind decides what happens next."""

    TRANSIENT = "transient"
    PERMANENT = "permanent"
    FORBIDDEN = "forbidden"
    MISSING = "missing"
    UNKNOWN = "unknown"


@record
class Failure:
    kind: FailureKind
    message: str


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """The driver's attempts of one firing: exponential backoff in seconds, with jitter."""

    attempts: int = 3
    initial: float = 0.5
    factor: float = 2.0
    maximum: float = 60.0
    jitter: float = 0.2
