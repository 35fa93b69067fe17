"""Opening questions: what every machine asks about a call, and how a question is begun.

Everything that is shown comes from the executor's own data. A machine adds its own words:
who wants the call, or which task it is for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from holdfast.core.interactions.calls import NO_FIELDS, change_form, differences, shown_call
from holdfast.core.interactions.requests import (
    APPROVAL_OPTIONS,
    PROVIDE_OPTIONS,
    UNKNOWN_OPTIONS,
    request_from_asking,
)
from holdfast.core.run.four_eyes import asked_before, asked_of
from holdfast.core.run.reducers import deadline_of
from holdfast.core.run.steps import AnyBuilder
from holdfast.core.run.tables import StepStatus
from holdfast.errors import InvalidAnswer
from holdfast.i18n.message import joined, msg
from holdfast.language.display import clip
from holdfast.model.commands import ToolFacts
from holdfast.model.events import Move, OutcomeLost, QuestionOpened
from holdfast.model.form import Field, FieldType, Form
from holdfast.model.interaction import Asking, InteractionOption, InteractionType
from holdfast.model.record import record
from holdfast.model.values import Json

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
    """Sent, and nobody knows whether it took effect; a run that is ending asks nobody."""
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
