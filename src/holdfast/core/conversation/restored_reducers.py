"""Turns whose tasks are kept: restored from a snapshot, or gone on with after a failure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from immutables import Map

from holdfast.core.conversation import schedule
from holdfast.core.conversation.former import PUT_ASIDE, done_late, is_doubtful
from holdfast.core.conversation.snapshot import AS_THEY_ARE
from holdfast.core.conversation.state import CONTEXT, DECOMPOSE, ConversationState, Turn
from holdfast.core.conversation.turn_reducers import ENDED, cleared, to_confirm, with_tasks
from holdfast.core.run.state import (
    ANY_STEP,
    CHANGED,
    NEW_STEP,
    RESUMED,
    StepState,
    add_step,
    changed,
    evolve,
    signal,
    wants,
)
from holdfast.core.run.tables import Signal, StepStatus
from holdfast.i18n.message import msg
from holdfast.model import conversation_events as v
from holdfast.model.conversation import EngineState, SubTask
from holdfast.model.events import LateResultKept
from holdfast.model.run import RunStatus
from holdfast.model.values import Json

_BEFORE_TASKS = (EngineState.RECEIVING, EngineState.CONTEXT_FETCHING)


def turn_resumed(state: ConversationState, event: v.ConversationResumed, at: float) -> None:
    """As it will be scheduled: what was done is done, and what is skipped has that for a result."""
    former, number = state.former, range(1, state.total + 1)
    skipped = frozenset(event.skipped)
    tasks = [_going_on(state, f"t{one}", skipped, event.by) for one in number]
    names = ("turn", "text", "history", "context", "former", "confirmed", "feedback", "by_model")
    same = {name: getattr(state, name) for name in names}
    state = changed(
        with_tasks(cleared(state), tasks),
        **same,
        kept=True,
        pending=True,
        scheduled=sum(one.status in schedule.KEPT for one in tasks),
    )
    state = signal(state, Signal.NEXT_TURN)
    for step_id in [one for one in state.order if is_doubtful(state, one)]:
        state = add_step(state, step_id, former[step_id])
    state.readied.append(ANY_STEP)
    wants(_finished_untold(_phases_done(state)), event.by, RESUMED)


def _going_on(state: ConversationState, step_id: str, skipped: frozenset[str], by: str) -> SubTask:
    task = state.tasks[step_id]
    if step_id in skipped:
        why = _why_skipped(state, step_id, skipped)
        told = {"skipped": True, "by": by, "reason": why}
        return replace(task, status="finished", result=told, skipped=why)
    kept = task.status in ENDED or is_doubtful(state, step_id)
    return task if kept else replace(task, status="pending", result=None)


def _why_skipped(state: ConversationState, step_id: str, skipped: frozenset[str]) -> str:
    """It failed, or needs what did, or what is skipped for that."""
    task = state.tasks[step_id]
    if task.status == "failed":
        failure = state.former[step_id].failure
        return msg("it failed: {reason}", reason=failure.message) if failure else msg("it failed")
    lacks = [one for one in task.dependencies if state.steps_of[one] in skipped]
    failed = [one for one in lacks if state.tasks[state.steps_of[one]].status == "failed"]
    if failed:
        return msg("it depends on {names}, which failed", names=schedule.listed(failed))
    return msg("it depends on {names}, skipped as well", names=schedule.listed(lacks))


def turn_stopped(state: ConversationState, event: v.ConversationStopped, at: float) -> None:
    """It is over as it is; the next turn is told of it."""
    wants(changed(state, kept=True), event.by, CHANGED)


def late_result(state: ConversationState, event: LateResultKept, at: float) -> None:
    """In a turn that failed, a task that was under way has been done after all."""
    waits = state.phase is EngineState.ERROR and event.step_id in state.former
    if waits and not event.stale:
        done_late(state, event.step_id, event.result)


def restored(state: ConversationState, event: v.SnapshotRestored, at: float) -> None:
    body: Mapping[str, Json] = event.snapshot
    phase = EngineState(body["state"])
    state = changed(
        with_tasks(cleared(state), [_resumable(one, phase) for one in body["tasks"]]),
        phase=phase,
        left=EngineState(body["left"]),
        pending=body.get("pending", False),
        turn=_unused_turn(state, body["turn"]),
        text=body["user_input"],
        scheduled=body["scheduled"],
        context=body["context"],
        complaint=body.get("complaint", ""),
        history=tuple(
            Turn(one["text"], one["results"], one.get("unfinished", {}), one.get("answer", ""))
            for one in body["history"]
        ),
        **{name: body[name] for name in AS_THEY_ARE if name in body},
    )
    if phase in PUT_ASIDE:
        state = changed(state, former=_failed_or_in_doubt(state))
    else:
        state = _finished_untold(_in_doubt(_phases_done(state)))
    state.readied.append(ANY_STEP)
    wants(_status_of_phase(state), event.by, CHANGED)


def _phases_done(state: ConversationState) -> ConversationState:
    """A context and a decomposition that are at hand need not be asked for again."""
    done = evolve(NEW_STEP, status=StepStatus.DONE)
    before_tasks = state.pending or state.phase in _BEFORE_TASKS
    if before_tasks and state.context:
        state = add_step(state, CONTEXT, done)
    if (before_tasks or state.phase is EngineState.DECOMPOSING) and state.tasks:
        state = to_confirm(add_step(state, DECOMPOSE, done))
    return state


def _unused_turn(state: ConversationState, turn: int) -> int:
    """The keys of its work carry the turn: one that this run has had already is not had again."""
    return max(state.turn + 1, turn) if state.turn else turn


def _in_doubt(state: ConversationState) -> ConversationState:
    """Work that may have happened elsewhere and has no owner: it is not started again unasked."""
    for step_id in state.order:
        task = state.tasks[step_id]
        if task.status == "running":
            state = add_step(state, step_id, _unknown(state, task))
    return state


def _unknown(state: ConversationState, task: SubTask) -> StepState:
    sent = {"attempt": 1, "claim": state.version, "args": task.args}
    return evolve(NEW_STEP, status=StepStatus.RUNNING, **sent)


def _failed_or_in_doubt(state: ConversationState) -> Map[str, StepState]:
    """What must be asked about when the conversation goes on after the failure."""
    failed = evolve(NEW_STEP, status=StepStatus.FAILED)
    kept = {
        step_id: _unknown(state, task) if task.status == "running" else failed
        for step_id, task in state.tasks.items()
        if task.status in ("running", "failed")
    }
    return Map(kept)


def _finished_untold(state: ConversationState) -> ConversationState:
    """Results that the former consumer never heard of."""
    finished = [one for one in state.order if state.tasks[one].status == "finished"]
    for step_id in finished:
        done = evolve(NEW_STEP, status=StepStatus.DONE)
        state = add_step(state, step_id, done)
    begun = state.steps
    waiting = [one for one, count in state.waits_for.items() if not count and one not in begun]
    return changed(state, untold=tuple(finished), queue=schedule.queued(state.tasks, waiting))


def _resumable(raw: Mapping[str, Any], phase: EngineState) -> SubTask:
    """What was under way when the snapshot was taken is done again, unless that may do harm;
    what was finished is not."""
    known = {name: value for name, value in raw.items() if name != "doubtful"}
    task = SubTask(**{**known, "dependencies": tuple(raw["dependencies"])})
    kept = task.status in ("pending", *ENDED) or raw.get("doubtful", False)
    kept = kept or (task.status == "failed" and phase in PUT_ASIDE)
    return task if kept else replace(task, status="scheduled", result=None)


def _status_of_phase(state: ConversationState) -> ConversationState:
    if state.phase in (EngineState.IDLE, EngineState.COMPLETED) and not state.pending:
        return state if state.status is RunStatus.DONE else signal(state, Signal.FINISH)
    state = signal(state, Signal.NEXT_TURN)
    if state.phase is EngineState.PAUSED:
        return signal(changed(state, held=True), Signal.ASK)
    return signal(state, Signal.GIVE_UP) if state.phase is EngineState.ERROR else state
