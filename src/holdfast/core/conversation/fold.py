"""What the events of a conversation do to its state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rpds import HashTrieMap, HashTrieSet

from holdfast.core.conversation import heap, schedule
from holdfast.core.conversation.state import CONTEXT, DECOMPOSE, ConversationState, Turn
from holdfast.core.conversation.tables import next_phase
from holdfast.core.run import fold_steps, moves
from holdfast.core.run.state import EMPTY, NEW_STEP, changed, evolve
from holdfast.core.run.tables import Signal, StepMove, StepStatus
from holdfast.model import conversation_events as v
from holdfast.model.conversation import EngineState, SubTask
from holdfast.model.events import ChildHeard
from holdfast.model.retry import FailureKind
from holdfast.model.run import RunStatus
from holdfast.model.values import Json

MOST_HISTORY = 20
"""How many earlier turns the next one is told of."""


def opened(state: ConversationState, event: v.ConversationOpened, at: float) -> ConversationState:
    state = changed(state, root_id=event.root_id, started_by=event.by, created_at=at)
    return moves.signal(state, Signal.START)


def input_received(state: ConversationState, event: v.InputReceived) -> ConversationState:
    history = state.history
    if state.total and state.completed == state.total:
        history = (*history, _turn(state))[-MOST_HISTORY:]
    state = _cleared(state)
    state = changed(state, turn=event.turn, text=event.text, pending=True, history=history)
    return moves.signal(state, Signal.NEXT_TURN)


def _turn(state: ConversationState) -> Turn:
    tasks = [state.tasks[one] for one in state.order]
    return Turn(state.text, {task.id: task.result for task in tasks})


def _cleared(state: ConversationState) -> ConversationState:
    """As before the turn; what is under way belongs to nobody any more."""
    return changed(
        state,
        context=EMPTY,
        complaint="",
        tasks=HashTrieMap(),
        steps_of=HashTrieMap(),
        order=(),
        scheduled=0,
        waits_for=HashTrieMap(),
        frees=HashTrieMap(),
        queue=None,
        untold=(),
        total=0,
        completed=0,
        error="",
        steps=HashTrieMap(),
        open_questions=HashTrieSet(),
        timers=HashTrieMap(),
        failed=(),
        active=0,
        in_flight=0,
        resting=0,
        paused_children=0,
        held=False,
        recoveries=0,
    )


def phase_changed(state: ConversationState, event: v.PhaseChanged) -> ConversationState:
    phase = next_phase(event.before, event.after)
    state = changed(state, phase=phase, pending=state.pending and phase is EngineState.IDLE)
    if phase is EngineState.PAUSED:
        return moves.signal(changed(state, left=event.before, held=True), Signal.ASK)
    if event.before is EngineState.PAUSED:
        state = changed(state, held=False)
        return state if moves.asks(state) else moves.signal(state, Signal.GO_ON)
    if phase is EngineState.COMPLETED:
        return moves.signal(state, Signal.FINISH)
    if phase is EngineState.ERROR:
        return moves.signal(_disowned(state), Signal.GIVE_UP)
    return state


def _disowned(state: ConversationState) -> ConversationState:
    """What is still under way belongs to nobody: its outcome is kept for audit, no more."""
    return changed(
        state,
        steps=HashTrieMap(),
        untold=(),
        timers=HashTrieMap(),
        active=0,
        in_flight=0,
        resting=0,
        paused_children=0,
    )


def work_started(state: ConversationState, event: v.WorkStarted) -> ConversationState:
    if event.step_id not in state.steps:
        state = moves.put_step(state, event.step_id, None, evolve(NEW_STEP, firing=event.firing))
    start = {"firing": event.firing, "attempt": 1, "claim": state.version, "idempotent": True}
    return moves.move_step(state, event.step_id, StepMove.START, **start)


def context_received(state: ConversationState, event: v.ContextReceived) -> ConversationState:
    context = {
        "rules": list(event.rules),
        "knowledge": list(event.knowledge),
        "tools": list(event.tools),
    }
    state = moves.progressed(changed(state, context=context))
    return moves.move_step(state, CONTEXT, StepMove.SUCCEED)


def decomposition_refused(
    state: ConversationState, event: v.DecompositionRefused
) -> ConversationState:
    return moves.move_step(changed(state, complaint=event.reason), DECOMPOSE, StepMove.RELEASE)


def goal_decomposed(state: ConversationState, event: v.GoalDecomposed) -> ConversationState:
    state = moves.move_step(moves.progressed(state), DECOMPOSE, StepMove.SUCCEED)
    return with_tasks(state, event.tasks)


def with_tasks(state: ConversationState, tasks: Sequence[SubTask]) -> ConversationState:
    """What waits for what; those that are completed already stand in nobody's way."""
    steps = schedule.step_ids(tasks)
    done = {task.id for task in tasks if task.status == "completed"}
    waits = {
        steps[task.id]: len({one for one in task.dependencies if one not in done})
        for task in tasks
        if task.id not in done
    }
    frees = {
        steps[one]: tuple(steps[other] for other in others)
        for one, others in schedule.dependents(tasks).items()
    }
    by_step = HashTrieMap({steps[task.id]: task for task in tasks})
    return changed(
        state,
        tasks=by_step,
        steps_of=HashTrieMap(steps),
        order=tuple(steps[task.id] for task in schedule.by_priority(tasks)),
        waits_for=HashTrieMap(waits),
        frees=HashTrieMap(frees),
        queue=schedule.queued(by_step, [one for one, count in waits.items() if not count]),
        total=len(tasks),
        completed=len(done),
    )


