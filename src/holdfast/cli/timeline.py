"""The timeline: a run's events in plain words, one or more lines each.

`Storyteller` remembers the questions it has told of, because the events that close
one name it by its id only. Answers to secret fields are never told.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import assert_never

from holdfast.cli.screen import clock, visible
from holdfast.core.plan.compiled import INPUTS, VERIFY, CompiledPlan
from holdfast.model import events as e
from holdfast.model.form import FieldType
from holdfast.model.interaction import InteractionRequest
from holdfast.model.plan import AgentAction, PlanAction, ToolAction
from holdfast.model.values import Json
from holdfast.runtime.hub import Recorded

_ENGINE = "plan"
_PLANNER = "planner"
_REASONS = {
    "waiting_for_person": "waits for a person",
    "waiting_for_resume": "waits for a resume",
    "planner_retry": "the planner tries again",
    "resume_retry_listener": "resumed",
    "retry_succeeded": "the retry succeeded",
    "listener_failed": "a listener failed",
    "start": "",
}


@dataclass(frozen=True, slots=True)
class Line:
    """Something that happened: when, by whom, what."""

    at: float
    who: str
    what: str

    def __str__(self) -> str:
        return self.render()

    def render(self, *, date: bool = False) -> str:
        return f"{clock(self.at, date=date)}  {self.who:<8} {self.what}"


class Storyteller:
    """Tells the events of one run, in order."""

    def __init__(self, plan: CompiledPlan, asked: Iterable[InteractionRequest] = ()) -> None:
        self._tasks = {task.task_id: task.name for task in plan.plan.tasks}
        self._actions = {one.listener_id: one.action for one in plan.plan.listeners}
        self._checks = [check.tool for check in plan.plan.verify]
        self._asked = {request.request_id: request for request in asked}

    def tell(self, recorded: Recorded) -> list[Line]:
        """The event itself, and the tasks that it moved."""
        who, what = self._sentence(recorded.event)
        moves = getattr(recorded.event, "moves", ())
        told = [Line(recorded.at, visible(who), what)]
        return told + [Line(recorded.at, "", f"  {one}") for one in self._moves(moves)]

    def _moves(self, moves: Sequence[e.Move]) -> Iterator[str]:
        for move in moves:
            if not move.reason and not move.context:
                continue  # only tidies the task's context
            reason = _REASONS.get(move.reason, "")
            because = f" ({reason})" if reason else ""
            yield f"{self._task(move.task_id)} is {move.status.value}{because}"

    def _task(self, task_id: str) -> str:
        return visible(f"{task_id} {self._tasks.get(task_id, '')}".strip())

    def _listener(self, listener_id: str) -> str:
        if listener_id == INPUTS:
            return "the form for the plan's inputs"
        if listener_id.startswith(VERIFY):
            number = int(listener_id.removeprefix(VERIFY))
            return f"check {number} ({visible(self._checks[number - 1])})"
        return visible(f"{listener_id} ({self._deed(listener_id)})")

    def _deed(self, listener_id: str) -> str:
        action = self._actions.get(listener_id)
        match action:
            case ToolAction(tool=tool):
                return tool
            case PlanAction(plan_id=plan_id):
                return f"plan {plan_id}"
            case AgentAction(agent_id=agent_id):
                return f"agent {agent_id}"
            case None:
                return "unknown"
            case _:
                return action.kind

    def _listeners(self, listener_ids: Sequence[str]) -> str:
        return ", ".join(self._listener(one) for one in listener_ids)

    def _sentence(self, event: e.Event) -> tuple[str, str]:
        """Who did it, and what it was."""
        match event:
            case e.RunStarted():
                prompt = f": {visible(event.prompt)}" if event.prompt else ""
                return event.by or _ENGINE, f"started {visible(event.plan_id)}{prompt}"
            case e.RunResumed():
                again = self._listeners(event.refired)
                return event.by, f"resumed the run{f'; runs again: {again}' if again else ''}"
            case e.RunCompleted():
                return _ENGINE, f"the run is done{_verdicts(event.verification)}"
            case e.RunRecovered():
                return _ENGINE, "the process that ran this went down; another took over"
            case e.CancelRequested():
                reason = f": {visible(event.reason)}" if event.reason else ""
                return event.by, f"cancelled the run{reason}"
            case e.RunCancelled():
                return _ENGINE, "nothing is in flight any more: the run is cancelled"
            case e.VerificationStarted():
                return _ENGINE, f"checks the outcome: {self._listeners(event.fired)}"
            case e.PlannerGaveUp():
                return _PLANNER, f"gives up and waits for a resume: {visible(event.message)}"
            case e.TasksEdited():
                return event.by, _EDITS.get(event.reason, visible(event.reason))
            case e.ListenersReset():
                return event.by, f"runs the plan again from {self._listeners(event.fired)}"
            case e.ChildHeard():
                detail = f": {visible(event.message)}" if event.message else ""
                return _ENGINE, f"the sub-run {visible(event.child_id)} is {event.status}{detail}"
            case (
                e.QuestionOpened()
                | e.QuestionAnswered()
                | e.QuestionExpired()
                | e.QuestionWithdrawn()
            ):
                return self._question(event)
            case _:
                return self._step(event)

    def _step(self, event: Step) -> tuple[str, str]:
        listener = self._listener(event.listener_id)
        match event:
            case e.ListenerStarted():
                attempt = f", attempt {event.attempt}" if event.attempt > 1 else ""
                child = f" as {event.child_id}" if event.child_id else ""
                return _ENGINE, f"{listener} started{attempt}{visible(child)}"
            case e.ListenerSucceeded():
                return _ENGINE, f"{listener} succeeded"
            case e.AttemptFailed():
                again = f"tries again at {clock(event.retry_at)}"
                return _ENGINE, f"{listener} failed: {visible(event.failure.message)}; {again}"
            case e.ListenerFailed():
                handled = "; the plan has a branch for that" if event.handled else ""
                return _ENGINE, f"{listener} failed: {visible(event.failure.message)}{handled}"
            case e.ListenerWoken():
                return _ENGINE, f"{listener} is due for its next attempt"
            case e.ListenerReleased():
                return _ENGINE, f"{listener} was not handed over and is ready again"
            case e.ListenerSkipped():
                reason = f": {visible(event.reason)}" if event.reason else ""
                return event.by, f"skipped {listener}{reason}"
            case e.OutcomeLost():
                lost = f"nobody knows whether it happened: {visible(event.reason)}"
                return _ENGINE, f"{listener} was sent, but {lost}"
            case e.LateResultKept():
                return _ENGINE, f"{listener} answered too late; the result is kept, without effect"
            case e.FunctionCalled():
                return _ENGINE, f"{listener} calls {visible(event.function)}"
            case e.FunctionReturned():
                return _ENGINE, f"{listener} has the result of call {event.index}"
            case e.PlannerRetried():
                count = f"{event.retry_count} of {event.max_retries}"
                return _PLANNER, f"runs {listener} again, retry {count}"
            case e.CheckConcluded():
                detail = f": {visible(event.message)}" if event.message else ""
                return _ENGINE, f"{listener}: {event.verdict.replace('_', ' ')}{detail}"
            case _:
                assert_never(event)

    def _question(self, event: Question) -> tuple[str, str]:
        match event:
            case e.QuestionOpened(request=request):
                self._asked[request.request_id] = request
                wants = ", ".join(one.label or one.name for one in request.form.fields)
                asks = f" ({visible(wants)})" if wants else ""
                return _ENGINE, f"asks a person: {visible(request.title)}{asks}"
            case e.QuestionAnswered():
                return event.by, f"answered {self._title(event.question_id)}{self._answer(event)}"
            case e.QuestionExpired():
                taken = f"; {event.option_id} was taken" if event.option_id else ""
                return "clock", f"nobody answered {self._title(event.question_id)} in time{taken}"
            case e.QuestionWithdrawn():
                title = self._title(event.question_id)
                return _ENGINE, f"no longer asks {title}: {visible(event.reason)}"
            case _:
                assert_never(event)

    def _title(self, question_id: str) -> str:
        request = self._asked.get(question_id)
        return visible(request.title) if request else question_id[:8]

    def _answer(self, event: e.QuestionAnswered) -> str:
        secret = self._secrets(event.question_id)
        told = [f"{name} = {_value(value, name in secret)}" for name, value in event.data.items()]
        parts = [", ".join(told), visible(event.feedback or "")]
        words = "; ".join(part for part in parts if part)
        request = self._asked.get(event.question_id)
        choice = request is None or len(request.options) > 1
        return (f" with {event.option_id}" if choice else "") + (f": {words}" if words else "")

    def _secrets(self, question_id: str) -> frozenset[str]:
        request = self._asked.get(question_id)
        fields = request.form.fields if request else ()
        return frozenset(one.name for one in fields if one.type is FieldType.SECRET)


Question = e.QuestionOpened | e.QuestionAnswered | e.QuestionExpired | e.QuestionWithdrawn
Step = (
    e.ListenerStarted
    | e.ListenerSucceeded
    | e.AttemptFailed
    | e.ListenerFailed
    | e.ListenerWoken
    | e.ListenerReleased
    | e.ListenerSkipped
    | e.OutcomeLost
    | e.LateResultKept
    | e.FunctionCalled
    | e.FunctionReturned
    | e.PlannerRetried
    | e.CheckConcluded
)

_EDITS = {
    "mark_done": "marked a task done by hand",
    "edit_context": "edited a task's context",
    "rerun": "closed what waited, to run it again",
}


def _verdicts(verification: Mapping[str, str]) -> str:
    if not verification:
        return ""
    counts = {one: list(verification.values()).count(one) for one in verification.values()}
    words = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts.items())
    return f" ({words})"


def _value(value: Json, secret: bool) -> str:
    if secret:
        return "(secret)"
    match value:
        case {"value": chosen, "text": text}:
            return visible(f"{chosen} ({text})")
        case bool():
            return "yes" if value else "no"
        case list():
            return ", ".join(_value(one, secret) for one in value)
        case _:
            return visible(value)
