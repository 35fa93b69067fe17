"""What a session asks people, and what their answers do.

Everything that is shown as ours comes from the executor's own data. Where the model itself asks
(`ask_person`), its words are quoted in the question's context and nowhere else. The agent's
`asking` says in full how consent is asked for; of every other question it says who is asked and
when.

| action              | a call                                   | a question of its own     |
|---------------------|------------------------------------------|---------------------------|
| APPROVE_AND_EXECUTE | runs exactly what was shown, or edited   | the model hears the choice |
| PROVIDE_INFO        | its arguments are completed, and it runs | the model hears the data  |
| RETRY_WITH_FEEDBACK | does not run; the model thinks again     | the same                  |
| REJECT_WITH_REASON  | does not run; the reason is its result   | the model hears the refusal |
| SKIP                | does not run; "skipped" is its result    | the model goes on without |
| TERMINATE           | nothing more runs                        | the same                  |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from holdfast.core.agent.builder import Builder
from holdfast.core.interactions.answers import Answered
from holdfast.core.interactions.calls import (
    NO_FIELDS,
    Question,
    approval_question,
    loses,
    missing_question,
    open_question,
    unknown_question,
)
from holdfast.core.interactions.requests import PROVIDE_OPTION, SKIP_OPTION, sound
from holdfast.core.run.four_eyes import asked_of, option_of
from holdfast.core.run.reducers import deadline_of
from holdfast.core.run.state import EMPTY, QuestionState
from holdfast.core.run.steps import terminate
from holdfast.i18n.message import msg
from holdfast.language.display import unquoted
from holdfast.language.strict import canonical_json
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

    A session that only checks does not ask: its work is done, and no person waits for questions.
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


_UNRUN = {
    None: "expired",
    InteractionAction.REJECT_WITH_REASON: "rejected",
    InteractionAction.RETRY_WITH_FEEDBACK: "retry",
    InteractionAction.SKIP: "skipped",
}
_TOLD = {
    "rejected": "It was not run: {by} refused.",
    "retry": "It was not run: {by} asks for something else. Think again.",
    "skipped": "It was not run: {by} skipped it. Go on without it.",
}
_HEARD = {
    "rejected": "{by} refused.",
    "retry": "{by} asks you to think again.",
    "skipped": "{by} skipped this. Go on without it.",
}


def answered(builder: Builder, answer: Answered) -> None:
    step_id, by, action = answer.question.step_id, answer.by, answer.action
    is_call = bool(builder.call(step_id).tool)
    if action is InteractionAction.TERMINATE:
        terminate(builder, by, answer.reason)
    elif action in _UNRUN:
        how = _UNRUN[action]
        told = _unrun if is_call else _heard
        builder.end(step_id, how, told(builder, answer, how))
    elif not is_call:
        words = f"{by} answered: {canonical_json(dict(answer.values))}"
        builder.end(step_id, "provided", _told(builder, answer, words))


def _unrun(builder: Builder, answer: Answered, how: str) -> Json:
    """Nothing reached the executor; the model learns who decided so, and why."""
    if how not in _TOLD:
        return {"error": answer.reason}
    told: dict[str, Json] = {how: _TOLD[how].format(by=answer.by)}
    return {**told, "reason": answer.reason} if answer.reason else told


def _heard(builder: Builder, answer: Answered, how: str) -> str:
    words = f"{_HEARD[how].format(by=answer.by)} " if how in _HEARD else ""
    return _told(builder, answer, f"{words}{answer.reason}".rstrip())


def _told(builder: Builder, answer: Answered, words: str) -> str:
    """What the model hears: what was asked, which option was chosen, and what came of it."""
    request = answer.question.request
    asked = "\n".join(filter(None, (request.message, request.details)))
    label = _chosen_label(builder.state.questions[request.request_id])
    lines = (asked and f"Asked: {asked}", label and f"Chosen: “{unquoted(label)}”")
    return "\n".join([*filter(None, lines), f"[{request.title}] {words}"])


def _chosen_label(question: QuestionState) -> str:
    """Empty where it says no more than the option's id, which is told anyway."""
    chosen = option_of(question, question.option_id)
    if chosen is None or chosen.label.lower() == chosen.option_id.lower():
        return ""
    return chosen.label
