"""Judging answers: the first valid one wins, and every other is told why not.

An answer names a question, an option and perhaps data; never the work itself. What it
comes to is an action and the values that the work receives. Whatever a question was
for, only that action decides what happens next; each machine says what that is.

The option's action stands, except that the handler of a CUSTOM option decides which of
the others it comes to. Data that comes with an approval changes the arguments that were
shown: they are checked as they were sent, and consent is bound to what they have become.

**An answer names its option.** Data alone is taken where it can only be meant for one option that
does no harm: for the form of what a call lacks, or for the one option that takes data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from holdfast.core.interactions.calls import bind_consent, call_name
from holdfast.core.interactions.filling import as_said, open_fields, takes_the_form
from holdfast.core.interactions.requests import clock_may_take, is_dangerous
from holdfast.core.run.four_eyes import option_of, refuse_who_wants_it, wanting_now
from holdfast.core.run.state import CLOCK as CLOCK
from holdfast.core.run.state import QuestionState, RunState
from holdfast.core.run.steps import AnyBuilder
from holdfast.errors import AlreadyAnswered, InvalidAnswer, NotFound, TooLate
from holdfast.forms.validation import unsealed, validate, validate_changes
from holdfast.i18n.message import moment, msg, term
from holdfast.language.instants import iso
from holdfast.language.strict import canonical_json
from holdfast.model.commands import Answer, KeepDraft
from holdfast.model.events import DraftKept, QuestionAnswered, QuestionExpired
from holdfast.model.form import Field, FieldType, Form
from holdfast.model.interaction import (
    InteractionAction,
    InteractionOption,
    InteractionRequest,
    InteractionStatus,
)
from holdfast.model.record import record
from holdfast.model.retry import Cause, Failure, FailureKind
from holdfast.model.values import Json

_OPEN: Final = InteractionStatus.OPEN
_ANSWERED: Final = InteractionStatus.ANSWERED
_CUSTOM: Final = InteractionAction.CUSTOM
_PROVIDE: Final = InteractionAction.PROVIDE_INFO
_APPROVE: Final = InteractionAction.APPROVE_AND_EXECUTE
_GOING_ON: Final = (_APPROVE, _PROVIDE)
_ABOUT_A_CALL: Final = ("approval", "unknown")

UNANSWERED: Final = msg("nobody answered in time")


@record
class Judged:
    """An answer that counts: what to record, what it comes to, and the reason given."""

    event: QuestionAnswered
    action: InteractionAction
    reason: str


@record
class _Reply:
    """What an answer says: in the person's words, or as a handler has understood them."""

    action: InteractionAction
    data: Mapping[str, Json]
    feedback: str | None = None


@record
class Answered:
    """A closed question and what its answer comes to; nothing where the deadline has passed and
    there is no default. What follows is the machine's."""

    question: QuestionState
    action: InteractionAction | None
    by: str
    reason: str
    values: Mapping[str, Json]
    versions: Mapping[str, str] | None = None
    elsewhere: frozenset[str] = frozenset()


def take(builder: AnyBuilder, command: Answer) -> Answered | None:
    """Record an answer that counts."""
    question = find(builder.state, command.question_id)
    judged = judge(builder.state, question, command, builder.now, builder.wanted_by)
    if judged is None:
        return None
    builder.emit(judged.event)
    values, known = judged.event.values, (command.versions, command.elsewhere)
    return Answered(question, judged.action, command.by, judged.reason, values, *known)


def expired(builder: AnyBuilder, question_id: str) -> Answered:
    """Record that a deadline has passed."""
    question = builder.state.questions[question_id]
    event, action = expiry(question)
    builder.emit(event)
    return Answered(question, action, CLOCK, UNANSWERED, event.values)


def keep_draft(builder: AnyBuilder, command: KeepDraft) -> None:
    question = find(builder.state, command.question_id)
    builder.emit(kept_draft(question, command, builder.now))


def failure_of(answer: Answered) -> Failure:
    """What a step that is refused, or gets no answer, fails with."""
    by, reason = answer.by, answer.reason
    if answer.action is None:
        return Failure(FailureKind.MISSING, reason)
    text = msg("rejected by {by}: {reason}", by=by, reason=reason) if reason else ""
    said = text or msg("rejected by {by}", by=by)
    return Failure(FailureKind.FORBIDDEN, said, cause=Cause.REFUSED)


