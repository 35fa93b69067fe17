"""A tool call before it starts: consent, missing arguments, and what a person is asked about it.

`judge_call` takes the policy and gives a verdict; the machines carry it out. Everything shown comes
from the executor's own data: the tool's name, its version and the very arguments that would run.
What a model says never reaches a title or a message. A machine adds its own words to a question:
who wants the call, or which task it is for.

A form may wait for months, and the tool may have changed when it is answered. Of what a person
gave, the arguments that the tool still takes stay; the rest is left out of the call, so that what
is required is asked anew (`without_outdated`). An answer for the current version stands, whatever
the tool makes of it: else it might be asked for ever.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Final, TypeAlias

from holdfast.core.interactions.requests import (
    APPROVAL_OPTIONS,
    PROVIDE_OPTIONS,
    UNKNOWN_OPTIONS,
    request_from_asking,
)
from holdfast.core.run.four_eyes import asked_before, asked_of
from holdfast.core.run.reducers import deadline_of
from holdfast.core.run.state import QuestionState, RunState
from holdfast.core.run.steps import AnyBuilder
from holdfast.core.run.tables import StepStatus
from holdfast.errors import InvalidAnswer
from holdfast.forms.from_tools import allows_null, form_from_schema, takes
from holdfast.i18n.message import joined, msg
from holdfast.language.display import clip
from holdfast.language.strict import canonical_json, digest
from holdfast.model.approval import ApprovalMode
from holdfast.model.commands import ToolFacts
from holdfast.model.events import Move, OutcomeLost, QuestionOpened
from holdfast.model.form import Field, FieldType, Form
from holdfast.model.interaction import Asking, InteractionOption, InteractionType
from holdfast.model.record import record
from holdfast.model.retry import Failure, FailureKind
from holdfast.model.values import Json, JsonObject


def bind_consent(call: str, tool: str, version: str, args: Mapping[str, Json]) -> str:
    return digest([call, tool, version, canonical_json(dict(args))])


def call_name(run_id: str, step_id: str, firing: int) -> str:
    """The call that consent is bound to: one firing of one step, and no other."""
    return f"{run_id}:{step_id}:{firing}"


def absent(tool: str) -> Failure:
    """Where plans and processes differ: a person sees to it that it is there."""
    return Failure(
        FailureKind.PERMANENT,
        msg(
            "there is no tool {tool} in the process that runs this: add it there, then have this "
            "run again",
            tool=tool,
        ),
    )


def shown_call(tool: str, args: Mapping[str, Json], facts: ToolFacts) -> dict[str, Json]:
    """`defaults` is what takes effect of the arguments that are not given, if the tool says so."""
    shown = {"tool": tool, "args": dict(args), "tool_version": facts.version}
    defaults = _defaults(facts.parameters, args)
    return {**shown, "defaults": defaults} if defaults else shown


def _defaults(parameters: JsonObject, args: Mapping[str, Json]) -> dict[str, Json]:
    return {
        name: schema["default"]
        for name, schema in parameters.get("properties", {}).items()
        if name not in args and isinstance(schema, Mapping) and "default" in schema
    }


def change_form(parameters: JsonObject, *enrich: Form) -> Form:
    """Every argument as an optional field: what is left out stays as it was shown."""
    names = list(parameters.get("properties", {}))
    asked = form_from_schema(parameters, names, *enrich).fields
    fields = (one for one in asked if one.type is not FieldType.SECRET)
    return Form(tuple(_changeable(parameters, one) for one in fields))


def _changeable(parameters: JsonObject, one: Field) -> Field:
    null = allows_null(parameters, one.name)
    return replace(one, required=False, default=None, visible_if=None, nullable=null)


def missing_arguments(parameters: JsonObject, args: Mapping[str, Json]) -> list[str]:
    """What is required and absent, or null where the tool does not say that it takes null."""
    empty = (name for name in parameters.get("required", ()) if args.get(name) is None)
    return [name for name in empty if name not in args or not allows_null(parameters, name)]


def unknown_arguments(facts: ToolFacts, args: Mapping[str, Json]) -> list[str]:
    """What the tool's schema shuts out."""
    return [] if facts.known is None else [name for name in args if name not in facts.known]


def differences(
    questions: Iterable[QuestionState], consent: str, shown: Mapping[str, Json]
) -> tuple[str, Mapping[str, Json]]:
    """What has changed since a person consented: in words, and what was consented to."""
    before = next((one for one in questions if one.consent == consent), None)
    if before is None:
        return msg("What was consented to has changed."), {}
    context = {**before.request.context, "args": dict(before.args or {})}
    lines = list(_changes(context, shown))
    return joined("\n", [_heading(before, bool(lines)), *lines]), context


