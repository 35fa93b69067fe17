"""What the events of the whole run do to the state: planner, people, child runs."""

from __future__ import annotations

from typing import Any

from rpds import HashTrieMap

from holdfast.core.plan import fold, fold_steps
from holdfast.core.plan.compiled import VERIFY
from holdfast.core.plan.state import EMPTY, PlanState, StepState, TaskState, changed
from holdfast.core.plan.tables import ACTIVE_STEPS, Signal, StepMove, StepStatus
from holdfast.model import events as e
from holdfast.model.plan import PlanInstanceStatus

_STOPPED_AT_ONCE = (ACTIVE_STEPS - {StepStatus.RUNNING}) | {StepStatus.FAILED}


def started(state: PlanState, event: e.RunStarted, at: float) -> PlanState:
    state = changed(
        state,
        plan_id=event.plan_id,
        prompt=event.prompt,
        root_id=event.root_id,
        parent=event.parent,
        started_by=event.by,
        created_at=at,
    )
    if event.values:
        held = TaskState(context=event.values)
        state = changed(state, tasks=state.tasks.insert(state.plan.main, held))
    return fold.fire(fold.signal(state, Signal.START), event.fired)


def ended(state: PlanState, how: Signal) -> PlanState:
    """A run that has ended is never woken."""
    return fold.signal(changed(state, timers=HashTrieMap()), how)


def planner_retried(state: PlanState, event: e.PlannerRetried, at: float) -> PlanState:
    step = state.steps[event.listener_id]
    times = (*step.retry_times, at)
    return _refire_keeping(
        state, event.listener_id, step, retries=event.retry_count, retry_times=times
    )


def planner_gave_up(state: PlanState, event: e.PlannerGaveUp) -> PlanState:
    for listener_id in event.failed:
        if state.steps[listener_id].status is not StepStatus.FAILED:
            state = fold.move_step(state, listener_id, StepMove.GIVE_UP, calling=None)
        state = fold.add_failed(state, listener_id)
    return fold.signal(state, Signal.GIVE_UP)


def resumed(state: PlanState, event: e.RunResumed) -> PlanState:
    state = fold.signal(changed(state, failed=(), recoveries=0), Signal.RESUME)
    for listener_id in event.refired:
        step = state.steps.get(listener_id)
        if step is None:
            state = fold.fire(state, (listener_id,))
        else:
            state = _refire_keeping(state, listener_id, step)
    for listener_id in event.children:
        start = StepMove.START
        state = fold.move_step(state, listener_id, start, child_status=None, resuming=True)
    return fold.signal(state, Signal.ASK) if fold.asks(state) else state


def _refire_keeping(
    state: PlanState, listener_id: str, step: StepState, **counted: Any
) -> PlanState:
    """What was obtained before the failure is not obtained again."""
    return fold.refire(
        state,
        listener_id,
        carried=step.carried,
        provided=step.provided,
        calls=step.calls,
        clock=step.clock,
        **counted,
    )


def closed_by_hand(state: PlanState, listener_ids: tuple[str, ...]) -> PlanState:
    for listener_id in listener_ids:
        state = fold_steps.closed(state, listener_id)
        state = fold.move_step(state, listener_id, None, pending=0)
    return state


def listeners_reset(state: PlanState, event: e.ListenersReset) -> PlanState:
    """A forgotten step keeps its count, so that its next firing has a key of its own."""
    checks = [one for one in event.forgotten if one.startswith(VERIFY)]
    if checks and not event.fired[0].startswith(VERIFY):
        state = changed(state, verifying=False, verification=EMPTY)
    for listener_id in event.forgotten:
        state = fold.move_step(state, listener_id, None, forgotten=True)
    for listener_id in event.fired:
        state = fold.fire(state, (listener_id,))
    return state


def child_heard(state: PlanState, event: e.ChildHeard) -> PlanState:
    state = changed(state, heard=state.heard.insert(event.child_id, event.seq))
    step = state.steps[event.listener_id]
    if step.status not in (StepStatus.RUNNING, StepStatus.FAILED):
        return state
    was, now = (one == PlanInstanceStatus.PAUSE for one in (step.child_status, event.status))
    state = changed(state, paused_children=state.paused_children + now - was)
    state = _child_moved(state, step, event)
    return _child_pause_signal(state, was=was, now=now)


def _child_moved(state: PlanState, step: StepState, event: e.ChildHeard) -> PlanState:
    """A child that goes on after its error takes its listener along."""
    changes: dict[str, Any] = {"child_status": event.status, "resuming": False}
    if event.status == PlanInstanceStatus.DONE:
        changes["carried"] = (event.result,)
    move = _child_move(state, step, event.status)
    state = fold.move_step(state, event.listener_id, move, **changes)
    return fold.unfail(state, event.listener_id) if move is not None else state


def _child_move(state: PlanState, step: StepState, child_status: str) -> StepMove | None:
    if state.status is PlanInstanceStatus.CANCELLING:
        return None
    if child_status == PlanInstanceStatus.DONE:
        return StepMove.GO_ON
    revived = step.status is StepStatus.FAILED and child_status in _ALIVE
    return StepMove.START if revived else None


_ALIVE = (PlanInstanceStatus.RUNNING, PlanInstanceStatus.PAUSE)


def _child_pause_signal(state: PlanState, *, was: bool, now: bool) -> PlanState:
    if state.status is PlanInstanceStatus.CANCELLING or was == now:
        return state
    if now:
        return fold.signal(state, Signal.ASK)
    return state if fold.asks(state) else fold.signal(state, Signal.GO_ON)


def cancel_requested(state: PlanState, event: e.CancelRequested) -> PlanState:
    for listener_id, step in list(state.steps.items()):
        if step.status in _STOPPED_AT_ONCE:
            state = fold.move_step(state, listener_id, StepMove.STOP, pending=0)
    timers: HashTrieMap[str, float] = HashTrieMap({fold.CANCEL_TIMER: event.grace_until})
    state = changed(state, timers=timers, cancelled_by=event.by, failed=())
    return fold.signal(state, Signal.CANCEL)
