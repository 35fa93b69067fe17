"""The planner's part: failures, retries, giving up, resuming, finishing.

A listener that failed for good is brought before the planner, who may fire it
again. When the planner gives up, the main task is in Error with
`error_info.status == "waiting_for_resume"` and the run waits for a person; what
was in flight finishes, and what it triggers fires at the resume.

`settle` stands at the end of every decision: it sees that nothing is left to do
and completes the run, verifies it, or says which conditions are false. A plan
never hangs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from holdfast.core.plan import cases
from holdfast.core.plan.builder import Builder, quiet, updates_for
from holdfast.core.plan.compiled import VERIFY, CompiledListener
from holdfast.core.plan.state import PlanState, TaskFacts, TaskState, refused, remedy
from holdfast.core.repair.causes import judged
from holdfast.core.repair.state import NO_REPAIRS
from holdfast.core.run.tables import StepStatus
from holdfast.errors import OutputRefused, TemplateError
from holdfast.i18n.message import joined, msg
from holdfast.language.conditions import explain, holds
from holdfast.language.instants import iso
from holdfast.model.commands import Resume
from holdfast.model.events import (
    CheckConcluded,
    ListenerFailed,
    ListenerSkipped,
    Move,
    PlannerGaveUp,
    RunCancelled,
    RunCompleted,
    RunResumed,
    StepWoken,
    TaskUpdate,
    VerificationStarted,
)
from holdfast.model.plan import PlanInstanceStatus, TaskStatus
from holdfast.model.repair import Look
from holdfast.model.retry import Failure
from holdfast.model.values import Json

WAITING_FOR_RESUME = "waiting_for_resume"
RESUMING = "resuming"

_LISTED_CONDITIONS = 8
_ENDS = (TaskStatus.DONE, TaskStatus.SKIPPED)


def outside_id(builder: Builder, listener_id: str) -> str:
    """A listener's id as people see it: unique over all instances."""
    return f"{builder.state.run_id}_{listener_id}"


def fail_listener(
    builder: Builder,
    listener_id: str,
    failure: Failure,
    *,
    updates: tuple[TaskUpdate, ...] | None = None,
    kept: bool = False,
    result: Json = None,
    final: bool = False,
) -> None:
    """The driver gave up: apply `failure_output`, or put the main task in Error."""
    firing = builder.step(listener_id).firing
    if builder.listener(listener_id).verifies:
        verdict = "unable_to_verify"
        builder.emit(CheckConcluded(listener_id, firing, verdict, failure.message, result))
        return
    moves = _failure_moves(builder, listener_id, failure, updates, result)
    handled = bool(moves) and _handles(builder, moves)
    final = not handled and (final or _stopped(builder))
    moves = moves or _error_moves(builder, listener_id)
    failure = judged(failure, builder.listener(listener_id).tool)
    builder.emit(ListenerFailed(listener_id, firing, failure, handled, final, kept, result, moves))
    if final:
        give_up(
            builder,
            msg("{id} failed: {reason}", id=listener_id, reason=failure.message),
            (listener_id,),
        )


def _stopped(builder: Builder) -> bool:
    return builder.state.status in (PlanInstanceStatus.ERROR, PlanInstanceStatus.CANCELLING)


def _failure_moves(
    builder: Builder,
    listener_id: str,
    failure: Failure,
    updates: tuple[TaskUpdate, ...] | None,
    result: Json,
) -> tuple[Move, ...]:
    listener = builder.listener(listener_id)
    try:
        if updates is None:
            failed = {"success": False, "error": failure.message}
            updates = updates_for(listener, False, result or failed, builder.state)
        return builder.moves(updates)
    except (TemplateError, OutputRefused):
        return ()


def _handles(builder: Builder, moves: tuple[Move, ...]) -> bool:
    """A branch of the plan: no task in Error, or a listener waits for just that Error."""
    main = builder.state.plan.main
    return all(
        move.status is not TaskStatus.ERROR or (move.fired and move.task_id != main)
        for move in moves
    )


def _error_moves(builder: Builder, listener_id: str) -> tuple[Move, ...]:
    main = builder.state.plan.main
    target = builder.listener(listener_id).target
    moves = []
    if target is not None and target != main:
        moves.append(quiet(target, TaskStatus.ERROR, "listener_failed"))
    if not _stopped(builder):
        named = outside_id(builder, listener_id)
        moves.append(quiet(main, TaskStatus.ERROR, "listener_failed", failed_listener_id=named))
    return tuple(moves)


def both(*reasons: str) -> str:
    told = [one for one in reasons if one]
    return joined("; ", told) if len(told) > 1 else next(iter(told), "")


def why_failed(builder: Builder, listener_id: str) -> str:
    step = builder.step(listener_id)
    reason = step.failure.message if step.failure else ""
    if step.retries == 0:
        return msg("{id} failed: {reason}", id=listener_id, reason=reason)
    if step.retries == 1:
        return msg("{id} failed after 1 retry: {reason}", id=listener_id, reason=reason)
    return msg(
        "{id} failed after {n} retries: {reason}", id=listener_id, n=step.retries, reason=reason
    )


