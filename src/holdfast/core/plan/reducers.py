"""What events of listeners and tasks do to a plan's state; those of cases stand in
`case_reducers`.

A reducer decides nothing: every choice stands in the event. The moves come from the tables, so an
event that does not fit the state raises.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from holdfast.core.plan.compiled import VERIFY
from holdfast.core.plan.state import NEW_TASK, PlanState, TaskState, reason
from holdfast.core.plan.tables import TASK, next_task
from holdfast.core.run import reducers as shared
from holdfast.core.run.builder import Reducer
from holdfast.core.run.state import (
    ANY_STEP,
    CHANGED,
    EMPTY,
    NEW_STEP,
    REGISTERED,
    RESUMED,
    StepState,
    add_failed,
    add_step,
    asks,
    changed,
    ended,
    evolve,
    move_step,
    new,
    progressed,
    put_step,
    retry_timer,
    set_step_fields,
    signal,
    unfail,
    wait_timer,
    wants,
    without,
)
from holdfast.core.run.tables import ACTIVE_STEPS, STEP, Signal, StepMove, StepStatus, next_step
from holdfast.language.moments import utc_text
from holdfast.model import events as e
from holdfast.model.effects import RecordedCall
from holdfast.model.events import Move
from holdfast.model.plan import PlanInstanceStatus, TaskStatus

_DONE: Final = TaskStatus.DONE
_new: Final = tuple.__new__
"""Makes a named tuple without a call of its constructor."""


def moved(state: PlanState, moves: tuple[Move, ...], at: float) -> PlanState:
    fields = state.__dict__
    for move in moves:
        tasks, task_id, status = fields["tasks"], move.task_id, move.status
        task = tasks.get(task_id, NEW_TASK)
        before, context, trace = task[0], task[1], task[2]
        if status not in TASK[before]:
            next_task(before, status)  # which raises
        if more := move.context:
            context = {**context, **more} if context else more
        if move.drop:
            context = {name: one for name, one in context.items() if name not in move.drop}
        reason = move.reason
        if reason or status is not before:
            trace = trace.push_front((status, reason, at))
        fields["tasks"] = tasks.set(task_id, _new(TaskState, (status, context, trace)))
        if status is _DONE or before is _DONE:
            fields["done_tasks"] += (status is _DONE) - (before is _DONE)
        if move.fired:
            fire(state, move.fired)
    return state


def fire(state: PlanState, listener_ids: tuple[str, ...]) -> PlanState:
    """A listener that is still busy with an earlier firing remembers that it was triggered."""
    fields = state.__dict__
    for listener_id in listener_ids:
        steps = fields["steps"]
        step = steps.get(listener_id)
        if step is None:
            fields["steps"] = steps.set(listener_id, NEW_STEP)
            fields["active"] += 1
            fields["readied"].append(listener_id)
        elif step.status in ACTIVE_STEPS or step.status is StepStatus.FAILED:
            move_step(state, listener_id, None, pending=step.pending + 1)
        else:
            refire(state, listener_id, repeats=_repeats(step), **_calls_made(step))
    return state


def _calls_made(step: StepState) -> Mapping[str, Any]:
    """What a snippet has called before a patch made it wait for another trigger is not called
    again."""
    if not (step.forgotten and step.calls):
        return EMPTY
    return {"calls": step.calls, "provided": step.provided, "clock": step.clock}


def _repeats(step: StepState) -> int:
    """How often a listener has fired again by itself; what a person runs again counts anew."""
    return 0 if step.forgotten else step.repeats + 1


def refire(
    state: PlanState, listener_id: str, move: StepMove = StepMove.FIRE, **kept: Any
) -> PlanState:
    step = state.steps[listener_id]
    again = {"firing": step.firing + 1, "pending": step.pending, **kept}
    return move_step(state, listener_id, move, NEW_STEP, **again)


def follow_pending(state: PlanState, listener_id: str) -> PlanState:
    """A repeating listener that was triggered while it worked fires once more."""
    step = state.steps[listener_id]
    if not step.pending or state.status is PlanInstanceStatus.CANCELLING:
        return state
    move_step(state, listener_id, None, pending=step.pending - 1)
    return refire(state, listener_id, repeats=_repeats(step))


_START: Final = StepMove.START
_SUCCEED: Final = StepMove.SUCCEED


def listener_started(state: PlanState, event: e.ListenerStarted, at: float) -> None:
    step_id = event.listener_id
    step = state.steps[step_id]
    after, fields = new(StepState), {**step.__dict__}
    set_step_fields(after, fields)
    fields["status"] = STEP[step.status].get(_START) or next_step(step.status, _START)
    fields["attempt"] = event.attempt
    fields["generation"] = event.generation
    fields["claim"] = state.version
    fields["clock"] = step.clock if step.calls else at
    fields["args"] = event.args
    fields["consent"] = event.consent
    fields["idempotent"] = event.idempotent
    fields["pure"] = event.pure
    fields["child_id"] = event.child_id or step.child_id
    fields["failure"] = None
    put_step(state, step_id, step, after)
    if event.moves:
        moved(state, event.moves, at)


def listener_succeeded(state: PlanState, event: e.ListenerSucceeded, at: float) -> None:
    """What the firing needed is forgotten; how often it was tried is not."""
    step_id = event.listener_id
    step = state.steps[step_id]
    if _SUCCEED not in STEP[step.status]:
        next_step(step.status, _SUCCEED)  # which raises
    tried = (step.firing, step.attempt, step.generation, step.retries, step.pending, step.repeats)
    plain = tried == _AT_ONCE and step.child_id is None
    after = _DONE_AT_ONCE if plain else _finished(*tried, step.child_id)
    put_step(state, step_id, step, after)
    if state.recoveries:
        progressed(state)
    if step.pending:
        follow_pending(state, step_id)
    if event.moves:
        moved(state, event.moves, at)


def _finished(
    firing: int,
    attempt: int,
    generation: int,
    retries: int,
    pending: int,
    repeats: int,
    child_id: str | None,
) -> StepState:
    return StepState(
        firing=firing,
        status=StepStatus.DONE,
        attempt=attempt,
        generation=generation,
        retries=retries,
        pending=pending,
        repeats=repeats,
        child_id=child_id,
    )


_AT_ONCE: Final = (1, 1, 0, 0, 0, 0)
_DONE_AT_ONCE: Final = _finished(*_AT_ONCE, None)
"""Most steps end alike, and share one record."""


def listener_failed(state: PlanState, event: e.ListenerFailed, at: float) -> None:
    moved(_after_failure(state, event, at), event.moves, at)


def _after_failure(state: PlanState, event: e.ListenerFailed, at: float) -> PlanState:
    state, since = progressed(state), state.steps[event.listener_id].failing_since
    changes = {
        "failure": event.failure,
        "failing_since": at if since is None else since,
        "carried": (event.result,) if event.kept else None,
        "calling": None,
    }
    if event.handled:
        return _handled(state, event.listener_id, changes)
    move = StepMove.GIVE_UP if event.final else StepMove.FAIL
    state = move_step(state, event.listener_id, move, **changes)
    return add_failed(state, event.listener_id) if event.final else state


def _handled(state: PlanState, listener_id: str, changes: dict[str, Any]) -> PlanState:
    state = move_step(state, listener_id, StepMove.SUCCEED, **changes)
    return follow_pending(state, listener_id)


def listener_skipped(state: PlanState, event: e.ListenerSkipped, at: float) -> None:
    """Only this firing is passed over: a repeating listener still follows its other triggers."""
    _skipped(wants(state, event.by, CHANGED), event.listener_id)
    moved(follow_pending(state, event.listener_id), event.moves, at)


def _skipped(state: PlanState, listener_id: str) -> PlanState:
    timers = without(without(state.timers, retry_timer(listener_id)), wait_timer(listener_id))
    state = unfail(changed(state, timers=timers), listener_id)
    return move_step(state, listener_id, StepMove.SKIP)


def wait_started(state: PlanState, event: e.WaitStarted, at: float) -> None:
    timers = state.timers.set(wait_timer(event.listener_id), event.until)
    move_step(changed(state, timers=timers), event.listener_id, StepMove.WAIT)
    moved(state, event.moves, at)


def wait_ended(state: PlanState, event: e.WaitEnded, at: float) -> PlanState:
    timers = without(state.timers, wait_timer(event.listener_id))
    result = {"until": utc_text(event.until)}
    state = changed(state, timers=timers)
    return move_step(state, event.listener_id, StepMove.GO_ON, carried=(result,))


def function_called(state: PlanState, event: e.FunctionCalled, at: float) -> PlanState:
    calling = (event.function, event.args, event.idempotent)
    return move_step(state, event.listener_id, None, calling=calling, claim=state.version)


def function_returned(state: PlanState, event: e.FunctionReturned, at: float) -> PlanState:
    step = state.steps[event.listener_id]
    assert step.calling is not None
    function, args, _ = step.calling
    calls = (*step.calls, RecordedCall(function, args, event.result))
    late = step.status is StepStatus.WAITING
    return move_step(
        progressed(state),
        event.listener_id,
        StepMove.GO_ON if late else None,
        calls=calls,
        calling=None,
        claim=state.version,
    )


def check_concluded(state: PlanState, event: e.CheckConcluded, at: float) -> PlanState:
    verification = {**state.verification, event.listener_id: event.verdict}
    state = progressed(changed(state, verification=verification))
    if event.verdict != "failed":
        return move_step(state, event.listener_id, StepMove.SUCCEED)
    # A later look must be a new one: an agent's verdict, once heard, is not heard again.
    state = move_step(state, event.listener_id, StepMove.GIVE_UP, carried=None)
    return add_failed(state, event.listener_id)


def run_started(state: PlanState, event: e.RunStarted, at: float) -> None:
    known = {"parent": event.parent, "plan_id": event.plan_id, "prompt": event.prompt}
    state = shared.begun(state, event, at, **known)
    for author in event.authors:
        state = wants(state, author, REGISTERED)
    if event.values:
        held = TaskState(context=event.values)
        state = changed(state, tasks=state.tasks.set(state.plan.main, held))
    fire(state, event.fired)
    moved(state, event.moves, at)


def planner_retried(state: PlanState, event: e.PlannerRetried, at: float) -> None:
    """The backoff of the next round goes on from all tries so far."""
    step, due = state.steps[event.listener_id], event.retry_at
    state = changed(state, retried=state.retried + 1)
    if due is not None:
        timers = state.timers.set(retry_timer(event.listener_id), due)
        state = changed(state, timers=timers)
    state = _refire_keeping(
        state,
        event.listener_id,
        step,
        StepMove.FIRE if due is None else StepMove.FIRE_LATER,
        retries=event.retry_count,
        retry_times=(*step.retry_times, at if due is None else due),
        tried=step.tried + step.attempt,
        failing_since=step.failing_since,
        repeats=step.repeats,
        why=event.why if due is not None else "",
    )
    moved(state, event.moves, at)


def planner_gave_up(state: PlanState, event: e.PlannerGaveUp, at: float) -> None:
    for listener_id in event.failed:
        if state.steps[listener_id].status is not StepStatus.FAILED:
            state = move_step(state, listener_id, StepMove.GIVE_UP, calling=None)
        state = add_failed(state, listener_id)
    moved(signal(state, Signal.GIVE_UP), event.moves, at)


def run_resumed(state: PlanState, event: e.RunResumed, at: float) -> None:
    state = wants(state, event.by, RESUMED)
    state = signal(changed(state, failed=(), recoveries=0), Signal.RESUME)
    state = _counted_anew(state)
    for listener_id in event.refired:
        step = state.steps.get(listener_id)
        if step is None:
            state = fire(state, (listener_id,))
        elif listener_id in event.anew:
            state = refire(state, listener_id, feedback=reason(step))
        else:
            state = _refire_keeping(state, listener_id, step)
    state = shared.children_resumed(state, event.children)
    if asks(state):
        signal(state, Signal.ASK)
    state.readied.append(ANY_STEP)
    moved(state, event.moves, at)


def _counted_anew(state: PlanState) -> PlanState:
    """A resume resets all counts, also of what has not failed for good yet."""
    for listener_id, step in list(state.steps.items()):
        if step.status in _COUNTING:
            attempt = int(step.status is StepStatus.RUNNING)
            counts = {"attempt": attempt, "tried": 0, "retries": 0, "retry_times": ()}
            state = move_step(state, listener_id, None, repeats=0, **counts)
        elif step.repeats:
            state = move_step(state, listener_id, None, repeats=0)
    return state


_COUNTING = ACTIVE_STEPS | {StepStatus.FAILED}


def _refire_keeping(
    state: PlanState,
    listener_id: str,
    step: StepState,
    move: StepMove = StepMove.FIRE,
    **counted: Any,
) -> PlanState:
    """What was obtained before the failure is not obtained again."""
    return refire(
        state,
        listener_id,
        move,
        carried=step.carried,
        provided=step.provided,
        calls=step.calls,
        clock=step.clock,
        **counted,
    )


def verification_started(state: PlanState, event: e.VerificationStarted, at: float) -> None:
    fire(changed(state, verifying=True), event.fired)


def run_completed(state: PlanState, event: e.RunCompleted, at: float) -> None:
    ended(moved(state, event.moves, at), Signal.FINISH)


def run_cancelled(state: PlanState, event: e.RunCancelled, at: float) -> None:
    ended(moved(state, event.moves, at), Signal.STOPPED)


def tasks_edited(state: PlanState, event: e.TasksEdited, at: float) -> None:
    wants(state, event.by, CHANGED)
    for listener_id in event.closed:
        _closed_by_hand(state, listener_id)
    moved(state, event.moves, at)


def _closed_by_hand(state: PlanState, listener_id: str) -> PlanState:
    """One that has yet to fire, or to fire anew, will not do so by itself any more."""
    step = state.steps.get(listener_id)
    if step is None:
        return add_step(state, listener_id, _NEVER_FIRED)
    if step.forgotten:
        return move_step(state, listener_id, None, forgotten=False)
    state = _skipped(state, listener_id)
    return move_step(state, listener_id, None, pending=0)


_NEVER_FIRED = evolve(NEW_STEP, firing=0, status=StepStatus.SKIPPED)


def listeners_reset(state: PlanState, event: e.ListenersReset, at: float) -> None:
    """A forgotten step keeps its count, so that its next firing has a key of its own."""
    state = wants(state, event.by, CHANGED)
    checks = [one for one in event.forgotten if one.startswith(VERIFY)]
    if checks and not event.fired[0].startswith(VERIFY):
        state = changed(state, verifying=False, verification=EMPTY)
    for listener_id in event.forgotten:
        state = move_step(state, listener_id, None, forgotten=True, calls=())
    moved(fire(state, event.fired), event.moves, at)


def _question_opened(state: PlanState, event: e.QuestionOpened, at: float) -> None:
    moved(shared.question_opened(state, event, at), event.moves, at)


LISTENER_REDUCERS: Final[Mapping[type, Reducer]] = {
    **shared.REDUCERS,
    e.RunStarted: run_started,
    e.ListenerStarted: listener_started,
    e.ListenerSucceeded: listener_succeeded,
    e.ListenerFailed: listener_failed,
    e.ListenerSkipped: listener_skipped,
    e.WaitStarted: wait_started,
    e.WaitEnded: wait_ended,
    e.FunctionCalled: function_called,
    e.FunctionReturned: function_returned,
    e.QuestionOpened: _question_opened,
    e.PlannerRetried: planner_retried,
    e.PlannerGaveUp: planner_gave_up,
    e.RunResumed: run_resumed,
    e.VerificationStarted: verification_started,
    e.CheckConcluded: check_concluded,
    e.RunCompleted: run_completed,
    e.TasksEdited: tasks_edited,
    e.ListenersReset: listeners_reset,
    e.RunCancelled: run_cancelled,
}
