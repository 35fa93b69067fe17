"""What people's answers do in a conversation, and what the clock does when nobody answers."""

from __future__ import annotations

from typing import assert_never

from holdfast.core.conversation import phases
from holdfast.core.conversation.builder import Draft
from holdfast.core.conversation.state import CONFIRM
from holdfast.core.conversation.tasks import broke, conclude_carried
from holdfast.core.interactions.answers import NOBODY, expiry, rejection, take
from holdfast.core.run.four_eyes import CLOCK
from holdfast.core.run.window import shorten
from holdfast.language.strict import canonical_json
from holdfast.model import conversation_events as v
from holdfast.model.commands import Answer
from holdfast.model.interaction import InteractionAction
from holdfast.model.retry import Failure, FailureKind

_LONGEST_LIST = 4_000


def answer(draft: Draft, command: Answer) -> None:
    judged = take(draft, command)
    if judged is not None:
        step_id = draft.state.questions[command.question_id].step_id
        follow = _follow_confirmation if step_id == CONFIRM else _follow
        follow(draft, step_id, judged.action, command.by, judged.reason)


def expire(draft: Draft, question_id: str) -> None:
    question = draft.state.questions[question_id]
    expired, action = expiry(question)
    draft.emit(expired)
    if action is None:
        broke(draft, question.step_id, Failure(FailureKind.MISSING, NOBODY))
    else:
        _follow(draft, question.step_id, action, CLOCK, NOBODY)


def _follow_confirmation(
    draft: Draft, step_id: str, action: InteractionAction, by: str, reason: str
) -> None:
    match action:
        case InteractionAction.TERMINATE:
            _follow(draft, step_id, action, by, reason)
        case InteractionAction.RETRY_WITH_FEEDBACK:
            draft.emit(v.TasksRefused(_told_model(draft, reason), by))
        case _:
            draft.emit(v.TasksConfirmed(by))


def _told_model(draft: Draft, reason: str) -> str:
    made = [
        {"id": one.id, "description": one.description, "type": one.type}
        for one in map(draft.state.tasks.__getitem__, draft.state.order)
    ]
    tasks = shorten(canonical_json(made), _LONGEST_LIST)
    return f"a person wants other tasks than these: {tasks}. They said: {reason}"


def _follow(draft: Draft, step_id: str, action: InteractionAction, by: str, reason: str) -> None:
    """The step is ready again and may simply go on, unless the answer says otherwise."""
    match action:
        case InteractionAction.REJECT_WITH_REASON:
            broke(draft, step_id, rejection(by, reason))
        case InteractionAction.SKIP:
            why = reason or f"{by} went on without it"
            told = {"skipped": True, "by": by, "reason": why}
            draft.emit(v.TaskFinished(step_id, told, why))
        case InteractionAction.TERMINATE:
            phases.abort(draft, f"ended by {by}" + (f": {reason}" if reason else ""))
        case (
            InteractionAction.APPROVE_AND_EXECUTE
            | InteractionAction.PROVIDE_INFO
            | InteractionAction.RETRY_WITH_FEEDBACK
            | InteractionAction.CUSTOM
        ):
            conclude_carried(draft, step_id)
        case _:
            assert_never(action)
