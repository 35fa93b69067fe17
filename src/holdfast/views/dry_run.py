"""What a command would do: the core decides it, and nothing is committed.

`decide` is pure, so the code that will judge the command also says whether it would be accepted
and what it would change.
"""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.core.conversation.state import ConversationState
from holdfast.core.conversation.turn_reducers import ENDED
from holdfast.core.plan.state import PlanState
from holdfast.core.run.state import RunState
from holdfast.drawing.graph import TASKS
from holdfast.errors import CallerError
from holdfast.i18n.message import joined
from holdfast.model import commands as c
from holdfast.model.plan import TaskStatus
from holdfast.model.run import RunStatus, StepStatus
from holdfast.runtime.machines import machine_of
from holdfast.views.stories.storyteller import storyteller


@dataclass(frozen=True, slots=True)
class Consequences:
    """A `DryRun` in words: steps by their names, questions by their titles."""

    again: tuple[str, ...]
    begins: tuple[str, ...]
    children: tuple[str, ...]
    passed: tuple[str, ...]
    tasks: tuple[str, ...]
    withdrawn: tuple[str, ...]
    stays: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DryRun:
    """The steps that would run again, and those that would begin; sub-runs that would go on.

    `stays` are steps that are done and would not run again, `passed` steps that would be skipped or
    stopped; `tasks` would change their status, `withdrawn` are questions that would be closed.
    """

    again: tuple[str, ...]
    begins: tuple[str, ...]
    children: tuple[str, ...]
    stays: tuple[str, ...]
    passed: tuple[str, ...]
    tasks: tuple[tuple[str, TaskStatus], ...]
    withdrawn: tuple[str, ...]
    status: RunStatus


def dry_run(state: RunState, command: c.Command, now: float) -> DryRun | None:
    """None where the command would be refused, or would change nothing."""
    try:
        decision = machine_of(state).decide(state, command, c.Moment(now))
    except CallerError:
        return None
    if not decision.events:
        return None
    after = decision.state
    if isinstance(state, ConversationState) and isinstance(after, ConversationState):
        return _of_tasks(state, after)
    return _difference(state, after)


def consequences(state: RunState, outcome: DryRun) -> Consequences:
    step = storyteller(state).step
    return Consequences(
        again=tuple(map(step, outcome.again)),
        begins=tuple(map(step, outcome.begins)),
        children=tuple(map(step, outcome.children)),
        passed=tuple(map(step, outcome.passed)),
        tasks=tuple(_becomes(state, *each) for each in outcome.tasks),
        withdrawn=tuple(state.questions[one].request.title for one in outcome.withdrawn),
        stays=tuple(map(step, outcome.stays)),
    )


def _becomes(state: RunState, task_id: str, status: TaskStatus) -> str:
    return joined(" → ", (_named(state, task_id), TASKS[status][1]))


def _named(state: RunState, task_id: str) -> str:
    assert isinstance(state, PlanState)
    names = (one.name for one in state.plan.plan.tasks if one.task_id == task_id)
    return f"{task_id} {next(names, '')}".strip()


def _difference(before: RunState, after: RunState) -> DryRun:
    ready = [one for one in sorted(after.steps) if _is_ready(before, after, one)]
    return DryRun(
        again=tuple(one for one in ready if one in before.steps),
        begins=tuple(one for one in ready if one not in before.steps),
        children=tuple(one for one in sorted(after.steps) if after.steps[one].resuming),
        stays=tuple(one for one in sorted(before.steps) if _stays(before, after, one)),
        passed=tuple(one for one in sorted(after.steps) if _is_passed(before, after, one)),
        tasks=_moved(before, after),
        withdrawn=tuple(sorted(set(before.open_questions) - set(after.open_questions))),
        status=after.status,
    )


def _of_tasks(before: ConversationState, after: ConversationState) -> DryRun:
    """Of a conversation people know the tasks, not the steps."""
    tasks = [(one, before.tasks[one], after.tasks[one]) for one in before.order]
    again = [one for one, was, now in tasks if (was.status, now.status) == ("failed", "pending")]
    return DryRun(
        again=tuple(again),
        begins=(),
        children=(),
        stays=tuple(one for one, was, now in tasks if was.status in ENDED and not now.skipped),
        passed=tuple(one for one, was, now in tasks if now.skipped and not was.skipped),
        tasks=(),
        withdrawn=tuple(sorted(set(before.open_questions) - set(after.open_questions))),
        status=after.status,
    )


def _is_ready(before: RunState, after: RunState, step_id: str) -> bool:
    was, is_now = before.steps.get(step_id), after.steps[step_id]
    fresh = was is None or (was.status, was.firing) != (is_now.status, is_now.firing)
    return is_now.status is StepStatus.READY and fresh


def _stays(before: RunState, after: RunState, step_id: str) -> bool:
    was, is_now = before.steps[step_id], after.steps[step_id]
    return was.status is is_now.status is StepStatus.DONE and not is_now.forgotten


def _is_passed(before: RunState, after: RunState, step_id: str) -> bool:
    was, is_now = before.steps.get(step_id), after.steps[step_id]
    ended = is_now.status in (StepStatus.SKIPPED, StepStatus.STOPPED)
    return ended and (was is None or was.status is not is_now.status)


def _moved(before: RunState, after: RunState) -> tuple[tuple[str, TaskStatus], ...]:
    if not isinstance(before, PlanState) or not isinstance(after, PlanState):
        return ()
    ids = [task.task_id for task in before.plan.plan.tasks]
    return tuple(
        (one, after.task(one).status)
        for one in ids
        if before.task(one).status is not after.task(one).status
    )