def task_scheduled(state: ConversationState, event: v.TaskScheduled) -> ConversationState:
    state = changed(state, scheduled=state.scheduled + 1)
    return _task(state, event.step_id, status="scheduled")


def task_chosen(state: ConversationState, event: v.TaskChosen) -> ConversationState:
    assert state.queue is not None
    state = changed(state, queue=heap.pop(state.queue))
    return moves.put_step(state, event.step_id, None, NEW_STEP)


def task_started(state: ConversationState, event: v.TaskStarted) -> ConversationState:
    step = state.steps[event.step_id]
    state = moves.move_step(
        state,
        event.step_id,
        StepMove.START,
        attempt=event.attempt,
        generation=event.generation,
        claim=state.version,
        args=event.args,
        consent=event.consent,
        idempotent=event.idempotent,
        child_id=event.child_id or step.child_id,
        failure=None,
    )
    return _task(state, event.step_id, status="running")


def task_finished(state: ConversationState, event: v.TaskFinished) -> ConversationState:
    state = moves.move_step(moves.progressed(state), event.step_id, StepMove.SUCCEED, carried=None)
    if state.status is RunStatus.CANCELLING:
        return state
    state = changed(state, untold=(*state.untold, event.step_id))
    return _task(state, event.step_id, status="finished", result=event.result)


def task_broke(state: ConversationState, event: v.TaskBroke) -> ConversationState:
    move = StepMove.GIVE_UP
    state = moves.move_step(state, event.step_id, move, failure=event.failure, carried=None)
    state = changed(state, untold=(*state.untold, event.step_id))
    return _task(moves.add_failed(state, event.step_id), event.step_id, status="failed")


def task_failed(state: ConversationState, event: v.TaskFailed) -> ConversationState:
    """A person will be asked; another try is a new one, under a new key if the work answered."""
    step = state.steps[event.step_id]
    answered = step.failure is not None and step.failure.kind is not FailureKind.UNKNOWN
    fresh: dict[str, Any] = {"attempt": 0, "generation": step.generation + answered}
    state = moves.unfail(_told(state, event.step_id), event.step_id)
    return moves.move_step(state, event.step_id, StepMove.GO_ON, child_id=None, **fresh)


def child_heard(state: ConversationState, event: ChildHeard) -> ConversationState:
    """A child that goes on after its error has not failed its task after all."""
    before = state.steps[event.step_id].status
    state = fold_steps.child_heard(state, event)
    revived = before is StepStatus.FAILED is not state.steps[event.step_id].status
    return _told(state, event.step_id) if revived else state


def task_completed(state: ConversationState, event: v.TaskCompleted) -> ConversationState:
    """It counts from now on, and those that waited for it alone may start."""
    state = _task(_told(state, event.step_id), event.step_id, status="completed")
    waits, queue = state.waits_for, state.queue
    for one in state.frees.get(event.step_id, ()):
        left = waits[one] - 1
        waits = waits.insert(one, left)
        if not left:
            queue = heap.push(queue, schedule.rank(state.tasks, one))
    steps = state.steps.discard(event.step_id)
    return changed(state, waits_for=waits, queue=queue, steps=steps, completed=state.completed + 1)


