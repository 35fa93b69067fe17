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

from collections.abc import Mapping

from holdfast.core.plan.builder import Draft, quiet
from holdfast.core.plan.compiled import VERIFY
from holdfast.core.plan.outputs import updates_for
from holdfast.core.plan.refusals import refused, remedy
from holdfast.core.plan.state import TaskFacts, TaskState
from holdfast.core.run import backoff
from holdfast.core.run.builder import iso
from holdfast.core.run.state import StepState
from holdfast.core.run.tables import StepStatus
from holdfast.errors import OutputRefused, TemplateError
from holdfast.language.conditions import explain, holds
from holdfast.model.commands import Advise, Resume
from holdfast.model.events import (
    CheckConcluded,
    ListenerFailed,
    ListenerSkipped,
    Move,
    PlannerGaveUp,
    PlannerRetried,
    RunCancelled,
    RunCompleted,
    RunResumed,
    StepWoken,
    VerificationStarted,
)
from holdfast.model.plan import PlanInstanceStatus, TaskStatus, TaskUpdate
from holdfast.model.retry import Failure, FailureKind, Retry
from holdfast.model.values import Json

WAITING_FOR_RESUME = "waiting_for_resume"
RESUMING = "resuming"

_LISTED_CONDITIONS = 8
_ENDS = (TaskStatus.DONE, TaskStatus.SKIPPED)


def outside_id(draft: Draft, listener_id: str) -> str:
    """A listener's id as people see it: unique over all instances."""
    return f"{draft.state.run_id}_{listener_id}"


def fail_listener(
    draft: Draft,
    listener_id: str,
    failure: Failure,
    *,
    updates: tuple[TaskUpdate, ...] | None = None,
    kept: bool = False,
    result: Json = None,
    final: bool = False,
) -> None:
    """The driver gave up: apply `failure_output`, or put the main task in Error."""
    firing = draft.step(listener_id).firing
    if draft.listener(listener_id).verifies:
        verdict = "unable_to_verify"
        draft.emit(CheckConcluded(listener_id, firing, verdict, failure.message, result))
        return
    moves = _failure_moves(draft, listener_id, failure, updates, result)
    handled = bool(moves) and _handles(draft, moves)
    final = not handled and (final or _stopped(draft))
    moves = moves or _error_moves(draft, listener_id)
    draft.emit(ListenerFailed(listener_id, firing, failure, handled, final, kept, result, moves))
    if final:
        give_up(draft, f"{listener_id} failed: {failure.message}", (listener_id,))


def _stopped(draft: Draft) -> bool:
    return draft.state.status in (PlanInstanceStatus.ERROR, PlanInstanceStatus.CANCELLING)


def _failure_moves(
    draft: Draft,
    listener_id: str,
    failure: Failure,
    updates: tuple[TaskUpdate, ...] | None,
    result: Json,
) -> tuple[Move, ...]:
    listener = draft.listener(listener_id)
    try:
        if updates is None:
            failed = {"success": False, "error": failure.message}
            updates = updates_for(listener, False, result or failed, draft.state)
        return draft.moves(updates)
    except (TemplateError, OutputRefused):
        return ()


def _handles(draft: Draft, moves: tuple[Move, ...]) -> bool:
    """A branch of the plan: no task in Error, or a listener waits for just that Error."""
    main = draft.state.plan.main
    return all(
        move.status is not TaskStatus.ERROR or (move.fired and move.task_id != main)
        for move in moves
    )


def _error_moves(draft: Draft, listener_id: str) -> tuple[Move, ...]:
    main = draft.state.plan.main
    target = draft.listener(listener_id).target
    moves = []
    if target is not None and target != main:
        moves.append(quiet(target, TaskStatus.ERROR, "listener_failed"))
    if not _stopped(draft):
        named = outside_id(draft, listener_id)
        moves.append(quiet(main, TaskStatus.ERROR, "listener_failed", failed_listener_id=named))
    return tuple(moves)


def advise(draft: Draft, command: Advise) -> None:
    """The planner has spoken: fire the listener again, or wait for a person."""
    listener_id, advice = command.listener_id, command.advice
    step = draft.state.steps.get(listener_id)
    if step is None or step.status is not StepStatus.CONSULTING or step.firing != command.firing:
        return
    if isinstance(advice, Retry) and step.retries < advice.most:
        _retry(draft, listener_id, step, advice)
    else:
        _abandon(draft, listener_id, step, advice.why)


def _abandon(draft: Draft, listener_id: str, step: StepState, why: str) -> None:
    message = _why_failed(draft, listener_id)
    give_up(draft, message, (listener_id,), retries=step.retries, why=why)


