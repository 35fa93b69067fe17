"""What the events of the whole run do to the state: planner, people, child runs."""

from __future__ import annotations

from typing import Any

from holdfast.core.plan import step_reducers as fold_steps
from holdfast.core.plan import task_changes as fold
from holdfast.core.plan.compiled import VERIFY
from holdfast.core.plan.refusals import reason
from holdfast.core.plan.state import PlanState, TaskState
from holdfast.core.run import moves
from holdfast.core.run.four_eyes import CHANGED, REGISTERED, RESUMED, STARTED, wants
from holdfast.core.run.state import ANY_STEP, EMPTY, NEW_STEP, StepState, changed, evolve
from holdfast.core.run.step_reducers import children_resumed, ended
from holdfast.core.run.tables import ACTIVE_STEPS, Signal, StepMove, StepStatus
from holdfast.model import events as e


def started(state: PlanState, event: e.RunStarted, at: float) -> None:
    state = changed(
        state,
        plan_id=event.plan_id,
        prompt=event.prompt,
        root_id=event.root_id,
        parent=event.parent,
        started_by=event.by,
        created_at=at,
    )
    state = wants(state, event.by, STARTED)
    for author in event.authors:
        state = wants(state, author, REGISTERED)
    if event.values:
        held = TaskState(context=event.values)
        state = changed(state, tasks=state.tasks.set(state.plan.main, held))
    fold.fire(moves.signal(state, Signal.START), event.fired)
    fold.moved(state, event.moves, at)


def planner_retried(state: PlanState, event: e.PlannerRetried, at: float) -> None:
    """The backoff of the next round goes on from all tries so far."""
    step, due = state.steps[event.listener_id], event.retry_at
    state = changed(state, retried=state.retried + 1)
    if due is not None:
        timers = state.timers.set(moves.retry_timer(event.listener_id), due)
        state = changed(state, timers=timers)
    state = _refire_keeping(
        state,
        event.listener_id,
        step,
        StepMove.FIRE if due is None else StepMove.FIRE_LATER,
        retries=event.retry_count,
        retry_times=(*step.retry_times, at if due is None else due),
        tried=step.tried + step.attempt,
        repeats=step.repeats,
        why=event.why if due is not None else "",
    )
    fold.moved(state, event.moves, at)


def planner_gave_up(state: PlanState, event: e.PlannerGaveUp, at: float) -> None:
    for listener_id in event.failed:
        if state.steps[listener_id].status is not StepStatus.FAILED:
            state = moves.move_step(state, listener_id, StepMove.GIVE_UP, calling=None)
        state = moves.add_failed(state, listener_id)
    fold.moved(moves.signal(state, Signal.GIVE_UP), event.moves, at)


def resumed(state: PlanState, event: e.RunResumed, at: float) -> None:
    state = wants(state, event.by, RESUMED)
    state = moves.signal(changed(state, failed=(), recoveries=0), Signal.RESUME)
    state = _counted_anew(state)
    for listener_id in event.refired:
        step = state.steps.get(listener_id)
        if step is None:
            state = fold.fire(state, (listener_id,))
        elif listener_id in event.anew:
            state = fold.refire(state, listener_id, feedback=reason(step))
        else:
            state = _refire_keeping(state, listener_id, step)
    state = children_resumed(state, event.children)
    if moves.asks(state):
        moves.signal(state, Signal.ASK)
    state.readied.append(ANY_STEP)
    fold.moved(state, event.moves, at)


def _counted_anew(state: PlanState) -> PlanState:
    """A resume resets all counts, also of what has not failed for good yet."""
    for listener_id, step in list(state.steps.items()):
        if step.status in _COUNTING:
            attempt = int(step.status is StepStatus.RUNNING)
            counts = {"attempt": attempt, "tried": 0, "retries": 0, "retry_times": ()}
            state = moves.move_step(state, listener_id, None, repeats=0, **counts)
        elif step.repeats:
            state = moves.move_step(state, listener_id, None, repeats=0)
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
    return fold.refire(
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
    fold.fire(changed(state, verifying=True), event.fired)


def completed(state: PlanState, event: e.RunCompleted, at: float) -> None:
    ended(fold.moved(state, event.moves, at), Signal.FINISH)


def cancelled(state: PlanState, event: e.RunCancelled, at: float) -> None:
    ended(fold.moved(state, event.moves, at), Signal.STOPPED)


def tasks_edited(state: PlanState, event: e.TasksEdited, at: float) -> None:
    wants(state, event.by, CHANGED)
    for listener_id in event.closed:
        _closed_by_hand(state, listener_id)
    fold.moved(state, event.moves, at)


def _closed_by_hand(state: PlanState, listener_id: str) -> PlanState:
    """One that has yet to fire, or to fire anew, will not do so by itself any more."""
    step = state.steps.get(listener_id)
    if step is None:
        return moves.add_step(state, listener_id, _NEVER_FIRED)
    if step.forgotten:
        return moves.move_step(state, listener_id, None, forgotten=False)
    state = fold_steps.closed(state, listener_id)
    return moves.move_step(state, listener_id, None, pending=0)


_NEVER_FIRED = evolve(NEW_STEP, firing=0, status=StepStatus.SKIPPED)


def listeners_reset(state: PlanState, event: e.ListenersReset, at: float) -> None:
    """A forgotten step keeps its count, so that its next firing has a key of its own."""
    state = wants(state, event.by, CHANGED)
    checks = [one for one in event.forgotten if one.startswith(VERIFY)]
    if checks and not event.fired[0].startswith(VERIFY):
        state = changed(state, verifying=False, verification=EMPTY)
    for listener_id in event.forgotten:
        state = moves.move_step(state, listener_id, None, forgotten=True)
    fold.moved(fold.fire(state, event.fired), event.moves, at)