def _heading(before: QuestionState, differs: bool) -> str:
    if before.wish:
        return msg("{who} wants it changed, and somebody else must approve that:", who=before.by)
    if differs:
        return msg("This was consented to, but it has changed since:")
    return msg("This was consented to before, and is to be called once more.")


def _changes(before: Mapping[str, Json], now: Mapping[str, Json]) -> Iterable[str]:
    if before.get("tool_version") != now.get("tool_version"):
        yield msg("- the tool {tool} itself is another version", tool=now["tool"])
    old, new = _taking_effect(before), _taking_effect(now)
    for name in sorted({*old, *new}):
        if name not in old:
            yield msg("- {name}: new, {value}", name=name, value=canonical_json(new[name]))
        elif name not in new:
            yield msg("- {name}: gone, was {value}", name=name, value=canonical_json(old[name]))
        elif (was := canonical_json(old[name])) != (is_now := canonical_json(new[name])):
            yield msg("- {name}: {before} has become {now}", name=name, before=was, now=is_now)


def _taking_effect(shown: Mapping[str, Json]) -> Mapping[str, Json]:
    """The arguments as the tool gets them: what is not given, it fills in."""
    return {**shown.get("defaults", {}), **shown["args"]}


def without_outdated(
    state: RunState, step_id: str, args: Mapping[str, Json], tool: ToolFacts
) -> Mapping[str, Json]:
    """The arguments without what a person gave to an earlier version of the tool in vain."""
    step = state.steps[step_id]
    if not step.provided:
        return args
    shut_out = set(unknown_arguments(tool, args))
    return {
        name: value
        for name, value in args.items()
        if name not in step.provided
        or not _outdated(_asked(state, step_id, name), tool, step.claim)
        or (name not in shut_out and takes(tool.parameters, name, value))
    }


def _asked(state: RunState, step_id: str, name: str) -> QuestionState | None:
    """The last question that asked for the argument."""
    asked = [
        one
        for one in state.questions.values()
        if one.step_id == step_id and any(each.name == name for each in one.request.form.fields)
    ]
    return max(asked, key=lambda one: one.opened_seq, default=None)


def _outdated(question: QuestionState | None, tool: ToolFacts, claim: int) -> bool:
    """Another version was asked for; what has been sent since stays under its key as it is."""
    if question is None or question.opened_seq < claim:
        return False
    return question.request.context.get("tool_version") != tool.version


@record
class Start:
    consent: str | None = None


@record
class NeedArguments:
    form: Form


@record
class NeedConsent:
    consent: str


@record
class Refuse:
    message: str


CallVerdict: TypeAlias = Start | NeedArguments | NeedConsent | Refuse

_AUTO: Final = ApprovalMode.AUTO
_DISABLED: Final = ApprovalMode.DISABLED
_UNASKED: Final = Start()

NO_FIELDS: Final = Form()


def judge_call(
    call: tuple[str, str, int],
    tool: str,
    args: Mapping[str, Json],
    facts: ToolFacts,
    mode: ApprovalMode,
    consent: str | None = None,
    fields: Form = NO_FIELDS,
) -> CallVerdict:
    """`call` is the run, the step and its firing. `consent` holds only for the very bytes and
    the very tool that were shown.

    What has been disabled since does not run, even with a consent; and no person is asked
    about a call that the tool's schema shuts out.
    """
    if mode is _DISABLED:
        return Refuse(msg("the tool {tool} is disabled", tool=tool))
    if facts.known is not None and not args.keys() <= facts.known:
        return Refuse(_shut_out(tool, unknown_arguments(facts, args), facts.parameters))
    if consent is not None and consent == _bound(call, tool, facts, args):
        return Start(consent)
    complete = args.keys() >= facts.required and None not in args.values()
    if not complete and (missing := missing_arguments(facts.parameters, args)):
        return NeedArguments(form_from_schema(facts.parameters, missing, facts.fields, fields))
    if mode is _AUTO:
        return _UNASKED
    return NeedConsent(_bound(call, tool, facts, args))


def _bound(
    call: tuple[str, str, int], tool: str, facts: ToolFacts, args: Mapping[str, Json]
) -> str:
    return bind_consent(call_name(*call), tool, facts.version, args)


def _shut_out(tool: str, unknown: list[str], parameters: JsonObject) -> str:
    known = ", ".join(parameters.get("properties", {})) or msg("no arguments at all")
    return msg(
        "the tool {tool} does not take {names}; it takes {known}",
        tool=tool,
        names=", ".join(unknown),
        known=known,
    )


_LONGEST_REASON = 500
"""Columns of what a tool said: it may repeat a model's words, and those never look like ours."""

AS_USUAL = Asking()
LOST_RESULT = Form(
    (
        Field(
            "result",
            FieldType.TEXTAREA,
            msg("What it returned, as far as is known"),
            required=False,
        ),
    )
)


