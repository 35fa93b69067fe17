"""When a failed step is tried again: a policy in, a decision out."""

from __future__ import annotations

from holdfast.model.retry import Failure, FailureKind, RetryPolicy

_WORTH_ANOTHER = (FailureKind.TRANSIENT, FailureKind.UNKNOWN)


def retry_delay(
    policy: RetryPolicy, failure: Failure, attempt: int, jitter: float, tried: int = 0
) -> float | None:
    """Seconds until the driver's next attempt after number `attempt` failed, or None to give up.

    An unknown outcome comes here only when a repetition does no harm. `tried` counts the
    attempts before this firing.
    """
    if failure.kind not in _WORTH_ANOTHER or attempt >= policy.attempts:
        return None
    return wait(policy, failure, tried + attempt, jitter)


def wait(policy: RetryPolicy, failure: Failure, tries: int, jitter: float) -> float | None:
    """Seconds to wait after so many tries, or None where the service asks for too long a wait.

    `jitter` in [0, 1) spreads the backoff by the policy's share in both directions, but never
    to before the time that the service asked for.
    """
    backoff, asked = _backoff(policy, tries), failure.retry_after or 0.0
    if asked > _longest(policy):
        return None
    spread = backoff * policy.jitter
    return max(0.0, backoff + spread * (2 * jitter - 1), asked and asked + spread * jitter)


def _longest(policy: RetryPolicy) -> float:
    """An author who lets the backoff grow beyond `longest_wait` lets a service ask for as much."""
    return max(policy.longest_wait, policy.maximum)


def why(policy: RetryPolicy, failure: Failure, tries: int) -> str:
    """What a wait is for: the service's wish, or the policy's backoff; empty without one."""
    asked = failure.retry_after
    if asked is not None and asked >= _backoff(policy, tries):
        return f"the service asked for {asked:g} s"
    if not _backoff(policy, tries):
        return ""
    return "backoff after 1 try" if tries == 1 else f"backoff after {tries} tries"


def why_not(policy: RetryPolicy, failure: Failure) -> str:
    """Of a service that asks for too long a wait."""
    asked = f"the service asked for {failure.retry_after:g} s"
    return f"{asked}, and longest_wait is {_longest(policy):g} s"


def _backoff(policy: RetryPolicy, tries: int) -> float:
    try:
        return min(policy.initial * policy.factor ** (max(tries, 1) - 1), policy.maximum)
    except OverflowError:
        return policy.maximum