def find(state: RunState, question_id: str) -> QuestionState:
    question = state.questions.get(question_id)
    if question is None:
        raise NotFound(
            msg("run {id} has no question {question}", id=state.run_id, question=question_id)
        )
    return question


def judge(
    state: RunState,
    question: QuestionState,
    command: Answer,
    now: float,
    wanted_by: Mapping[str, str] | None = None,
) -> Judged | None:
    """What the answer comes to; None when it has been given already, by the same person.

    Under four eyes `wanted_by` says who wants what the other runs of the tree do.
    """
    if question.status is _ANSWERED:
        _refuse_unless_same(question, command)
        return None
    _refuse_late(question, now)
    option = _chosen(question, command)
    _refuse_silence(option, command)
    reply = _understood(option, command)
    wanted_by = wanting_now(state, question, wanted_by)
    refuse_who_wants_it(wanted_by, command.by, reply.action)
    if question.request.form.fields:
        _refuse_raw_secrets(question.request.form, command.data, reply.data)
    filled = _filled_in(question, option, reply)
    answered = QuestionAnswered(
        question_id=command.question_id,
        option_id=option.option_id,
        by=command.by,
        data=command.data,
        values=_values(question, option, reply, filled),
        feedback=command.feedback,
        action=reply.action if option.action is _CUSTOM else None,
    )
    if filled and question.purpose == "approval":
        answered = _bound_anew(state, question, answered, filled)
        wish = wanted_by is not None and answered.args != question.args
        answered = replace(answered, wish=wish)
    return Judged(answered, reply.action, _words(reply) or "")


def expiry(question: QuestionState) -> tuple[QuestionExpired, InteractionAction | None]:
    """The deadline has passed: the default option is taken, else there is no answer."""
    request = question.request
    option = option_of(question, request.default_option_id)
    if option is None or not _clock_may_take(question, option):
        return QuestionExpired(request.request_id), None
    reply = _Reply(option.action, {})
    values = _values(question, option, reply, _filled_in(question, option, reply))
    return QuestionExpired(request.request_id, option.option_id, values), option.action


def kept_draft(question: QuestionState, command: KeepDraft, now: float) -> DraftKept:
    """A draft may be unfinished and wrong, but it is never a secret."""
    _refuse_late(question, now)
    _refuse_secrets_in_drafts(question.request.form, command.data)
    return DraftKept(command.question_id, command.by, command.data)


def _refuse_unless_same(question: QuestionState, command: Answer) -> None:
    same = (
        question.by == command.by
        and question.option_id == (command.option_id or _meant_by_data(question, command))
        and (question.feedback or None) == (command.feedback or None)
        and canonical_json(dict(question.data)) == canonical_json(dict(command.data))
    )
    if same:
        return
    at, option = question.closed_at or 0.0, option_of(question, question.option_id)
    label = question.option_id if option is None else option.label
    raise AlreadyAnswered(
        msg(
            "{title!r} was already answered by {by} at {at} with {option!r}",
            title=question.request.title,
            by=question.by,
            at=moment(iso(at)),
            option=label,
        ),
        by=question.by or "",
        at=at,
        option_id=question.option_id,
    )


def _refuse_late(question: QuestionState, now: float) -> None:
    if question.status is not _OPEN:
        raise TooLate(
            msg(
                "{title!r} is {status}; nothing was changed",
                title=question.request.title,
                status=term(question.status),
            )
        )
    if question.deadline is not None and now >= question.deadline:
        raise TooLate(
            msg(
                "{title!r} expired at {at}",
                title=question.request.title,
                at=moment(iso(question.deadline)),
            )
        )


def _chosen(question: QuestionState, command: Answer) -> InteractionOption:
    """The option that was named, or the one that bare data can only be meant for."""
    wanted = command.option_id or _meant_by_data(question, command)
    option = option_of(question, wanted)
    if option is not None:
        return option
    lacking = {} if command.data or wanted else _lacking(question)
    told = msg(
        "choose one of: {names}", names=", ".join(o.option_id for o in question.request.options)
    )
    if wanted is not None:
        told = msg("there is no option {name!r}; {remedy}", name=wanted, remedy=told)
    raise InvalidAnswer(told, lacking)


