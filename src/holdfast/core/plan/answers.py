"""What people's answers do in a plan, and what the clock does when nobody answers.

`core.interactions.answers` judges the answer; here its action is carried out. There is no
model to think again, so RETRY asks again and shows the feedback.
"""

from __future__ import annotations

from typing import assert_never

from holdfast.core.interactions import answers
from holdfast.core.plan.draft import Draft
from holdfast.core.plan.planner import fail_listener, skip_listener
from holdfast.core.run.steps import terminate
from holdfast.core.run.wanting import CLOCK
from holdfast.model.commands import Answer, KeepDraft
from holdfast.model.interaction import InteractionAction
from holdfast.model.retry import Failure, FailureKind


def answer(draft: Draft, command: Answer) -> None:
    question = answers.find(draft.state, command.question_id)
    wanted_by = draft.moment.wanted_by
    judged = answers.judge(draft.state, question, command, draft.now, wanted_by)
    if judged is None:
        return
    draft.emit(judged.event)
    _follow(draft, question.step_id, judged.action, by=command.by, reason=judged.reason)


def keep_draft(draft: Draft, command: KeepDraft) -> None:
    question = answers.find(draft.state, command.question_id)
    draft.emit(answers.kept_draft(question, command, draft.now))


def expire(draft: Draft, question_id: str) -> None:
    """The deadline has passed: the default option is taken, else the listener fails."""
    question = draft.state.questions[question_id]
    expired, action = answers.expiry(question)
    draft.emit(expired)
    if action is None:
        failure = Failure(FailureKind.MISSING, "nobody answered in time")
        fail_listener(draft, question.step_id, failure, final=True)
        return
    _follow(draft, question.step_id, action, by=CLOCK, reason="nobody answered in time")


def _follow(
    draft: Draft, listener_id: str, action: InteractionAction, *, by: str, reason: str
) -> None:
    """What the chosen action does; the step is ready again and may simply go on."""
    match action:
        case InteractionAction.REJECT_WITH_REASON:
            text = f"rejected by {by}" + (f": {reason}" if reason else "")
            failure = Failure(FailureKind.FORBIDDEN, text)
            fail_listener(draft, listener_id, failure, final=True)
        case InteractionAction.SKIP:
            skip_listener(draft, listener_id, by, reason)
        case InteractionAction.TERMINATE:
            terminate(draft, by, reason)
        case (
            InteractionAction.APPROVE_AND_EXECUTE
            | InteractionAction.PROVIDE_INFO
            | InteractionAction.RETRY_WITH_FEEDBACK
            | InteractionAction.CUSTOM
        ):
            return
        case _:
            assert_never(action)
