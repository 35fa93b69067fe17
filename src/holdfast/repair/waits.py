"""Whether a failed call is worth a further round, and when.

The service's own wish counts before what is learned, and what is learned before the author's
backoff. The plan says how long may be waited in all.
"""

from __future__ import annotations

from typing import Final

from holdfast.core.plan.planner import both
from holdfast.core.plan.state import PlanState
from holdfast.core.run.steps import wait
from holdfast.i18n.message import msg
from holdfast.model.record import record
from holdfast.model.recovery import Moments
from holdfast.model.retry import Failure, FailureKind, GiveUp, Retry

_MAY_RECOVER: Final = (FailureKind.TRANSIENT, FailureKind.UNKNOWN)
_NO_JITTER: Final = 0.5


@record
class Failing:
    """A call of a tool that has failed `since` seconds after its first failure, in an attempt that
    began `tried` seconds after it. The service `asked` to be left alone for so long; with the
    author's backoff it would be `usual`. The plan lets it be waited for what is `left`."""

    tool: str
    since: float
    tried: float
    asked: float
    usual: float
    left: float


def failing_of(state: PlanState, listener_id: str, failure: Failure, now: float) -> Failing | None:
    """None where no wait can help, or one that the author leaves to a person."""
    listener, step = state.plan.listeners[listener_id], state.steps[listener_id]
    tries = step.tried + step.attempt
    usual = wait(listener.listener.retry, failure, tries, _NO_JITTER)
    if listener.tool is None or failure.kind not in _MAY_RECOVER or usual is None:
        return None
    first = now if step.failing_since is None else step.failing_since
    since, most = now - first, state.plan.plan.repair.most.wait
    tried, asked = max(0.0, step.clock - first), failure.retry_after or 0.0
    return Failing(listener.tool, since, tried, asked, usual, most - since)


def weighed(advice: Retry, found: Moments, failing: Failing) -> Retry | GiveUp:
    """The advice in the light of what is known. Where the service, or the author's backoff, says
    when, it stays as it is."""
    asked = failing.asked
    worth = found.wait(failing.tried, failing.since) if found.known else 0.0
    if asked and (worth is None or asked >= worth):
        return _within(failing.left, asked, msg("the service asked for {n:g} s", n=asked), advice)
    if not found.known:
        return advice
    why = both(advice.why, found.why(failing.tried))
    if worth is None:
        return GiveUp(why)
    return _within(failing.left, worth, why, Retry(advice.most, worth, why))


def _within(left: float, due: float, why: str, advice: Retry) -> Retry | GiveUp:
    if due <= left:
        return advice
    return GiveUp(msg("{why}: longer than the plan allows", why=why))


def held(advice: Retry, failing: Failing, hold: float, why: str) -> Retry:
    """The advice, put off for as long as too many others fail, but not beyond what is left."""
    hold = min(hold, failing.left)
    if hold <= (failing.usual if advice.delay is None else advice.delay):
        return advice
    return Retry(advice.most, hold, both(advice.why, why))
