"""What people may do to a run besides answering: skip, mend, run again, cancel."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

from holdfast.core.plan.builder import Draft
from holdfast.core.plan.compiled import INPUTS, VERIFY, CompiledListener
from holdfast.core.plan.planner import (
    WAITING_FOR_RESUME,
    resuming_move,
    skip_listener,
)
from holdfast.core.run.steps import cancel_run
from holdfast.core.run.tables import HELD_UP, StepStatus
from holdfast.errors import InvalidAnswer, NotAllowed, NotFound
from holdfast.forms.validation import unsealed
from holdfast.model import commands as c
from holdfast.model.events import ListenersReset, Move, QuestionWithdrawn, RunResumed, TasksEdited
from holdfast.model.plan import PlanInstanceStatus, TaskStatus, TaskUpdate
from holdfast.model.values import Json


def skip(draft: Draft, command: c.Skip) -> None:
    listener = draft.listener(command.listener_id)
    status = _status(draft, listener.id)
    if status not in HELD_UP:
        state = "has not fired" if status is None else f"is {status}"
        raise NotAllowed(f"{listener.id} {state}; only one that waits or failed can be skipped")
    _withdraw(draft, (listener.id,), f"{command.by} skipped {listener.id}")
    skip_listener(draft, listener.id, command.by, command.reason)


def mark_done(draft: Draft, command: c.MarkDone) -> None:
    """A person did the work by hand; the listeners that would have done it are settled."""
    _known_task(draft, command.task_id)
    _refuse_raw_secrets(draft, command.task_id, command.context)
    reason = f"marked done by {command.by}"
    update = TaskUpdate(command.task_id, TaskStatus.DONE, command.context, reason)
    moves = draft.moves((update,))
    fired = {one for move in moves for one in move.fired}
    closed = (*_settled_by(draft, command.task_id), *_spared_by(draft, command.task_id, fired))
    _withdraw(draft, closed, f"{command.by} marked {command.task_id} done")
    draft.emit(TasksEdited(command.by, "mark_done", moves, closed))


def edit_context(draft: Draft, command: c.EditContext) -> None:
    _known_task(draft, command.task_id)
    _refuse_raw_secrets(draft, command.task_id, command.context)
    status = draft.state.task(command.task_id).status
    update = TaskUpdate(command.task_id, status, command.context)
    moves = tuple(draft.unrepeated(move) for move in draft.moves((update,)))
    draft.emit(TasksEdited(command.by, "edit_context", moves))


def _refuse_raw_secrets(draft: Draft, task_id: str, context: Mapping[str, Json]) -> None:
    """A plan's secret inputs stand in its main task's context, as references only."""
    plan = draft.state.plan
    raw = unsealed(plan.plan.inputs, context) if task_id == plan.main else {}
    if raw:
        remedy = "only the form that asks for it takes it"
        raise InvalidAnswer(f"{', '.join(raw)} is a secret: {remedy}", raw)


def rerun_from(draft: Draft, command: c.RerunFrom) -> None:
    """Run a listener again, and everything that follows from it."""
    listener = draft.listener(command.listener_id)
    _refuse_rerun(draft, listener.id)
    listeners, tasks = _downstream(draft, listener)
    busy = [one for one in listeners if _status(draft, one) is StepStatus.RUNNING]
    if busy:
        raise NotAllowed(f"{', '.join(busy)} is still running; wait for it or cancel the run")
    _withdraw(draft, listeners, f"{command.by} runs again from {listener.id}")
    closed = tuple(one for one in listeners if _status(draft, one) in HELD_UP)
    if closed:
        draft.emit(TasksEdited(command.by, "rerun", (), closed))
    known = tuple(one for one in listeners if one in draft.state.steps)
    reason = f"rerun from {listener.id} by {command.by}"
    moves = tuple(
        Move(task, TaskStatus.NOT_STARTED, reason)
        for task in tasks
        if task != draft.state.plan.main and task in draft.state.tasks
    )
    if draft.state.plan.main in tasks:
        moves = (*moves, *_main_reopened(draft, reason))
    draft.emit(ListenersReset(command.by, (listener.id,), known, moves))
    if draft.state.status is PlanInstanceStatus.ERROR and not draft.state.failed:
        draft.emit(RunResumed(command.by, (), (), (resuming_move(draft),)))


def _refuse_rerun(draft: Draft, listener_id: str) -> None:
    if listener_id == INPUTS:
        raise NotAllowed("the inputs were given; edit the main task's context instead")
    if listener_id.startswith(VERIFY) and not draft.state.verifying:
        raise NotAllowed(f"{listener_id} looks at the outcome, once the main task is Done")


def _main_reopened(draft: Draft, reason: str) -> tuple[Move, ...]:
    """The main task has its end before it again; an error that is left still shows."""
    main = draft.state.plan.main
    reopened = Move(main, TaskStatus.RUNNING, reason)
    if draft.state.status is not PlanInstanceStatus.ERROR:
        return (reopened,)
    return reopened, Move(main, TaskStatus.ERROR, WAITING_FOR_RESUME)


def cancel(draft: Draft, command: c.Cancel) -> None:
    cancel_run(draft, command)


def _known_task(draft: Draft, task_id: str) -> None:
    if task_id not in draft.state.plan.task_ids:
        raise NotFound(f"plan {draft.state.plan_id} has no task {task_id}")


def _withdraw(draft: Draft, listener_ids: Iterable[str], reason: str) -> None:
    wanted = set(listener_ids)
    for question_id in sorted(draft.state.open_questions):
        if draft.state.questions[question_id].step_id in wanted:
            draft.emit(QuestionWithdrawn(question_id, reason))


def _settled_by(draft: Draft, task_id: str) -> Iterable[str]:
    for listener_id, step in sorted(draft.state.steps.items()):
        if step.status in HELD_UP and draft.listener(listener_id).target == task_id:
            yield listener_id


def _spared_by(draft: Draft, task_id: str, fired: Container[str]) -> Iterable[str]:
    """Listeners that have yet to fire for the task; what follows from the marking still does.

    One that repeats may have more to do than this, and is left alone.
    """
    for listener in draft.state.plan.plan.listeners:
        compiled = draft.listener(listener.listener_id)
        waits = compiled.target == task_id and not listener.repeat and draft.may_fire(compiled)
        if waits and compiled.id not in fired:
            yield compiled.id


def _status(draft: Draft, listener_id: str) -> StepStatus | None:
    step = draft.state.steps.get(listener_id)
    return None if step is None else step.status


def _downstream(draft: Draft, first: CompiledListener) -> tuple[list[str], list[str]]:
    """The listeners and tasks that follow from a listener, itself included."""
    plan = draft.state.plan
    listeners = {first.id: None}
    tasks: dict[str, None] = {}
    frontier = [first]
    while frontier:
        listener = frontier.pop()
        outputs = (listener.listener.success_output, listener.listener.failure_output)
        for output in outputs:
            if output is None or output.task_id in tasks:
                continue
            tasks[output.task_id] = None
            if output.task_id == plan.main:
                continue
            for one in plan.by_trigger.get(output.task_id, ()):
                if one.id not in listeners:
                    listeners[one.id] = None
                    frontier.append(one)
    checks = plan.verify_ids if plan.main in tasks else ()
    return [*listeners, *checks], list(tasks)
