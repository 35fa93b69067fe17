"""What a task of a conversation asks people, and nothing else waits for the answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from holdfast.core.conversation.draft import Draft
from holdfast.core.interactions.proposals import change_form, differences, shown_call
from holdfast.core.interactions.requests import (
    APPROVAL_OPTIONS,
    PROVIDE_OPTION,
    UNKNOWN_OPTIONS,
    request_from_asking,
)
from holdfast.core.run.fold_questions import deadline_of
from holdfast.core.run.state import EMPTY
from holdfast.core.run.tables import StepStatus
from holdfast.errors import InvalidAnswer
from holdfast.model import conversation_events as v
from holdfast.model.commands import ToolFacts
from holdfast.model.events import OutcomeLost, QuestionOpened
from holdfast.model.form import Field, FieldType, Form
from holdfast.model.interaction import (
    RUN_AGAIN,
    Asking,
    InteractionAction,
    InteractionOption,
    InteractionType,
)
from holdfast.model.retry import Failure, FailureKind
from holdfast.model.values import Json

_LOST_RESULT = Form(
    (Field("result", FieldType.TEXTAREA, "What it returned, as far as is known", required=False),)
)
_FAILURE_OPTIONS = (
    InteractionOption(RUN_AGAIN, "Try again", InteractionAction.APPROVE_AND_EXECUTE),
    InteractionOption("skip", "Go on without it", InteractionAction.SKIP),
    InteractionOption("stop", "Stop the conversation", InteractionAction.TERMINATE),
)


def ask_missing(draft: Draft, step_id: str, form: Form) -> None:
    names = ", ".join(field.label or field.name for field in form.fields)
    _open(
        draft,
        step_id,
        "missing",
        InteractionType.MISSING_INFO,
        Asking(),
        title=_title(draft, step_id),
        message=f"Needed to go on: {names}",
        options=(PROVIDE_OPTION,),
        form=form,
    )


def ask_approval(
    draft: Draft, step_id: str, args: Mapping[str, Json], tool: ToolFacts, consent: str
) -> None:
    """Consent is bound to the very arguments that are shown."""
    name = draft.task(step_id).type
    shown: dict[str, Json] = shown_call(name, args, tool)
    asking = Asking()
    former = draft.step(step_id).consent
    if former is not None:
        words, before = differences(draft.state.questions.values(), former, shown)
        asking = replace(asking, details=words)
        shown["before"] = dict(before)
    _open(
        draft,
        step_id,
        "approval",
        InteractionType.TOOL_APPROVAL,
        asking,
        title=f"Run {name}?",
        options=APPROVAL_OPTIONS,
        form=change_form(tool.parameters),
        context=shown,
        args=args,
        consent=consent,
    )


def ask_unknown(draft: Draft, step_id: str, reason: str) -> None:
    """Sent, and nobody knows whether it took effect: only a person can find out."""
    step = draft.step(step_id)
    draft.emit(OutcomeLost(step_id, step.firing, reason))
    if draft.step(step_id).status is StepStatus.STOPPED:
        return
    what = draft.task(step_id).type or draft.task(step_id).id
    _open(
        draft,
        step_id,
        "unknown",
        InteractionType.USER_CHOICE,
        Asking(details="Look it up where it would have taken effect, then choose."),
        title=f"Did {what} happen?",
        message=f"{what} was begun, but its outcome is unknown: {reason}.",
        options=UNKNOWN_OPTIONS,
        form=_LOST_RESULT,
        context={"tool": what, "args": dict(step.args or EMPTY)},
    )


def ask_about_failure(draft: Draft, step_id: str, failure: Failure) -> None:
    _open(
        draft,
        step_id,
        "failed",
        InteractionType.USER_CHOICE,
        Asking(),
        title=f"{_title(draft, step_id)} failed",
        message="What shall become of it?",
        options=_FAILURE_OPTIONS,
        context={"error": failure.message},
    )


def _title(draft: Draft, step_id: str) -> str:
    task = draft.task(step_id)
    return f"Task {task.id}"


def _open(
    draft: Draft,
    step_id: str,
    purpose: str,
    kind: InteractionType,
    asking: Asking,
    *,
    args: Mapping[str, Json] | None = None,
    consent: str | None = None,
    **request: Any,
) -> None:
    step = draft.step(step_id)
    if step.feedback:
        asking = replace(asking, message=f"Feedback on the last answer: {step.feedback}")
    try:
        asked = request_from_asking(
            asking,
            request_id=draft.unguessable(),
            session_id=draft.state.run_id,
            type=kind,
            **request,
        )
    except InvalidAnswer as error:
        draft.emit(v.TaskBroke(step_id, Failure(FailureKind.PERMANENT, str(error))))
        return
    draft.emit(
        QuestionOpened(
            request=asked,
            step_id=step_id,
            firing=step.firing,
            purpose=purpose,
            deadline=deadline_of(asked, draft.now),
            args=args,
            consent=consent,
        )
    )
