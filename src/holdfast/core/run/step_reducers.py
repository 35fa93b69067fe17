"""What the events of a step do to the state, whichever machine it belongs to."""

from __future__ import annotations

from typing import Any

from immutables import Map

from holdfast.core.run import moves
from holdfast.core.run.four_eyes import CHANGED, wants
from holdfast.core.run.state import S, StepState, changed, without
from holdfast.core.run.tables import HELD_UP, Signal, StepMove, StepStatus
from holdfast.model import events as e
from holdfast.model.agent_events import CallStarted
from holdfast.model.conversation_events import TaskStarted
from holdfast.model.retry import FailureKind
from holdfast.model.run import RunStatus


def call_started(state: S, event: CallStarted | TaskStarted, **more: Any) -> S:
    return moves.move_step(
        state,
        event.step_id,
        StepMove.START,
        attempt=event.attempt,
        generation=event.generation,
        claim=state.version,
        args=event.args,
        consent=event.consent,
        idempotent=event.idempotent,
        child_id=event.child_id or state.steps[event.step_id].child_id,
        failure=None,
        **more,
    )


def attempt_failed(state: S, event: e.AttemptFailed, at: float) -> S:
    """Only a failure that the tool itself answered calls for a new key."""
    answered = event.failure.kind is not FailureKind.UNKNOWN
    timers = state.timers.set(moves.retry_timer(event.step_id), event.retry_at)
    return moves.move_step(
        moves.progressed(changed(state, timers=timers, retried=state.retried + 1)),
        event.step_id,
        StepMove.BACK_OFF,
        failure=event.failure,
        why=event.why,
        generation=state.steps[event.step_id].generation + answered,
        calling=None,
    )


def woken(state: S, event: e.StepWoken, at: float) -> S:
    timers = without(state.timers, moves.retry_timer(event.step_id))
    return moves.move_step(changed(state, timers=timers), event.step_id, StepMove.WAKE, why="")


def released(state: S, event: e.StepReleased, at: float) -> S:
    """As if it had not started; a run that is being cancelled will not start it again."""
    cancelling = state.status is RunStatus.CANCELLING
    attempt = state.steps[event.step_id].attempt - 1
    move = StepMove.STOP if cancelling else StepMove.RELEASE
    state = moves.progressed(state)
    return moves.move_step(state, event.step_id, move, attempt=attempt, calling=None)


def outcome_lost(state: S, event: e.OutcomeLost, at: float) -> S:
    """A run that is being cancelled asks nobody: the step ends here, its outcome unknown."""
    if state.status is not RunStatus.CANCELLING:
        return state
    paused = state.steps[event.step_id].child_status == RunStatus.PAUSE
    state = changed(state, paused_children=state.paused_children - paused)
    changes = {"child_status": None, "waits_for": None}
    return moves.move_step(state, event.step_id, StepMove.STOP, **changes)


def child_heard(state: S, event: e.ChildHeard, at: float) -> S:
    state = changed(state, heard=state.heard.set(event.child_id, event.seq))
    step = state.steps[event.step_id]
    revivable = step.status is StepStatus.FAILED and state.status is not RunStatus.CANCELLING
    if step.status is not StepStatus.RUNNING and not revivable:
        return state
    was, now = (one == RunStatus.PAUSE for one in (step.child_status, event.status))
    state = changed(state, paused_children=state.paused_children + now - was)
    state = _child_moved(_told_of_answer(state, event), step, event)
    return _child_pause_signal(state, was=was, now=now)


def _told_of_answer(state: S, event: e.ChildHeard) -> S:
    """A person's answer to a child run is one to this run as well; the last one counts."""
    if event.continued_at is None or event.continued_at <= (state.continued_at or 0.0):
        return state
    return changed(state, provided_params=event.provided, continued_at=event.continued_at)


def _child_moved(state: S, step: StepState, event: e.ChildHeard) -> S:
    """A child that goes on after its error takes its parent's step along."""
    changes: dict[str, Any] = {
        "child_status": event.status,
        "waits_for": event.waits_for,
        "resuming": False,
    }
    if event.status == RunStatus.DONE:
        changes["carried"] = (event.result,)
    move = _child_move(state, step, event.status)
    state = moves.move_step(state, event.step_id, move, **changes)
    return moves.unfail(state, event.step_id) if move is not None else state


def _child_move(state: S, step: StepState, child_status: str) -> StepMove | None:
    if state.status is RunStatus.CANCELLING:
        return None
    if child_status == RunStatus.DONE:
        return StepMove.GO_ON
    revived = step.status is StepStatus.FAILED and child_status in _ALIVE
    return StepMove.START if revived else None


_ALIVE = (RunStatus.RUNNING, RunStatus.PAUSE)


def _child_pause_signal(state: S, *, was: bool, now: bool) -> S:
    if state.status is RunStatus.CANCELLING or was == now:
        return state
    if now:
        return moves.signal(state, Signal.ASK)
    return state if moves.asks(state) else moves.signal(state, Signal.GO_ON)


def children_resumed(state: S, step_ids: tuple[str, ...]) -> S:
    """Child runs that failed are told to go on; until they say so, their steps wait."""
    for step_id in step_ids:
        changes = {"child_status": None, "waits_for": None, "resuming": True}
        state = moves.move_step(state, step_id, StepMove.START, **changes)
    return state


def recovered(state: S, event: e.RunRecovered, at: float) -> S:
    return changed(state, recoveries=event.count)


def cancel_requested(state: S, event: e.CancelRequested, at: float) -> S:
    """Whoever waits for the run goes on without it, as the one who ended it wants."""
    state = wants(state, event.by, CHANGED)
    for step_id, step in list(state.steps.items()):
        if step.status in HELD_UP:
            state = moves.move_step(state, step_id, StepMove.STOP, pending=0)
    timers: Map[str, float] = Map({moves.CANCEL_TIMER: event.grace_until})
    ended_by = event.by if event.everything else ""
    state = changed(state, timers=timers, cancelled_by=event.by, ended_by=ended_by, failed=())
    return moves.signal(state, Signal.CANCEL)


def cancelled(state: S, event: e.RunCancelled, at: float) -> S:
    return ended(state, Signal.STOPPED)


def ended(state: S, how: Signal) -> S:
    """A run that has ended is never woken."""
    return moves.signal(changed(state, timers=Map()), how)