def _lacking(question: QuestionState) -> Mapping[str, str]:
    """What the form asks for, where data alone would answer it."""
    taken = option_for_data(question) is not None
    return validate(question.request.form, {}).errors if taken else {}


def option_for_data(question: QuestionState) -> InteractionOption | None:
    """The option that data without a name is meant for, if there can be no doubt and no harm.

    Whether a call is to be made, or has been made, is never understood from data.
    """
    request = question.request
    if question.purpose in _ABOUT_A_CALL:
        return None
    takes = _provides if question.purpose == "missing" else _takes_data
    takers = [one for one in request.options if takes(request, one)]
    return takers[0] if len(takers) == 1 and not is_dangerous(request, takers[0]) else None


def _meant_by_data(question: QuestionState, command: Answer) -> str | None:
    option = option_for_data(question) if command.data else None
    return None if option is None else option.option_id


def _provides(request: InteractionRequest, option: InteractionOption) -> bool:
    return option.action is _PROVIDE


def _takes_data(request: InteractionRequest, option: InteractionOption) -> bool:
    return option.action is _PROVIDE or takes_the_form(request, option)


def _refuse_silence(option: InteractionOption, command: Answer) -> None:
    if option.requires_input and not any(map(_says_something, (command.feedback, command.data))):
        prompt = option.input_prompt or msg("this option needs your words")
        told = msg("{place}: {problem}", place=option.label, problem=prompt)
        raise InvalidAnswer(told, {"feedback": prompt})


def _says_something(given: Json) -> bool:
    """Blanks are no words, however many, and neither is nothing at all."""
    if isinstance(given, str):
        return bool(given.strip())
    if isinstance(given, Mapping | list):
        return any(map(_says_something, given.values() if isinstance(given, Mapping) else given))
    return given is not None


def _understood(option: InteractionOption, command: Answer) -> _Reply:
    if option.action is not _CUSTOM:
        return _Reply(option.action, command.data, command.feedback)
    decided = command.resolution
    if decided is None or decided.action is _CUSTOM:
        raise InvalidAnswer(
            msg("no handler is registered that could decide {option!r}", option=option.option_id)
        )
    return _Reply(decided.action, decided.data, decided.feedback or command.feedback)


def _refuse_raw_secrets(form: Form, *given: Mapping[str, Json]) -> None:
    """The journal would keep a secret for ever, for all to read."""
    raw = {name: why for data in given for name, why in unsealed(form, data).items()}
    if raw:
        raise InvalidAnswer(
            msg("{names}: a secret must be sealed before it is sent", names=", ".join(raw)), raw
        )


def _refuse_secrets_in_drafts(form: Form, data: Mapping[str, Json]) -> None:
    secret = (one.name for one in form.fields if one.type is FieldType.SECRET)
    given = {name: msg("leave this out of drafts") for name in secret if name in data}
    if given:
        names = ", ".join(given)
        raise InvalidAnswer(
            msg("a draft keeps no secrets: {names} is given with the answer", names=names), given
        )


def _filled_in(
    question: QuestionState, option: InteractionOption, reply: _Reply
) -> Mapping[str, Json] | None:
    """What the reply puts into the form, checked field by field; None where it fills in none."""
    if _fills_in(question, option, reply):
        return _fitting(question, _meant_for_the_form(question, option, reply))
    free = option.requires_input or option.action is _CUSTOM or reply.action is _PROVIDE
    if reply.data and not free:
        unasked = dict.fromkeys(reply.data, msg("not asked for"))
        raise InvalidAnswer(msg("{option} takes no data", option=option.label), unasked)
    return None


def _fills_in(question: QuestionState, option: InteractionOption, reply: _Reply) -> bool:
    """A form is there to be provided; that of an approval may be changed while approving.

    Data that a choice to go on requires is meant for the form too. What a handler made of an
    answer is the handler's, and who does not go on only gives reasons.
    """
    if question.purpose == "approval":
        return reply.action in _GOING_ON
    required = option.action is _APPROVE and option.requires_input and bool(reply.data)
    return (reply.action is _PROVIDE or required) and bool(question.request.form.fields)


