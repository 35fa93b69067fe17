"""What the events of a conversation do to its state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from immutables import Map

from holdfast.core.conversation import former, schedule
from holdfast.core.conversation.former import with_task
from holdfast.core.conversation.state import (
    ANSWER,
    CONFIRM,
    CONTEXT,
    DECOMPOSE,
    ConversationState,
    Turn,
)
from holdfast.core.conversation.tables import next_phase
from holdfast.core.run import reducers as shared
from holdfast.core.run.state import (
    CHANGED,
    EMPTY,
    NEW_STEP,
    RESUMED,
    SPOKE,
    add_failed,
    add_step,
    asks,
    changed,
    evolve,
    move_step,
    progressed,
    signal,
    unfail,
    wants,
    without,
)
from holdfast.core.run.tables import Signal, StepMove, StepStatus
from holdfast.model import conversation_events as v
from holdfast.model.conversation import EngineState, SubTask
from holdfast.model.events import ChildHeard
from holdfast.model.retry import FailureKind
from holdfast.model.run import RunStatus
from holdfast.model.values import Json

MOST_HISTORY = 20
"""How many earlier turns the next one is told of."""

ENDED = ("completed", "skipped", "finished")
"""Tasks of which nothing runs any more."""


def opened(state: ConversationState, event: v.ConversationOpened, at: float) -> None:
    shared.begun(state, event, at, unattended=event.unattended)


def input_received(state: ConversationState, event: v.InputReceived, at: float) -> None:
    history = state.history
    if state.total or state.error:
        history = (*history, _turn(state))[-MOST_HISTORY:]
    state = wants(cleared(state), event.by, SPOKE)
    state = changed(state, turn=event.turn, text=event.text, pending=True, history=history)
    signal(state, Signal.NEXT_TURN)


def _turn(state: ConversationState) -> Turn:
    tasks = [state.tasks[one] for one in state.order]
    done = {task.id: task.result for task in tasks if task.status in ENDED}
    unfinished = _unfinished(state) if state.error else EMPTY
    return Turn(state.text, done, unfinished, state.answer)


def _unfinished(state: ConversationState) -> Mapping[str, Json]:
    """What became of the tasks of a turn that failed: which were done, and which perhaps."""
    found: dict[str, list[Json]] = {"done": [], "perhaps_done": [], "not_done": []}
    for step_id in state.order:
        task = state.tasks[step_id]
        known: dict[str, Json] = {"id": task.id, "type": task.type, "args": dict(task.args)}
        known["description"] = task.description
        done = task.status in ENDED and not task.skipped
        perhaps = former.is_doubtful(state, step_id)
        found["done" if done else "perhaps_done" if perhaps else "not_done"].append(known)
    return {"error": state.error, **found}


def cleared(state: ConversationState) -> ConversationState:
    """As before the turn; what is under way has no owner any more."""
    return changed(state, **_OF_A_TURN, **_UNDER_WAY, **_ASKED, context=EMPTY)


_NEW = {one.name: one.default for one in fields(ConversationState)}
_UNDER_WAY = {
    name: _NEW[name]
    for name in ("steps", "timers", "active", "in_flight", "resting", "paused_children")
}
_ASKED = {name: _NEW[name] for name in ("open_questions", "failed", "held", "recoveries")}
_LASTING = {
    "definition",
    "unattended",
    "phase",
    "left",
    "pending",
    "turn",
    "text",
    "history",
    "context",
}
_OF_A_TURN = {
    name: _NEW[name]
    for name in ConversationState.__annotations__.keys() & _NEW.keys()
    if name not in _LASTING
}
"""What a conversation knows of its turn alone, as it is in a new one."""


def phase_changed(state: ConversationState, event: v.PhaseChanged, at: float) -> None:
    phase = next_phase(event.before, event.after)
    state = changed(state, phase=phase, pending=state.pending and phase is EngineState.IDLE)
    if phase is EngineState.PAUSED:
        held = changed(state, left=event.before, held=True, pausing=False)
        signal(held, Signal.ASK)
    elif event.before is EngineState.PAUSED:
        if not asks(changed(state, held=False)):
            signal(state, Signal.GO_ON)
    elif phase is EngineState.ERROR:
        signal(_disowned(state), Signal.GIVE_UP)
    elif phase is EngineState.COMPLETED or event.before is EngineState.ERROR:
        signal(state, Signal.FINISH)


def _disowned(state: ConversationState) -> ConversationState:
    """What is still under way has no owner; what is to be known of it is put aside."""
    put_aside = former.put_aside(state)
    return changed(state, **_UNDER_WAY, former=put_aside, pausing=False, untold=())


def work_started(state: ConversationState, event: v.WorkStarted, at: float) -> None:
    if event.step_id not in state.steps:
        state = add_step(state, event.step_id, evolve(NEW_STEP, firing=event.firing))
    start = {"firing": event.firing, "attempt": 1, "claim": state.version, "idempotent": True}
    move_step(state, event.step_id, StepMove.START, **start)


def context_received(state: ConversationState, event: v.ContextReceived, at: float) -> None:
    context = {
        "rules": list(event.rules),
        "knowledge": list(event.knowledge),
        "tools": list(event.tools),
    }
    state = progressed(changed(state, context=context))
    move_step(state, CONTEXT, StepMove.SUCCEED)


def decomposition_refused(
    state: ConversationState, event: v.DecompositionRefused, at: float
) -> None:
    move_step(changed(state, complaint=event.reason), DECOMPOSE, StepMove.RELEASE)


def goal_decomposed(state: ConversationState, event: v.GoalDecomposed, at: float) -> None:
    state = move_step(progressed(state), DECOMPOSE, StepMove.SUCCEED)
    to_confirm(with_tasks(changed(state, by_model=event.by_model), event.tasks))


def to_confirm(state: ConversationState) -> ConversationState:
    """Where a person is to see the tasks first, that is a step of its own."""
    if not state.settings.confirm_tasks or state.confirmed:
        return state
    return add_step(state, CONFIRM)


def tasks_confirmed(state: ConversationState, event: v.TasksConfirmed, at: float) -> None:
    move_step(changed(state, confirmed=True), CONFIRM, StepMove.SUCCEED)


def tasks_refused(state: ConversationState, event: v.TasksRefused, at: float) -> None:
    state = move_step(state, CONFIRM, StepMove.SUCCEED)
    state = changed(state, steps=state.steps.delete(CONFIRM), complaint="", feedback=event.reason)
    with_tasks(move_step(state, DECOMPOSE, StepMove.FIRE), ())


def with_tasks(state: ConversationState, tasks: Sequence[SubTask]) -> ConversationState:
    """What waits for what; those that were told already hold nothing up."""
    steps = schedule.step_ids(tasks)
    done = {task.id for task in tasks if task.status in ("completed", "skipped")}
    skipped = sum(task.status == "skipped" for task in tasks)
    waits = {
        steps[task.id]: len({one for one in task.dependencies if one not in done})
        for task in tasks
        if task.id not in done
    }
    frees = {
        steps[one]: tuple(steps[other] for other in others)
        for one, others in schedule.dependents(tasks).items()
    }
    by_step = Map({steps[task.id]: task for task in tasks})
    return changed(
        state,
        tasks=by_step,
        steps_of=Map(steps),
        order=tuple(steps[task.id] for task in schedule.by_priority(tasks)),
        waits_for=Map(waits),
        frees=Map(frees),
        queue=schedule.queued(by_step, [one for one, count in waits.items() if not count]),
        total=len(tasks),
        completed=len(done) - skipped,
        skipped=skipped,
    )


def task_scheduled(state: ConversationState, event: v.TaskScheduled, at: float) -> None:
    state = changed(state, scheduled=state.scheduled + 1)
    with_task(state, event.step_id, status="scheduled")


def task_chosen(state: ConversationState, event: v.TaskChosen, at: float) -> None:
    assert state.queue is not None
    filling = without(state.filling, event.step_id)
    state = changed(state, queue=schedule.pop(state.queue), filling=filling)
    step = former.begun_again(state.former.get(event.step_id))
    add_step(state, event.step_id, step)


def task_started(state: ConversationState, event: v.TaskStarted, at: float) -> None:
    state = shared.call_started(state, event, resuming=event.resumes)
    with_task(state, event.step_id, status="running")


def arguments_wanted(state: ConversationState, event: v.ArgumentsWanted, at: float) -> None:
    filling = state.filling.set(event.step_id, event.parameters)
    attempt = state.steps[event.step_id].attempt + 1
    start = {"attempt": attempt, "claim": state.version, "idempotent": True}
    move_step(changed(state, filling=filling), event.step_id, StepMove.START, **start)


def arguments_filled(state: ConversationState, event: v.ArgumentsFilled, at: float) -> None:
    """It has not started yet: it is judged anew with what it has now."""
    step = state.steps[event.step_id]
    state = changed(progressed(state), filling=state.filling.set(event.step_id, EMPTY))
    given = {"attempt": step.attempt - 1, "provided": {**step.provided, **event.values}}
    move_step(state, event.step_id, StepMove.RELEASE, **given)


def answer_written(state: ConversationState, event: v.AnswerWritten, at: float) -> None:
    state = progressed(changed(state, answer=event.text))
    move_step(state, ANSWER, StepMove.SUCCEED)


def task_finished(state: ConversationState, event: v.TaskFinished, at: float) -> None:
    state = move_step(progressed(state), event.step_id, StepMove.SUCCEED, carried=None)
    if state.status is RunStatus.CANCELLING:
        return
    state = changed(state, untold=(*state.untold, event.step_id))
    ended = {"result": event.result, "skipped": event.skipped}
    with_task(state, event.step_id, status="finished", **ended)


def task_broke(state: ConversationState, event: v.TaskBroke, at: float) -> None:
    if event.step_id not in state.steps:
        former.failed_late(state, event)
        return
    move = StepMove.GIVE_UP
    state = move_step(state, event.step_id, move, failure=event.failure, carried=None)
    state = changed(state, untold=(*state.untold, event.step_id))
    with_task(add_failed(state, event.step_id), event.step_id, status="failed")


def task_failed(state: ConversationState, event: v.TaskFailed, at: float) -> None:
    """A person will be asked; another try is a new one, under a new key if the work answered."""
    step = state.steps[event.step_id]
    answered = step.failure is not None and step.failure.kind is not FailureKind.UNKNOWN
    fresh: dict[str, Any] = {"attempt": 0, "generation": step.generation + answered}
    state = unfail(_told(state, event.step_id), event.step_id)
    move_step(state, event.step_id, StepMove.GO_ON, child_id=None, **fresh)


def child_heard(state: ConversationState, event: ChildHeard, at: float) -> None:
    """A child that goes on after its error has not failed its task after all."""
    if event.step_id not in state.steps:
        former.child_heard_late(state, event)
        return
    before = state.steps[event.step_id].status
    state = shared.child_heard(state, event, at)
    if before is StepStatus.FAILED is not state.steps[event.step_id].status:
        _told(state, event.step_id)


def task_completed(state: ConversationState, event: v.TaskCompleted, at: float) -> None:
    """It counts from now on, whatever word of an earlier try may come, and those that waited for
    it alone may start."""
    status = "skipped" if state.tasks[event.step_id].skipped else "completed"
    state = with_task(_told(state, event.step_id), event.step_id, status=status)
    waits, queue = state.waits_for, state.queue
    for one in state.frees.get(event.step_id, ()):
        left = waits.get(one, 0) - 1
        waits = waits.set(one, left)
        if not left and state.tasks[one].status not in schedule.KEPT:
            queue = schedule.push(queue, schedule.rank(state.tasks, one))
    steps, kept = without(state.steps, event.step_id), without(state.former, event.step_id)
    counts = {status: getattr(state, status) + 1}
    changed(state, waits_for=waits, queue=queue, steps=steps, former=kept, **counts)


def _told(state: ConversationState, step_id: str) -> ConversationState:
    return changed(state, untold=tuple(one for one in state.untold if one != step_id))


def failed(state: ConversationState, event: v.EngineFailed, at: float) -> None:
    wants(changed(state, error=event.error), event.by, CHANGED)


def pause_wished(state: ConversationState, event: v.PauseWished, at: float) -> None:
    wished = event.wished
    wants(changed(state, pausing=wished), event.by, CHANGED if wished else RESUMED)


def paused(state: ConversationState, event: v.EnginePaused, at: float) -> None:
    wants(state, event.by, CHANGED)


def unpaused(state: ConversationState, event: v.EngineResumed, at: float) -> None:
    wants(state, event.by, RESUMED)


def started_over(state: ConversationState, event: v.StartedOver, at: float) -> None:
    """The one way around the table: whatever the phase was, it is idle."""
    status = state.status
    state = changed(cleared(state), phase=EngineState.IDLE, pending=False, text="", history=())
    state = state if status is RunStatus.DONE else signal(state, Signal.FINISH)
    wants(state, event.by, CHANGED)
