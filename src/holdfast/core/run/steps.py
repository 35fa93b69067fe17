"""Steps of any machine: retries, late outcomes, child runs, termination."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias, TypeGuard

from holdfast.core.run.builder import DecisionBuilder
from holdfast.core.run.state import StepState
from holdfast.core.run.tables import StepStatus
from holdfast.i18n.message import msg
from holdfast.model import commands as c
from holdfast.model.events import (
    AttemptFailed,
    CancelRequested,
    ChildHeard,
    LateResultKept,
    QuestionWithdrawn,
    StepReleased,
)
from holdfast.model.retry import Failure, FailureKind, RetryPolicy
from holdfast.model.run import RunStatus
from holdfast.model.values import Json

_WORTH_ANOTHER = (FailureKind.TRANSIENT, FailureKind.UNKNOWN)


def succeeded(result: Json) -> bool:
    """A result that says `success: false` is a failure, wherever it comes from."""
    if type(result) is not dict and not isinstance(result, Mapping):
        return True
    return result.get("success") is not False


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
        return msg("the service asked for {n:g} s", n=asked)
    if not _backoff(policy, tries):
        return ""
    return msg("backoff after 1 try") if tries == 1 else msg("backoff after {n} tries", n=tries)


def why_not(policy: RetryPolicy, failure: Failure) -> str:
    """Of a service that asks for too long a wait."""
    return msg(
        "the service asked for {n:g} s, and longest_wait is {most:g} s",
        n=failure.retry_after,
        most=_longest(policy),
    )


def _backoff(policy: RetryPolicy, tries: int) -> float:
    try:
        return min(policy.initial * policy.factor ** (max(tries, 1) - 1), policy.maximum)
    except OverflowError:
        return policy.maximum


AnyBuilder: TypeAlias = DecisionBuilder[Any, Any]

_RUNNING: Final = StepStatus.RUNNING


def counts(builder: AnyBuilder, step: StepState | None, command: c.ReportOutcome) -> bool:
    """Whether an outcome is the one that its step waits for, or counts although it is late."""
    if step is not None and step.status is _RUNNING and step.claim == command.claim:
        return True
    return counts_late(builder, step, command)


def counts_late(builder: AnyBuilder, step: StepState | None, command: c.ReportOutcome) -> bool:
    """Whether it tells what a person is being asked; a result that does not is kept for audit."""
    if step is not None and _withdraws_unknown(builder, step, command):
        return True
    match command.outcome:
        case c.Succeeded(result=result) | c.OutputBroken(result=result):
            builder.emit(LateResultKept(command.step_id, command.firing, result))
        case _:
            pass
    return False


def _withdraws_unknown(builder: AnyBuilder, step: StepState, command: c.ReportOutcome) -> bool:
    """A late word that answers the open question whether the call took effect."""
    if not _tells(command.outcome) or step.claim != command.claim or step.question_id is None:
        return False
    if builder.state.questions[step.question_id].purpose != "unknown":
        return False
    builder.emit(QuestionWithdrawn(step.question_id, msg("the result arrived after all")))
    return True


def _tells(outcome: c.Outcome) -> bool:
    if isinstance(outcome, c.Failed):
        return outcome.failure.kind is not FailureKind.UNKNOWN
    return isinstance(outcome, c.Succeeded | c.OutputBroken | c.CallReturned)


def tries_again(builder: AnyBuilder, step_id: str, policy: RetryPolicy, failure: Failure) -> bool:
    """A further attempt where the policy grants one; a result that is at hand is not one."""
    step = builder.step(step_id)
    if builder.state.status is RunStatus.CANCELLING or step.carried is not None:
        return False
    delay = retry_delay(policy, failure, step.attempt, builder.jitter(), step.tried)
    if delay is None:
        return False
    told = why(policy, failure, step.tried + step.attempt)
    builder.emit(AttemptFailed(step_id, step.firing, failure, builder.now + delay, told))
    return True


def lost(outcome: c.Lost) -> Failure:
    """As the failure that it is where the work may be repeated."""
    return Failure(FailureKind.UNKNOWN, outcome.reason, outcome.retry_after)


def repeatable(step: StepState) -> bool:
    """Doing it again does no harm: it is pure, or the outside world knows it by its key."""
    return step.calling[2] if step.calling else step.idempotent or step.pure


def release(builder: AnyBuilder, step_id: str) -> None:
    builder.emit(StepReleased(step_id, builder.step(step_id).firing))


def says_failure(result: Json) -> TypeGuard[Mapping[str, Json]]:
    """Work that was done, and reports that it came to nothing."""
    return isinstance(result, Mapping) and result.get("success") is False


def in_flight(builder: AnyBuilder) -> tuple[str, ...]:
    """The steps whose work this very process does; a child run looks after itself."""
    return tuple(
        step_id
        for step_id, step in sorted(builder.state.steps.items())
        if step.status is StepStatus.RUNNING and not step.awaits_child
    )


def hears(builder: AnyBuilder, command: c.HearChild) -> bool:
    """A word from a child run that is new, and whose step still waits for that child."""
    step = builder.state.steps.get(command.step_id)
    if not is_news(builder, command) or step is None or step.child_id != command.child_id:
        return False
    known = {"provided": command.provided, "continued_at": command.continued_at}
    builder.emit(heard(command, waits_for=command.waits_for, **known))
    return True


def is_news(builder: AnyBuilder, command: c.HearChild) -> bool:
    before: int = builder.state.heard.get(command.child_id, 0)
    return before < command.seq


def heard(command: c.HearChild, **more: Any) -> ChildHeard:
    names = ("child_id", "seq", "step_id", "firing", "status", "message", "result")
    return ChildHeard(*(getattr(command, one) for one in names), **more)


def terminate(builder: AnyBuilder, by: str, reason: str) -> None:
    """A person ends everything: this run, and those that wait for it."""
    cancel_run(builder, c.Cancel(by, reason or msg("{by} chose to stop", by=by)), everything=True)


def cancel_run(builder: AnyBuilder, command: c.Cancel, *, everything: bool = False) -> None:
    """Nothing new starts; what is in flight may finish until the grace is over."""
    for question_id in sorted(builder.state.open_questions):
        builder.emit(QuestionWithdrawn(question_id, msg("the run is being cancelled")))
    until = builder.now + command.grace
    builder.emit(CancelRequested(command.by, command.reason, until, everything))