def _fitting(question: QuestionState, data: Mapping[str, Json]) -> Mapping[str, Json]:
    """What an approval leaves out stays as it was shown, and what it names is a change to it."""
    if question.purpose == "approval":
        return validate_changes(question.request.form, data).accepted()
    return validate(question.request.form, data).accepted()


def _meant_for_the_form(
    question: QuestionState, option: InteractionOption, reply: _Reply
) -> Mapping[str, Json]:
    """The data; or bare words, where only one field can be meant.

    What the author attached to a choice is given already, and stands.
    """
    if reply.action is _APPROVE and question.purpose != "approval":
        names = {one.name for one in question.request.form.fields}
        attached = {name: one for name, one in _metadata(option).items() if name in names}
        return {**reply.data, **attached}
    if reply.data or not reply.feedback or reply.action is _APPROVE:
        return reply.data
    fields = open_fields(question.request.form, question.args or {})
    if len(fields) == 1:
        _refuse_spoken_secret(fields[0])
        return {fields[0].name: as_said(fields[0], reply.feedback)}
    if fields and question.purpose == "approval":
        remedy = msg("say which it is for: {names}", names=", ".join(one.name for one in fields))
        several = msg("the call has several arguments; {remedy}", remedy=remedy)
        raise InvalidAnswer(several, {"feedback": remedy})
    return {}


def _refuse_spoken_secret(field: Field) -> None:
    """Feedback is recorded as it was said."""
    if field.type is FieldType.SECRET:
        remedy = msg("give it as data, under the name {name}", name=field.name)
        refused = msg("a secret is not taken as feedback: {remedy}", remedy=remedy)
        raise InvalidAnswer(refused, {"feedback": remedy})


def _values(
    question: QuestionState,
    option: InteractionOption,
    reply: _Reply,
    filled: Mapping[str, Json] | None,
) -> Mapping[str, Json]:
    """What the work receives: the form, or the option with whatever was said along with it.

    Only a handler changes what the option's author attached to it; which option it was stays.
    """
    if reply.action is _PROVIDE and filled is not None:
        return filled
    attached = _metadata(option) if option.metadata else option.metadata
    if reply.action is _APPROVE and question.purpose == "missing":
        return {**attached, **(filled or {})}
    # What an approval fills in are the arguments, which consent is bound to.
    given = reply.data if filled is None else {} if question.purpose == "approval" else filled
    values = {**attached, **given} if option.action is _CUSTOM else {**given, **attached}
    values["option"] = option.option_id
    if words := _words(reply):
        values["feedback"] = words
    return values


def _metadata(option: InteractionOption) -> dict[str, Json]:
    """What the author attached for the work; the name of a handler is for us."""
    custom = option.action is _CUSTOM
    return {
        name: value for name, value in option.metadata.items() if not (custom and name == "handler")
    }


def _words(reply: _Reply) -> str | None:
    """What was said; who gives a reason as data has said it too."""
    if reply.feedback or not reply.data or reply.action in _GOING_ON:
        return reply.feedback
    first, *more = reply.data.values()
    return first if isinstance(first, str) and not more else canonical_json(dict(reply.data))


def _bound_anew(
    state: RunState,
    question: QuestionState,
    answered: QuestionAnswered,
    changes: Mapping[str, Json],
) -> QuestionAnswered:
    """Consent to other arguments than those shown is bound to what they have become."""
    args = {**(question.args or {}), **changes}
    tool, version = (str(question.request.context[one]) for one in ("tool", "tool_version"))
    call = call_name(state.run_id, question.step_id, question.firing)
    return replace(answered, args=args, consent=bind_consent(call, tool, version, args))


def _clock_may_take(question: QuestionState, option: InteractionOption) -> bool:
    """Whatever its type, a question about a call is never answered with a yes by the clock."""
    yes = question.purpose in _ABOUT_A_CALL and option.action in _GOING_ON
    return not yes and clock_may_take(question.request, option)
