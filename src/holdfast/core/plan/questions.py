"""Asking people.

A question is opened for one of four purposes: a tool or snippet lacks something
(`missing`), the plan asks on purpose (`human`), a call needs consent (`approval`),
or nobody knows whether a call took effect (`unknown`). What the answers do stands
in `answers`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from holdfast.core.forms.validation import answers_asked, visible_fields
from holdfast.core.interactions.consent import bind_consent, call_name
from holdfast.core.interactions.proposals import change_form, differences, shown_call
from holdfast.core.interactions.requests import (
    APPROVAL_OPTIONS,
    CONFIRM_OPTIONS,
    PROVIDE_OPTION,
    UNKNOWN_OPTIONS,
    request_from_asking,
)
from holdfast.core.plan.compiled import INPUTS
from holdfast.core.plan.draft import Draft, quiet
from holdfast.core.plan.planner import fail_listener
from holdfast.core.run.fold_questions import deadline_of
from holdfast.core.run.state import EMPTY
from holdfast.core.run.tables import StepStatus
from holdfast.errors import InvalidAnswer
from holdfast.model.commands import ToolFacts
from holdfast.model.events import Move, OutcomeLost, QuestionOpened
from holdfast.model.form import Field, FieldType, Form
from holdfast.model.interaction import Asking, InteractionType
from holdfast.model.plan import HumanAction, TaskStatus, ToolAction
from holdfast.model.retry import Failure, FailureKind
from holdfast.model.values import Json


def ask_missing(draft: Draft, listener_id: str, form: Form) -> None:
    """The work lacks parameters: pause for them, and go on at this very point."""
    action = draft.listener(listener_id).action
    names = ", ".join(field.label or field.name for field in form.fields)
    _open(
        draft,
        listener_id,
        "missing",
        InteractionType.MISSING_INFO,
        action.missing if isinstance(action, ToolAction) else Asking(),
        title=_title(draft, listener_id),
        message=f"Needed to go on: {names}",
        options=(PROVIDE_OPTION,),
        form=form,
    )


def ask_human(draft: Draft, listener_id: str, action: HumanAction, words: Sequence[str]) -> None:
    form = _still_missing(draft, action.form) if listener_id == INPUTS else action.form
    title, message, details = words
    confirmation = not form.fields
    _open(
        draft,
        listener_id,
        "human",
        InteractionType.USER_CONFIRMATION if confirmation else InteractionType.USER_INPUT,
        replace(action.asking, title=title, message=message, details=details),
        title=_title(draft, listener_id),
        options=CONFIRM_OPTIONS if confirmation else (PROVIDE_OPTION,),
        form=form,
    )


def ask_approval(draft: Draft, listener_id: str, args: Mapping[str, Json], tool: ToolFacts) -> None:
    """Consent is bound to the very arguments that are shown."""
    action = draft.listener(listener_id).action
    assert isinstance(action, ToolAction)
    shown: dict[str, Json] = shown_call(action.tool, args, tool)
    asking = action.consent
    former = draft.step(listener_id).consent
    if former is not None:
        words, before = differences(draft.state.questions.values(), former, shown)
        asking = replace(asking, details=words)
        shown["before"] = dict(before)
    _open(
        draft,
        listener_id,
        "approval",
        InteractionType.TOOL_APPROVAL,
        asking,
        title=f"Run {action.tool}?",
        options=APPROVAL_OPTIONS,
        form=change_form(tool.parameters, action.fields),
        context=shown,
        args=args,
        consent=consent_digest(draft, listener_id, action.tool, tool.version, args),
    )


def ask_unknown(draft: Draft, listener_id: str, reason: str) -> None:
    """Sent, and nobody knows whether it took effect: only a person can find out."""
    step = draft.step(listener_id)
    draft.emit(OutcomeLost(listener_id, step.firing, reason))
    if draft.step(listener_id).status is StepStatus.STOPPED:
        return
    what, args, form = _unknown_call(draft, listener_id)
    _open(
        draft,
        listener_id,
        "unknown",
        InteractionType.USER_CHOICE,
        Asking(details="Look it up where it would have taken effect, then choose."),
        title=f"Did {what} happen?",
        message=f"{what} was sent, but its outcome is unknown: {reason}.",
        options=UNKNOWN_OPTIONS,
        form=form,
        context={"tool": what, "args": dict(args)},
    )


def consent_digest(
    draft: Draft, listener_id: str, tool: str, version: str, args: Mapping[str, Json]
) -> str:
    call = call_name(draft.state.run_id, listener_id, draft.step(listener_id).firing)
    return bind_consent(call, tool, version, args)


def _open(
    draft: Draft,
    listener_id: str,
    purpose: str,
    kind: InteractionType,
    asking: Asking,
    *,
    args: Mapping[str, Json] | None = None,
    consent: str | None = None,
    **request: Any,
) -> None:
    step = draft.step(listener_id)
    if step.feedback:
        words = (asking.message or request.get("message", ""), _HEARD.format(step.feedback))
        asking = replace(asking, message="\n".join(filter(None, words)))
    try:
        asked = request_from_asking(
            asking,
            request_id=draft.unguessable(),
            session_id=draft.state.run_id,
            type=kind,
            **request,
        )
    except InvalidAnswer as error:
        fail_listener(draft, listener_id, Failure(FailureKind.PERMANENT, str(error)))
        return
    draft.emit(
        QuestionOpened(
            request=asked,
            step_id=listener_id,
            firing=step.firing,
            purpose=purpose,
            deadline=deadline_of(asked, draft.now),
            args=args,
            consent=consent,
            moves=_waiting_moves(draft, listener_id),
        )
    )


_HEARD = "Feedback on the last answer: {}"


def _waiting_moves(draft: Draft, listener_id: str) -> tuple[Move, ...]:
    """The sub-task is Pending while its listener waits for a person."""
    target = draft.listener(listener_id).target
    waits = {TaskStatus.NOT_STARTED, TaskStatus.RUNNING}
    if target is None or target == draft.state.plan.main:
        return ()
    if draft.state.task(target).status not in waits:
        return ()
    return (quiet(target, TaskStatus.PENDING, "waiting_for_person"),)


def _title(draft: Draft, listener_id: str) -> str:
    plan = draft.state.plan.plan
    target = draft.listener(listener_id).target
    task = next((task.name for task in plan.tasks if task.task_id == target), "")
    return f"{plan.name}: {task}" if task and task != plan.name else plan.name


def _still_missing(draft: Draft, form: Form) -> Form:
    """What was given at the start is not asked for again, and settles what depends on it."""
    given = draft.state.main_task.context
    data = {field.name: given[field.name] for field in form.fields if field.name in given}
    visible = visible_fields(form, data)
    missing = []
    for field in form.fields:
        settled = answers_asked(field) <= data.keys()
        if field.name not in data and (field in visible or not settled):
            missing.append(replace(field, visible_if=None) if settled else field)
    return Form(tuple(missing))


def _unknown_call(draft: Draft, listener_id: str) -> tuple[str, Mapping[str, Json], Form]:
    """What was called, with which arguments, and the form for the result that is lost."""
    step = draft.step(listener_id)
    if step.calling is not None:
        function, args, _ = step.calling
        return function, args, Form((Field("result", FieldType.TEXT, "Result"),))
    listener = draft.listener(listener_id)
    name = listener.action.tool if isinstance(listener.action, ToolAction) else listener_id
    return name, step.args or EMPTY, listener.lost_result
