"""What a plan asks people, and what their answers do.

A question has one of four purposes: a tool or snippet lacks something (`missing`), the plan asks on
purpose (`human`), a call needs consent (`approval`), or it is not known whether a call took effect
(`unknown`); and a fork asks again for the secrets of its origin (`secret`). There is no model to
think again, so RETRY asks again and shows the feedback.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, assert_never

from holdfast.core.interactions.answers import Answered, failure_of
from holdfast.core.interactions.calls import (
    Question,
    approval_question,
    loses,
    missing_question,
    open_question,
    unknown_question,
)
from holdfast.core.interactions.requests import CONFIRM_OPTIONS, PROVIDE_OPTIONS
from holdfast.core.plan import patching
from holdfast.core.plan.asked_first import words_of
from holdfast.core.plan.builder import Builder, quiet
from holdfast.core.plan.compiled import INPUTS
from holdfast.core.plan.planner import fail_listener, skip_listener
from holdfast.core.run.state import EMPTY
from holdfast.core.run.steps import terminate
from holdfast.forms.secrets import references_in
from holdfast.forms.validation import answers_asked, visible_fields
from holdfast.i18n.message import msg
from holdfast.language.display import visible
from holdfast.model.commands import ToolFacts
from holdfast.model.events import Move, SecretsRenewed
from holdfast.model.form import Field, FieldType, Form
from holdfast.model.interaction import (
    RENEWAL,
    REPAIR,
    Asking,
    InteractionAction,
    InteractionType,
)
from holdfast.model.plan import Action, HumanAction, TaskStatus, ToolAction
from holdfast.model.record import replacing
from holdfast.model.retry import Failure, FailureKind
from holdfast.model.values import Json

_CONFIRMATION: Final = InteractionType.USER_CONFIRMATION
_INPUT: Final = InteractionType.USER_INPUT
_PENDING: Final = TaskStatus.PENDING
_WAITS: Final = (TaskStatus.NOT_STARTED, TaskStatus.RUNNING)

_asking_with = replacing(Asking)


def ask_missing(
    builder: Builder, listener_id: str, form: Form, args: Mapping[str, Json], version: str
) -> None:
    """The work lacks parameters: pause for them, and go on at this very point.

    The arguments that are known say what it is about.
    """
    action = builder.listener(listener_id).action
    if isinstance(action, ToolAction):
        shown = {"tool": action.tool, "args": _known(args, form)}
        question = missing_question(
            form,
            msg("{tool} needs more", tool=action.tool),
            action.missing,
            shown,
            version=version,
            outdated=[one for one in builder.step(listener_id).provided if one not in args],
        )
    else:
        question = missing_question(form, _title(builder, listener_id), Asking())
    _ask(builder, listener_id, question)


def ask_human(
    builder: Builder, listener_id: str, action: HumanAction, words: Sequence[str]
) -> None:
    form = _still_missing(builder, action.form) if listener_id == INPUTS else action.form
    asking = _filled_in(action.asking, *words)
    ours = words_of(builder.state, listener_id, form)
    if not asking.details and ours.details:
        asking = _asking_with(asking, details=ours.details)
    confirmation = not form.fields
    question = Question(
        "human",
        _CONFIRMATION if confirmation else _INPUT,
        asking.title or ours.title or _title(builder, listener_id),
        ours.message,
        options=CONFIRM_OPTIONS if confirmation else PROVIDE_OPTIONS,
        form=form,
        asking=asking,
    )
    _ask(builder, listener_id, question)


def _filled_in(asking: Asking, title: str, message: str, details: str) -> Asking:
    """With its words as they were rendered; a title has one line."""
    same = (title, message, details) == (asking.title, asking.message, asking.details)
    if same and "\n" not in title:
        return asking
    title = _spoken(asking.title, title).replace("\n", visible("\n"))
    message, details = _spoken(asking.message, message), _spoken(asking.details, details)
    return _asking_with(asking, title=title, message=message, details=details)


def _spoken(written: str, filled_in: str) -> str:
    """The author's words; what was filled into them may come from anywhere, and hides nothing."""
    if filled_in == written:
        return filled_in
    return "\n".join(map(visible, filled_in.split("\n")))


def ask_approval(
    builder: Builder, listener_id: str, args: Mapping[str, Json], tool: ToolFacts, consent: str
) -> None:
    action = builder.listener(listener_id).action
    assert isinstance(action, ToolAction)
    question = approval_question(
        builder,
        listener_id,
        action.tool,
        args,
        tool,
        consent,
        asking=action.consent,
        enrich=action.fields,
    )
    _ask(builder, listener_id, question)


