"""One listener's firing: how it starts, and what its outcome does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, assert_never

from holdfast.core.approval import mode_of
from holdfast.core.interactions.calling import (
    NeedArguments,
    NeedConsent,
    Refuse,
    Start,
    judge_call,
)
from holdfast.core.interactions.outdated import without_outdated
from holdfast.core.plan.builder import Draft
from holdfast.core.plan.compiled import CompiledListener
from holdfast.core.plan.outputs import succeeded, updates_for
from holdfast.core.plan.planner import fail_listener, give_up
from holdfast.core.plan.questions import (
    ask_approval,
    ask_human,
    ask_missing,
    ask_unknown,
)
from holdfast.core.plan.state import NEW_TASK, TaskFacts
from holdfast.core.run.moves import asks
from holdfast.core.run.state import EMPTY, StepState
from holdfast.core.run.steps import counts_late, in_flight, lost, release, repeatable, tries_again
from holdfast.core.run.tables import StepStatus
from holdfast.errors import OutputRefused, TemplateError
from holdfast.language.conditions import holds
from holdfast.model import commands as c
from holdfast.model.approval import ApprovalMode
from holdfast.model.events import (
    CheckConcluded,
    FunctionCalled,
    FunctionReturned,
    ListenerStarted,
    ListenerSucceeded,
    Move,
)
from holdfast.model.plan import (
    CodeAction,
    HumanAction,
    PlanInstanceStatus,
    TaskStatus,
    TaskUpdate,
    ToolAction,
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


def start(draft: Draft, command: c.StartStep) -> None:
    """Start a ready listener, or ask for what it needs first."""
    state, plan = draft.state, draft.state.plan
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
        _stop_cycle(draft, listener)
        return
    if step.carried is not None:
        _started(draft, listener, step, pure=True)
        return
    if listener.tool is not None:
        _start_tool(draft, listener, listener.tool, step, command.tool)
        return
    match listener.action:
        case _ if listener.listener.approval:
            _fail_unsent(draft, listener, "only a tool call can be approved")
        case CodeAction():
            _started(draft, listener, step, pure=listener.pure, idempotent=True)
        case HumanAction() as action:
            _ask_human(draft, listener, action)
        case _:  # a plan's or an agent's
            _start_child(draft, listener, step)


def _stop_cycle(draft: Draft, listener: CompiledListener) -> None:
    """A cycle that would go on for ever waits for a person, whose resume grants as much again."""
    most = listener.listener.max_firings
    give_up(draft, f"{listener.id} has fired {most} times (max_firings)", (listener.id,))


def _start_tool(
    draft: Draft,
    listener: CompiledListener,
    name: str,
    step: StepState,
    tool: c.ToolFacts | None,
) -> None:
    """Nothing is rendered again after a consent: what a person has changed stays changed.

    Nor under a key that the outside world may have seen: it stands for the bytes sent with it.
    """
    if tool is None:
        _fail_unsent(draft, listener, f"there is no tool {name}")
        return
    args = step.args
    if args is None or (step.consent is None and not _may_have_been_sent(step)):
        try:
            args = listener.args.fill(draft.state)
            if step.provided:
                args = {**args, **step.provided}
        except TemplateError as error:
            _fail_unsent(draft, listener, str(error))
            return
    if step.provided:
        args = without_outdated(draft.state, listener.id, args, tool)
    mode = tool.mode or mode_of(tool.approval, args)
    if listener.listener.approval and mode is ApprovalMode.AUTO:
        mode = ApprovalMode.REQUIRE_APPROVAL
    call = (draft.state.run_id, listener.id, step.firing)
    verdict = judge_call(call, name, args, tool, mode, step.consent, listener.fields)
    if isinstance(verdict, Start):
        _started(draft, listener, step, args, tool.idempotent, verdict.consent)
        return
    match verdict:
        case NeedArguments(form=form):
            ask_missing(draft, listener.id, form, args, tool.version)
        case NeedConsent(consent=bound):
            ask_approval(draft, listener.id, args, tool, bound)
        case Refuse(message=message):
            _fail_unsent(draft, listener, message)
        case _:
            assert_never(verdict)


def _may_have_been_sent(step: StepState) -> bool:
    """Only a failure that the tool itself answered calls for a new key."""
    return step.failure is None or step.failure.kind is FailureKind.UNKNOWN


def _ask_human(draft: Draft, listener: CompiledListener, action: HumanAction) -> None:
    try:
        words = listener.words.fill(draft.state)
    except TemplateError as error:
        _fail_unsent(draft, listener, str(error))
        return
    ask_human(draft, listener.id, action, [str(one) for one in words])


def _start_child(draft: Draft, listener: CompiledListener, step: StepState) -> None:
    try:
        values = listener.args.fill(draft.state)
    except TemplateError as error:
        _fail_unsent(draft, listener, str(error))
        return
    child_id = f"{draft.state.run_id}.{listener.id}.{step.firing}"
    _started(draft, listener, step, args=values, idempotent=True, child_id=child_id)


def _started(
    draft: Draft,
    listener: CompiledListener,
    step: StepState,
    args: Mapping[str, Json] | None = None,
    idempotent: bool = False,
    consent: str | None = None,
    pure: bool = False,
    child_id: str | None = None,
) -> None:
    """The target sub-task is Running while its listener works."""
    state, target = draft.state, listener.target
    if target is None or target == state.plan.main:
        moves: tuple[Move, ...] = ()
    elif state.tasks.get(target, NEW_TASK).status is _TASK_RUNNING:
        moves = ()
    elif target in state.plan.watching[_TASK_RUNNING]:
        moves = draft.moves((TaskUpdate(target, _TASK_RUNNING, {}, listener.id),))
    else:
        moves = listener.running
    draft.emit(
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


def _fail_unsent(draft: Draft, listener: CompiledListener, message: str) -> None:
    """Nothing was called: the plan or its surroundings must be mended first."""
    fail_listener(draft, listener.id, Failure(FailureKind.PERMANENT, message))


def report(draft: Draft, command: c.ReportOutcome) -> None:
    state, step_id = draft.state, command.step_id
    try:
        step = state.steps[step_id]
    except KeyError:
        return
    late = step.status is not _RUNNING or step.claim != command.claim
    if late and not counts_late(draft, step, command):
        return
    listener = state.plan.listeners[step_id]
    outcome: c.PlanOutcome = command.outcome  # type: ignore[assignment]  # its driver's
    if isinstance(outcome, c.Succeeded):
        _succeed(draft, listener, step.firing, outcome.result, outcome.updates)
        return
    match outcome:
        case c.Failed():
            _fail_attempt(draft, listener, outcome)
        case c.OutputBroken(result=result, message=message):
            _break_output(draft, listener, result, message)
        case c.Missing() | c.CallWanted() if draft.state.status is _CANCELLING:
            # It would need something more, and nothing more may start.
            release(draft, listener.id)
        case c.Missing(form=form, version=version):
            sent = draft.step(listener.id).args or EMPTY
            ask_missing(draft, listener.id, form, sent, version)
        case c.Lost():
            _lose(draft, listener, lost(outcome))
        case c.NotSent():
            release(draft, listener.id)
        case c.CallWanted():
            _call(draft, listener, outcome)
        case c.CallReturned(index=index, result=result):
            _call_returned(draft, listener, index, result)
        case _:
            assert_never(outcome)


def _succeed(
    draft: Draft,
    listener: CompiledListener,
    firing: int,
    result: Json,
    updates: tuple[TaskUpdate, ...],
) -> None:
    if listener.verifies:
        _check(draft, listener, result)
        return
    state = draft.state
    retrying = state.tasks.get(state.plan.main, NEW_TASK).status is _TASK_RETRYING
    try:
        moves = _moves_after_retry(draft, updates) if retrying else draft.moves(updates)
    except OutputRefused as error:
        _break_output(draft, listener, result, str(error))
        return
    draft.emit(_listener_succeeded(listener.id, firing, result, moves))


def _moves_after_retry(draft: Draft, updates: tuple[TaskUpdate, ...]) -> tuple[Move, ...]:
    """A main task that was Retrying is Running again before the output is applied, so that
    conditions see it so; what has fired for that status already does not fire again."""
    main = draft.state.plan.main
    if any(update.task_id == main for update in updates):
        return draft.moves(updates)
    restored = TaskUpdate(main, TaskStatus.RUNNING, {}, "retry_succeeded")
    first, *rest = draft.moves((restored, *updates))
    return (draft.unrepeated(first), *rest)


def _check(draft: Draft, listener: CompiledListener, result: Json) -> None:
    if listener.check is None:
        _agent_checked(draft, listener, result)
        return
    facts = TaskFacts(draft.state.tasks, {"result": result})
    expected = listener.expect is None or holds(listener.expect, (), facts)
    verdict = "verified" if succeeded(result) and expected else "failed"
    expect = listener.check.expect if not expected else ""
    message = f"expected {expect}" if expect else ""
    firing = draft.step(listener.id).firing
    draft.emit(CheckConcluded(listener.id, firing, verdict, message, result))


def _agent_checked(draft: Draft, listener: CompiledListener, result: Json) -> None:
    """The verdict follows from what the agent's tools answered, not from its words."""
    firing = draft.step(listener.id).firing
    said = result if isinstance(result, Mapping) else {}
    verdict = str(said.get("verdict", "unable_to_verify"))
    draft.emit(CheckConcluded(listener.id, firing, verdict, str(said.get("answer", "")), result))


