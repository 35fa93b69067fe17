"""One listener's firing: how it starts, and what its outcome does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, assert_never

from holdfast.core.approval import mode_of
from holdfast.core.interactions.calls import (
    NeedArguments,
    NeedConsent,
    Refuse,
    Start,
    absent,
    judge_call,
    without_outdated,
)
from holdfast.core.plan.builder import Builder, updates_for
from holdfast.core.plan.compiled import CompiledListener, moment_of
from holdfast.core.plan.planner import fail_listener, give_up
from holdfast.core.plan.questions import (
    ask_approval,
    ask_human,
    ask_missing,
    ask_secrets,
    ask_unknown,
    waiting_moves,
)
from holdfast.core.plan.state import NEW_TASK, TaskFacts
from holdfast.core.repair.causes import judged
from holdfast.core.run.state import EMPTY, StepState, asks
from holdfast.core.run.steps import counts_late, lost, release, repeatable, succeeded, tries_again
from holdfast.core.run.tables import StepStatus
from holdfast.errors import OutputRefused, TemplateError
from holdfast.i18n.message import msg
from holdfast.language.conditions import holds
from holdfast.language.moments import NoMoment
from holdfast.model import commands as c
from holdfast.model.approval import ApprovalMode
from holdfast.model.events import (
    CheckConcluded,
    FunctionCalled,
    FunctionReturned,
    ListenerStarted,
    ListenerSucceeded,
    Move,
    TaskUpdate,
    WaitEnded,
    WaitStarted,
)
from holdfast.model.plan import (
    CodeAction,
    HumanAction,
    PlanInstanceStatus,
    TaskStatus,
    ToolAction,
    WaitAction,
)
from holdfast.model.record import constructor
from holdfast.model.retry import Failure, FailureKind
from holdfast.model.values import Json

_READY: Final = StepStatus.READY
_RUNNING: Final = StepStatus.RUNNING
_CANCELLING: Final = PlanInstanceStatus.CANCELLING
_TASK_RUNNING: Final = TaskStatus.RUNNING
_TASK_RETRYING: Final = TaskStatus.RETRYING
_listener_started: Final = constructor(ListenerStarted)
_listener_succeeded: Final = constructor(ListenerSucceeded)


def start(builder: Builder, command: c.StartStep) -> None:
    """Start a ready listener, or ask for what it needs first."""
    state, plan = builder.state, builder.state.plan
    try:
        step = state.steps[command.step_id]
    except KeyError:
        return
    if step.status is not _READY:
        return
    if plan.holds and asks(state):
        return
    listener = plan.listeners[command.step_id]
    if step.repeats >= listener.listener.max_firings:
        _stop_cycle(builder, listener)
        return
    if step.carried is not None:
        _started(builder, listener, step, pure=True)
        return
    if listener.tool is not None:
        _start_tool(builder, listener, listener.tool, step, command.tool)
        return
    match listener.action:
        case _ if listener.listener.approval:
            _fail_unsent(builder, listener, msg("only a tool call can be approved"))
        case CodeAction():
            _started(builder, listener, step, pure=listener.pure, idempotent=True)
        case HumanAction() as action:
            _ask_human(builder, listener, action)
        case WaitAction() as action:
            _wait(builder, listener, action)
        case _:  # a plan's or an agent's
            _start_child(builder, listener, step)


def _stop_cycle(builder: Builder, listener: CompiledListener) -> None:
    """A cycle that would go on for ever waits for a person, whose resume grants as much again."""
    most = listener.listener.max_firings
    give_up(
        builder,
        msg("{id} has fired {n} times (max_firings)", id=listener.id, n=most),
        (listener.id,),
    )


def _start_tool(
    builder: Builder,
    listener: CompiledListener,
    name: str,
    step: StepState,
    tool: c.ToolFacts | None,
) -> None:
    """Nothing is rendered again after a consent: what a person has changed stays changed.

    Nor under a key that the outside world may have seen: it stands for the bytes sent with it.
    """
    if tool is None:
        fail_listener(builder, listener.id, absent(name))
        return
    args = step.args
    if args is None or (step.consent is None and not _may_have_been_sent(step)):
        try:
            whole = listener.args
            args = whole.value if whole.constant else whole.fill(builder.state)
            if step.provided:
                args = {**args, **step.provided}
        except TemplateError as error:
            _fail_unsent(builder, listener, str(error))
            return
    if step.provided:
        args = without_outdated(builder.state, listener.id, args, tool)
    if builder.state.forked is not None and ask_secrets(builder, listener.id, args):
        return
    mode = tool.mode or mode_of(tool.approval, args)
    if listener.listener.approval and mode is ApprovalMode.AUTO:
        mode = ApprovalMode.REQUIRE_APPROVAL
    call = (builder.state.run_id, listener.id, step.firing)
    verdict = judge_call(call, name, args, tool, mode, step.consent, listener.fields)
    if isinstance(verdict, Start):
        _started(builder, listener, step, args, tool.idempotent, verdict.consent)
        return
    match verdict:
        case NeedArguments(form=form):
            ask_missing(builder, listener.id, form, args, tool.version)
        case NeedConsent(consent=bound):
            ask_approval(builder, listener.id, args, tool, bound)
        case Refuse(message=message):
            _fail_unsent(builder, listener, message)
        case _:
            assert_never(verdict)


def _may_have_been_sent(step: StepState) -> bool:
    """Only a failure that the tool itself answered calls for a new key."""
    return step.failure is None or step.failure.kind is FailureKind.UNKNOWN


def _ask_human(builder: Builder, listener: CompiledListener, action: HumanAction) -> None:
    try:
        words = listener.words.fill(builder.state)
    except TemplateError as error:
        _fail_unsent(builder, listener, str(error))
        return
    ask_human(builder, listener.id, action, [str(one) for one in words])


def _wait(builder: Builder, listener: CompiledListener, action: WaitAction) -> None:
    """The moment is worked out now, and kept as a timer; one that has passed ends the wait at once.

    The result, `{"until": …}`, is concluded as every listener's is.
    """
    try:
        texts = {key: str(text) for key, text in listener.args.fill(builder.state).items()}
        rendered = WaitAction(**texts, timezone=action.timezone, weekdays=action.weekdays)
        until = moment_of(rendered, builder.now)
    except TemplateError as error:
        _fail_unsent(builder, listener, str(error))
        return
    except NoMoment as error:
        _fail_unsent(builder, listener, error.message)
        return
    firing = builder.step(listener.id).firing
    moves = waiting_moves(builder, listener.id, "waiting_for_moment")
    builder.emit(WaitStarted(listener.id, firing, until, moves))
    if until <= builder.now:
        builder.emit(WaitEnded(listener.id, firing, until))


def _start_child(builder: Builder, listener: CompiledListener, step: StepState) -> None:
    try:
        values = listener.args.fill(builder.state)
    except TemplateError as error:
        _fail_unsent(builder, listener, str(error))
        return
    if ask_secrets(builder, listener.id, values):
        return
    child_id = f"{builder.state.run_id}.{listener.id}.{step.firing}"
    _started(builder, listener, step, args=values, idempotent=True, child_id=child_id)


def _started(
    builder: Builder,
    listener: CompiledListener,
    step: StepState,
    args: Mapping[str, Json] | None = None,
    idempotent: bool = False,
    consent: str | None = None,
    pure: bool = False,
    child_id: str | None = None,
) -> None:
    """The target sub-task is Running while its listener works."""
    state, target = builder.state, listener.target
    if target is None or target == state.plan.main:
        moves: tuple[Move, ...] = ()
    elif state.tasks.get(target, NEW_TASK).status is _TASK_RUNNING:
        moves = ()
    elif target in state.plan.watching[_TASK_RUNNING]:
        moves = builder.moves((TaskUpdate(target, _TASK_RUNNING, {}, listener.id),))
    else:
        moves = listener.running
    builder.emit(
        _listener_started(
            listener.id,
            step.firing,
            step.attempt + 1,
            step.generation,
            args,
            idempotent,
            pure,
            child_id,
            moves,
            consent,
        )
    )


def _fail_unsent(builder: Builder, listener: CompiledListener, message: str) -> None:
    """Nothing was called: the plan or its surroundings must be mended first."""
    fail_listener(builder, listener.id, Failure(FailureKind.PERMANENT, message))


def report(builder: Builder, command: c.ReportOutcome) -> None:
    state, step_id = builder.state, command.step_id
    try:
        step = state.steps[step_id]
    except KeyError:
        return
    late = step.status is not _RUNNING or step.claim != command.claim
    if late and not counts_late(builder, step, command):
        return
    listener = state.plan.listeners[step_id]
    outcome: c.PlanOutcome = command.outcome  # type: ignore[assignment]  # its driver's
    if isinstance(outcome, c.Succeeded):
        _succeed(builder, listener, step.firing, outcome.result, outcome.updates)
        return
    match outcome:
        case c.Failed():
            _fail_attempt(builder, listener, outcome)
        case c.OutputBroken(result=result, message=message):
            _break_output(builder, listener, result, message)
        case c.Missing() | c.CallWanted() if builder.state.status is _CANCELLING:
            # It would need something more, and nothing more may start.
            release(builder, listener.id)
        case c.Missing(form=form, version=version):
            sent = builder.step(listener.id).args or EMPTY
            ask_missing(builder, listener.id, form, sent, version)
        case c.Lost():
            _lose(builder, listener, lost(outcome))
        case c.NotSent():
            release(builder, listener.id)
        case c.CallWanted():
            _call(builder, listener, outcome)
        case c.CallReturned(index=index, result=result):
            _call_returned(builder, listener, index, result)
        case _:
            assert_never(outcome)


def _succeed(
    builder: Builder,
    listener: CompiledListener,
    firing: int,
    result: Json,
    updates: tuple[TaskUpdate, ...],
) -> None:
    if listener.verifies:
        _check(builder, listener, result)
        return
    state = builder.state
    retrying = state.tasks.get(state.plan.main, NEW_TASK).status is _TASK_RETRYING
    try:
        moves = _moves_after_retry(builder, updates) if retrying else builder.moves(updates)
    except OutputRefused as error:
        _break_output(builder, listener, result, str(error))
        return
    builder.emit(_listener_succeeded(listener.id, firing, result, moves))


def _moves_after_retry(builder: Builder, updates: tuple[TaskUpdate, ...]) -> tuple[Move, ...]:
    """A main task that was Retrying is Running again before the output is applied, so that
    conditions see it so; what has fired for that status already does not fire again."""
    main = builder.state.plan.main
    if any(update.task_id == main for update in updates):
        return builder.moves(updates)
    restored = TaskUpdate(main, TaskStatus.RUNNING, {}, "retry_succeeded")
    first, *rest = builder.moves((restored, *updates))
    return (builder.unrepeated(first), *rest)


def _check(builder: Builder, listener: CompiledListener, result: Json) -> None:
    if listener.check is None:
        _agent_checked(builder, listener, result)
        return
    facts = TaskFacts(builder.state.tasks, {"result": result})
    expected = listener.expect is None or holds(listener.expect, (), facts)
    verdict = "verified" if succeeded(result) and expected else "failed"
    expect = listener.check.expect if not expected else ""
    message = msg("expected {condition}", condition=expect) if expect else ""
    firing = builder.step(listener.id).firing
    builder.emit(CheckConcluded(listener.id, firing, verdict, message, result))


def _agent_checked(builder: Builder, listener: CompiledListener, result: Json) -> None:
    """The verdict follows from what the agent's tools answered, not from its words."""
    firing = builder.step(listener.id).firing
    said = result if isinstance(result, Mapping) else {}
    verdict = str(said.get("verdict", "unable_to_verify"))
    builder.emit(CheckConcluded(listener.id, firing, verdict, str(said.get("answer", "")), result))


