"""The graph of a plan, with or without the state of a run.

Tasks are joined by the listeners between them: trigger task → listener → output task. The
main task is where a plan begins and what it works for, and an arrow all the way back would
bury everything between; so it is drawn twice, at the start and as the goal. What moves it
to an end points to the goal, and the checks of the outcome follow there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, assert_never

from immutables import Map

from holdfast.core.plan.compiled import INPUTS, VERIFY
from holdfast.core.plan.state import PlanState, TaskFacts, TaskState
from holdfast.core.run.state import RunState, StepState, retry_timer, wait_timer
from holdfast.core.run.tables import StepStatus
from holdfast.drawing.outline import outline
from holdfast.drawing.picture import GLYPHS, Condition, Edge, Node, Picture
from holdfast.drawing.svg import draw
from holdfast.i18n.message import joined, msg, nmsg, pmsg
from holdfast.language.templates import preview
from holdfast.model.plan import (
    AgentAction,
    CodeAction,
    HumanAction,
    Listener,
    Output,
    Plan,
    PlanAction,
    PlanInstanceStatus,
    TaskStatus,
    ToolAction,
    WaitAction,
)
from holdfast.model.run import RunStatus

TASKS: Final[Mapping[TaskStatus, tuple[Condition, str]]] = {
    TaskStatus.NOT_STARTED: (Condition.IDLE, msg("not started")),
    TaskStatus.RUNNING: (Condition.RUNNING, msg("running")),
    TaskStatus.DONE: (Condition.DONE, msg("done")),
    TaskStatus.ERROR: (Condition.FAILED, msg("failed")),
    TaskStatus.RETRYING: (Condition.RETRYING, msg("retrying")),
    TaskStatus.PENDING: (Condition.WAITING, msg("waiting")),
    TaskStatus.SKIPPED: (Condition.SKIPPED, msg("skipped")),
    TaskStatus.CANCELLED: (Condition.CANCELLED, msg("cancelled")),
}

STEPS: Final[Mapping[StepStatus, tuple[Condition, str]]] = {
    StepStatus.READY: (Condition.IDLE, msg("ready")),
    StepStatus.RUNNING: (Condition.RUNNING, msg("running")),
    StepStatus.BACKOFF: (Condition.RETRYING, msg("retrying")),
    StepStatus.WAITING: (Condition.WAITING, msg("waiting")),
    StepStatus.CONSULTING: (Condition.RETRYING, msg("planner decides")),
    StepStatus.FAILED: (Condition.FAILED, msg("failed")),
    StepStatus.DONE: (Condition.DONE, msg("done")),
    StepStatus.SKIPPED: (Condition.SKIPPED, msg("skipped")),
    StepStatus.STOPPED: (Condition.CANCELLED, msg("stopped")),
}

INSTANCES: Final[Mapping[PlanInstanceStatus, Condition]] = {
    PlanInstanceStatus.NOT_STARTED: Condition.IDLE,
    PlanInstanceStatus.RUNNING: Condition.RUNNING,
    PlanInstanceStatus.PAUSE: Condition.WAITING,
    PlanInstanceStatus.CONTINUE: Condition.RUNNING,
    PlanInstanceStatus.DONE: Condition.DONE,
    PlanInstanceStatus.ERROR: Condition.FAILED,
    PlanInstanceStatus.CANCELLING: Condition.CANCELLED,
    PlanInstanceStatus.CANCELLED: Condition.CANCELLED,
}

_RUNS: Final[Mapping[RunStatus, str]] = {
    RunStatus.NOT_STARTED: msg("not started"),
    RunStatus.RUNNING: msg("running"),
    RunStatus.PAUSE: msg("waiting"),
    RunStatus.CONTINUE: msg("continuing"),
    RunStatus.DONE: msg("done"),
    RunStatus.ERROR: msg("failed"),
    RunStatus.CANCELLING: pmsg("drawing", "cancelling"),
    RunStatus.CANCELLED: msg("cancelled"),
}

KINDS: Final[Mapping[str, str]] = {
    "tool": msg("tool"),
    "code": msg("code"),
    "human": msg("human"),
    "plan": msg("plan"),
    "agent": msg("agent"),
    "wait_until": pmsg("drawing", "wait_until"),
}
"""What a listener is by, in a word."""

_FOR_A_PERSON: Final = msg("waiting for a person")
_ENDS: Final = frozenset(
    {TaskStatus.DONE, TaskStatus.ERROR, TaskStatus.SKIPPED, TaskStatus.CANCELLED}
)


def render_svg(
    plan: Plan, state: PlanState | None = None, *, styled: bool = True, language: str = "en"
) -> str:
    """The plan as SVG; without its style sheet when `styled` is false."""
    return draw(picture_of(plan, state), styled=styled, language=language)


def render_text(plan: Plan, state: PlanState | None = None, *, width: int = 80) -> str:
    """The plan as lines of at most `width` columns, each task before what follows it."""
    return outline(picture_of(plan, state), width)


def run_words(status: RunStatus) -> str:
    return _RUNS[status]


def picture_of(plan: Plan, state: PlanState | None = None) -> Picture:
    sketch = _Sketch(plan, state)
    sketch.add_tasks()
    sketch.add_inputs()
    for listener in plan.listeners:
        sketch.add_listener(listener)
    sketch.add_goal()
    return Picture(_title(plan, state), _description(plan, state), *sketch.finished())


def _title(plan: Plan, state: PlanState | None) -> str:
    name = plan.name or plan.plan_id
    if state is None:
        return name
    return joined(" ", (name, GLYPHS[INSTANCES[state.status]], run_words(state.status)))


def _description(plan: Plan, state: PlanState | None) -> str:
    tasks, listeners = len(plan.tasks), len(plan.listeners)
    counted = (
        nmsg("{n} task", "{n} tasks", tasks),
        nmsg("{n} listener", "{n} listeners", listeners),
    )
    size = joined(", ", counted)
    if state is None:
        return size
    counts = Counter(task_standing(state, task.task_id)[1] for task in plan.tasks)
    told = (joined(" ", (f"{counts[text]}", text)) for _, text in TASKS.values() if counts[text])
    return msg("{size}; tasks: {told}", size=size, told=joined(", ", told))


@dataclass(slots=True)
class _Sketch:
    """A picture in the making; `places` says where each task stands among the nodes."""

    plan: Plan
    state: PlanState | None
    nodes: list[Node] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    places: dict[str, int] = field(default_factory=dict)
    endings: list[Edge] = field(default_factory=list)

    def finished(self) -> tuple[tuple[Node, ...], tuple[Edge, ...]]:
        return tuple(self.nodes), tuple(self.edges)

    def add_tasks(self) -> None:
        for task in self.plan.tasks:
            self.places.setdefault(task.task_id, len(self.nodes))
            condition, told = self._task_standing(task.task_id)
            label = f"{task.task_id} {task.name}".strip()
            self.nodes.append(
                Node(task.task_id, label, told, condition=condition, hint=task.prompt)
            )

    def add_inputs(self) -> None:
        if self.plan.inputs.fields and self.plan.main_task_id in self.places:
            place = self._place_listener(INPUTS, msg("form"), "human")
            self.edges.append(Edge(place, self.places[self.plan.main_task_id]))

    def add_listener(self, listener: Listener) -> None:
        what, kind = _work(listener, self.state)
        place = self._place_listener(listener.listener_id, what, kind, listener)
        for task_id in listener.trigger_task_id:
            if task_id in self.places:
                self.edges.append(Edge(self.places[task_id], place))
        for output, failure in ((listener.success_output, False), (listener.failure_output, True)):
            if output is not None and output.task_id in self.places:
                self._add_output(place, output, failure)

    def _add_output(self, place: int, output: Output, failure: bool) -> None:
        plain = output.status is TaskStatus.DONE and not failure
        label = "" if plain else output.status.value
        edge = Edge(place, self.places[output.task_id], label, failure)
        ends = output.task_id == self.plan.main_task_id and output.status in _ENDS
        (self.endings if ends else self.edges).append(edge)

    def add_goal(self) -> None:
        if not self.endings and not self.plan.verify:
            return
        goal = len(self.nodes)
        main = self.plan.main_task_id
        condition, told = self._task_standing(main)
        label = joined(" ", (main, msg("goal")))
        self.nodes.append(Node(main, label, told, "task goal", condition=condition))
        self.edges.extend(Edge(one.source, goal, one.label, one.failure) for one in self.endings)
        for number, check in enumerate(self.plan.verify, 1):
            place = self._place_listener(f"{VERIFY}{number}", check.tool, "tool")
            self.edges.append(Edge(goal, place))

    def _place_listener(
        self, listener_id: str, what: str, kind: str, listener: Listener | None = None
    ) -> int:
        condition, told = self._step_standing(listener_id, listener)
        note = joined(", ", filter(None, [KINDS[kind], told]))
        when = listener.trigger_condition if listener else ""
        hint = msg("when {condition}", condition=when) if listener else ""
        classes = f"listener {kind}"
        label = joined(" ", filter(None, [listener_id, what]))
        due = next_try(self.state, listener_id) if self.state else None
        self.nodes.append(Node(listener_id, label, note, classes, True, condition, hint, due))
        return len(self.nodes) - 1

    def _task_standing(self, task_id: str) -> tuple[Condition | None, str]:
        if self.state is None:
            return None, ""
        condition, told = task_standing(self.state, task_id)
        return condition, _round(self.state.task(task_id)) or told

    def _step_standing(
        self, listener_id: str, listener: Listener | None
    ) -> tuple[Condition | None, str]:
        if self.state is None:
            return None, ""
        step = self.state.steps.get(listener_id)
        if step is None:
            return self._before_its_turn(listener_id)
        condition, told = step_standing(self.state, step)
        return condition, _tries(step, listener, told) or told

    def _before_its_turn(self, listener_id: str) -> tuple[Condition, str]:
        assert self.state is not None
        begun = self.state.status is not PlanInstanceStatus.NOT_STARTED
        if listener_id == INPUTS and begun:
            return Condition.SKIPPED, msg("not needed")
        return Condition.IDLE, ""


def task_standing(state: PlanState, task_id: str) -> tuple[Condition, str]:
    """While all of a run waits, nothing is at work on a task that is under way."""
    status = state.task(task_id).status
    waits = status is TaskStatus.RUNNING and _at_rest(state)
    return TASKS[TaskStatus.PENDING if waits else status]


def _at_rest(state: PlanState) -> bool:
    """What is under way when a run fails comes to its end, unless a person is asked there."""
    working = state.in_flight > state.paused_children
    stopped = state.status is PlanInstanceStatus.ERROR and not working
    return stopped or state.status is PlanInstanceStatus.PAUSE


def step_standing(
    state: RunState,
    step: StepState,
    held_up: tuple[Condition, str] = (Condition.WAITING, msg("waiting for a resume")),
) -> tuple[Condition, str]:
    """How a step is; `held_up` if it would start, had the run not failed. A child run may wait."""
    if state.status is RunStatus.ERROR and step.status in (StepStatus.READY, StepStatus.BACKOFF):
        return held_up
    if step.status is StepStatus.RUNNING and step.child_status == RunStatus.PAUSE:
        return Condition.WAITING, _FOR_A_PERSON
    return STEPS[step.status]


def next_try(state: RunState, step_id: str) -> float | None:
    """When it goes on by itself: its next attempt, or the moment that it waits for."""
    stopped = state.status is RunStatus.ERROR
    waits = state.timers.get(wait_timer(step_id))
    return waits if stopped else state.timers.get(retry_timer(step_id), waits)


def _round(task: TaskState) -> str:
    """The planner's retries are rounds; a resume begins them anew, without a number."""
    counts = task.context.get("retry_count"), task.context.get("max_retries")
    newest = next(iter(task.trace), None)
    if task.status is not TaskStatus.RETRYING or newest is None or newest.reason != "planner_retry":
        return ""
    match counts:
        case int(count), int(most):
            return msg("retrying, round {n} of {most}", n=count + 1, most=most + 1)
        case _:
            return ""


