"""`apply`: the one place where an event changes a plan's state.

It decides nothing: every choice stands in the event. The moves come from the
tables, so an event that does not fit the state raises instead of bending it.
"""

from __future__ import annotations

from typing import Any, assert_never

from rpds import HashTrieMap

from holdfast.core.compiled import VERIFY
from holdfast.core.state import (
    EMPTY,
    PlanState,
    QuestionState,
    StepState,
    TaskState,
    TraceEntry,
    evolve,
)
from holdfast.core.tables import (
    ACTIVE_STEPS,
    Signal,
    StepMove,
    StepStatus,
    close_question,
    next_instance,
    next_step,
)
from holdfast.model import events as e
from holdfast.model.effects import RecordedCall
from holdfast.model.interaction import InteractionAction, InteractionStatus
from holdfast.model.plan import PlanInstanceStatus, TaskStatus

CANCEL_TIMER = "cancel"
RUN_AGAIN = "run_again"


def retry_timer(listener_id: str) -> str:
    return f"retry:{listener_id}"


def question_timer(question_id: str) -> str:
    return f"question:{question_id}"


def apply(state: PlanState, event: e.Event, at: float) -> PlanState:
    """The state after `event`, which is the next record of this run."""
    after = _apply(evolve(state, version=state.version + 1, updated_at=at), event, at)
    return _settle_continue(after, event)


def _apply(state: PlanState, event: e.Event, at: float) -> PlanState:
    match event:
        case e.ListenerSucceeded():
            return _moved(_listener_succeeded(state, event), event.moves, at)
        case e.ListenerStarted():
            return _moved(_listener_started(state, event), event.moves, at)
        case e.RunStarted():
            return _run_started(state, event, at)
        case e.AttemptFailed():
            return _attempt_failed(state, event)
        case e.ListenerFailed():
            return _moved(_listener_failed(state, event), event.moves, at)
        case e.ListenerWoken():
            timers = state.timers.discard(retry_timer(event.listener_id))
            return _step(evolve(state, timers=timers), event.listener_id, StepMove.WAKE)
        case e.ListenerReleased():
            return _listener_released(state, event)
        case e.ListenerSkipped():
            return _moved(_listener_skipped(state, event), event.moves, at)
        case e.OutcomeLost():
            return _outcome_lost(state, event)
        case e.LateResultKept():
            return state
        case e.FunctionCalled():
            calling = (event.function, event.args, event.idempotent)
            return _step(state, event.listener_id, None, calling=calling, claim=state.version)
        case e.FunctionReturned():
            return _function_returned(state, event)
        case e.QuestionOpened():
            return _moved(_question_opened(state, event, at), event.moves, at)
        case e.QuestionAnswered():
            return _question_answered(state, event, at)
        case e.QuestionExpired():
            return _question_expired(state, event, at)
        case e.QuestionWithdrawn():
            return _question_closed(state, event.question_id, InteractionStatus.WITHDRAWN, at)
        case e.PlannerRetried():
            return _moved(_planner_retried(state, event, at), event.moves, at)
        case e.PlannerGaveUp():
            return _moved(_planner_gave_up(state, event), event.moves, at)
        case e.RunResumed():
            return _moved(_run_resumed(state, event), event.moves, at)
        case e.VerificationStarted():
            return _fire(evolve(state, verifying=True), event.fired)
        case e.CheckConcluded():
            return _check_concluded(state, event)
        case e.RunCompleted():
            return _signal(_moved(_timeless(state), event.moves, at), Signal.FINISH)
        case e.TasksEdited():
            return _moved(_closed_by_hand(state, event.closed), event.moves, at)
        case e.ListenersReset():
            return _moved(_listeners_reset(state, event), event.moves, at)
        case e.ChildHeard():
            return _child_heard(state, event)
        case e.RunRecovered():
            return evolve(state, recoveries=event.count)
        case e.CancelRequested():
            return _cancel_requested(state, event)
        case e.RunCancelled():
            return _signal(_moved(_timeless(state), event.moves, at), Signal.STOPPED)
        case _:
            assert_never(event)


def _timeless(state: PlanState) -> PlanState:
    """A run that has ended is never woken."""
    return evolve(state, timers=HashTrieMap())


def _signal(state: PlanState, signal: Signal) -> PlanState:
    status = next_instance(state.status, signal)
    return state if status is state.status else evolve(state, status=status)


