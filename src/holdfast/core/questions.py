"""Asking people, and what their answers do.

A question is opened for one of four purposes: a tool or snippet lacks something
(`missing`), the plan asks on purpose (`human`), a call needs consent (`approval`),
or nobody knows whether a call took effect (`unknown`). Whatever the purpose, the
first valid answer wins, and only the action of the chosen option decides what
happens next.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, assert_never

from holdfast.core.compiled import INPUTS
from holdfast.core.draft import Draft, iso, quiet
from holdfast.core.fold_questions import RUN_AGAIN
from holdfast.core.forms import validate
from holdfast.core.planner import cancel_run, fail_listener, skip_listener
from holdfast.core.state import EMPTY, QuestionState
from holdfast.core.strict import canonical_json, digest
from holdfast.core.tables import StepStatus
from holdfast.errors import AlreadyAnswered, InvalidAnswer, NotFound, TooLate
from holdfast.model.commands import Answer, ToolFacts
from holdfast.model.events import (
    Move,
    OutcomeLost,
    QuestionAnswered,
    QuestionExpired,
    QuestionOpened,
)
from holdfast.model.form import Field, FieldType, Form
from holdfast.model.interaction import (
    InteractionAction,
    InteractionOption,
    InteractionRequest,
    InteractionStatus,
    InteractionType,
)
from holdfast.model.plan import HumanAction, TaskStatus, ToolAction
from holdfast.model.retry import Failure, FailureKind
from holdfast.model.values import Json

HAPPENED = "happened"
CLOCK = "clock"

_CALLING = (InteractionAction.APPROVE_AND_EXECUTE, InteractionAction.PROVIDE_INFO)

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


def ask_human(draft: Draft, listener_id: str, action: HumanAction) -> None:
    form = _still_missing(draft, action.form) if listener_id == INPUTS else action.form
    confirmation = not form.fields
    _open(
        draft,
        listener_id,
        "human",
        InteractionType.USER_CONFIRMATION if confirmation else InteractionType.USER_INPUT,
        title=action.title or _title(draft, listener_id),
        message=action.message,
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
    """What was given at the start is not asked for again."""
    given = draft.state.main_task.context
    return Form(tuple(field for field in form.fields if field.name not in given))


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
    validated = validate(question.request.form, command.data)
    if validated.errors:
        raise InvalidAnswer("the answer does not fit the form", validated.errors)
    return validated.values


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