def _fail_attempt(builder: Builder, listener: CompiledListener, outcome: c.Failed) -> None:
    failure, result = outcome.failure, outcome.result
    if failure.kind is FailureKind.UNKNOWN:
        _lose(builder, listener, failure)
    elif _tries_again(builder, listener, failure):
        return
    elif listener.verifies and not succeeded(result):
        firing = builder.step(listener.id).firing
        builder.emit(CheckConcluded(listener.id, firing, "failed", failure.message, result))
    else:
        updates = outcome.updates or None
        fail_listener(builder, listener.id, failure, updates=updates, result=result)


def _tries_again(builder: Builder, listener: CompiledListener, failure: Failure) -> bool:
    known = judged(failure, listener.tool)
    return tries_again(builder, listener.id, listener.listener.retry, known)


def _break_output(builder: Builder, listener: CompiledListener, result: Json, message: str) -> None:
    """The work is done and stays done; only its output waits to be determined."""
    failure = Failure(FailureKind.PERMANENT, message)
    fail_listener(builder, listener.id, failure, updates=(), kept=True, result=result)


def _lose(builder: Builder, listener: CompiledListener, failure: Failure) -> None:
    """An idempotent call may simply be tried again under the same key."""
    cancelling = builder.state.status is _CANCELLING
    if cancelling or not repeatable(builder.step(listener.id)):
        ask_unknown(builder, listener.id, failure.message)
    elif not _tries_again(builder, listener, failure):
        fail_listener(builder, listener.id, failure)


