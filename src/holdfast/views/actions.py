"""What a person may do with a run or with one of its steps, as the run is now.

Each action is a command to the core and a request to the API. It is offered only where the core
would accept the command (`dry_run`), which also says what it would change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from holdfast.core.agent.state import ReactState
from holdfast.core.conversation.state import ConversationState
from holdfast.core.plan.state import PlanState
from holdfast.core.run.state import RunState
from holdfast.errors import NotAllowed, NotFound
from holdfast.i18n.message import msg, term
from holdfast.model import commands as c
from holdfast.model.conversation import AfterFailure
from holdfast.model.plan import TaskStatus
from holdfast.model.run import RunStatus, StepStatus
from holdfast.views.dry_run import Consequences, consequences, dry_run
from holdfast.views.reader import RunVersion
from holdfast.views.stories.storyteller import storyteller

GO_ON: Final = {f"go-on-{one}": one for one in AfterFailure}
RUN: Final = ("resume", *GO_ON, "pause", "cancel")
STEP: Final = ("rerun", "skip")
TASK: Final = ("mark-done", "context")

_STUCK: Final = frozenset(
    {StepStatus.FAILED, StepStatus.WAITING, StepStatus.BACKOFF, StepStatus.CONSULTING}
)
_COLLECTIONS: Final[Mapping[type, str]] = {
    PlanState: "instances",
    ReactState: "chats",
    ConversationState: "conversations",
}


@dataclass(frozen=True, slots=True)
class Action:
    """`of` is the step or task that it is about; `body` what the request says besides the form.

    `context` is what the editor of a task's context begins with.
    """

    name: str
    of: str
    path: str
    body: Mapping[str, Any]
    command: c.Command
    context: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CheckedAction:
    """An action that the core would accept; `about` names the step or task.

    `status` is what the run's would be afterwards.
    """

    action: Action
    about: str
    consequences: Consequences
    status: RunStatus


ActionOf = tuple[str, str]
"""The name of an action, and the step or task that it is about."""


def run_actions(run: RunVersion) -> tuple[str, ...]:
    """What may be done with the whole run."""
    return tuple(name for name in RUN if _is_possible(run, name, ""))


def step_actions(run: RunVersion, step_id: str) -> tuple[ActionOf, ...]:
    """What may be done about a step that does not go on by itself."""
    state = run.state
    if not isinstance(state, PlanState) or not _is_stuck(state, step_id):
        return ()
    wanted = [(name, step_id) for name in STEP]
    compiled = state.plan.listeners[step_id]
    if compiled.target is not None and compiled.target != state.plan.main:
        wanted.append(("mark-done", compiled.target))
    wanted += [("context", one) for one in compiled.listener.trigger_task_id[:1]]
    return tuple(one for one in wanted if _is_possible(run, *one))


def node_actions(run: RunVersion, node_id: str) -> tuple[ActionOf, ...]:
    """What may be done about a box of the graph, be it a task or a step."""
    state = run.state
    if not isinstance(state, PlanState):
        return ()
    if node_id in state.plan.task_ids:
        over = state.task(node_id).status in (TaskStatus.DONE, TaskStatus.SKIPPED)
        wanted = [(name, node_id) for name in TASK if name != "mark-done" or not over]
        return tuple(one for one in wanted if _is_possible(run, *one))
    stuck = step_actions(run, node_id)
    if stuck or node_id not in state.steps:
        return stuck
    again = ("rerun", node_id)
    return (again,) if _is_possible(run, *again) else ()


def check_action(run: RunVersion, name: str, of: str, by: str) -> CheckedAction:
    """The action and what it would change; NotAllowed where the core would refuse it."""
    state = run.state
    action = _action(state, name, of, by)
    outcome = dry_run(state, action.command, run.now)
    if outcome is None:
        raise NotAllowed(
            msg("{command} is not possible: {id} has moved on", command=term(name), id=state.run_id)
        )
    about = storyteller(state).step(of) if name in STEP else of
    return CheckedAction(action, about, consequences(state, outcome), outcome.status)


def _is_possible(run: RunVersion, name: str, of: str) -> bool:
    try:
        action = _action(run.state, name, of, "")
    except (NotAllowed, NotFound):
        return False
    return dry_run(run.state, action.command, run.now) is not None


def _is_stuck(state: PlanState, step_id: str) -> bool:
    step = state.steps.get(step_id)
    return step is not None and step.status in _STUCK


def _action(state: RunState, name: str, of: str, by: str) -> Action:
    path = f"/{_COLLECTIONS[type(state)]}/{state.run_id}/{name}"
    if name in GO_ON:
        return _after_failure(state, name, path.replace(name, "resume"), by)
    if name in RUN:
        return Action(name, of, path, {}, _run_command(state, name, by))
    if not isinstance(state, PlanState):
        raise NotFound(msg("{id} has no {of}", id=state.run_id, of=of))
    if name in STEP:
        return Action(name, of, path, {"listener_id": of}, _step_command(state, name, of, by))
    return _task_action(state, name, of, by, path)


def _after_failure(state: RunState, name: str, path: str, by: str) -> Action:
    if not isinstance(state, ConversationState):
        raise NotAllowed(msg("only conversations go on like that"))
    chosen = GO_ON[name]
    return Action(name, "", path, {"failed": chosen.value}, c.GoOn(chosen, by))


def _run_command(state: RunState, name: str, by: str) -> c.Command:
    if name == "cancel":
        if state.status is RunStatus.CANCELLING:
            raise NotAllowed(msg("{id} is being cancelled", id=state.run_id))
        return c.Cancel(by)
    if not isinstance(state, ConversationState):
        if name == "pause":
            raise NotAllowed(msg("only conversations can be paused"))
        return c.Resume(by)
    if name == "resume":
        return c.Unhold()
    return c.Hold(when_possible=True)


def _step_command(state: PlanState, name: str, step_id: str, by: str) -> c.Command:
    if step_id not in state.plan.listeners:
        raise NotFound(msg("{id} has no step {step}", id=state.plan_id, step=step_id))
    return c.Skip(step_id, by) if name == "skip" else c.RerunFrom(step_id, by)


def _task_action(state: PlanState, name: str, task_id: str, by: str, path: str) -> Action:
    if task_id not in state.plan.task_ids:
        raise NotFound(msg("{id} has no task {task}", id=state.plan_id, task=task_id))
    body = {"task_id": task_id}
    if name == "context":
        known = dict(state.task(task_id).context)
        return Action(name, task_id, path, body, c.EditContext(task_id, {}, by), known)
    expected = dict.fromkeys(_outputs(state, task_id), "")
    return Action(name, task_id, path, body, c.MarkDone(task_id, by), expected)


def _outputs(state: PlanState, task_id: str) -> Iterator[str]:
    """What the listeners that set a task add to its context."""
    for listener in state.plan.plan.listeners:
        output = listener.success_output
        if output is not None and output.task_id == task_id:
            yield from output.context
