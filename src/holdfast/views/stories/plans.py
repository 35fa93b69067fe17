"""A plan's story: its events in plain words, each followed by the tasks that it moved."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar, TypeAlias, assert_never, cast

from holdfast.core.plan.compiled import INPUTS, VERIFY, CompiledPlan
from holdfast.drawing.graph import TASKS
from holdfast.drawing.picture import Condition
from holdfast.language.moments import utc_text
from holdfast.model import events as e
from holdfast.model.interaction import InteractionRequest
from holdfast.model.plan import AgentAction, PlanAction, ToolAction
from holdfast.model.recorded import Event
from holdfast.runtime.hub import Recorded
from holdfast.views.stories.lines import Line, Sentence, Teller
from holdfast.views.stories.phrases import ENGLISH, Voice
from holdfast.views.stories.text import visible

_REASONS = {
    "waiting_for_person": "for a person",
    "waiting_for_moment": "for a moment",
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
    | e.WaitStarted
    | e.WaitEnded
    | e.FunctionCalled
    | e.FunctionReturned
    | e.PlannerRetried
    | e.CheckConcluded
)


def told_reason(reason: str, say: Voice) -> str:
    """Why a task moved, where there is more to say than that it did."""
    why = _REASONS.get(reason, "")
    return say(why) if why else ""


class PlanStory(Teller):
    engine: ClassVar[str] = "plan"

    def __init__(
        self,
        plan: CompiledPlan,
        asked: Iterable[InteractionRequest] = (),
        say: Voice = ENGLISH,
    ) -> None:
        super().__init__(asked, say)
        self._tasks = {task.task_id: task.name for task in plan.plan.tasks}
        self._actions = {one.listener_id: one.action for one in plan.plan.listeners}
        self._tries = {one.listener_id: one.retry.attempts for one in plan.plan.listeners}
        self._checks = [check.tool for check in plan.plan.verify]
        self._concluding: set[str] = set()

    def lines(self, recorded: Recorded) -> list[Line]:
        moves = getattr(recorded.event, "moves", ())
        moved = [Line(recorded.at, "", f"  {one}") for one in self._moves(moves)]
        return super().lines(recorded) + moved

    def _moves(self, moves: Sequence[e.Move]) -> Iterator[str]:
        for move in moves:
            if not move.reason and not move.context:
                continue  # only tidies the task's context
            why = told_reason(move.reason, self.say)
            yield self._moved(move) + (f" ({why})" if why else "")

    def _moved(self, move: e.Move) -> str:
        task, (condition, status) = self._task(move.task_id), TASKS[move.status]
        if condition is Condition.FAILED:
            return self.say("{task} has failed", task=task)
        return self.say("{task} is {status}", task=task, status=self.say(status))

    def _task(self, task_id: str) -> str:
        return visible(f"{task_id} {self._tasks.get(task_id, '')}".strip())

    def step(self, step_id: str) -> str:
        if step_id == INPUTS:
            return self.say("the form for the plan's inputs")
        if step_id.startswith(VERIFY):
            return self._check(step_id.removeprefix(VERIFY))
        return visible(f"{step_id} ({self._deed(step_id)})")

    def _check(self, name: str) -> str:
        """The plan's own checks have numbers, those of its agents their ids."""
        number = int(name) if name.isdecimal() and name.isascii() else 0
        if 0 < number <= len(self._checks):
            tool = visible(self._checks[number - 1])
            return self.say("check {number} ({tool})", number=number, tool=tool)
        return self.say("the check of agent {agent}", agent=visible(name))

    def _deed(self, listener_id: str) -> str:
        action = self._actions.get(listener_id)
        match action:
            case ToolAction(tool=tool):
                return tool
            case PlanAction(plan_id=plan_id):
                return self.say("plan {name}", name=plan_id)
            case AgentAction(agent_id=agent_id):
                return self.say("agent {name}", name=agent_id)
            case None:
                return self.say("unknown")
            case _:
                return self.say(action.kind)

    def _steps(self, step_ids: Sequence[str]) -> str:
        return ", ".join(self.step(one) for one in step_ids)

    def sentence(self, event: Event) -> Sentence:
        # The journal of a plan's run holds a plan's events only.
        return self._sentence(cast(e.PlanEvent, event))

    def _sentence(self, event: e.PlanEvent) -> Sentence:
        match event:
            case e.RunStarted():
                told = self.say("started {plan}", plan=visible(event.plan_id))
                return event.by or self.itself, self.because(told, event.prompt)
            case e.RunResumed():
                return event.by, self._resumed(event)
            case e.RunCompleted():
                done = self.say("the run is done") + self._verdicts(event.verification)
                return self.itself, done
            case e.VerificationStarted():
                steps = self._steps(event.fired)
                return self.itself, self.say("checks the outcome: {steps}", steps=steps)
            case e.PlannerGaveUp():
                return self._planner, self._gave_up(event)
            case e.TasksEdited():
                edit = _EDITS.get(event.reason)
                return event.by, self.say(edit) if edit else visible(event.reason)
            case e.ListenersReset():
                steps = self._steps(event.fired)
                return event.by, self.say("runs the plan again from {steps}", steps=steps)
            case (
                e.ListenerStarted()
                | e.ListenerSucceeded()
                | e.ListenerFailed()
                | e.ListenerSkipped()
                | e.WaitStarted()
                | e.WaitEnded()
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

    @property
    def _planner(self) -> str:
        return self.say("planner")

    def _gave_up(self, event: e.PlannerGaveUp) -> str:
        """The engine's message counts retries; here the rounds are counted, as everywhere."""
        first = event.failed[0] if event.failed else ""
        known = bool(first) and event.message.startswith(f"{first} failed")
        if not known:
            told = self.say("gives up and waits for a resume")
            return self.because(told, event.message) + self.aside(event.why)
        counted, _, cause = event.message.removeprefix(f"{first} failed").partition(": ")
        retries = next((int(one) for one in counted.split() if one.isdecimal()), 0)
        steps = self._steps(event.failed)
        if not retries:
            told = self.say("gives up on {steps} and waits for a resume", steps=steps)
        else:
            told = self.say(
                "gives up on {steps} after {n} rounds and waits for a resume",
                steps=steps,
                n=retries + 1,
            )
        return self.because(told, cause) + self.aside(event.why)

    def _resumed(self, event: e.RunResumed) -> str:
        steps = self._steps(event.refired)
        if not steps:
            return self.say("resumed the run")
        return self.say("resumed the run; runs again: {steps}", steps=steps)

    def _listener(self, event: _Listener) -> Sentence:
        step, say = self.step(event.listener_id), self.say
        match event:
            case e.ListenerStarted(child_id=None) if event.listener_id in self._concluding:
                self._concluding.discard(event.listener_id)
                return self.itself, say("{step} takes up what its sub-run returned", step=step)
            case e.ListenerStarted():
                return self.itself, self._started(event, step)
            case e.ListenerSucceeded():
                return self.itself, say("{step} succeeded", step=step)
            case e.ListenerFailed():
                handled = say("; the plan has a branch for that") if event.handled else ""
                told = self.because(say("{step} failed", step=step), event.failure.message)
                return self.itself, told + handled
            case e.ListenerSkipped():
                return event.by, self.because(say("skipped {step}", step=step), event.reason)
            case e.WaitStarted():
                moment = utc_text(event.until)
                return self.itself, say("{step} waits until {moment}", step=step, moment=moment)
            case e.WaitEnded():
                return self.clock, say("{step} goes on: the moment has come", step=step)
            case e.FunctionCalled():
                function = visible(event.function)
                return self.itself, say("{step} calls {function}", step=step, function=function)
            case e.FunctionReturned():
                told = say("{step} has the result of call {n}", step=step, n=event.index)
                return self.itself, told
            case e.PlannerRetried():
                return self._planner, self._retried(event, step)
            case e.CheckConcluded():
                verdict = say(event.verdict.replace("_", " "))
                agent = event.listener_id.removeprefix(VERIFY)
                message = event.message.removeprefix(f"agent {agent}: ")
                told = say("{told}: {reason}", told=step, reason=verdict)
                return self.itself, self.because(told, message)
            case _:
                assert_never(event)

    def _retried(self, event: e.PlannerRetried, step: str) -> str:
        n, most = event.retry_count + 1, event.max_retries + 1
        told = self.say("tries {step} again, round {n} of {most}", step=step, n=n, most=most)
        if event.retry_at is not None:
            due = self.say.due(event.retry_at, self._now)
            told += self.say(", {due}", due=due)
        return told + self.aside(event.why)

    def _started(self, event: e.ListenerStarted, step: str) -> str:
        most = self._tries.get(event.listener_id, 0)
        told = self.say("{step} started", step=step) + self.nth_try(event.attempt, most)
        if event.child_id:
            told += self.say(" as {child}", child=visible(event.child_id))
        return told

    def _verdicts(self, verification: Mapping[str, str]) -> str:
        if not verification:
            return ""
        counts = {one: list(verification.values()).count(one) for one in verification.values()}
        words = (f"{n} {self.say(name.replace('_', ' '))}" for name, n in counts.items())
        return f" ({', '.join(words)})"
