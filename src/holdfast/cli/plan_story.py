"""A plan's story: its events in plain words, each followed by the tasks that it moved."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar, TypeAlias, assert_never, cast

from holdfast.cli.screen import visible
from holdfast.cli.telling import Line, Sentence, Teller, reason
from holdfast.core.plan.compiled import INPUTS, VERIFY, CompiledPlan
from holdfast.model import events as e
from holdfast.model.interaction import InteractionRequest
from holdfast.model.plan import AgentAction, PlanAction, ToolAction
from holdfast.model.recorded import Event
from holdfast.runtime.hub import Recorded

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
_EDITS = {
    "mark_done": "marked a task done by hand",
    "edit_context": "edited a task's context",
    "rerun": "closed what waited, to run it again",
}

_Listener: TypeAlias = (
    e.ListenerStarted
    | e.ListenerSucceeded
    | e.ListenerFailed
    | e.ListenerSkipped
    | e.FunctionCalled
    | e.FunctionReturned
    | e.PlannerRetried
    | e.CheckConcluded
)


class PlanStory(Teller):
    engine: ClassVar[str] = "plan"

    def __init__(self, plan: CompiledPlan, asked: Iterable[InteractionRequest] = ()) -> None:
        super().__init__(asked)
        self._tasks = {task.task_id: task.name for task in plan.plan.tasks}
        self._actions = {one.listener_id: one.action for one in plan.plan.listeners}
        self._checks = [check.tool for check in plan.plan.verify]
        self._concluding: set[str] = set()

    def tell(self, recorded: Recorded) -> list[Line]:
        moves = getattr(recorded.event, "moves", ())
        moved = [Line(recorded.at, "", f"  {one}") for one in self._moves(moves)]
        return super().tell(recorded) + moved

    def _moves(self, moves: Sequence[e.Move]) -> Iterator[str]:
        for move in moves:
            if not move.reason and not move.context:
                continue  # only tidies the task's context
            why = _REASONS.get(move.reason, "")
            because = f" ({why})" if why else ""
            yield f"{self._task(move.task_id)} is {move.status.value}{because}"

    def _task(self, task_id: str) -> str:
        return visible(f"{task_id} {self._tasks.get(task_id, '')}".strip())

    def step(self, step_id: str) -> str:
        if step_id == INPUTS:
            return "the form for the plan's inputs"
        if step_id.startswith(VERIFY):
            return self._check(step_id.removeprefix(VERIFY))
        return visible(f"{step_id} ({self._deed(step_id)})")

    def _check(self, name: str) -> str:
        """The plan's own checks have numbers, those of its agents their ids."""
        number = int(name) if name.isdecimal() and name.isascii() else 0
        if 0 < number <= len(self._checks):
            return f"check {number} ({visible(self._checks[number - 1])})"
        return f"the check of agent {visible(name)}"

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

    def _steps(self, step_ids: Sequence[str]) -> str:
        return ", ".join(self.step(one) for one in step_ids)

    def sentence(self, event: Event) -> Sentence:
        # The journal of a plan's run holds a plan's events only.
        return self._sentence(cast(e.PlanEvent, event))

    def _sentence(self, event: e.PlanEvent) -> Sentence:
        match event:
            case e.RunStarted():
                who = event.by or self.engine
                return who, f"started {visible(event.plan_id)}{reason(event.prompt)}"
            case e.RunResumed():
                again = self._steps(event.refired)
                return event.by, f"resumed the run{f'; runs again: {again}' if again else ''}"
            case e.RunCompleted():
                return self.engine, f"the run is done{_verdicts(event.verification)}"
            case e.VerificationStarted():
                return self.engine, f"checks the outcome: {self._steps(event.fired)}"
            case e.PlannerGaveUp():
                return _PLANNER, f"gives up and waits for a resume{reason(event.message)}"
            case e.TasksEdited():
                return event.by, _EDITS.get(event.reason, visible(event.reason))
            case e.ListenersReset():
                return event.by, f"runs the plan again from {self._steps(event.fired)}"
            case (
                e.ListenerStarted()
                | e.ListenerSucceeded()
                | e.ListenerFailed()
                | e.ListenerSkipped()
                | e.FunctionCalled()
                | e.FunctionReturned()
                | e.PlannerRetried()
                | e.CheckConcluded()
            ):
                return self._listener(event)
            case e.ChildHeard(status="done"):
                self._concluding.add(event.step_id)
                return self.shared(event)
            case _:
                return self.shared(event)

    def _listener(self, event: _Listener) -> Sentence:
        listener = self.step(event.listener_id)
        match event:
            case e.ListenerStarted(child_id=None) if event.listener_id in self._concluding:
                self._concluding.discard(event.listener_id)
                return self.engine, f"{listener} takes up what its sub-run returned"
            case e.ListenerStarted():
                attempt = f", attempt {event.attempt}" if event.attempt > 1 else ""
                child = f" as {event.child_id}" if event.child_id else ""
                return self.engine, f"{listener} started{attempt}{visible(child)}"
            case e.ListenerSucceeded():
                return self.engine, f"{listener} succeeded"
            case e.ListenerFailed():
                handled = "; the plan has a branch for that" if event.handled else ""
                return self.engine, f"{listener} failed{reason(event.failure.message)}{handled}"
            case e.ListenerSkipped():
                return event.by, f"skipped {listener}{reason(event.reason)}"
            case e.FunctionCalled():
                return self.engine, f"{listener} calls {visible(event.function)}"
            case e.FunctionReturned():
                return self.engine, f"{listener} has the result of call {event.index}"
            case e.PlannerRetried():
                count = f"{event.retry_count} of {event.max_retries}"
                return _PLANNER, f"runs {listener} again, retry {count}"
            case e.CheckConcluded():
                verdict = event.verdict.replace("_", " ")
                agent = event.listener_id.removeprefix(VERIFY)
                message = event.message.removeprefix(f"agent {agent}: ")
                return self.engine, f"{listener}: {verdict}{reason(message)}"
            case _:
                assert_never(event)


def _verdicts(verification: Mapping[str, str]) -> str:
    if not verification:
        return ""
    counts = {one: list(verification.values()).count(one) for one in verification.values()}
    words = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts.items())
    return f" ({words})"