def _tries(step: StepState, listener: Listener | None, told: str) -> str:
    if listener is None:
        return ""
    most = listener.retry.attempts
    match step.status:
        case StepStatus.BACKOFF if told == "retrying" and not step.attempt:
            return msg("retrying, round {n}", n=step.retries + 1)
        case StepStatus.BACKOFF if told == "retrying":
            return msg("retrying, try {n} of {most}", n=step.attempt + 1, most=most)
        case StepStatus.RUNNING if told == "running" and 1 < step.attempt <= most:
            return msg("running, try {n} of {most}", n=step.attempt, most=most)
        case StepStatus.WAITING if isinstance(listener.action, WaitAction):
            return msg("waiting for a moment")
        case StepStatus.WAITING:
            return _FOR_A_PERSON if step.question_id else msg("waiting for a run")
        case _:
            return ""


def _work(listener: Listener, state: PlanState | None) -> tuple[str, str]:
    """What a listener does, in a word or two, and the kind of it."""
    match listener.action:
        case ToolAction(tool=tool):
            return tool, "tool"
        case CodeAction():
            return "", "code"
        case HumanAction(asking=asking):
            return _asked(asking.title, state) or msg("ask a person"), "human"
        case PlanAction(plan_id=plan_id):
            return plan_id, "plan"
        case AgentAction(agent_id=agent_id):
            return agent_id, "agent"
        case WaitAction(after=after) if after.isdecimal():
            return msg("{n} s", n=after), "wait_until"
        case WaitAction(until=until, after=after, clock=clock):
            return _asked(until or after or clock, state), "wait_until"
        case _:
            assert_never(listener.action)


def _asked(title: str, state: PlanState | None) -> str:
    """A question as it is put; what it names and is not known yet is left open."""
    return preview(title, TaskFacts(Map() if state is None else state.tasks))
