"""What a session asks people: consent to a call, what a call lacks, what became of one.

Everything that is shown as ours comes from the executor's own data. Where the model
itself asks (`ask_person`), its words are quoted in the question's context and nowhere
else.

The agent's `asking` says in full how consent is asked for. Of every other question it
says who is asked and when: its words and options would not fit there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from holdfast.core.agent.builder import Draft
from holdfast.core.interactions.opening import (
    NO_FIELDS,
    Question,
    approval_question,
    loses,
    missing_question,
    open_question,
    unknown_question,
)
from holdfast.core.interactions.requests import PROVIDE_OPTION, SKIP_OPTION, sound
from holdfast.core.run.four_eyes import asked_of
from holdfast.core.run.question_reducers import deadline_of
from holdfast.core.run.state import EMPTY
from holdfast.model.agent_events import Call
from holdfast.model.commands import Ask, ToolFacts
from holdfast.model.events import QuestionOpened
from holdfast.model.form import Field, FieldType, Form
from holdfast.model.interaction import (
    Asking,
    InteractionAction,
    InteractionOption,
    InteractionType,
)
from holdfast.model.values import Json

_ANSWER = Form((Field("answer", FieldType.TEXTAREA, "Answer"),))
_SKIP = InteractionOption("skip", "Do not answer", InteractionAction.SKIP)
_MOST_CHOICES = 20
_LONGEST_LABEL = 200


def ask(draft: Draft, command: Ask) -> None:
    """A question from outside, which belongs to no call; the model hears the answer."""
    run_id, number = draft.state.run_id, draft.state.numbered + 1
    asked = replace(command.request, request_id=draft.unguessable(), session_id=run_id)
    request = sound(asked)
    deadline = deadline_of(request, draft.now)
    wanted_by = asked_of(draft.state, request.type, "asked", draft.wanted_by)
    step_id = f"q{number}"
    draft.emit(QuestionOpened(request, step_id, 1, "asked", deadline, wanted_by=wanted_by))


def ask_approval(
    draft: Draft, call: Call, args: Mapping[str, Json], tool: ToolFacts, consent: str
) -> None:
    question = approval_question(
        draft,
        call.step_id,
        call.tool,
        args,
        tool,
        consent,
        message=f"{_name(draft)} wants to call {call.tool} with these arguments.",
        asking=draft.state.agent.asking,
        context={"call_id": call.call_id},
    )
    _ask(draft, call, question)


def ask_missing(
    draft: Draft, call: Call, form: Form, args: Mapping[str, Json], version: str
) -> None:
    """The call lacks arguments: ask for them, and go on at this very call.

    One who only looks asks nobody: the work is done, and nobody waits for questions.
    """
    if draft.state.only is not None:
        lacking = ", ".join(one.name for one in form.fields)
        draft.end(call.step_id, "refused", {"error": f"required arguments are missing: {lacking}"})
        return
    shown = {"tool": call.tool, "args": dict(call.args), "call_id": call.call_id}
    question = missing_question(
        form,
        f"{call.tool} needs more",
        _whom_and_when(draft),
        shown,
        (PROVIDE_OPTION, SKIP_OPTION),
        version=version,
        outdated=[one for one in draft.step(call.step_id).provided if one not in args],
    )
    _ask(draft, call, question)


def ask_unknown(draft: Draft, step_id: str, reason: str) -> None:
    """Only a person can find out."""
    args = draft.step(step_id).args or EMPTY
    if loses(draft, step_id, reason):
        call = draft.call(step_id)
        _ask(draft, call, unknown_question(call.tool, args, reason))


def ask_person(draft: Draft, call: Call) -> None:
    """The model asks: one of several choices, or words of the person's own."""
    quoted = call.args.get("question")
    if not isinstance(quoted, str) or not quoted.strip():
        draft.end(call.step_id, "refused", {"error": "say in `question` what you want to know"})
        return
    choices = _choices(call)
    question = Question(
        "asked",
        InteractionType.USER_CHOICE if choices else InteractionType.USER_INPUT,
        f"{_name(draft)} asks",
        "The agent wants to know something; its own words are quoted.",
        (*choices, _SKIP) if choices else (PROVIDE_OPTION, _SKIP),
        NO_FIELDS if choices else _ANSWER,
        {"quoted": quoted, "call_id": call.call_id},
        _whom_and_when(draft),
    )
    _ask(draft, call, question)


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


def _whom_and_when(draft: Draft) -> Asking:
    asking = draft.state.agent.asking
    return Asking(
        role=asking.role,
        timeout_seconds=asking.timeout_seconds,
        reminders=asking.reminders,
        escalate_after=asking.escalate_after,
        escalate_to=asking.escalate_to,
    )


def _name(draft: Draft) -> str:
    return draft.state.agent.name or draft.state.agent.agent_id


def _ask(draft: Draft, call: Call, question: Question) -> None:
    refusal = open_question(draft, call.step_id, question)
    if refusal is not None:
        draft.end(call.step_id, "refused", {"error": refusal})