def retry_moves(
    builder: Builder, listener_id: str, count: int, most: int, due: float
) -> list[Move]:
    """The failed sub-task goes back to NotStarted, the main task to Retrying."""
    main = builder.state.plan.main
    times = [iso(at) for at in (*builder.step(listener_id).retry_times, due)]
    counted = {"retry_count": count, "max_retries": most, "retry_times": times}
    failed = [task for task in failed_tasks(builder, listener_id) if task != main]
    moves = [Move(task, TaskStatus.NOT_STARTED, "planner_retry", counted) for task in failed]
    status = while_retrying(builder.state.main_task)
    retrying = Move(main, status, "planner_retry", counted, ("failed_listener_id",))
    return [*moves, retrying]


def while_retrying(main: TaskState) -> TaskStatus:
    """A main task that had reached its end has it again; any other is Retrying."""
    before = before_the_trouble(main)
    return before if before in _ENDS else TaskStatus.RETRYING


def before_the_trouble(main: TaskState) -> TaskStatus:
    trouble = (TaskStatus.ERROR, TaskStatus.RETRYING)
    calm = (status for status, _, _ in main.moves if status not in trouble)
    return next(calm, TaskStatus.RUNNING)


def failed_tasks(builder: Builder, listener_id: str) -> list[str]:
    listener = builder.listener(listener_id).listener
    outputs = (listener.failure_output, listener.success_output)
    named = dict.fromkeys(output.task_id for output in outputs if output is not None)
    return [one for one in named if builder.state.task(one).status is TaskStatus.ERROR]


def give_up(
    builder: Builder,
    message: str,
    failed: tuple[str, ...] = (),
    *,
    retries: int = 0,
    why: str = "",
    looks: Mapping[str, Look] | None = None,
    mendable: bool = True,
) -> None:
    """The main task is in Error; a person must mend the world and resume, or accept a repair."""
    if builder.state.status is PlanInstanceStatus.CANCELLING:
        return
    abandoned = [one for one in _consulting(builder) if one not in failed]
    failed = (*failed, *abandoned)
    messages = [message, why, *(why_failed(builder, one) for one in abandoned)]
    if builder.state.status is PlanInstanceStatus.ERROR:
        before = error_info(builder.state.main_task)
        messages.insert(0, str(before.get("message", "")))
        retries = max(retries, _count(before.get("failed_retries")))
    given = [refused(builder.step(one)) for one in failed]
    messages += [remedy(one) for one in given if one]
    known = dict.fromkeys((*builder.state.failed, *failed))
    names = [outside_id(builder, one) for one in known]
    context: dict[str, Json] = {"failed_listener_ids": names}
    if names:
        context["failed_listener_id"] = names[0]
    context["error_info"] = {
        "failed_retries": retries,
        "status": WAITING_FOR_RESUME,
        "message": both(*dict.fromkeys(messages)),
    }
    move = Move(builder.state.plan.main, TaskStatus.ERROR, WAITING_FOR_RESUME, context)
    builder.emit(PlannerGaveUp(message, failed, (move,), why))
    if mendable:
        cases.opened(builder, failed, message, looks)


def quarantine(builder: Builder, message: str, failed: tuple[str, ...]) -> None:
    """What took the process down again and again is no failure of the plan."""
    cases.quarantined(builder, message)
    give_up(builder, message, failed, mendable=False)


def _consulting(builder: Builder) -> list[str]:
    """A run that waits for a person does not consult the planner: these have failed as well."""
    steps = sorted(builder.state.steps.items())
    return [one for one, step in steps if step.status is StepStatus.CONSULTING]


def error_info(main: TaskState) -> Mapping[str, Json]:
    """People and plans may write what they like into a context."""
    info = main.context.get("error_info")
    return info if isinstance(info, Mapping) else {}


def _count(value: Json) -> int:
    return value if isinstance(value, int) else 0


def resume(builder: Builder, command: Resume, *, stuck: bool | None = None) -> None:
    """Only what failed runs again, and what waits for its next try need not wait any more;
    Done tasks and history stay. Where nothing has failed, and the run is `stuck` for that, what
    holds by now fires."""
    state = builder.state
    children = tuple(one for one in state.failed if _child_waits(builder, one))
    refired = [one for one in state.failed if one not in children]
    if stuck or (stuck is None and not state.failed):
        refired = holding(state, map(builder.listener, _unfired(builder)))
    moves = [
        Move(task, TaskStatus.NOT_STARTED, "resume_retry_listener")
        for one in state.failed
        for task in failed_tasks(builder, one)
        if task != state.plan.main
    ]
    cases.close(builder, None, msg("the run was resumed"))
    anew = tuple(one for one in refired if one in state.failed and refused(builder.step(one)))
    moves.append(resuming_move(builder))
    builder.emit(RunResumed(command.by, tuple(refired), children, tuple(moves), anew))
    steps = builder.state.steps.items()
    for listener_id, step in sorted(one for one in steps if one[1].status is StepStatus.BACKOFF):
        builder.emit(StepWoken(listener_id, step.firing))