def _told(state: ConversationState, step_id: str) -> ConversationState:
    return changed(state, untold=tuple(one for one in state.untold if one != step_id))


def _task(state: ConversationState, step_id: str, **changes: Any) -> ConversationState:
    task = replace(state.tasks[step_id], **changes)
    return changed(state, tasks=state.tasks.insert(step_id, task))


def failed(state: ConversationState, event: v.EngineFailed) -> ConversationState:
    return changed(state, error=event.error)


def started_over(state: ConversationState) -> ConversationState:
    """The one way around the table: whatever the phase was, it is idle."""
    status = state.status
    state = changed(_cleared(state), phase=EngineState.IDLE, pending=False, text="", history=())
    return state if status is RunStatus.DONE else moves.signal(state, Signal.FINISH)


def restored(state: ConversationState, event: v.SnapshotRestored) -> ConversationState:
    body: Mapping[str, Json] = event.snapshot
    state = changed(
        with_tasks(_cleared(state), [_resumable(one) for one in body["tasks"]]),
        phase=EngineState(body["state"]),
        left=EngineState(body["left"]),
        pending=body.get("pending", False),
        turn=_unused_turn(state, body["turn"]),
        text=body["user_input"],
        scheduled=body["scheduled"],
        context=body["context"],
        complaint=body.get("complaint", ""),
        history=tuple(Turn(one["text"], one["results"]) for one in body["history"]),
        error=body["error"],
    )
    return _status_of_phase(_finished_untold(_in_doubt(_phase_done(state))))


def _phase_done(state: ConversationState) -> ConversationState:
    """A context or a decomposition that the snapshot has need not be asked for again."""
    done = evolve(NEW_STEP, status=StepStatus.DONE)
    if state.phase is EngineState.CONTEXT_FETCHING and state.context:
        return moves.put_step(state, CONTEXT, None, done)
    if state.phase is EngineState.DECOMPOSING and state.tasks:
        return moves.put_step(state, DECOMPOSE, None, done)
    return state


def _unused_turn(state: ConversationState, turn: int) -> int:
    """The keys of its work carry the turn: one that this run has had already is not had again."""
    return max(state.turn + 1, turn) if state.turn else turn


def _in_doubt(state: ConversationState) -> ConversationState:
    """Work that may have happened elsewhere and has no owner: nobody starts it again unasked."""
    for step_id in state.order:
        task = state.tasks[step_id]
        if task.status == "running":
            sent = {"attempt": 1, "claim": state.version, "args": task.args}
            step = evolve(NEW_STEP, status=StepStatus.RUNNING, **sent)
            state = moves.put_step(state, step_id, None, step)
    return state


def _finished_untold(state: ConversationState) -> ConversationState:
    """Results that the former consumer never heard of."""
    finished = [one for one in state.order if state.tasks[one].status == "finished"]
    for step_id in finished:
        done = evolve(NEW_STEP, status=StepStatus.DONE)
        state = moves.put_step(state, step_id, None, done)
    begun = state.steps
    waiting = [one for one, count in state.waits_for.items() if not count and one not in begun]
    return changed(state, untold=tuple(finished), queue=schedule.queued(state.tasks, waiting))


def _resumable(raw: Mapping[str, Any]) -> SubTask:
    """What was under way when the snapshot was taken is done again, unless that may do harm;
    what was finished is not."""
    known = {name: value for name, value in raw.items() if name != "doubtful"}
    task = SubTask(**{**known, "dependencies": tuple(raw["dependencies"])})
    kept = task.status in ("pending", "completed", "finished") or raw.get("doubtful", False)
    return task if kept else replace(task, status="scheduled", result=None)


def _status_of_phase(state: ConversationState) -> ConversationState:
    if state.phase in (EngineState.IDLE, EngineState.COMPLETED) and not state.pending:
        return state if state.status is RunStatus.DONE else moves.signal(state, Signal.FINISH)
    state = moves.signal(state, Signal.NEXT_TURN)
    if state.phase is EngineState.PAUSED:
        return moves.signal(changed(state, held=True), Signal.ASK)
    return moves.signal(state, Signal.GIVE_UP) if state.phase is EngineState.ERROR else state