def _fail_attempt(draft: Draft, listener: CompiledListener, outcome: c.Failed) -> None:
    failure, result = outcome.failure, outcome.result
    if failure.kind is FailureKind.UNKNOWN:
        _lose(draft, listener, failure)
    elif _tries_again(draft, listener, failure):
        return
    elif listener.verifies and not succeeded(result):
        firing = draft.step(listener.id).firing
        draft.emit(CheckConcluded(listener.id, firing, "failed", failure.message, result))
    else:
        updates = outcome.updates or None
        fail_listener(draft, listener.id, failure, updates=updates, result=result)


def _tries_again(draft: Draft, listener: CompiledListener, failure: Failure) -> bool:
    return tries_again(draft, listener.id, listener.listener.retry, failure)


def _break_output(draft: Draft, listener: CompiledListener, result: Json, message: str) -> None:
    """The work is done and stays done; only its output waits to be determined."""
    failure = Failure(FailureKind.PERMANENT, message)
    fail_listener(draft, listener.id, failure, updates=(), kept=True, result=result)


def _lose(draft: Draft, listener: CompiledListener, failure: Failure) -> None:
    """An idempotent call may simply be tried again under the same key."""
    cancelling = draft.state.status is _CANCELLING
    if cancelling or not repeatable(draft.step(listener.id)):
        ask_unknown(draft, listener.id, failure.message)
    elif not _tries_again(draft, listener, failure):
        fail_listener(draft, listener.id, failure)


