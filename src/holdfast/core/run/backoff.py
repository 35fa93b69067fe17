"""When the driver tries a failed firing again: a policy in, a decision out."""

from __future__ import annotations

from holdfast.model.retry import Failure, FailureKind, RetryPolicy

_WORTH_ANOTHER = (FailureKind.TRANSIENT, FailureKind.UNKNOWN)


def retry_delay(policy: RetryPolicy, failure: Failure, attempt: int, jitter: float) -> float | None:
    """Seconds until the next attempt after number `attempt` failed, or None to give up.

    An unknown outcome comes here only when a repetition does no harm.
    `jitter` in [0, 1) spreads the delay by the policy's share in both directions.
    """
    if failure.kind not in _WORTH_ANOTHER or attempt >= policy.attempts:
        return None
    delay = min(_grown(policy, attempt), policy.maximum)
    return max(0.0, delay * (1 + policy.jitter * (2 * jitter - 1)))


def _grown(policy: RetryPolicy, attempt: int) -> float:
    try:
        return policy.initial * policy.factor ** (attempt - 1)
    except OverflowError:
        return policy.maximum
