"""The steps of a turn that failed, put aside: what going on must know of each.

RUNNING is work of which it is not known whether it took effect, FAILED what has failed, READY what
was begun and may simply be repeated.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from immutables import Map

from holdfast.core.conversation.state import ConversationState
from holdfast.core.run.four_eyes import LEADS_TO_THE_CALL, action_of
from holdfast.core.run.state import NEW_STEP, QuestionState, StepState, changed, evolve, without
from holdfast.core.run.steps import repeatable, says_failure
from holdfast.core.run.tables import StepStatus
from holdfast.model import conversation_events as v
from holdfast.model.conversation import EngineState
from holdfast.model.events import ChildHeard
from holdfast.model.interaction import InteractionStatus
from holdfast.model.retry import FailureKind
from holdfast.model.run import RunStatus
from holdfast.model.values import Json

PUT_ASIDE = (EngineState.ERROR, EngineState.IDLE)
"""Where the steps of a turn that failed are: it may go on, or has been stopped."""


def put_aside(state: ConversationState) -> Map[str, StepState]:
    """As the turn fails; what was put aside before and has not begun again stays."""
    kept = state.former
    for step_id, step in state.steps.items():
        if step_id in state.tasks and step.status is not StepStatus.DONE:
            kept = kept.set(step_id, _as_former(state, step_id, step))
    return kept


def _as_former(state: ConversationState, step_id: str, step: StepState) -> StepState:
    """Of child runs only one that has failed is kept: all others are ended with the turn."""
    if step.status is StepStatus.FAILED:
        mendable = step.awaits_child and step.child_status == RunStatus.ERROR
        return evolve(step, child_id=step.child_id if mendable else None)
    unknown = _in_doubt(state, step_id, step)
    status = StepStatus.RUNNING if unknown else StepStatus.READY
    return evolve(step, status=status, child_id=None, child_status=None, resuming=False)


def _in_doubt(state: ConversationState, step_id: str, step: StepState) -> bool:
    """It is out in the world, or was when a person was asked who could not tell."""
    if step.status is StepStatus.RUNNING:
        return step.awaits_child or not repeatable(step)
    about_it = (step_id, "unknown")
    return any(
        (one.step_id, one.purpose) == about_it and one.opened_seq > step.claim > 0
        for one in state.questions.values()
        if not _is_told(one)
    )


def _is_told(question: QuestionState) -> bool:
    """Whether a person has said what became of it, or to do it again."""
    answered = question.status is InteractionStatus.ANSWERED
    return answered and action_of(question, question.option_id) in LEADS_TO_THE_CALL


def is_doubtful(state: ConversationState, step_id: str) -> bool:
    former = state.former.get(step_id)
    under_way = former is not None and former.status is StepStatus.RUNNING
    return under_way and state.tasks[step_id].status == "running"


def begun_again(former: StepState | None) -> StepState:
    """A new step; what failed before is a new piece of work, unless it may have happened."""
    if former is None:
        return NEW_STEP
    known = {"args": former.args, "provided": former.provided, "carried": former.carried}
    if former.status is StepStatus.READY or _may_have_happened(former):
        same = {"firing": former.firing, "generation": former.generation}
        return evolve(NEW_STEP, **known, **same, consent=former.consent)
    consent = former.consent or former.former_consent
    child = {"child_id": former.child_id}
    return evolve(NEW_STEP, **known, **child, firing=former.firing + 1, former_consent=consent)


def _may_have_happened(former: StepState) -> bool:
    """A service that knows it by its key must see the same key again."""
    return former.failure is not None and former.failure.kind is FailureKind.UNKNOWN


def failed_late(state: ConversationState, event: v.TaskBroke) -> ConversationState:
    former = evolve(state.former[event.step_id], status=StepStatus.FAILED, failure=event.failure)
    return _put(state, event.step_id, former, "failed")


def child_heard_late(state: ConversationState, event: ChildHeard) -> ConversationState:
    """The child run of a failed task is mended without us, or ended."""
    state = changed(state, heard=state.heard.set(event.child_id, event.seq))
    former = evolve(state.former[event.step_id], child_status=event.status)
    match event.status:
        case RunStatus.DONE if state.phase not in PUT_ASIDE:
            # Its task is about to start: the result is at hand then.
            former = evolve(former, child_id=None, carried=(event.result,))
        case RunStatus.DONE if not says_failure(event.result):
            return done_late(state, event.step_id, event.result)
        case RunStatus.DONE | RunStatus.CANCELLED:
            former = evolve(former, child_id=None)
        case _:
            pass
    status = "failed" if state.phase in PUT_ASIDE else state.tasks[event.step_id].status
    return _put(state, event.step_id, former, status)


def done_late(state: ConversationState, step_id: str, result: Json) -> ConversationState:
    """A task that was under way when its turn failed has been done after all."""
    state = with_task(state, step_id, status="finished", result=result)
    return changed(state, former=without(state.former, step_id))


def _put(
    state: ConversationState, step_id: str, former: StepState, status: str
) -> ConversationState:
    state = changed(state, former=state.former.set(step_id, former))
    return with_task(state, step_id, status=status)


def with_task(state: ConversationState, step_id: str, **changes: Any) -> ConversationState:
    task = replace(state.tasks[step_id], **changes)
    return changed(state, tasks=state.tasks.set(step_id, task))