def _call(draft: Draft, listener: CompiledListener, outcome: c.CallWanted) -> None:
    draft.emit(
        FunctionCalled(
            listener.id,
            draft.step(listener.id).firing,
            outcome.index,
            outcome.function,
            outcome.args,
            outcome.idempotent,
        )
    )


def _call_returned(draft: Draft, listener: CompiledListener, index: int, result: Json) -> None:
    """The snippet goes on with the result, unless nothing more may start."""
    firing = draft.step(listener.id).firing
    draft.emit(FunctionReturned(listener.id, firing, index, result))
    if draft.state.status is _CANCELLING:
        release(draft, listener.id)


def child_finished(draft: Draft, listener_id: str, result: Json) -> None:
    """A child run that finishes while its parent is being cancelled counts, and starts nothing."""
    listener = draft.listener(listener_id)
    success = succeeded(result)
    try:
        updates = updates_for(listener, success, result, draft.state)
    except TemplateError as error:
        _break_output(draft, listener, result, str(error))
        return
    if success:
        _succeed(draft, listener, draft.step(listener_id).firing, result, updates)
    else:
        failure = Failure(FailureKind.PERMANENT, "its child run did not succeed")
        _fail_attempt(draft, listener, c.Failed(failure, updates, result))


def release_calls(draft: Draft) -> None:
    """A call that may be repeated starts anew under its key, judged by the tool as it is now."""
    if draft.state.status is _CANCELLING:
        return
    for listener_id in in_flight(draft):
        step = draft.step(listener_id)
        if _calls_tool(draft, listener_id) and repeatable(step):
            release(draft, listener_id)


def _calls_tool(draft: Draft, listener_id: str) -> bool:
    action = draft.listener(listener_id).action
    return isinstance(action, ToolAction) and draft.step(listener_id).carried is None


def recover(draft: Draft) -> None:
    """Whatever was in flight without a key of its own is in doubt now."""
    cancelling = draft.state.status is _CANCELLING
    for listener_id in in_flight(draft):
        if cancelling or not repeatable(draft.step(listener_id)):
            ask_unknown(draft, listener_id, "the process that ran it went down")


def quarantine(draft: Draft, count: int) -> None:
    """The run took its process down again and again: a person must look at it."""
    message = f"quarantined: the process went down {count} times while this ran"
    give_up(draft, message, in_flight(draft))