def _settle_continue(state: PlanState, event: e.Event) -> PlanState:
    """`continue` lasts from the answer until the run takes its next step."""
    if state.status is not PlanInstanceStatus.CONTINUE or isinstance(event, e.QuestionAnswered):
        return state
    return _signal(state, Signal.ASK if _asks(state) else Signal.GO_ON)


def _asks(state: PlanState) -> bool:
    return bool(state.open_questions) or state.paused_children > 0


def _moved(state: PlanState, moves: tuple[e.Move, ...], at: float) -> PlanState:
    for move in moves:
        state = _fire(_task_moved(state, move, at), move.fired)
    return state


def _task_moved(state: PlanState, move: e.Move, at: float) -> PlanState:
    before = state.task(move.task_id)
    tasks = state.tasks.insert(move.task_id, moved_task(before, move, at))
    done = (move.status is TaskStatus.DONE) - (before.status is TaskStatus.DONE)
    if done:
        return evolve(state, tasks=tasks, done_tasks=state.done_tasks + done)
    return evolve(state, tasks=tasks)


def moved_task(task: TaskState, move: e.Move, at: float) -> TaskState:
    context = {**task.context, **move.context} if move.context else task.context
    if move.drop:
        context = {name: value for name, value in context.items() if name not in move.drop}
    if move.status is task.status and not move.reason:
        return TaskState(task.status, context, task.trace)
    trace = task.trace.push_front(TraceEntry(move.status, move.reason, at))
    return TaskState(move.status, context, trace)


def _fire(state: PlanState, listener_ids: tuple[str, ...]) -> PlanState:
    for listener_id in listener_ids:
        step = state.steps.get(listener_id)
        if step is None:
            state = _put(state, listener_id, None, StepState())
        elif step.status in ACTIVE_STEPS:
            state = _step(state, listener_id, None, pending=step.pending + 1)
        else:
            state = _refire(state, listener_id)
    return state


def _refire(state: PlanState, listener_id: str, **kept: Any) -> PlanState:
    step = state.steps[listener_id]
    status = next_step(step.status, StepMove.FIRE)
    fresh = StepState(firing=step.firing + 1, status=status, pending=step.pending)
    return _put(state, listener_id, step, evolve(fresh, **kept) if kept else fresh)


def _step(state: PlanState, listener_id: str, move: StepMove | None, **changes: Any) -> PlanState:
    """Move one step by the table."""
    step = state.steps[listener_id]
    status = step.status if move is None else next_step(step.status, move)
    return _put(state, listener_id, step, evolve(step, status=status, **changes))


def _put(
    state: PlanState, listener_id: str, before: StepState | None, after: StepState
) -> PlanState:
    """Store a step, and keep the counts that summarise all steps."""
    steps = state.steps.insert(listener_id, after)
    was, now = _NOT_COUNTED if before is None else _counts(before), _counts(after)
    if was == now:
        return evolve(state, steps=steps)
    return evolve(
        state,
        steps=steps,
        active=state.active + now[0] - was[0],
        in_flight=state.in_flight + now[1] - was[1],
        resting=state.resting + now[2] - was[2],
    )


_NOT_COUNTED = (0, 0, 0)
_RESTING = (StepStatus.WAITING, StepStatus.BACKOFF)


def _counts(step: StepState) -> tuple[int, int, int]:
    status = step.status
    if status not in ACTIVE_STEPS:
        return _NOT_COUNTED
    if status is StepStatus.RUNNING:
        return 1, 1, int(step.child_id is not None and not step.resuming)
    return 1, 0, int(status in _RESTING)


def _run_started(state: PlanState, event: e.RunStarted, at: float) -> PlanState:
    started = evolve(
        state,
        plan_id=event.plan_id,
        prompt=event.prompt,
        root_id=event.root_id,
        parent=event.parent,
        started_by=event.by,
        created_at=at,
    )
    if event.values and not event.moves:
        held = TaskState(context=event.values)
        started = evolve(started, tasks=started.tasks.insert(state.plan.main, held))
    return _moved(_fire(_signal(started, Signal.START), event.fired), event.moves, at)


