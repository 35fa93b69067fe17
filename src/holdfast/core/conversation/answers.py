"""What people's answers do in a conversation, and what the clock does when nobody answers."""

from __future__ import annotations

from typing import assert_never

from holdfast.core.conversation import phases
from holdfast.core.conversation.builder import Builder
from holdfast.core.conversation.state import CONFIRM
from holdfast.core.conversation.tasks import broke, conclude_carried
from holdfast.core.interactions.answers import NOBODY, expiry, rejection, take
from holdfast.core.run.four_eyes import CLOCK
from holdfast.core.run.window import shorten
from holdfast.i18n.message import msg
from holdfast.language.strict import canonical_json
from holdfast.model import conversation_events as v
from holdfast.model.commands import Answer
from holdfast.model.interaction import InteractionAction
from holdfast.model.retry import Failure, FailureKind

_LONGEST_LIST = 4_000


def answer(builder: Builder, command: Answer) -> None:
    judged = take(builder, command)
    if judged is not None:
        step_id = builder.state.questions[command.question_id].step_id
        follow = _follow_confirmation if step_id == CONFIRM else _follow
        follow(builder, step_id, judged.action, command.by, judged.reason)


def expire(builder: Builder, question_id: str) -> None:
    question = builder.state.questions[question_id]
    expired, action = expiry(question)
    builder.emit(expired)
    if action is None:
        broke(builder, question.step_id, Failure(FailureKind.MISSING, NOBODY))
    else:
        _follow(builder, question.step_id, action, CLOCK, NOBODY)


def _follow_confirmation(
    builder: Builder, step_id: str, action: InteractionAction, by: str, reason: str
) -> None:
    match action:
        case InteractionAction.TERMINATE:
            _follow(builder, step_id, action, by, reason)
        case InteractionAction.RETRY_WITH_FEEDBACK:
            builder.emit(v.TasksRefused(_told_model(builder, reason), by))
        case _:
            builder.emit(v.TasksConfirmed(by))


def _told_model(builder: Builder, reason: str) -> str:
    made = [
        {"id": one.id, "description": one.description, "type": one.type}
        for one in map(builder.state.tasks.__getitem__, builder.state.order)
    ]
    tasks = shorten(canonical_json(made), _LONGEST_LIST)
    return f"a person wants other tasks than these: {tasks}. They said: {reason}"


def _follow(
    builder: Builder, step_id: str, action: InteractionAction, by: str, reason: str
) -> None:
    """The step is ready again and may simply go on, unless the answer says otherwise."""
    match action:
        case InteractionAction.REJECT_WITH_REASON:
            broke(builder, step_id, rejection(by, reason))
        case InteractionAction.SKIP:
            why = reason or msg("{by} went on without it", by=by)
            told = {"skipped": True, "by": by, "reason": why}
            builder.emit(v.TaskFinished(step_id, told, why))
        case InteractionAction.TERMINATE:
            phases.abort(builder, _ended(by, reason))
        case (
            InteractionAction.APPROVE_AND_EXECUTE
            | InteractionAction.PROVIDE_INFO
            | InteractionAction.RETRY_WITH_FEEDBACK
            | InteractionAction.CUSTOM
        ):
            conclude_carried(builder, step_id)
        case _:
            assert_never(action)


def _ended(by: str, reason: str) -> str:
    if reason:
        return msg("ended by {by}: {reason}", by=by, reason=reason)
    return msg("ended by {by}", by=by)