def go_on(builder: Builder) -> None:
    """What failed has been mended where it failed."""
    cases.close(builder, None, msg("the run was resumed"))
    builder.emit(RunResumed("", (), (), (resuming_move(builder),)))


def _child_waits(builder: Builder, listener_id: str) -> bool:
    step = builder.step(listener_id)
    return step.child_id is not None and step.child_status == PlanInstanceStatus.ERROR


def resuming_move(builder: Builder) -> Move:
    main = builder.state.main_task
    info = {**error_info(main), "status": RESUMING}
    return Move(
        builder.state.plan.main,
        while_retrying(main),
        "resume_retry_listener",
        {"error_info": info},
        ("failed_listener_id", "failed_listener_ids"),
    )


def _unfired(builder: Builder) -> list[str]:
    """The author's listeners that may fire."""
    listeners = builder.state.plan.plan.listeners
    return [
        one.listener_id for one in listeners if _has_yet_to_fire(builder.state, one.listener_id)
    ]


def _has_yet_to_fire(state: PlanState, listener_id: str) -> bool:
    step = state.steps.get(listener_id)
    return step is None or step.forgotten


def holding(state: PlanState, listeners: Iterable[CompiledListener]) -> list[str]:
    """Those whose conditions hold, by a person's edits or once the main task runs again."""
    main = state.main_task
    going_on = TaskState(TaskStatus.RUNNING, main.context, main.moves)
    facts = TaskFacts(state.tasks.set(state.plan.main, going_on))
    return [
        one.id for one in listeners if holds(one.condition, one.listener.trigger_task_id, facts)
    ]


def skip_listener(builder: Builder, listener_id: str, by: str, reason: str) -> None:
    """The listener is passed over and its sub-task Skipped."""
    step = builder.step(listener_id)
    output = builder.listener(listener_id).listener.success_output
    moves: tuple[Move, ...] = ()
    if output is not None:
        update = TaskUpdate(output.task_id, TaskStatus.SKIPPED, {}, msg("skipped by {by}", by=by))
        moves = builder.moves((update,))
    builder.emit(ListenerSkipped(listener_id, step.firing, by, reason, moves))


def settle(builder: Builder) -> None:
    """Of a run of which nothing is active, or that is being cancelled."""
    match builder.state.status:
        case PlanInstanceStatus.CANCELLING:
            if builder.state.in_flight == 0:
                builder.emit(RunCancelled(_cancelled_moves(builder)))
        case PlanInstanceStatus.RUNNING | PlanInstanceStatus.CONTINUE | PlanInstanceStatus.PAUSE:
            _nothing_left(builder)
        case _:
            return


def _cancelled_moves(builder: Builder) -> tuple[Move, ...]:
    return tuple(
        quiet(task_id, TaskStatus.CANCELLED, "cancelled")
        for task_id, task in sorted(builder.state.tasks.items())
        if task.status not in (*_ENDS, TaskStatus.CANCELLED)
    )


def _nothing_left(builder: Builder) -> None:
    state = builder.state
    if state.main_task.status not in _ENDS:
        give_up(builder, _why_nothing_fires(builder))
    elif state.plan.verify_ids and not state.verifying:
        builder.emit(VerificationStarted(state.plan.verify_ids))
    elif state.failed:
        give_up(
            builder,
            msg("verification failed: {checks}", checks=_failed_checks(builder)),
            state.failed,
        )
    else:
        if state.repair is not NO_REPAIRS:
            cases.ended(builder)
        builder.emit(RunCompleted(dict(state.verification), _mended_moves(builder)))


def _failed_checks(builder: Builder) -> str:
    """The tools that looked, and the agents that did so with theirs."""
    checks = ((one, builder.listener(one).check) for one in builder.state.failed)
    return ", ".join(check.tool if check else one.removeprefix(VERIFY) for one, check in checks)


def _mended_moves(builder: Builder) -> tuple[Move, ...]:
    """A run that is done has no error to show; its history keeps what there was."""
    main = builder.state.main_task
    if "error_info" not in main.context:
        return ()
    return (Move(builder.state.plan.main, main.status, "", {}, ("error_info",)),)


def _why_nothing_fires(builder: Builder) -> str:
    waiting = [
        msg(
            "{place}: {problem}",
            place=one.listener_id,
            problem=explain(compiled.condition, one.trigger_task_id, builder.state),
        )
        for one in builder.state.plan.plan.listeners
        if builder.may_fire(compiled := builder.listener(one.listener_id))
    ]
    if not waiting:
        return msg("nothing is left to do, and every listener has fired")
    listed = joined("; ", waiting[:_LISTED_CONDITIONS])
    if (more := len(waiting) - _LISTED_CONDITIONS) > 0:
        listed = msg("{listed}; and {n} more", listed=listed, n=more)
    return msg("nothing is left to do: these conditions are false: {listed}", listed=listed)
