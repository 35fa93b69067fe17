"""Tasks: how one starts, what it may need first, what comes of it, and what answers do to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never, cast

from holdfast.core.approval import mode_of
from holdfast.core.conversation import phases, questions
from holdfast.core.conversation.builder import Builder
from holdfast.core.conversation.references import rendered
from holdfast.core.conversation.state import ANSWER, CONFIRM, CONTEXT, DECOMPOSE, results_before
from holdfast.core.interactions import calls
from holdfast.core.interactions.answers import Answered, failure_of
from holdfast.core.interactions.calls import NO_FIELDS, without_outdated
from holdfast.core.run.state import EMPTY
from holdfast.core.run.steps import counts, lost, release, repeatable, says_failure, tries_again
from holdfast.core.run.tables import StepStatus
from holdfast.core.run.window import shorten
from holdfast.errors import TemplateError
from holdfast.forms.from_tools import form_from_schema
from holdfast.forms.validation import validate
from holdfast.i18n.message import msg
from holdfast.language.strict import canonical_json
from holdfast.model import commands as c
from holdfast.model import conversation_events as v
from holdfast.model.conversation import EngineState
from holdfast.model.form import FieldType, Form
from holdfast.model.interaction import InteractionAction
from holdfast.model.retry import Failure, FailureKind
from holdfast.model.run import RunStatus
from holdfast.model.values import Json


def start(builder: Builder, command: c.StartStep) -> None:
    """Where it may: nothing starts while the conversation is paused or has no place for it."""
    state, step_id = builder.state, command.step_id
    step = state.steps.get(step_id)
    if step is None or step.status is not StepStatus.READY or step_id not in state.tasks:
        return
    if state.phase is not EngineState.EXECUTING or not state.has_room:
        return
    if step.carried is not None:
        conclude_carried(builder, step_id)
        return
    task = builder.task(step_id)
    args = step.args
    if args is None:
        try:
            args = {**rendered(task.args, results_before(state, task)), **step.provided}
        except TemplateError as error:
            why = msg("task {id}: {problem}", id=task.id, problem=str(error))
            broke(builder, step_id, Failure(FailureKind.PERMANENT, why))
            return
    match task.route:
        case "tool":
            _start_tool(builder, step_id, args, command.tool)
        case "agent" | "plan":
            # By the claim of this very start: no other turn or attempt has had such a child.
            child_id = step.child_id or f"{state.run_id}.{step_id}.{state.version + 1}"
            _started(builder, step_id, args, idempotent=True, child_id=child_id)
        case _:
            _started(builder, step_id, args, idempotent=task.route != "once")


def _start_tool(
    builder: Builder, step_id: str, args: Mapping[str, Json], tool: c.ToolFacts | None
) -> None:
    name, step = builder.task(step_id).type, builder.step(step_id)
    if tool is None:
        broke(builder, step_id, calls.absent(name))
        return
    args = without_outdated(builder.state, step_id, args, tool)
    call = (builder.state.run_id, step_id, step.firing)
    mode = mode_of(tool.approval, args)
    verdict = calls.judge_call(call, name, args, tool, mode, step.consent)
    match verdict:
        case calls.Start(consent=consent):
            _started(builder, step_id, args, idempotent=tool.idempotent, consent=consent)
        case calls.NeedArguments(form=form):
            _lacks(builder, step_id, form, args, tool)
        case calls.NeedConsent(consent=consent):
            questions.ask_approval(builder, step_id, args, tool, consent)
        case calls.Refuse(message=message):
            broke(builder, step_id, Failure(FailureKind.PERMANENT, message))
        case _:
            assert_never(verdict)


def _lacks(
    builder: Builder, step_id: str, form: Form, args: Mapping[str, Json], tool: c.ToolFacts
) -> None:
    """A model that knows the results before may fill it in; then a person is asked."""
    state = builder.state
    properties = tool.parameters.get("properties", {})
    open_to_all = [one.name for one in form.fields if one.type is not FieldType.SECRET]
    wanted = {one: properties[one] for one in open_to_all if one in properties}
    asks_model = state.by_model and builder.task(step_id).dependencies and wanted
    if asks_model and state.filling.get(step_id) != EMPTY:
        builder.emit(v.ArgumentsWanted(step_id, {"type": "object", "properties": wanted}))
    else:
        questions.ask_missing(builder, step_id, form, args, tool.version)


def _conclude_filling(builder: Builder, step_id: str, outcome: c.ConversationOutcome) -> None:
    """Only what fits is taken; a model that fails leaves it to a person."""
    if builder.state.status is RunStatus.CANCELLING or isinstance(outcome, c.NotSent):
        release(builder, step_id)
        return
    values = outcome.values if isinstance(outcome, c.Filled) else EMPTY
    parameters = builder.state.filling[step_id]
    form = form_from_schema(parameters, list(parameters["properties"]), NO_FIELDS)
    known = {one.name: one.type for one in form.fields}
    given = {
        name: _as_typed(known[name], one)
        for name, one in values.items()
        if name in known and one is not None
    }
    judged = validate(form, given, partial=True)
    fitting = {name: one for name, one in judged.values.items() if name in given}
    builder.emit(v.ArgumentsFilled(step_id, fitting))


def _as_typed(kind: FieldType, value: Json) -> Json:
    """A list or an object is written as JSON where a form has no better field for it."""
    plain = kind is not FieldType.TEXTAREA or not isinstance(value, list | Mapping)
    return value if plain else canonical_json(value)


def _started(
    builder: Builder,
    step_id: str,
    args: Mapping[str, Json],
    *,
    idempotent: bool,
    consent: str | None = None,
    child_id: str | None = None,
) -> None:
    step = builder.step(step_id)
    builder.emit(
        v.TaskStarted(
            step_id,
            step.firing,
            step.attempt + 1,
            step.generation,
            args,
            idempotent,
            consent,
            child_id,
            resumes=child_id is not None and child_id == step.child_id,
        )
    )


def conclude_carried(builder: Builder, step_id: str) -> None:
    """The result is at hand already: a child run's, or what a person told of a lost call."""
    carried = builder.step(step_id).carried
    if carried is None:
        return
    (result,) = carried
    if says_failure(result):
        why = str(result.get("error") or msg("the work reported success: false"))
        _fail(builder, step_id, Failure(FailureKind.PERMANENT, why))
    else:
        builder.emit(v.TaskFinished(step_id, result))


