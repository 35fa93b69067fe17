"""A plan's story: its events in plain words, each followed by the tasks that it moved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar, Final, TypeAlias, assert_never, cast

from holdfast.core.plan.compiled import INPUTS, VERIFY, CompiledPlan
from holdfast.core.repair.operations import operations_from_json, patched
from holdfast.drawing.graph import KINDS, TASKS
from holdfast.drawing.picture import Condition
from holdfast.i18n.message import Message, joined, msg, pmsg
from holdfast.language.moments import utc_text
from holdfast.model import events as e
from holdfast.model.plan import AgentAction, Plan, PlanAction, ToolAction
from holdfast.model.recorded import Event
from holdfast.runtime.hub import Recorded
from holdfast.views.stories import repairs
from holdfast.views.stories.calls import Asked
from holdfast.views.stories.lines import (
    CLOCK,
    Line,
    Sentence,
    Teller,
    as_child,
    in_brackets,
    said_so,
)
from holdfast.views.stories.text import visible

_REASONS = {
    "waiting_for_person": msg("for a person"),
    "waiting_for_moment": msg("for a moment"),
    "waiting_for_resume": msg("waits for a resume"),
    "planner_retry": msg("the planner tries again"),
    "resume_retry_listener": pmsg("reason", "resumed"),
    "retry_succeeded": msg("the retry succeeded"),
    "listener_failed": msg("a listener failed"),
    "start": "",
}
_EDITS = {
    "mark_done": msg("marked a task done by hand"),
    "edit_context": msg("edited a task's context"),
    "rerun": msg("closed what waited, to run it again"),
}

_VERDICTS = {
    "verified": msg("verified"),
    "unable_to_verify": msg("unable to verify"),
    "failed": msg("failed"),
}
_PLANNER: Final = msg("planner")

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


def _part(message: str, name: str, text: str) -> str:
    """A parameter of a message, which other languages can say; else the text, as it stands."""
    params = message.params if isinstance(message, Message) else {}
    return str(params.get(name) or text) if isinstance(params, Mapping) else text


def told_reason(reason: str) -> str:
    """Why a task moved, where there is more to say than that it did."""
    return _REASONS.get(reason, "")


class PlanStory(Teller):
    itself: ClassVar[str] = msg("plan")

    def __init__(self, plan: CompiledPlan, asked: Iterable[Asked] = ()) -> None:
        super().__init__(asked)
        self._concluding: set[str] = set()
        self._know(plan.plan, plan.digest)

    def _know(self, plan: Plan, digest: str) -> None:
        """What is told from here on is of this plan."""
        self._plan, self._digest = plan, digest
        self._tasks = {task.task_id: task.name for task in plan.tasks}
        self._actions = {one.listener_id: one.action for one in plan.listeners}
        self._tries = {one.listener_id: one.retry.attempts for one in plan.listeners}
        self._checks = [check.tool for check in plan.verify]

    def lines(self, recorded: Recorded) -> list[Line]:
        moves = getattr(recorded.event, "moves", ())
        moved = [Line(recorded.at, "", one) for one in self._moves(moves)]
        return super().lines(recorded) + moved

    def _moves(self, moves: Sequence[e.Move]) -> Iterator[str]:
        for move in moves:
            if not move.reason and not move.context:
                continue  # only tidies the task's context
            why = told_reason(move.reason)
            yield joined("", (self._moved(move), in_brackets(why) if why else ""))

    def _moved(self, move: e.Move) -> str:
        task, (condition, status) = self._task(move.task_id), TASKS[move.status]
        if condition is Condition.FAILED:
            return msg("{task} has failed", task=task)
        return msg("{task} is {status}", task=task, status=status)

    def _task(self, task_id: str) -> str:
        return visible(f"{task_id} {self._tasks.get(task_id, '')}".strip())

    def step(self, step_id: str) -> str:
        if step_id == INPUTS:
            return msg("the form for the plan's inputs")
        if step_id.startswith(VERIFY):
            return self._check(step_id.removeprefix(VERIFY))
        return joined("", (visible(step_id), in_brackets(visible(self._work(step_id)))))

    def _check(self, name: str) -> str:
        """The plan's own checks have numbers, those of its agents their ids."""
        number = int(name) if name.isdecimal() and name.isascii() else 0
        if 0 < number <= len(self._checks):
            tool = visible(self._checks[number - 1])
            return msg("check {number} ({tool})", number=number, tool=tool)
        return msg("the check of agent {agent}", agent=visible(name))

    def _work(self, listener_id: str) -> str:
        action = self._actions.get(listener_id)
        match action:
            case ToolAction(tool=tool):
                return tool
            case PlanAction(plan_id=plan_id):
                return msg("plan {name}", name=plan_id)
            case AgentAction(agent_id=agent_id):
                return msg("agent {name}", name=agent_id)
            case None:
                return msg("unknown")
            case _:
                return KINDS[action.kind]

    def _steps(self, step_ids: Sequence[str]) -> str:
        return joined(", ", map(self.step, step_ids))

    def sentence(self, event: Event) -> Sentence:
        # The journal of a plan's run holds a plan's events only.
        return self._sentence(cast(e.PlanEvent, event))

    def _sentence(self, event: e.PlanEvent) -> Sentence:
        match event:
            case e.RunStarted():
                told = msg("started {plan}", plan=visible(event.plan_id))
                return event.by or self.itself, self.because(told, event.prompt)
            case e.SecretsRenewed():
                return self.itself, msg("takes the secrets that were entered anew")
            case e.RunForked(fork=fork):
                told = msg("forked {run} at event {seq}", run=fork.origin, seq=fork.seq)
                return event.by or self.itself, told
            case e.RunResumed():
                return event.by, self._resumed(event)
            case e.RunCompleted():
                verdicts = _verdicts(event.verification)
                return self.itself, joined("", (msg("the run is done"), verdicts))
            case e.VerificationStarted():
                steps = self._steps(event.fired)
                return self.itself, msg("checks the outcome: {steps}", steps=steps)
            case e.PlannerGaveUp():
                return _PLANNER, self._gave_up(event)
            case e.TasksEdited():
                return event.by, _EDITS.get(event.reason) or visible(event.reason)
            case e.ListenersReset():
                steps = self._steps(event.fired)
                return event.by, msg("runs the plan again from {steps}", steps=steps)
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
            case (
                e.CaseOpened()
                | e.CaseDiagnosed()
                | e.DiagnosisRequested()
                | e.DiagnosisReceived()
                | e.PatchProposed()
                | e.PatchRefused()
                | e.RepairProven()
                | e.RepairDisproven()
                | e.CaseClosed()
            ):
                return repairs.told(event, self._steps)
            case e.PlanPatched():
                if event.base == self._digest:  # else it is told of a later plan
                    plan = patched(self._plan, operations_from_json(event.operations))
                    self._know(plan, event.digest)
                return repairs.told(event, self._steps)
            case e.ChildHeard(status="done"):
                self._concluding.add(event.step_id)
                return self.shared(event)
            case _:
                return self.shared(event)

    def _gave_up(self, event: e.PlannerGaveUp) -> str:
        """The engine's message counts retries; here the rounds are counted, as everywhere."""
        first = event.failed[0] if event.failed else ""
        known = bool(first) and event.message.startswith(f"{first} failed")
        if not known:
            told = self.because(msg("gives up and waits for a resume"), event.message)
            return joined("", (told, self.aside(event.why)))
        counted, _, cause = event.message.removeprefix(f"{first} failed").partition(": ")
        retries = next((int(one) for one in counted.split() if one.isdecimal()), 0)
        steps = self._steps(event.failed)
        if not retries:
            told = msg("gives up on {steps} and waits for a resume", steps=steps)
        else:
            told = msg(
                "gives up on {steps} after {n} rounds and waits for a resume",
                steps=steps,
                n=retries + 1,
            )
        reason = _part(event.message, "reason", cause)
        return joined("", (self.because(told, reason), self.aside(event.why)))

    def _resumed(self, event: e.RunResumed) -> str:
        steps = self._steps(event.refired)
        if not steps:
            return msg("resumed the run")
        return msg("resumed the run; runs again: {steps}", steps=steps)

    def _listener(self, event: _Listener) -> Sentence:
        step = self.step(event.listener_id)
        match event:
            case e.ListenerStarted():
                return self.itself, self._taken_up(event, step) or self._started(event, step)
            case e.ListenerSucceeded():
                return self.itself, self._succeeded(event, step)
            case e.ListenerFailed():
                handled = msg("; the plan has a branch for that") if event.handled else ""
                told = self.because(msg("{step} failed", step=step), event.failure.message)
                return self.itself, joined("", (told, handled))
            case e.ListenerSkipped():
                return event.by, self.because(msg("skipped {step}", step=step), event.reason)
            case e.WaitStarted():
                moment = utc_text(event.until)
                return self.itself, msg("{step} waits until {moment}", step=step, moment=moment)
            case e.WaitEnded():
                return CLOCK, msg("{step} goes on: the moment has come", step=step)
            case e.FunctionCalled():
                function = visible(event.function)
                return self.itself, msg("{step} calls {function}", step=step, function=function)
            case e.FunctionReturned():
                told = msg("{step} has the result of call {n}", step=step, n=event.index)
                return self.itself, told
            case e.PlannerRetried():
                return _PLANNER, self._retried(event, step)
            case e.CheckConcluded():
                agent = event.listener_id.removeprefix(VERIFY)
                message = event.message.removeprefix(f"agent {agent}: ")
                told = msg("{told}: {reason}", told=step, reason=_verdict(event.verdict))
                return self.itself, self.because(told, message)
            case _:
                assert_never(event)

    def _retried(self, event: e.PlannerRetried, step: str) -> str:
        n, most = event.retry_count + 1, event.max_retries + 1
        told = msg("tries {step} again, round {n} of {most}", step=step, n=n, most=most)
        at = event.retry_at
        due = "" if at is None else msg(", {due}", due=self.due(at))
        return joined("", (told, due, self.aside(event.why)))

    def _taken_up(self, event: e.ListenerStarted, step: str) -> str:
        """Of a result that is at hand, which calls nothing; empty for work that begins."""
        listener_id, by = event.listener_id, self.calls.confirmed_by(event.listener_id)
        if event.child_id is not None:
            return ""
        if listener_id in self._concluding:
            self._concluding.discard(listener_id)
            return msg("{step} takes up what its sub-run returned", step=step)
        if by:
            return msg("{step} takes up what {by} said of it", step=step, by=visible(by))
        if event.args is None and isinstance(self._actions.get(listener_id), ToolAction):
            return msg("{step} takes up the result that it has", step=step)
        return ""

    def _succeeded(self, event: e.ListenerSucceeded, step: str) -> str:
        by = self.calls.confirmed_by(event.listener_id)
        if by and isinstance(self._actions.get(event.listener_id), ToolAction):
            return said_so(step, by)
        if self.calls.takes_late(event.listener_id, event.result):
            return msg("{step} succeeded with the result of that earlier try", step=step)
        return msg("{step} succeeded", step=step)

    def _started(self, event: e.ListenerStarted, step: str) -> str:
        nth = self.nth_try(event.attempt, self._tries.get(event.listener_id, 0))
        return joined("", (msg("{step} started", step=step), nth, as_child(event.child_id)))


def _verdict(word: str) -> str:
    return _VERDICTS.get(word, word)


def _verdicts(verification: Mapping[str, str]) -> str:
    if not verification:
        return ""
    counts = Counter(verification.values())
    return in_brackets(
        joined(", ", (joined(" ", (f"{n}", _verdict(one))) for one, n in counts.items()))
    )
