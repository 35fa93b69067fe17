"""Decisions about a step that do not depend on the machine it belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias, TypeGuard

from holdfast.core.run.backoff import retry_delay, why
from holdfast.core.run.builder import RunDraft
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

AnyDraft: TypeAlias = RunDraft[Any, Any]

_RUNNING: Final = StepStatus.RUNNING


def counts(draft: AnyDraft, step: StepState | None, command: c.ReportOutcome) -> bool:
    """Whether an outcome is the one that its step waits for, or counts although it is late."""
    if step is not None and step.status is _RUNNING and step.claim == command.claim:
        return True
    return counts_late(draft, step, command)


def counts_late(draft: AnyDraft, step: StepState | None, command: c.ReportOutcome) -> bool:
    """Whether it tells what a person is being asked; a result that does not is kept for audit."""
    if step is not None and _withdraws_unknown(draft, step, command):
        return True
    match command.outcome:
        case c.Succeeded(result=result) | c.OutputBroken(result=result):
            draft.emit(LateResultKept(command.step_id, command.firing, result))
        case _:
            pass
    return False


def _withdraws_unknown(draft: AnyDraft, step: StepState, command: c.ReportOutcome) -> bool:
    """A late word that answers the open question whether the call took effect."""
    if not _tells(command.outcome) or step.claim != command.claim or step.question_id is None:
        return False
    if draft.state.questions[step.question_id].purpose != "unknown":
        return False
    draft.emit(QuestionWithdrawn(step.question_id, "the result arrived after all"))
    return True


def _tells(outcome: c.Outcome) -> bool:
    if isinstance(outcome, c.Failed):
        return outcome.failure.kind is not FailureKind.UNKNOWN
    return isinstance(outcome, c.Succeeded | c.OutputBroken | c.CallReturned)


def tries_again(draft: AnyDraft, step_id: str, policy: RetryPolicy, failure: Failure) -> bool:
    """A further attempt where the policy grants one; a result that is at hand is not one."""
    step = draft.step(step_id)
    if draft.state.status is RunStatus.CANCELLING or step.carried is not None:
        return False
    delay = retry_delay(policy, failure, step.attempt, draft.jitter(), step.tried)
    if delay is None:
        return False
    told = why(policy, failure, step.tried + step.attempt)
    draft.emit(AttemptFailed(step_id, step.firing, failure, draft.now + delay, told))
    return True


def lost(outcome: c.Lost) -> Failure:
    """As the failure that it is where the work may be repeated."""
    return Failure(FailureKind.UNKNOWN, outcome.reason, outcome.retry_after)


def repeatable(step: StepState) -> bool:
    """Doing it again does no harm: it is pure, or the outside world knows it by its key."""
    return step.calling[2] if step.calling else step.idempotent or step.pure


def release(draft: AnyDraft, step_id: str) -> None:
    draft.emit(StepReleased(step_id, draft.step(step_id).firing))


def says_failure(result: Json) -> TypeGuard[Mapping[str, Json]]:
    """Work that was done, and reports that it came to nothing."""
    return isinstance(result, Mapping) and result.get("success") is False


def in_flight(draft: AnyDraft) -> tuple[str, ...]:
    """The steps whose work this very process does; a child run looks after itself."""
    return tuple(
        step_id
        for step_id, step in sorted(draft.state.steps.items())
        if step.status is StepStatus.RUNNING and not step.awaits_child
    )


def hears(draft: AnyDraft, command: c.HearChild) -> bool:
    """A word from a child run that is new, and whose step still waits for that child."""
    if draft.state.heard.get(command.child_id, 0) >= command.seq:
        return False
    step = draft.state.steps.get(command.step_id)
    if step is None or step.child_id != command.child_id:
        return False
    draft.emit(
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


def terminate(draft: AnyDraft, by: str, reason: str) -> None:
    """A person ends everything: this run, and those that wait for it."""
    cancel_run(draft, c.Cancel(by, reason or f"{by} chose to stop"), everything=True)


def cancel_run(draft: AnyDraft, command: c.Cancel, *, everything: bool = False) -> None:
    """Nothing new starts; what is in flight may finish until the grace is over."""
    for question_id in sorted(draft.state.open_questions):
        draft.emit(QuestionWithdrawn(question_id, "the run is being cancelled"))
    until = draft.now + command.grace
    draft.emit(CancelRequested(command.by, command.reason, until, everything))