def ask_secrets(builder: Builder, listener_id: str, value: Json) -> bool:
    """Ask for the secrets in it that open in the origin of this fork only, if there are any."""
    forked = builder.state.forked
    if forked is None or not forked.secrets:
        return False
    found = {forked.secrets[one] for one in references_in(value) if one in forked.secrets}
    if not found:
        return False
    names = sorted(found)
    action = builder.listener(listener_id).action
    question = Question(
        RENEWAL,
        InteractionType.MISSING_INFO,
        _title(builder, listener_id),
        msg(
            "These secrets open only in {run}, for which they were entered. Enter them again: "
            "{names}",
            run=forked.origin,
            names=", ".join(names),
        ),
        PROVIDE_OPTIONS,
        Form(tuple(Field(one, FieldType.SECRET, label=one) for one in names)),
        *_of_call(action, value),
    )
    _ask(builder, listener_id, question)
    return True


def _of_call(action: Action, args: Json) -> tuple[dict[str, Json], Asking]:
    """What the secrets are for, and who is asked for what the call lacks."""
    if not isinstance(action, ToolAction):
        return {}, Asking()
    return {"tool": action.tool, "args": args}, Asking(role=action.missing.role)


def ask_unknown(builder: Builder, listener_id: str, reason: str) -> None:
    """Only a person can find out."""
    if loses(builder, listener_id, reason):
        what, args, form = _unknown_call(builder, listener_id)
        _ask(builder, listener_id, unknown_question(what, args, reason, form))


def _ask(builder: Builder, listener_id: str, question: Question) -> None:
    refusal = open_question(
        builder, listener_id, question, waiting_moves(builder, listener_id, "waiting_for_person")
    )
    if refusal is not None:
        fail_listener(builder, listener_id, Failure(FailureKind.PERMANENT, refusal))


def answered(builder: Builder, answer: Answered) -> None:
    """The step is ready again and may simply go on, unless the answer says otherwise."""
    if answer.question.purpose == REPAIR:
        patching.answered(builder, answer)
        return
    listener_id = answer.question.step_id
    if answer.question.purpose == RENEWAL and answer.action is InteractionAction.PROVIDE_INFO:
        builder.emit(SecretsRenewed(listener_id, answer.values))
    match answer.action:
        case None | InteractionAction.REJECT_WITH_REASON:
            fail_listener(builder, listener_id, failure_of(answer), final=True)
        case InteractionAction.SKIP:
            skip_listener(builder, listener_id, answer.by, answer.reason)
        case InteractionAction.TERMINATE:
            terminate(builder, answer.by, answer.reason)
        case (
            InteractionAction.APPROVE_AND_EXECUTE
            | InteractionAction.PROVIDE_INFO
            | InteractionAction.RETRY_WITH_FEEDBACK
            | InteractionAction.CUSTOM
        ):
            pass
        case _:
            assert_never(answer.action)


def _known(args: Mapping[str, Json], form: Form) -> dict[str, Json]:
    """What is asked for and stands empty is not known."""
    asked = {field.name for field in form.fields}
    return {name: one for name, one in args.items() if one is not None or name not in asked}


def waiting_moves(builder: Builder, listener_id: str, reason: str) -> tuple[Move, ...]:
    """The sub-task is Pending while its listener waits for a person or a moment."""
    target = builder.listener(listener_id).target
    if target is None or target == builder.state.plan.main:
        return ()
    if builder.state.task(target).status not in _WAITS:
        return ()
    return (quiet(target, _PENDING, reason),)


def _title(builder: Builder, listener_id: str) -> str:
    plan = builder.state.plan.plan
    target = builder.listener(listener_id).target
    task = next((task.name for task in plan.tasks if task.task_id == target), "")
    return f"{plan.name}: {task}" if task and task != plan.name else plan.name


def _still_missing(builder: Builder, form: Form) -> Form:
    """What was given at the start is not asked for again, and settles what depends on it."""
    given = builder.state.main_task.context
    data = {field.name: given[field.name] for field in form.fields if field.name in given}
    shown = visible_fields(form, data)
    missing = []
    for field in form.fields:
        settled = answers_asked(field) <= data.keys()
        if field.name not in data and (field in shown or not settled):
            missing.append(replace(field, visible_if=None) if settled else field)
    return Form(tuple(missing))


def _unknown_call(builder: Builder, listener_id: str) -> tuple[str, Mapping[str, Json], Form]:
    """What was called, with which arguments, and the form for the result that is lost."""
    step = builder.step(listener_id)
    if step.calling is not None:
        function, args, _ = step.calling
        return function, args, Form((Field("result", FieldType.TEXT, msg("Result")),))
    listener = builder.listener(listener_id)
    name = listener.action.tool if isinstance(listener.action, ToolAction) else listener_id
    return name, step.args or EMPTY, listener.lost_result
