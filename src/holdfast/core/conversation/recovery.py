"""Going on after a failure: what was done is kept, and only what is left runs.

When a turn fails its steps are put aside (see `former`). Whoever goes on has the turn pass the
seed's phases once more, from idle to scheduling, with its context and its tasks at hand, so that
nobody is asked for them again.
"""

from __future__ import annotations

from holdfast.core.conversation import questions, schedule
from holdfast.core.conversation.builder import Builder
from holdfast.core.conversation.former import is_doubtful
from holdfast.core.conversation.state import ConversationState
from holdfast.errors import NotAllowed
from holdfast.i18n.message import msg
from holdfast.model import commands as c
from holdfast.model import conversation_events as v
from holdfast.model.conversation import AfterFailure, EngineState
from holdfast.model.events import ChildHeard, LateResultKept
from holdfast.model.retry import FailureKind


def go_on(builder: Builder, command: c.GoOn) -> None:
    if command.failed is AfterFailure.STOP:
        builder.enter(EngineState.IDLE)
        builder.emit(v.ConversationStopped(command.by))
        return
    skipped = tuple(to_skip(builder.state)) if command.failed is AfterFailure.SKIP else ()
    if command.failed is AfterFailure.SKIP and not skipped:
        raise NotAllowed(
            msg(
                "no task of {id} has failed, so there is none to skip: retry or stop",
                id=builder.state.run_id,
            )
        )
    builder.enter(EngineState.IDLE)
    builder.emit(v.ConversationResumed(command.failed, command.by, skipped))
    builder.enter(EngineState.RECEIVING)
    for step_id in doubtful(builder.state):
        questions.ask_unknown(builder, step_id, "it was under way when the turn failed")


def choices(state: ConversationState) -> list[AfterFailure]:
    """What a person may choose; there is nothing to skip where no task has failed."""
    return [one for one in AfterFailure if one is not AfterFailure.SKIP or failed(state)]


def failed(state: ConversationState) -> list[str]:
    """The steps of the tasks that failed."""
    return [one for one in state.order if state.tasks[one].status == "failed"]


def to_skip(state: ConversationState) -> list[str]:
    """What failed, and whatever depends on that, however far away, and is not skipped already."""
    found = schedule.with_dependents(state.frees, failed(state))
    return [one for one in found if not state.tasks[one].skipped]


def doubtful(state: ConversationState) -> list[str]:
    """Tasks of which nobody knows whether they took effect."""
    return [one for one in state.order if is_doubtful(state, one)]


def report_late(builder: Builder, command: c.ReportOutcome) -> None:
    """Word of work that was under way when its turn failed: what it says is kept for going on."""
    former = builder.state.former.get(command.step_id)
    stale = former is None or former.claim != command.claim
    match command.outcome:
        case c.Succeeded(result=result):
            builder.emit(LateResultKept(command.step_id, command.firing, result, stale))
        case c.Failed(failure=failure) if not stale and failure.kind is not FailureKind.UNKNOWN:
            builder.emit(v.TaskBroke(command.step_id, failure))
        case _:
            pass


def hear_late(builder: Builder, command: c.HearChild) -> None:
    """Word of a child run that failed with its task and may have been mended since."""
    former = builder.state.former.get(command.step_id)
    news = builder.state.heard.get(command.child_id, 0) < command.seq
    if news and former is not None and former.child_id == command.child_id:
        builder.emit(
            ChildHeard(
                command.child_id,
                command.seq,
                command.step_id,
                command.firing,
                command.status,
                command.message,
                command.result,
            )
        )