def _retry(draft: Draft, listener_id: str, step: StepState, advice: Retry) -> None:
    """After the planner's own delay, else when the backoff, which goes on, is over."""
    policy = draft.listener(listener_id).listener.retry
    failure = step.failure or Failure(FailureKind.TRANSIENT, "")
    tries, delay = step.tried + step.attempt, advice.delay
    if delay is None:
        delay = backoff.wait(policy, failure, tries, draft.jitter())
    if delay is None:
        _abandon(draft, listener_id, step, backoff.why_not(policy, failure))
        return
    count, due = step.retries + 1, draft.now + delay if delay else None
    moves = _retry_moves(draft, listener_id, count, advice.most, due or draft.now)
    by_policy = backoff.why(policy, failure, tries) if advice.delay is None else ""
    told = "; ".join(filter(None, (advice.why, by_policy)))
    draft.emit(
        PlannerRetried(listener_id, step.firing, count, advice.most, tuple(moves), due, told)
    )


def _why_failed(draft: Draft, listener_id: str) -> str:
    step = draft.step(listener_id)
    times = "1 retry" if step.retries == 1 else f"{step.retries} retries"
    retries = f" after {times}" if step.retries else ""
    return f"{listener_id} failed{retries}: {step.failure.message if step.failure else ''}"


def _retry_moves(draft: Draft, listener_id: str, count: int, most: int, due: float) -> list[Move]:
    """The failed sub-task goes back to NotStarted, the main task to Retrying."""
    main = draft.state.plan.main
    times = [iso(at) for at in (*draft.step(listener_id).retry_times, due)]
    counted = {"retry_count": count, "max_retries": most, "retry_times": times}
    failed = [task for task in _failed_tasks(draft, listener_id) if task != main]
    moves = [Move(task, TaskStatus.NOT_STARTED, "planner_retry", counted) for task in failed]
    status = _while_retrying(draft.state.main_task)
    retrying = Move(main, status, "planner_retry", counted, ("failed_listener_id",))
    return [*moves, retrying]


def _while_retrying(main: TaskState) -> TaskStatus:
    """A main task that had reached its end has it again; any other is Retrying."""
    before = _before_the_trouble(main)
    return before if before in _ENDS else TaskStatus.RETRYING


def _before_the_trouble(main: TaskState) -> TaskStatus:
    trouble = (TaskStatus.ERROR, TaskStatus.RETRYING)
    calm = (status for status, _, _ in main.moves if status not in trouble)
    return next(calm, TaskStatus.RUNNING)


def _failed_tasks(draft: Draft, listener_id: str) -> list[str]:
    listener = draft.listener(listener_id).listener
    outputs = (listener.failure_output, listener.success_output)
    named = dict.fromkeys(output.task_id for output in outputs if output is not None)
    return [one for one in named if draft.state.task(one).status is TaskStatus.ERROR]


def give_up(
    draft: Draft,
    message: str,
    failed: tuple[str, ...] = (),
    *,
    retries: int = 0,
    why: str = "",
) -> None:
    """The main task is in Error; a person must mend the world and resume."""
    if draft.state.status is PlanInstanceStatus.CANCELLING:
        return
    abandoned = [one for one in _consulting(draft) if one not in failed]
    failed = (*failed, *abandoned)
    messages = [message, why, *(_why_failed(draft, one) for one in abandoned)]
    if draft.state.status is PlanInstanceStatus.ERROR:
        before = error_info(draft.state.main_task)
        messages.insert(0, str(before.get("message", "")))
        retries = max(retries, _count(before.get("failed_retries")))
    given = [refused(draft.step(one)) for one in failed]
    messages += [remedy(one) for one in given if one]
    known = dict.fromkeys((*draft.state.failed, *failed))
    names = [outside_id(draft, one) for one in known]
    context: dict[str, Json] = {"failed_listener_ids": names}
    if names:
        context["failed_listener_id"] = names[0]
    context["error_info"] = {
        "failed_retries": retries,
        "status": WAITING_FOR_RESUME,
        "message": "; ".join(dict.fromkeys(one for one in messages if one)),
    }
    move = Move(draft.state.plan.main, TaskStatus.ERROR, WAITING_FOR_RESUME, context)
    draft.emit(PlannerGaveUp(message, failed, (move,), why))


def _consulting(draft: Draft) -> list[str]:
    """A run that waits for a person consults nobody: these have failed as well."""
    steps = sorted(draft.state.steps.items())
    return [one for one, step in steps if step.status is StepStatus.CONSULTING]


def error_info(main: TaskState) -> Mapping[str, Json]:
    """People and plans may write what they like into a context."""
    info = main.context.get("error_info")
    return info if isinstance(info, Mapping) else {}


def _count(value: Json) -> int:
    return value if isinstance(value, int) else 0


