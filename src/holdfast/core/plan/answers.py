"""What people's answers do in a plan, and what the clock does when nobody answers.

`core.interactions.answers` judges the answer; here its action is carried out. There is no
model to think again, so RETRY asks again and shows the feedback.
"""

from __future__ import annotations

from typing import assert_never

from holdfast.core.interactions.answers import NOBODY, expiry, rejection, take
from holdfast.core.interactions.answers import keep_draft as keep_draft
from holdfast.core.plan.builder import Builder
from holdfast.core.plan.planner import fail_listener, skip_listener
from holdfast.core.run.four_eyes import CLOCK
from holdfast.core.run.steps import terminate
from holdfast.model.commands import Answer
from holdfast.model.interaction import InteractionAction
from holdfast.model.retry import Failure, FailureKind


def answer(builder: Builder, command: Answer) -> None:
    judged = take(builder, command)
    if judged is not None:
        listener_id = builder.state.questions[command.question_id].step_id
        _follow(builder, listener_id, judged.action, by=command.by, reason=judged.reason)


def expire(builder: Builder, question_id: str) -> None:
    """The deadline has passed: the default option is taken, else the listener fails."""
    question = builder.state.questions[question_id]
    expired, action = expiry(question)
    builder.emit(expired)
    if action is None:
        failure = Failure(FailureKind.MISSING, NOBODY)
        fail_listener(builder, question.step_id, failure, final=True)
        return
    _follow(builder, question.step_id, action, by=CLOCK, reason=NOBODY)


def _follow(
    builder: Builder, listener_id: str, action: InteractionAction, *, by: str, reason: str
) -> None:
    """What the chosen action does; the step is ready again and may simply go on."""
    match action:
        case (
            InteractionAction.APPROVE_AND_EXECUTE
            | InteractionAction.PROVIDE_INFO
            | InteractionAction.RETRY_WITH_FEEDBACK
            | InteractionAction.CUSTOM
        ):
            return
        case InteractionAction.REJECT_WITH_REASON:
            fail_listener(builder, listener_id, rejection(by, reason), final=True)
        case InteractionAction.SKIP:
            skip_listener(builder, listener_id, by, reason)
        case InteractionAction.TERMINATE:
            terminate(builder, by, reason)
        case _:
            assert_never(action)
