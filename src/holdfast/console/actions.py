"""What a person may do with a run or with one of its steps: only what would be welcome now.

Each deed is a command to the core and a request to the API; the dialog that asks for it says what
will come of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from holdfast.console.dry_run import Foreseen, foresee
from holdfast.core.agent.state import ReactState
from holdfast.core.conversation.state import ConversationState
from holdfast.core.plan.state import PlanState
from holdfast.core.run.state import RunState
from holdfast.core.run.tables import StepStatus
from holdfast.errors import NotAllowed, NotFound
from holdfast.model import commands as c
from holdfast.model.conversation import AfterFailure
from holdfast.model.plan import TaskStatus
from holdfast.model.run import RunStatus

GO_ON: Final = {f"go-on-{one}": one for one in AfterFailure}
RUN: Final = ("resume", *GO_ON, "pause", "cancel")
STEP: Final = ("rerun", "skip")
TASK: Final = ("mark-done", "context")
DEEDS: Final = (*RUN, *STEP, *TASK)

_STUCK: Final = frozenset(
    {StepStatus.FAILED, StepStatus.WAITING, StepStatus.BACKOFF, StepStatus.CONSULTING}
)
_HOMES: Final[Mapping[type, str]] = {
    PlanState: "instances",
    ReactState: "chats",
    ConversationState: "conversations",
}


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """`of` is the step or task that it is about; `body` what the request says besides the form."""

    name: str
    of: str
    path: str
    body: Mapping[str, Any]
    command: c.Command
    context: Mapping[str, Any] = field(default_factory=dict)
    """What the editor of a context begins with."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A deed that would be welcome, and what would come of it."""

    deed: AuditRecord
    foreseen: Foreseen


def run_deeds(state: RunState, now: float) -> tuple[str, ...]:
    """What may be done with the whole run as it is."""
    return tuple(name for name in RUN if _welcome(state, name, "", now))


def step_deeds(state: RunState, step_id: str, now: float) -> tuple[tuple[str, str], ...]:
    """What may be done about a step that does not go on by itself: names, and what they are of."""
    if not isinstance(state, PlanState) or not _is_stuck(state, step_id):
        return ()
    wanted = [(name, step_id) for name in STEP]
    compiled = state.plan.listeners[step_id]
    if compiled.target is not None and compiled.target != state.plan.main:
        wanted.append(("mark-done", compiled.target))
    wanted += [("context", one) for one in compiled.listener.trigger_task_id[:1]]
    return tuple(one for one in wanted if _welcome(state, *one, now))


def task_deeds(state: RunState, task_id: str, now: float) -> tuple[tuple[str, str], ...]:
    if not isinstance(state, PlanState):
        return ()
    over = state.task(task_id).status in (TaskStatus.DONE, TaskStatus.SKIPPED)
    wanted = [(name, task_id) for name in TASK if name != "mark-done" or not over]
    return tuple(one for one in wanted if _welcome(state, *one, now))


def again_deeds(state: RunState, step_id: str, now: float) -> tuple[tuple[str, str], ...]:
    """A step that has run, with whatever end, may run again."""
    stuck = step_deeds(state, step_id, now)
    if stuck or not isinstance(state, PlanState) or step_id not in state.steps:
        return stuck
    again = ("rerun", step_id)
    return (again,) if _welcome(state, *again, now) else ()


def asked(state: RunState, name: str, of: str, by: str, now: float) -> Asked:
    """The deed and its consequences; NotAllowed where it is not welcome any more."""
    deed = _deed(state, name, of, by)
    foreseen = foresee(state, deed.command, now)
    if foreseen is None:
        raise NotAllowed(f"{name} is not possible: {state.run_id} has moved on")
    return Asked(deed, foreseen)


def _welcome(state: RunState, name: str, of: str, now: float) -> bool:
    try:
        asked(state, name, of, "", now)
    except (NotAllowed, NotFound):
        return False
    return True


def _is_stuck(state: PlanState, step_id: str) -> bool:
    step = state.steps.get(step_id)
    return step is not None and step.status in _STUCK


def _deed(state: RunState, name: str, of: str, by: str) -> AuditRecord:
    path = f"/{_HOMES[type(state)]}/{state.run_id}/{name}"
    if name in GO_ON:
        return _of_failure(state, name, path.replace(name, "resume"), by)
    if name in RUN:
        return AuditRecord(name, of, path, {}, _of_run(state, name, by))
    if not isinstance(state, PlanState):
        raise NotFound(f"{state.run_id} has no {of}")
    if name in STEP:
        return AuditRecord(name, of, path, {"listener_id": of}, _of_step(state, name, of, by))
    return _of_task(state, name, of, by, path)


def _of_failure(state: RunState, name: str, path: str, by: str) -> AuditRecord:
    if not isinstance(state, ConversationState):
        raise NotAllowed("only conversations go on like that")
    chosen = GO_ON[name]
    return AuditRecord(name, "", path, {"failed": chosen.value}, c.GoOn(chosen, by))


def _of_run(state: RunState, name: str, by: str) -> c.Command:
    if name == "cancel":
        if state.status is RunStatus.CANCELLING:
            raise NotAllowed(f"{state.run_id} is being cancelled")
        return c.Cancel(by)
    if not isinstance(state, ConversationState):
        if name == "pause":
            raise NotAllowed("only conversations can be paused")
        return c.Resume(by)
    if name == "resume":
        return c.Unhold()
    return c.Hold(when_possible=True)


def _of_step(state: PlanState, name: str, step_id: str, by: str) -> c.Command:
    if step_id not in state.plan.listeners:
        raise NotFound(f"{state.plan_id} has no step {step_id}")
    return c.Skip(step_id, by) if name == "skip" else c.RerunFrom(step_id, by)


def _of_task(state: PlanState, name: str, task_id: str, by: str, path: str) -> AuditRecord:
    if task_id not in state.plan.task_ids:
        raise NotFound(f"{state.plan_id} has no task {task_id}")
    body = {"task_id": task_id}
    if name == "context":
        known = dict(state.task(task_id).context)
        command: c.Command = c.EditContext(task_id, {}, by)
        return AuditRecord(name, task_id, path, body, command, known)
    brought = dict.fromkeys(_outputs(state, task_id), "")
    return AuditRecord(name, task_id, path, body, c.MarkDone(task_id, by), brought)


def _outputs(state: PlanState, task_id: str) -> Iterator[str]:
    """What the listeners that would have done a task bring to its context."""
    for listener in state.plan.plan.listeners:
        output = listener.success_output
        if output is not None and output.task_id == task_id:
            yield from output.context