def report(builder: Builder, command: c.ReportOutcome) -> None:
    if builder.state.phase is EngineState.ERROR:
        phases.report_late(builder, command)
    elif counts(builder, builder.state.steps.get(command.step_id), command):
        outcome = cast(c.ConversationOutcome, command.outcome)
        if command.step_id in (CONTEXT, DECOMPOSE, ANSWER):
            _conclude_phase(builder, command.step_id, outcome)
        elif builder.state.filling.get(command.step_id):
            _conclude_filling(builder, command.step_id, outcome)
        else:
            _conclude(builder, command.step_id, outcome)


def _conclude_phase(builder: Builder, step_id: str, outcome: c.ConversationOutcome) -> None:
    if builder.state.status is RunStatus.CANCELLING:
        release(builder, step_id)
        return
    match outcome:
        case c.Fetched():
            builder.emit(v.ContextReceived(outcome.rules, outcome.knowledge, outcome.tools))
        case c.Decomposed():
            phases.decomposed(builder, outcome)
        case c.Undecomposed(reason=reason):
            phases.undecomposed(builder, reason)
        case c.Written(text=text):
            builder.emit(v.AnswerWritten(text.strip()))
        case c.Failed() | c.Lost() if step_id == ANSWER:
            # A model that has nothing to say does not keep what was done from being told.
            builder.emit(v.AnswerWritten(""))
        case c.Failed(failure=failure):
            builder.fail(failure.message)
        case c.Lost(reason=reason):
            builder.fail(reason)
        case _:
            release(builder, step_id)


def _conclude(builder: Builder, step_id: str, outcome: c.ConversationOutcome) -> None:
    cancelling = builder.state.status is RunStatus.CANCELLING
    match outcome:
        case c.Succeeded(result=result):
            builder.emit(v.TaskFinished(step_id, result))
        case c.Failed(failure=failure) if failure.kind is FailureKind.UNKNOWN:
            lose(builder, step_id, failure)
        case c.Failed(failure=failure):
            _fail(builder, step_id, failure)
        case c.Missing(form=form, version=version) if not cancelling:
            sent = builder.step(step_id).args or EMPTY
            questions.ask_missing(builder, step_id, form, sent, version)
        case c.Lost():
            lose(builder, step_id, lost(outcome))
        case _:
            release(builder, step_id)


def _fail(builder: Builder, step_id: str, failure: Failure) -> None:
    if not tries_again(builder, step_id, builder.state.settings.retry, failure):
        broke(builder, step_id, failure)


def broke(builder: Builder, step_id: str, failure: Failure) -> None:
    """It failed for good: the consumer is told when it asks, and not while it is paused."""
    builder.emit(v.TaskBroke(step_id, failure))


def lose(builder: Builder, step_id: str, failure: Failure) -> None:
    """What may be repeated is tried again under its key; of the rest only a person can tell."""
    cancelling = builder.state.status is RunStatus.CANCELLING
    if cancelling or not repeatable(builder.step(step_id)):
        questions.ask_unknown(builder, step_id, failure.message)
    else:
        _fail(builder, step_id, failure)


_LONGEST_LIST = 4_000


def answered(builder: Builder, answer: Answered) -> None:
    """The step is ready again and may simply go on, unless the answer says otherwise."""
    step_id, by, reason = answer.question.step_id, answer.by, answer.reason
    match answer.action:
        case InteractionAction.TERMINATE:
            phases.abort(builder, _ended(by, reason))
        case InteractionAction.RETRY_WITH_FEEDBACK if step_id == CONFIRM:
            builder.emit(v.TasksRefused(_told_model(builder, reason), by))
        case InteractionAction.APPROVE_AND_EXECUTE if step_id == CONFIRM:
            builder.emit(v.TasksConfirmed(by))
        case None if step_id == CONFIRM:
            phases.abort(builder, reason)
        case None | InteractionAction.REJECT_WITH_REASON:
            broke(builder, step_id, failure_of(answer))
        case InteractionAction.SKIP:
            why = reason or msg("{by} went on without it", by=by)
            told = {"skipped": True, "by": by, "reason": why}
            builder.emit(v.TaskFinished(step_id, told, why))
        case (
            InteractionAction.APPROVE_AND_EXECUTE
            | InteractionAction.PROVIDE_INFO
            | InteractionAction.RETRY_WITH_FEEDBACK
            | InteractionAction.CUSTOM
        ):
            conclude_carried(builder, step_id)
        case _:
            assert_never(answer.action)


def _told_model(builder: Builder, reason: str) -> str:
    made = [
        {"id": one.id, "description": one.description, "type": one.type}
        for one in map(builder.state.tasks.__getitem__, builder.state.order)
    ]
    tasks = shorten(canonical_json(made), _LONGEST_LIST)
    return f"a person wants other tasks than these: {tasks}. They said: {reason}"


def _ended(by: str, reason: str) -> str:
    if reason:
        return msg("ended by {by}: {reason}", by=by, reason=reason)
    return msg("ended by {by}", by=by)