def _listener_started(state: PlanState, event: e.ListenerStarted) -> PlanState:
    step = state.steps[event.listener_id]
    return _step(
        state,
        event.listener_id,
        StepMove.START,
        attempt=event.attempt,
        generation=event.generation,
        claim=state.version,
        args=event.args,
        idempotent=event.idempotent,
        pure=event.pure,
        child_id=event.child_id or step.child_id,
        child_status=None,
        failure=None,
    )


def _listener_succeeded(state: PlanState, event: e.ListenerSucceeded) -> PlanState:
    state = _progressed(_forget_child_pause(state, event.listener_id))
    step = state.steps[event.listener_id]
    done = StepState(
        firing=step.firing,
        status=next_step(step.status, StepMove.SUCCEED),
        attempt=step.attempt,
        generation=step.generation,
        retries=step.retries,
        pending=step.pending,
        child_id=step.child_id,
    )
    state = _put(state, event.listener_id, step, done)
    return _follow_pending(_unfail(state, event.listener_id), event.listener_id)


def _progressed(state: PlanState) -> PlanState:
    return evolve(state, recoveries=0) if state.recoveries else state


def _unfail(state: PlanState, listener_id: str) -> PlanState:
    if listener_id not in state.failed:
        return state
    return evolve(state, failed=tuple(one for one in state.failed if one != listener_id))


def _follow_pending(state: PlanState, listener_id: str) -> PlanState:
    """A repeating listener that was triggered while it worked fires once more."""
    step = state.steps[listener_id]
    if not step.pending or state.status is PlanInstanceStatus.CANCELLING:
        return state
    state = _step(state, listener_id, None, pending=step.pending - 1)
    return _refire(state, listener_id)


def _attempt_failed(state: PlanState, event: e.AttemptFailed) -> PlanState:
    step = state.steps[event.listener_id]
    timers = state.timers.insert(retry_timer(event.listener_id), event.retry_at)
    return _step(
        _progressed(evolve(state, timers=timers)),
        event.listener_id,
        StepMove.BACK_OFF,
        failure=event.failure,
        generation=step.generation + 1,
        calling=None,
    )


def _listener_failed(state: PlanState, event: e.ListenerFailed) -> PlanState:
    state = _progressed(_forget_child_pause(state, event.listener_id))
    carried = (event.result,) if event.kept else None
    changes = {"failure": event.failure, "carried": carried, "calling": None, "question_id": None}
    if event.handled:
        return _handled(state, event.listener_id, changes)
    move = StepMove.GIVE_UP if event.final else StepMove.FAIL
    state = _step(state, event.listener_id, move, **changes)
    return _add_failed(state, event.listener_id) if event.final else state


def _handled(state: PlanState, listener_id: str, changes: dict[str, Any]) -> PlanState:
    if state.steps[listener_id].status is StepStatus.READY:
        state = _step(state, listener_id, StepMove.START)
    return _follow_pending(_step(state, listener_id, StepMove.SUCCEED, **changes), listener_id)


def _add_failed(state: PlanState, listener_id: str) -> PlanState:
    if listener_id in state.failed:
        return state
    return evolve(state, failed=(*state.failed, listener_id))


def _listener_released(state: PlanState, event: e.ListenerReleased) -> PlanState:
    step = state.steps[event.listener_id]
    state = _progressed(state)
    if step.calling is not None:
        return _step(state, event.listener_id, StepMove.RELEASE, calling=None)
    attempt = max(0, step.attempt - 1)
    return _step(state, event.listener_id, StepMove.RELEASE, attempt=attempt)


def _listener_skipped(state: PlanState, event: e.ListenerSkipped) -> PlanState:
    timers = state.timers.discard(retry_timer(event.listener_id))
    state = _unfail(evolve(state, timers=timers), event.listener_id)
    return _step(state, event.listener_id, StepMove.SKIP, question_id=None, pending=0)


def _outcome_lost(state: PlanState, event: e.OutcomeLost) -> PlanState:
    if state.status is PlanInstanceStatus.CANCELLING:
        return _step(state, event.listener_id, StepMove.STOP)
    return state


def _function_returned(state: PlanState, event: e.FunctionReturned) -> PlanState:
    step = state.steps[event.listener_id]
    assert step.calling is not None
    function, args, _ = step.calling
    calls = (*step.calls, RecordedCall(function, args, event.result))
    late = step.status is StepStatus.WAITING
    return _step(
        _progressed(state),
        event.listener_id,
        StepMove.GO_ON if late else None,
        calls=calls,
        calling=None,
        claim=state.version,
    )