@record
class Question:
    """What is to be asked; `asking` is how an author wants it, and wins over our words."""

    purpose: str
    type: InteractionType
    title: str
    message: str = ""
    options: tuple[InteractionOption, ...] = ()
    form: Form = NO_FIELDS
    context: Mapping[str, Json] = field(default_factory=dict)
    asking: Asking = AS_USUAL
    args: Mapping[str, Json] | None = None
    consent: str | None = None


def missing_question(
    form: Form,
    title: str,
    asking: Asking = AS_USUAL,
    context: Mapping[str, Json] | None = None,
    options: tuple[InteractionOption, ...] = PROVIDE_OPTIONS,
    *,
    version: str = "",
    outdated: Sequence[str] = (),
) -> Question:
    """The work lacks something: it goes on at this very point with the answer.

    `version` is that of the tool that lacks it, `outdated` what it no longer takes.
    """
    names = ", ".join(one.label or one.name for one in form.fields)
    message = msg("Needed to go on: {names}", names=names)
    if outdated:
        changed = msg(
            "The tool has changed since this was answered: {names}", names=", ".join(outdated)
        )
        message = joined("\n", (message, changed))
    shown = {**(context or {}), "tool_version": version} if version else context or {}
    return Question(
        "missing",
        InteractionType.MISSING_INFO,
        title,
        message,
        options,
        form,
        shown,
        asking,
    )


def approval_question(
    builder: AnyBuilder,
    step_id: str,
    tool: str,
    args: Mapping[str, Json],
    facts: ToolFacts,
    consent: str,
    *,
    message: str = "",
    asking: Asking = AS_USUAL,
    enrich: Form = NO_FIELDS,
    context: Mapping[str, Json] | None = None,
) -> Question:
    """Consent is bound to the very arguments that are shown; what has changed since an
    earlier consent is shown as well."""
    shown: dict[str, Json] = {**shown_call(tool, args, facts), **(context or {})}
    step = builder.step(step_id)
    former = step.consent or step.former_consent
    if former is not None:
        words, before = differences(builder.state.questions.values(), former, shown)
        asking = replace(asking, details=words)
        shown["before"] = dict(before)
    return Question(
        "approval",
        InteractionType.TOOL_APPROVAL,
        msg("Run {tool}?", tool=tool),
        message,
        APPROVAL_OPTIONS,
        change_form(facts.parameters, facts.fields, enrich),
        shown,
        asking,
        args,
        consent,
    )


def unknown_question(
    what: str, args: Mapping[str, Json], reason: str, form: Form = LOST_RESULT
) -> Question:
    return Question(
        "unknown",
        InteractionType.USER_CHOICE,
        msg("Did {what} happen?", what=what),
        msg(
            "{what} was sent, but its outcome is unknown: {reason}.",
            what=what,
            reason=clip(reason, _LONGEST_REASON),
        ),
        UNKNOWN_OPTIONS,
        form,
        {"tool": what, "args": dict(args)},
        Asking(details=msg("Look it up where it would have taken effect, then choose.")),
    )


def loses(builder: AnyBuilder, step_id: str, reason: str) -> bool:
    """Sent, and not known whether it took effect; a run that is ending does not ask."""
    builder.emit(OutcomeLost(step_id, builder.step(step_id).firing, reason))
    return builder.step(step_id).status is not StepStatus.STOPPED


def open_question(
    builder: AnyBuilder, step_id: str, question: Question, moves: tuple[Move, ...] = ()
) -> str | None:
    """Ask it; or say why it cannot be asked."""
    step = builder.step(step_id)
    try:
        asked = request_from_asking(
            _with_feedback(question, step.feedback),
            request_id=builder.unguessable(),
            session_id=builder.state.run_id,
            type=question.type,
            title=question.title,
            message=question.message,
            options=question.options,
            form=question.form,
            context=question.context,
        )
    except InvalidAnswer as error:
        return str(error)
    wanted_by = builder.wanted_by
    if wanted_by is None:
        wanted_by = asked_before(builder.state, step.former_consent)
    builder.emit(
        QuestionOpened(
            request=asked,
            step_id=step_id,
            firing=step.firing,
            purpose=question.purpose,
            deadline=deadline_of(asked, builder.now),
            args=question.args,
            consent=question.consent,
            moves=moves,
            wanted_by=asked_of(builder.state, asked.type, question.purpose, wanted_by),
        )
    )
    return None


def _with_feedback(question: Question, feedback: str | None) -> Asking:
    """What was said to the same question before is shown with it."""
    if not feedback:
        return question.asking
    words = (
        question.asking.message or question.message,
        msg("Feedback on the last answer: {text}", text=feedback),
    )
    return replace(question.asking, message=joined("\n", filter(None, words)))
