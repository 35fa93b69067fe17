"""Asking people.

A question is opened for one of four purposes: a tool or snippet lacks something
(`missing`), the plan asks on purpose (`human`), a call needs consent (`approval`),
or nobody knows whether a call took effect (`unknown`). What the answers do stands
in `answers`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from holdfast.core.forms.validation import answers_asked, visible_fields
from holdfast.core.language.strict import canonical_json, digest
from holdfast.core.plan.compiled import INPUTS
from holdfast.core.plan.draft import Draft, quiet
from holdfast.core.plan.fold_questions import RUN_AGAIN
from holdfast.core.plan.state import EMPTY
from holdfast.core.plan.tables import StepStatus
from holdfast.model.commands import ToolFacts
from holdfast.model.events import (
    Move,
    OutcomeLost,
    QuestionOpened,
)
from holdfast.model.form import Field, FieldType, Form
from holdfast.model.interaction import (
    InteractionAction,
    InteractionOption,
    InteractionRequest,
    InteractionType,
)
from holdfast.model.plan import HumanAction, TaskStatus, ToolAction
from holdfast.model.values import Json

HAPPENED = "happened"

_PROVIDE = InteractionOption("provide", "Provide", InteractionAction.PROVIDE_INFO)
_CONFIRM = (
    InteractionOption("confirm", "Confirm", InteractionAction.APPROVE_AND_EXECUTE),
    InteractionOption("reject", "Reject", InteractionAction.REJECT_WITH_REASON),
)
_APPROVAL = (
    InteractionOption(
        "approve", "Approve and run", InteractionAction.APPROVE_AND_EXECUTE, is_dangerous=True
    ),
    InteractionOption(
        "retry",
        "Ask again with feedback",
        InteractionAction.RETRY_WITH_FEEDBACK,
        requires_input=True,
        input_prompt="What should be different?",
    ),
    InteractionOption(
        "reject",
        "Reject",
        InteractionAction.REJECT_WITH_REASON,
        requires_input=True,
        input_prompt="Why not?",
    ),
    InteractionOption(
        "terminate", "Reject and stop everything", InteractionAction.TERMINATE, is_dangerous=True
    ),
)
_UNKNOWN = (
    InteractionOption(
        HAPPENED,
        "It happened",
        InteractionAction.PROVIDE_INFO,
        description="Go on with the result that you fill in; nothing is called again.",
    ),
    InteractionOption(
        RUN_AGAIN,
        "Run it again",
        InteractionAction.APPROVE_AND_EXECUTE,
        description="Call it once more under the same key.",
        is_dangerous=True,
    ),
    InteractionOption(
        "stop",
        "Stop",
        InteractionAction.TERMINATE,
        description="Cancel the whole run.",
        is_dangerous=True,
    ),
)


def ask_missing(draft: Draft, listener_id: str, form: Form) -> None:
    """The work lacks parameters: pause for them, and go on at this very point."""
    names = ", ".join(field.label or field.name for field in form.fields)
    _open(
        draft,
        listener_id,
        "missing",
        InteractionType.MISSING_INFO,
        title=_title(draft, listener_id),
        message=f"Needed to go on: {names}",
        options=(_PROVIDE,),
        form=form,
    )


def ask_human(
    draft: Draft, listener_id: str, action: HumanAction, title: str, message: str
) -> None:
    form = _still_missing(draft, action.form) if listener_id == INPUTS else action.form
    confirmation = not form.fields
    _open(
        draft,
        listener_id,
        "human",
        InteractionType.USER_CONFIRMATION if confirmation else InteractionType.USER_INPUT,
        title=title or _title(draft, listener_id),
        message=message,
        options=_CONFIRM if confirmation else (_PROVIDE,),
        form=form,
        timeout_seconds=action.timeout_seconds,
        role=action.role,
    )


def ask_approval(draft: Draft, listener_id: str, args: Mapping[str, Json], tool: ToolFacts) -> None:
    """Consent is bound to the very arguments that are shown."""
    action = draft.listener(listener_id).action
    assert isinstance(action, ToolAction)
    feedback = draft.step(listener_id).feedback
    _open(
        draft,
        listener_id,
        "approval",
        InteractionType.TOOL_APPROVAL,
        title=f"Run {action.tool}?",
        message=f"Feedback on the last proposal: {feedback}" if feedback else "",
        options=_APPROVAL,
        context={"tool": action.tool, "args": dict(args), "tool_version": tool.version},
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
        title=f"Did {what} happen?",
        message=f"{what} was sent, but its outcome is unknown: {reason}.",
        details="Look it up where it would have taken effect, then choose.",
        options=_UNKNOWN,
        form=form,
        context={"tool": what, "args": dict(args)},
    )


def consent_digest(
    draft: Draft, listener_id: str, tool: str, version: str, args: Mapping[str, Json]
) -> str:
    call = f"{draft.state.run_id}:{listener_id}:{draft.step(listener_id).firing}"
    return bind_consent(call, tool, version, args)


def bind_consent(call: str, tool: str, version: str, args: Mapping[str, Json]) -> str:
    """What a person consented to: this call of this version of this tool with these bytes."""
    return digest([call, tool, version, canonical_json(dict(args))])


def _open(
    draft: Draft,
    listener_id: str,
    purpose: str,
    kind: InteractionType,
    *,
    args: Mapping[str, Json] | None = None,
    consent: str | None = None,
    timeout_seconds: float | None = None,
    **request: Any,
) -> None:
    step = draft.step(listener_id)
    deadline = None if timeout_seconds is None else draft.now + timeout_seconds
    draft.emit(
        QuestionOpened(
            request=InteractionRequest(
                request_id=draft.unguessable(),
                session_id=draft.state.run_id,
                type=kind,
                timeout_seconds=timeout_seconds,
                **request,
            ),
            listener_id=listener_id,
            firing=step.firing,
            purpose=purpose,
            deadline=deadline,
            args=args,
            consent=consent,
            moves=_waiting_moves(draft, listener_id),
        )
    )


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
    fields = tuple(Field(one, FieldType.TEXT, one) for one in listener.result_fields)
    return name, step.args or EMPTY, Form(fields)
