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

from holdfast.core.agent.builder import Builder
from holdfast.core.interactions.calls import NO_FIELDS
from holdfast.core.interactions.opening import (
    Question,
    approval_question,
    loses,
    missing_question,
    open_question,
    unknown_question,
)
from holdfast.core.interactions.requests import PROVIDE_OPTION, SKIP_OPTION, sound
from holdfast.core.run.four_eyes import asked_of
from holdfast.core.run.reducers import deadline_of
from holdfast.core.run.state import EMPTY
from holdfast.i18n.message import msg
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

_ANSWER = Form((Field("answer", FieldType.TEXTAREA, msg("Answer")),))
_SKIP = InteractionOption("skip", msg("Do not answer"), InteractionAction.SKIP)
_MOST_CHOICES = 20
_LONGEST_LABEL = 200


def ask(builder: Builder, command: Ask) -> None:
    """A question from outside, which belongs to no call; the model hears the answer."""
    run_id, number = builder.state.run_id, builder.state.numbered + 1
    asked = replace(command.request, request_id=builder.unguessable(), session_id=run_id)
    request = sound(asked)
    deadline = deadline_of(request, builder.now)
    wanted_by = asked_of(builder.state, request.type, "asked", builder.wanted_by)
    step_id = f"q{number}"
    builder.emit(QuestionOpened(request, step_id, 1, "asked", deadline, wanted_by=wanted_by))


def ask_approval(
    builder: Builder, call: Call, args: Mapping[str, Json], tool: ToolFacts, consent: str
) -> None:
    question = approval_question(
        builder,
        call.step_id,
        call.tool,
        args,
        tool,
        consent,
        message=msg(
            "{who} wants to call {tool} with these arguments.", who=_name(builder), tool=call.tool
        ),
        asking=builder.state.agent.asking,
        context={"call_id": call.call_id},
    )
    _ask(builder, call, question)


def ask_missing(
    builder: Builder, call: Call, form: Form, args: Mapping[str, Json], version: str
) -> None:
    """The call lacks arguments: ask for them, and go on at this very call.

    One who only looks asks nobody: the work is done, and nobody waits for questions.
    """
    if builder.state.only is not None:
        lacking = ", ".join(one.name for one in form.fields)
        builder.end(
            call.step_id,
            "refused",
            {"error": msg("required arguments are missing: {names}", names=lacking)},
        )
        return
    shown = {"tool": call.tool, "args": dict(call.args), "call_id": call.call_id}
    question = missing_question(
        form,
        msg("{tool} needs more", tool=call.tool),
        _whom_and_when(builder),
        shown,
        (PROVIDE_OPTION, SKIP_OPTION),
        version=version,
        outdated=[one for one in builder.step(call.step_id).provided if one not in args],
    )
    _ask(builder, call, question)


def ask_unknown(builder: Builder, step_id: str, reason: str) -> None:
    """Only a person can find out."""
    args = builder.step(step_id).args or EMPTY
    if loses(builder, step_id, reason):
        call = builder.call(step_id)
        _ask(builder, call, unknown_question(call.tool, args, reason))


def ask_person(builder: Builder, call: Call) -> None:
    """The model asks: one of several choices, or words of the person's own."""
    quoted = call.args.get("question")
    if not isinstance(quoted, str) or not quoted.strip():
        builder.end(
            call.step_id, "refused", {"error": msg("say in `question` what you want to know")}
        )
        return
    choices = _choices(call)
    question = Question(
        "asked",
        InteractionType.USER_CHOICE if choices else InteractionType.USER_INPUT,
        msg("{agent} asks", agent=_name(builder)),
        msg("The agent wants to know something; its own words are quoted."),
        (*choices, _SKIP) if choices else (PROVIDE_OPTION, _SKIP),
        NO_FIELDS if choices else _ANSWER,
        {"quoted": quoted, "call_id": call.call_id},
        _whom_and_when(builder),
    )
    _ask(builder, call, question)


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


def _whom_and_when(builder: Builder) -> Asking:
    asking = builder.state.agent.asking
    return Asking(
        role=asking.role,
        timeout_seconds=asking.timeout_seconds,
        reminders=asking.reminders,
        escalate_after=asking.escalate_after,
        escalate_to=asking.escalate_to,
    )


def _name(builder: Builder) -> str:
    return builder.state.agent.name or builder.state.agent.agent_id


def _ask(builder: Builder, call: Call, question: Question) -> None:
    refusal = open_question(builder, call.step_id, question)
    if refusal is not None:
        builder.end(call.step_id, "refused", {"error": refusal})
