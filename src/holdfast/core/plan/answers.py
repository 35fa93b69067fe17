"""What people's answers do, and what the clock does when nobody answers.

The first valid answer wins, the same answer again changes nothing, and every other one
is told why not. Whatever a question was for, only the action of the chosen option decides
what happens next.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from holdfast.core.forms.validation import validate
from holdfast.core.language.strict import canonical_json
from holdfast.core.plan.draft import Draft, iso
from holdfast.core.plan.planner import cancel_run, fail_listener, skip_listener
from holdfast.core.plan.state import QuestionState
from holdfast.errors import AlreadyAnswered, InvalidAnswer, NotFound, TooLate
from holdfast.model.commands import Answer
from holdfast.model.events import QuestionAnswered, QuestionExpired
from holdfast.model.form import FieldType, Form
from holdfast.model.interaction import InteractionAction, InteractionOption, InteractionStatus
from holdfast.model.retry import Failure, FailureKind
from holdfast.model.values import Json

CLOCK = "clock"

_CALLING = (InteractionAction.APPROVE_AND_EXECUTE, InteractionAction.PROVIDE_INFO)


def answer(draft: Draft, command: Answer) -> None:
    question = draft.state.questions.get(command.question_id)
    if question is None:
        raise NotFound(f"run {draft.state.run_id} has no question {command.question_id}")
    if question.status is InteractionStatus.ANSWERED:
        _repeat_or_refuse(question, command)
        return
    _refuse_late(draft, question)
    option = _chosen(question, command)
    values = _values(question, option, command)
    draft.emit(
        QuestionAnswered(
            question_id=command.question_id,
            option_id=option.option_id,
            by=command.by,
            data=command.data,
            values=values,
            feedback=command.feedback,
        )
    )
    _follow(draft, question, option, by=command.by, reason=command.feedback or "")


def expire(draft: Draft, question_id: str) -> None:
    """The deadline has passed: the default option is taken, else nobody answered."""
    question = draft.state.questions[question_id]
    default = question.request.default_option_id
    option = next((o for o in question.request.options if o.option_id == default), None)
    if option is None or not _clock_may_take(question, option):
        draft.emit(QuestionExpired(question_id))
        failure = Failure(FailureKind.MISSING, "nobody answered in time")
        fail_listener(draft, question.listener_id, failure, final=True)
        return
    draft.emit(QuestionExpired(question_id, option.option_id, _option_values(option, None)))
    _follow(draft, question, option, by=CLOCK, reason="nobody answered in time")


def _clock_may_take(question: QuestionState, option: InteractionOption) -> bool:
    """A timeout never approves a call, and never takes what is dangerous."""
    calls = question.purpose in ("approval", "unknown") and option.action in _CALLING
    return not calls and not option.is_dangerous and option.action is not InteractionAction.CUSTOM


def _repeat_or_refuse(question: QuestionState, command: Answer) -> None:
    option_id = command.option_id or question.option_id
    same = (
        question.by == command.by
        and question.option_id == option_id
        and question.feedback == command.feedback
        and canonical_json(dict(question.data)) == canonical_json(dict(command.data))
    )
    if same:
        return
    at = question.closed_at or 0.0
    raise AlreadyAnswered(
        f"{question.request.title!r} was already answered by {question.by} at {iso(at)}"
        f" with {question.option_id}",
        by=question.by or "",
        at=at,
        option_id=question.option_id,
    )


def _refuse_late(draft: Draft, question: QuestionState) -> None:
    if question.status is not InteractionStatus.OPEN:
        raise TooLate(f"{question.request.title!r} is {question.status}; nothing was changed")
    if question.deadline is not None and draft.now >= question.deadline:
        raise TooLate(f"{question.request.title!r} expired at {iso(question.deadline)}")


def _chosen(question: QuestionState, command: Answer) -> InteractionOption:
    options = question.request.options
    if command.option_id is None:
        able = [o for o in options if o.action is InteractionAction.PROVIDE_INFO]
        if len(able) == 1 and (len(options) == 1 or command.data):
            return able[0]
        names = ", ".join(option.option_id for option in options)
        raise InvalidAnswer(f"choose one of: {names}")
    for option in options:
        if option.option_id == command.option_id:
            return option
    names = ", ".join(option.option_id for option in options)
    raise InvalidAnswer(f"there is no option {command.option_id!r}; choose one of: {names}")


def _values(
    question: QuestionState, option: InteractionOption, command: Answer
) -> Mapping[str, Json]:
    if option.requires_input and not (command.feedback or command.data):
        prompt = option.input_prompt or "this option needs your words"
        raise InvalidAnswer(f"{option.label}: {prompt}", {"feedback": prompt})
    if option.action is InteractionAction.CUSTOM:
        raise InvalidAnswer(f"no handler is registered for {option.option_id!r}")
    if option.action is not InteractionAction.PROVIDE_INFO:
        if command.data and not option.requires_input:
            raise InvalidAnswer(
                f"{option.label} takes no data", dict.fromkeys(command.data, "not asked for")
            )
        return _option_values(option, command.feedback)
    _refuse_secrets(question.request.form, command)
    validated = validate(question.request.form, command.data)
    if validated.errors:
        raise InvalidAnswer("the answer does not fit the form", validated.errors)
    return validated.values


def _refuse_secrets(form: Form, command: Answer) -> None:
    """A secret belongs in a vault; the journal would keep it for ever, for all to read."""
    secrets = [one.name for one in form.fields if one.type is FieldType.SECRET]
    given = dict.fromkeys((name for name in secrets if name in command.data), "not taken")
    if given:
        raise InvalidAnswer("secrets cannot be taken yet: there is no vault to keep them", given)


def _option_values(option: InteractionOption, feedback: str | None) -> Mapping[str, Json]:
    values: dict[str, Json] = {"option": option.option_id, **option.metadata}
    if feedback:
        values["feedback"] = feedback
    return values


def _follow(
    draft: Draft, question: QuestionState, option: InteractionOption, *, by: str, reason: str
) -> None:
    """What the chosen action does; the step is ready again and may simply go on."""
    listener_id = question.listener_id
    match option.action:
        case InteractionAction.REJECT_WITH_REASON:
            text = f"rejected by {by}" + (f": {reason}" if reason else "")
            failure = Failure(FailureKind.FORBIDDEN, text)
            fail_listener(draft, listener_id, failure, final=True)
        case InteractionAction.SKIP:
            skip_listener(draft, listener_id, by, reason)
        case InteractionAction.TERMINATE:
            cancel_run(draft, by, reason or f"{by} chose to stop")
        case (
            InteractionAction.APPROVE_AND_EXECUTE
            | InteractionAction.PROVIDE_INFO
            | InteractionAction.RETRY_WITH_FEEDBACK
            | InteractionAction.CUSTOM
        ):
            return
        case _:
            assert_never(option.action)
