"""What people may do to a run besides answering and cancelling: skip, mend, run again."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

from holdfast.core.plan import cases
from holdfast.core.plan.builder import Builder
from holdfast.core.plan.compiled import INPUTS, VERIFY, CompiledListener
from holdfast.core.plan.planner import (
    WAITING_FOR_RESUME,
    resuming_move,
    skip_listener,
)
from holdfast.core.run.tables import HELD_UP, StepStatus
from holdfast.errors import InvalidAnswer, NotAllowed, NotFound
from holdfast.forms.validation import unsealed
from holdfast.i18n.message import msg, term
from holdfast.model import commands as c
from holdfast.model.events import (
    ListenersReset,
    Move,
    QuestionWithdrawn,
    RunResumed,
    TasksEdited,
    TaskUpdate,
)
from holdfast.model.plan import PlanInstanceStatus, TaskStatus
from holdfast.model.values import Json


def skip(builder: Builder, command: c.Skip) -> None:
    listener = builder.listener(command.listener_id)
    status = _status(builder, listener.id)
    if status not in HELD_UP:
        raise NotAllowed(_not_skipped(listener.id, status))
    _withdraw(builder, (listener.id,), msg("{by} skipped {id}", by=command.by, id=listener.id))
    skip_listener(builder, listener.id, command.by, command.reason)


def _not_skipped(listener_id: str, status: StepStatus | None) -> str:
    if status is None:
        return msg(
            "{id} has not fired; only one that waits or failed can be skipped", id=listener_id
        )
    return msg(
        "{id} is {status}; only one that waits or failed can be skipped",
        id=listener_id,
        status=term(status),
    )


def mark_done(builder: Builder, command: c.MarkDone) -> None:
    """A person did the work by hand; the listeners that would have done it are settled."""
    _known_task(builder, command.task_id)
    _refuse_raw_secrets(builder, command.task_id, command.context)
    reason = msg("marked done by {by}", by=command.by)
    update = TaskUpdate(command.task_id, TaskStatus.DONE, command.context, reason)
    moves = builder.moves((update,))
    fired = {one for move in moves for one in move.fired}
    closed = (*_settled_by(builder, command.task_id), *_spared_by(builder, command.task_id, fired))
    _withdraw(builder, closed, msg("{by} marked {id} done", by=command.by, id=command.task_id))
    builder.emit(TasksEdited(command.by, "mark_done", moves, closed))
    cases.values_changed(builder)


def edit_context(builder: Builder, command: c.EditContext) -> None:
    _known_task(builder, command.task_id)
    _refuse_raw_secrets(builder, command.task_id, command.context)
    status = builder.state.task(command.task_id).status
    update = TaskUpdate(command.task_id, status, command.context)
    moves = tuple(builder.unrepeated(move) for move in builder.moves((update,)))
    builder.emit(TasksEdited(command.by, "edit_context", moves))
    cases.values_changed(builder)


def _refuse_raw_secrets(builder: Builder, task_id: str, context: Mapping[str, Json]) -> None:
    """A plan's secret inputs stand in its main task's context, as references only."""
    plan = builder.state.plan
    raw = unsealed(plan.plan.inputs, context) if task_id == plan.main else {}
    if raw:
        told = msg(
            "{names} is a secret: only the form that asks for it takes it", names=", ".join(raw)
        )
        raise InvalidAnswer(told, raw)


def rerun_from(builder: Builder, command: c.RerunFrom) -> None:
    """Run a listener again, and everything that follows from it."""
    listener = builder.listener(command.listener_id)
    _refuse_rerun(builder, listener.id)
    listeners, tasks = _downstream(builder, listener)
    busy = [one for one in listeners if _status(builder, one) is StepStatus.RUNNING]
    if busy:
        raise NotAllowed(
            msg("{names} is still running; wait for it or cancel the run", names=", ".join(busy))
        )
    _withdraw(builder, listeners, msg("{by} runs again from {id}", by=command.by, id=listener.id))
    closed = tuple(one for one in listeners if _status(builder, one) in HELD_UP)
    if closed:
        builder.emit(TasksEdited(command.by, "rerun", (), closed))
    known = tuple(one for one in listeners if one in builder.state.steps)
    reason = msg("rerun from {id} by {by}", id=listener.id, by=command.by)
    moves = tuple(
        Move(task, TaskStatus.NOT_STARTED, reason)
        for task in tasks
        if task != builder.state.plan.main and task in builder.state.tasks
    )
    if builder.state.plan.main in tasks:
        moves = (*moves, *_main_reopened(builder, reason))
    builder.emit(ListenersReset(command.by, (listener.id,), known, moves))
    if builder.state.status is PlanInstanceStatus.ERROR and not builder.state.failed:
        cases.close(builder, None, reason)
        builder.emit(RunResumed(command.by, (), (), (resuming_move(builder),)))


def _refuse_rerun(builder: Builder, listener_id: str) -> None:
    if listener_id == INPUTS:
        raise NotAllowed(msg("the inputs were given; edit the main task's context instead"))
    if listener_id.startswith(VERIFY) and not builder.state.verifying:
        raise NotAllowed(
            msg("{id} looks at the outcome, once the main task is Done", id=listener_id)
        )


def _main_reopened(builder: Builder, reason: str) -> tuple[Move, ...]:
    """The main task has its end before it again; an error that is left still shows."""
    main = builder.state.plan.main
    reopened = Move(main, TaskStatus.RUNNING, reason)
    if builder.state.status is not PlanInstanceStatus.ERROR:
        return (reopened,)
    return reopened, Move(main, TaskStatus.ERROR, WAITING_FOR_RESUME)


def _known_task(builder: Builder, task_id: str) -> None:
    if task_id not in builder.state.plan.task_ids:
        raise NotFound(msg("plan {id} has no task {task}", id=builder.state.plan_id, task=task_id))


def _withdraw(builder: Builder, listener_ids: Iterable[str], reason: str) -> None:
    wanted = set(listener_ids)
    for question_id in sorted(builder.state.open_questions):
        if builder.state.questions[question_id].step_id in wanted:
            builder.emit(QuestionWithdrawn(question_id, reason))
    cases.close(builder, wanted, reason)


def _settled_by(builder: Builder, task_id: str) -> Iterable[str]:
    for listener_id, step in sorted(builder.state.steps.items()):
        if step.status in HELD_UP and builder.listener(listener_id).target == task_id:
            yield listener_id


def _spared_by(builder: Builder, task_id: str, fired: Container[str]) -> Iterable[str]:
    """Listeners that have yet to fire for the task; what follows from the marking still does.

    One that repeats may have more to do than this, and is left alone.
    """
    for listener in builder.state.plan.plan.listeners:
        compiled = builder.listener(listener.listener_id)
        waits = compiled.target == task_id and not listener.repeat and builder.may_fire(compiled)
        if waits and compiled.id not in fired:
            yield compiled.id


def _status(builder: Builder, listener_id: str) -> StepStatus | None:
    step = builder.state.steps.get(listener_id)
    return None if step is None else step.status


def _downstream(builder: Builder, first: CompiledListener) -> tuple[list[str], list[str]]:
    """The listeners and tasks that follow from a listener, itself included."""
    plan = builder.state.plan
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