def _call(builder: Builder, listener: CompiledListener, outcome: c.CallWanted) -> None:
    if ask_secrets(builder, listener.id, outcome.args):
        return
    builder.emit(
        FunctionCalled(
            listener.id,
            builder.step(listener.id).firing,
            outcome.index,
            outcome.function,
            outcome.args,
            outcome.idempotent,
        )
    )


def _call_returned(builder: Builder, listener: CompiledListener, index: int, result: Json) -> None:
    """The snippet goes on with the result, unless nothing more may start."""
    firing = builder.step(listener.id).firing
    builder.emit(FunctionReturned(listener.id, firing, index, result))
    if builder.state.status is _CANCELLING:
        release(builder, listener.id)


def child_finished(builder: Builder, listener_id: str, result: Json) -> None:
    """A child run that finishes while its parent is being cancelled counts, and starts nothing."""
    listener = builder.listener(listener_id)
    success = succeeded(result)
    try:
        updates = updates_for(listener, success, result, builder.state)
    except TemplateError as error:
        _break_output(builder, listener, result, str(error))
        return
    if success:
        _succeed(builder, listener, builder.step(listener_id).firing, result, updates)
    else:
        failure = Failure(FailureKind.PERMANENT, msg("its child run did not succeed"))
        _fail_attempt(builder, listener, c.Failed(failure, updates, result))


def restarts(builder: Builder, listener_id: str) -> bool:
    """A call is judged by the tool as it is now; other work goes on as it began."""
    action = builder.listener(listener_id).action
    return isinstance(action, ToolAction) and builder.step(listener_id).carried is None