def _question_opened(state: PlanState, event: e.QuestionOpened, at: float) -> PlanState:
    question_id = event.request.request_id
    question = QuestionState(
        request=event.request,
        listener_id=event.listener_id,
        firing=event.firing,
        purpose=event.purpose,
        opened_at=at,
        opened_seq=state.version,
        deadline=event.deadline,
        args=event.args,
        consent=event.consent,
    )
    timers = state.timers
    if event.deadline is not None:
        timers = timers.insert(question_timer(question_id), event.deadline)
    state = evolve(
        state,
        questions=state.questions.insert(question_id, question),
        open_questions=state.open_questions.insert(question_id),
        timers=timers,
    )
    state = _step(state, event.listener_id, StepMove.ASK, question_id=question_id)
    return _signal(state, Signal.ASK)


def _question_answered(state: PlanState, event: e.QuestionAnswered, at: float) -> PlanState:
    question = state.questions[event.question_id]
    state = _question_closed(
        state,
        event.question_id,
        InteractionStatus.ANSWERED,
        at,
        by=event.by,
        option_id=event.option_id,
        data=event.data,
        feedback=event.feedback,
    )
    state = _signal(state, Signal.ANSWER)
    state = evolve(state, provided_params=event.values, continued_at=at)
    return _answer_taken(state, question, event)


def _question_expired(state: PlanState, event: e.QuestionExpired, at: float) -> PlanState:
    question = state.questions[event.question_id]
    state = _question_closed(
        state, event.question_id, InteractionStatus.EXPIRED, at, option_id=event.option_id
    )
    return state if event.option_id is None else _answer_taken(state, question, event)


def _answer_taken(
    state: PlanState, question: QuestionState, event: e.QuestionAnswered | e.QuestionExpired
) -> PlanState:
    """The step learns the answer; what follows from it stands in the next events."""
    step = state.steps[question.listener_id]
    changes: dict[str, Any] = {"question_id": None}
    if isinstance(event, e.QuestionAnswered):
        changes["feedback"] = event.feedback
    match question.purpose:
        case _ if not _goes_on(question, event.option_id):
            pass
        case "missing":
            changes["provided"] = {**step.provided, **event.values}
        case "approval":
            changes["consent"] = question.consent
            changes["args"] = question.args
        case "unknown" if event.option_id == RUN_AGAIN:
            pass
        case "unknown" if step.calling is not None:
            function, args, _ = step.calling
            result = event.values.get("result")
            changes["calls"] = (*step.calls, RecordedCall(function, args, result))
            changes["calling"] = None
        case _:
            changes["carried"] = (dict(event.values),)
    return _step(state, question.listener_id, StepMove.GO_ON, **changes)


def _goes_on(question: QuestionState, option_id: str | None) -> bool:
    going_on = (InteractionAction.APPROVE_AND_EXECUTE, InteractionAction.PROVIDE_INFO)
    options = question.request.options
    return any(one.option_id == option_id and one.action in going_on for one in options)


def _question_closed(
    state: PlanState, question_id: str, closed: InteractionStatus, at: float, **answer: Any
) -> PlanState:
    question = state.questions[question_id]
    fields = {name: getattr(question, name) for name in QuestionState.__slots__}
    fields |= {"status": close_question(question.status, closed), "closed_at": at, **answer}
    state = evolve(
        state,
        questions=state.questions.insert(question_id, QuestionState(**fields)),
        open_questions=state.open_questions.remove(question_id),
        timers=state.timers.discard(question_timer(question_id)),
    )
    if closed is InteractionStatus.ANSWERED or _asks(state):
        return state
    return _signal(state, Signal.GO_ON)


def _planner_retried(state: PlanState, event: e.PlannerRetried, at: float) -> PlanState:
    step = state.steps[event.listener_id]
    return _refire(
        state,
        event.listener_id,
        retries=event.retry_count,
        retry_times=(*step.retry_times, at),
        carried=step.carried,
        provided=step.provided,
        calls=step.calls,
    )


def _planner_gave_up(state: PlanState, event: e.PlannerGaveUp) -> PlanState:
    for listener_id in event.failed:
        if state.steps[listener_id].status is not StepStatus.FAILED:
            state = _step(state, listener_id, StepMove.GIVE_UP, calling=None)
        state = _add_failed(state, listener_id)
    return _signal(state, Signal.GIVE_UP)


