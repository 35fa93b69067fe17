"""Decisions about a step that do not depend on the machine it belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias, TypeGuard

from holdfast.core.run.backoff import retry_delay, why
from holdfast.core.run.builder import DecisionBuilder
from holdfast.core.run.state import StepState
from holdfast.core.run.tables import StepStatus
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
    builder.emit(QuestionWithdrawn(step.question_id, "the result arrived after all"))
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
    if builder.state.heard.get(command.child_id, 0) >= command.seq:
        return False
    step = builder.state.steps.get(command.step_id)
    if step is None or step.child_id != command.child_id:
        return False
    builder.emit(
        ChildHeard(
            command.child_id,
            command.seq,
            command.step_id,
            command.firing,
            command.status,
            command.message,
            command.result,
            command.waits_for,
            command.provided,
            command.continued_at,
        )
    )
    return True


def terminate(builder: AnyBuilder, by: str, reason: str) -> None:
    """A person ends everything: this run, and those that wait for it."""
    cancel_run(builder, c.Cancel(by, reason or f"{by} chose to stop"), everything=True)


def cancel_run(builder: AnyBuilder, command: c.Cancel, *, everything: bool = False) -> None:
    """Nothing new starts; what is in flight may finish until the grace is over."""
    for question_id in sorted(builder.state.open_questions):
        builder.emit(QuestionWithdrawn(question_id, "the run is being cancelled"))
    until = builder.now + command.grace
    builder.emit(CancelRequested(command.by, command.reason, until, everything))