def resume(draft: Draft, command: Resume) -> None:
    """Only what failed runs again, and what waits for its next try need not wait any more;
    Done tasks and history stay."""
    state = draft.state
    children = tuple(one for one in state.failed if _child_waits(draft, one))
    refired = [one for one in state.failed if one not in children]
    if not state.failed:
        refired = _now_holding(draft)
    moves = [
        Move(task, TaskStatus.NOT_STARTED, "resume_retry_listener")
        for one in state.failed
        for task in _failed_tasks(draft, one)
        if task != state.plan.main
    ]
    anew = tuple(one for one in refired if one in state.failed and refused(draft.step(one)))
    moves.append(resuming_move(draft))
    draft.emit(RunResumed(command.by, tuple(refired), children, tuple(moves), anew))
    for listener_id, step in sorted(draft.state.steps.items()):
        if step.status is StepStatus.BACKOFF:
            draft.emit(StepWoken(listener_id, step.firing))


def _child_waits(draft: Draft, listener_id: str) -> bool:
    step = draft.step(listener_id)
    return step.child_id is not None and step.child_status == PlanInstanceStatus.ERROR


def resuming_move(draft: Draft) -> Move:
    main = draft.state.main_task
    info = {**error_info(main), "status": RESUMING}
    return Move(
        draft.state.plan.main,
        _while_retrying(main),
        "resume_retry_listener",
        {"error_info": info},
        ("failed_listener_id", "failed_listener_ids"),
    )


def _now_holding(draft: Draft) -> list[str]:
    """Listeners whose conditions hold, by a person's edits or once the main task runs again."""
    main = draft.state.main_task
    going_on = TaskState(TaskStatus.RUNNING, main.context, main.moves)
    facts = TaskFacts(draft.state.tasks.set(draft.state.plan.main, going_on))
    steps = draft.state.steps
    return [
        one.listener_id
        for one in draft.state.plan.plan.listeners
        if ((step := steps.get(one.listener_id)) is None or step.forgotten)
        and holds(draft.listener(one.listener_id).condition, one.trigger_task_id, facts)
    ]


def skip_listener(draft: Draft, listener_id: str, by: str, reason: str) -> None:
    """The listener is passed over and its sub-task Skipped."""
    step = draft.step(listener_id)
    output = draft.listener(listener_id).listener.success_output
    moves: tuple[Move, ...] = ()
    if output is not None:
        update = TaskUpdate(output.task_id, TaskStatus.SKIPPED, {}, f"skipped by {by}")
        moves = draft.moves((update,))
    draft.emit(ListenerSkipped(listener_id, step.firing, by, reason, moves))


def settle(draft: Draft) -> None:
    """Of a run of which nothing is active, or that is being cancelled."""
    match draft.state.status:
        case PlanInstanceStatus.CANCELLING:
            if draft.state.in_flight == 0:
                draft.emit(RunCancelled(_cancelled_moves(draft)))
        case PlanInstanceStatus.RUNNING | PlanInstanceStatus.CONTINUE | PlanInstanceStatus.PAUSE:
            _nothing_left(draft)
        case _:
            return


def _cancelled_moves(draft: Draft) -> tuple[Move, ...]:
    return tuple(
        quiet(task_id, TaskStatus.CANCELLED, "cancelled")
        for task_id, task in sorted(draft.state.tasks.items())
        if task.status not in (*_ENDS, TaskStatus.CANCELLED)
    )


def _nothing_left(draft: Draft) -> None:
    state = draft.state
    if state.main_task.status not in _ENDS:
        give_up(draft, _why_nothing_fires(draft))
    elif state.plan.verify_ids and not state.verifying:
        draft.emit(VerificationStarted(state.plan.verify_ids))
    elif state.failed:
        give_up(draft, f"verification failed: {_failed_checks(draft)}", state.failed)
    else:
        draft.emit(RunCompleted(dict(state.verification), _mended_moves(draft)))


def _failed_checks(draft: Draft) -> str:
    """The tools that looked, and the agents that did so with theirs."""
    checks = ((one, draft.listener(one).check) for one in draft.state.failed)
    return ", ".join(check.tool if check else one.removeprefix(VERIFY) for one, check in checks)


def _mended_moves(draft: Draft) -> tuple[Move, ...]:
    """A run that is done has no error to show; its history keeps what there was."""
    main = draft.state.main_task
    if "error_info" not in main.context:
        return ()
    return (Move(draft.state.plan.main, main.status, "", {}, ("error_info",)),)


def _why_nothing_fires(draft: Draft) -> str:
    waiting = [
        f"{one.listener_id}: {explain(compiled.condition, one.trigger_task_id, draft.state)}"
        for one in draft.state.plan.plan.listeners
        if draft.may_fire(compiled := draft.listener(one.listener_id))
    ]
    if not waiting:
        return "nothing is left to do, and every listener has fired"
    more = len(waiting) - _LISTED_CONDITIONS
    listed = "; ".join(waiting[:_LISTED_CONDITIONS]) + (f"; and {more} more" if more > 0 else "")
    return f"nothing is left to do: these conditions are false: {listed}"