def _run_resumed(state: PlanState, event: e.RunResumed) -> PlanState:
    state = _signal(evolve(state, failed=(), recoveries=0), Signal.RESUME)
    for listener_id in event.refired:
        step = state.steps.get(listener_id)
        if step is None:
            state = _fire(state, (listener_id,))
            continue
        state = _refire(
            state, listener_id, carried=step.carried, provided=step.provided, calls=step.calls
        )
    for listener_id in event.children:
        state = _step(state, listener_id, StepMove.START, child_status=None, resuming=True)
    return _signal(state, Signal.ASK) if _asks(state) else state


def _check_concluded(state: PlanState, event: e.CheckConcluded) -> PlanState:
    verification = {**state.verification, event.listener_id: event.verdict}
    state = _progressed(evolve(state, verification=verification))
    if event.verdict != "failed":
        return _step(state, event.listener_id, StepMove.SUCCEED)
    return _add_failed(_step(state, event.listener_id, StepMove.GIVE_UP), event.listener_id)


def _closed_by_hand(state: PlanState, listener_ids: tuple[str, ...]) -> PlanState:
    for listener_id in listener_ids:
        timers = state.timers.discard(retry_timer(listener_id))
        state = _unfail(evolve(state, timers=timers), listener_id)
        state = _step(state, listener_id, StepMove.SKIP, question_id=None, pending=0)
    return state


def _listeners_reset(state: PlanState, event: e.ListenersReset) -> PlanState:
    for listener_id in event.forgotten:
        state = _unfail(state, listener_id)
    if any(listener_id.startswith(VERIFY) for listener_id in event.forgotten):
        state = evolve(state, verifying=False, verification=EMPTY)
    return _forgotten(state, event)


def _forgotten(state: PlanState, event: e.ListenersReset) -> PlanState:
    """A forgotten step keeps its count, so that its next firing has a key of its own."""
    for listener_id in event.forgotten:
        if listener_id in state.steps:
            state = _step(state, listener_id, None, forgotten=True)
    for listener_id in event.fired:
        known = listener_id in state.steps
        state = _refire(state, listener_id) if known else _fire(state, (listener_id,))
    return state


def _forget_child_pause(state: PlanState, listener_id: str) -> PlanState:
    step = state.steps[listener_id]
    if step.child_status != PlanInstanceStatus.PAUSE:
        return state
    state = evolve(state, paused_children=state.paused_children - 1)
    return _step(state, listener_id, None, child_status=None)


def _child_heard(state: PlanState, event: e.ChildHeard) -> PlanState:
    state = evolve(state, heard=state.heard.insert(event.child_id, event.seq))
    step = state.steps[event.listener_id]
    if step.firing != event.firing or step.child_id != event.child_id:
        return state
    was, now = (one == PlanInstanceStatus.PAUSE for one in (step.child_status, event.status))
    state = evolve(state, paused_children=state.paused_children + now - was)
    changes: dict[str, Any] = {"child_status": event.status, "resuming": False}
    move = None
    if event.status == PlanInstanceStatus.DONE and step.status is not StepStatus.STOPPED:
        changes["carried"] = (event.result,)
        move = StepMove.GO_ON if state.status is not PlanInstanceStatus.CANCELLING else None
    state = _unfail(_step(state, event.listener_id, move, **changes), event.listener_id)
    return _child_pause_signal(state, was=was, now=now)


def _child_pause_signal(state: PlanState, *, was: bool, now: bool) -> PlanState:
    if state.status is PlanInstanceStatus.CANCELLING or was == now:
        return state
    if now:
        return _signal(state, Signal.ASK)
    return state if _asks(state) else _signal(state, Signal.GO_ON)


def _cancel_requested(state: PlanState, event: e.CancelRequested) -> PlanState:
    for listener_id, step in list(state.steps.items()):
        if step.status in ACTIVE_STEPS - {StepStatus.RUNNING} or step.status is StepStatus.FAILED:
            state = _step(state, listener_id, StepMove.STOP, question_id=None, pending=0)
    timers: HashTrieMap[str, float] = HashTrieMap({CANCEL_TIMER: event.grace_until})
    state = evolve(state, timers=timers, cancelled_by=event.by, failed=())
    return _signal(state, Signal.CANCEL)
