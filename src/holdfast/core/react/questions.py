"""What a session asks people: consent to a call, what a call lacks, what became of one.

Everything that is shown as ours comes from the executor's own data. Where the model
itself asks (`ask_person`), its words are quoted in the question's context and nowhere
else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from holdfast.core.interactions.proposals import change_form, differences, shown_call
from holdfast.core.interactions.requests import (
    APPROVAL_OPTIONS,
    PROVIDE_OPTION,
    UNKNOWN_OPTIONS,
    request_from_asking,
    sound,
)
from holdfast.core.react.draft import Draft
from holdfast.core.run.fold_questions import deadline_of
from holdfast.core.run.state import EMPTY
from holdfast.core.run.tables import StepStatus
from holdfast.errors import InvalidAnswer
from holdfast.model.commands import Ask, ToolFacts
from holdfast.model.events import OutcomeLost, QuestionOpened
from holdfast.model.form import Field, FieldType, Form
from holdfast.model.interaction import (
    Asking,
    InteractionAction,
    InteractionOption,
    InteractionRequest,
    InteractionType,
)
from holdfast.model.react_events import Call
from holdfast.model.values import Json

_LOST_RESULT = Form(
    (Field("result", FieldType.TEXTAREA, "What it returned, as far as is known", required=False),)
)
_ANSWER = Form((Field("answer", FieldType.TEXTAREA, "Answer"),))
_SKIP = InteractionOption("skip", "Do not answer", InteractionAction.SKIP)
_MOST_CHOICES = 20
_LONGEST_LABEL = 200


def ask(draft: Draft, command: Ask) -> None:
    """A question from outside, which belongs to no call; the model hears the answer."""
    request = replace(
        command.request,
        request_id=draft.unguessable(),
        session_id=draft.state.run_id,
    )
    step_id = f"q{draft.state.numbered + 1}"
    _opened(draft, step_id, "asked", sound(request))


def ask_approval(
    draft: Draft, call: Call, args: Mapping[str, Json], tool: ToolFacts, consent: str
) -> None:
    """Consent is bound to the very arguments that are shown."""
    asking = draft.state.agent.asking
    shown: dict[str, Json] = {**shown_call(call.tool, args, tool), "call_id": call.call_id}
    former = draft.step(call.step_id).consent
    if former is not None:
        words, before = differences(draft.state.questions.values(), former, shown)
        asking = replace(asking, details=words)
        shown["before"] = dict(before)
    _ask(
        draft,
        call,
        "approval",
        InteractionType.TOOL_APPROVAL,
        asking,
        title=f"Run {call.tool}?",
        message=f"{_name(draft)} wants to call {call.tool} with these arguments.",
        options=APPROVAL_OPTIONS,
        form=change_form(tool.parameters),
        context=shown,
        args=args,
        consent=consent,
    )


def ask_missing(draft: Draft, call: Call, form: Form) -> None:
    """The call lacks arguments: ask for them, and go on at this very call.

    One who only looks asks nobody: the work is done, and nobody waits for questions.
    """
    if draft.state.only is not None:
        lacking = ", ".join(field.name for field in form.fields)
        draft.end(call.step_id, "refused", {"error": f"required arguments are missing: {lacking}"})
        return
    names = ", ".join(field.label or field.name for field in form.fields)
    _ask(
        draft,
        call,
        "missing",
        InteractionType.MISSING_INFO,
        Asking(),
        title=f"{call.tool} needs more",
        message=f"Needed to go on: {names}",
        options=(PROVIDE_OPTION,),
        form=form,
        context={"tool": call.tool, "args": dict(call.args), "call_id": call.call_id},
    )


def ask_unknown(draft: Draft, step_id: str, reason: str) -> None:
    """Sent, and nobody knows whether it took effect: only a person can find out."""
    step = draft.step(step_id)
    draft.emit(OutcomeLost(step_id, step.firing, reason))
    if draft.step(step_id).status is StepStatus.STOPPED:
        return
    call = draft.call(step_id)
    _ask(
        draft,
        call,
        "unknown",
        InteractionType.USER_CHOICE,
        Asking(details="Look it up where it would have taken effect, then choose."),
        title=f"Did {call.tool} happen?",
        message=f"{call.tool} was sent, but its outcome is unknown: {reason}.",
        options=UNKNOWN_OPTIONS,
        form=_LOST_RESULT,
        context={"tool": call.tool, "args": dict(step.args or EMPTY)},
    )


def ask_person(draft: Draft, call: Call) -> None:
    """The model asks: one of several choices, or words of the person's own."""
    question = str(call.args.get("question", ""))
    choices = _choices(call)
    _ask(
        draft,
        call,
        "asked",
        InteractionType.USER_CHOICE if choices else InteractionType.USER_INPUT,
        Asking(),
        title=f"{_name(draft)} asks",
        message="The agent wants to know something; its own words are quoted.",
        options=(*choices, _SKIP) if choices else (PROVIDE_OPTION, _SKIP),
        form=Form() if choices else _ANSWER,
        context={"quoted": question, "call_id": call.call_id},
    )


def _choices(call: Call) -> tuple[InteractionOption, ...]:
    given = call.args.get("options")
    labels = [str(one)[:_LONGEST_LABEL] for one in given] if isinstance(given, list) else []
    return tuple(
        InteractionOption(
            f"choice_{number}",
            f"“{label}”",
            InteractionAction.APPROVE_AND_EXECUTE,
            metadata={"choice": label},
        )
        for number, label in enumerate(labels[:_MOST_CHOICES], 1)
    )


def _name(draft: Draft) -> str:
    return draft.state.agent.name or draft.state.agent.agent_id


def _ask(
    draft: Draft,
    call: Call,
    purpose: str,
    kind: InteractionType,
    asking: Asking,
    *,
    args: Mapping[str, Json] | None = None,
    consent: str | None = None,
    **request: Any,
) -> None:
    try:
        asked = request_from_asking(
            asking,
            request_id=draft.unguessable(),
            session_id=draft.state.run_id,
            type=kind,
            **request,
        )
    except InvalidAnswer as error:
        draft.end(call.step_id, "refused", {"error": str(error)})
        return
    _opened(draft, call.step_id, purpose, asked, args, consent)


def _opened(
    draft: Draft,
    step_id: str,
    purpose: str,
    request: InteractionRequest,
    args: Mapping[str, Json] | None = None,
    consent: str | None = None,
) -> None:
    step = draft.state.steps.get(step_id)
    draft.emit(
        QuestionOpened(
            request=request,
            step_id=step_id,
            firing=1 if step is None else step.firing,
            purpose=purpose,
            deadline=deadline_of(request, draft.now),
            args=args,
            consent=consent,
        )
    )
