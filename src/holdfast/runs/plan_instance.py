"""A plan instance and its tasks, as the seeds' code sees them.

`PlanInstance` stays current; a task is seen as it was when it was asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from holdfast.core.plan.decide import decide
from holdfast.core.plan.state import PlanState
from holdfast.core.run.state import waits_for
from holdfast.errors import CallerError
from holdfast.forms.shapes import dump_form
from holdfast.i18n.message import msg
from holdfast.language.instants import iso
from holdfast.language.strict import copied
from holdfast.model import commands as c
from holdfast.model.events import RunResumed
from holdfast.model.interaction import Waiting
from holdfast.model.plan import PlanInstanceStatus, TaskStatus
from holdfast.runs.live import LiveRun
from holdfast.runtime.machines import PLAN, as_plan


class TaskInstance:
    """One task of an instance, as it was when it was asked for."""

    def __init__(self, state: PlanState, task_id: str) -> None:
        self._task = state.task(task_id)
        self.task_id = task_id
        self.id = f"{state.run_id}_{task_id}"
        self.plan_instance_id = state.run_id
        self.status: str = self._task.status.value

    @cached_property
    def context(self) -> dict[str, Any]:
        """The reader's own: changing it changes no run."""
        return {name: copied(value) for name, value in self._task.context.items()}

    @cached_property
    def trace(self) -> list[dict[str, str]]:
        """The statuses that it has had, the first one first."""
        return [
            {"status": one.status.value, "reason": one.reason, "at": iso(one.at)}
            for one in reversed(list(self._task.trace))
        ]


class PlanInstance(LiveRun[PlanState]):
    _of_our_kind = staticmethod(as_plan)

    @property
    def _about(self) -> str:
        return self._state.plan_id

    @property
    def plan_id(self) -> str:
        return self._state.plan_id

    @property
    def result(self) -> dict[str, Any] | None:
        """What it has come to, once it is done: the main task's context."""
        done = self._state.status is PlanInstanceStatus.DONE
        return copied(PLAN.result(self._state)) if done else None

    @property
    def error(self) -> str | None:
        """Why it stands in error or who cancelled it; None while nothing is wrong."""
        match self._state.status:
            case PlanInstanceStatus.ERROR:
                return PLAN.error(self._state)
            case PlanInstanceStatus.CANCELLED:
                return msg("cancelled by {by}", by=self._state.cancelled_by)
            case _:
                return None

    @property
    def prompt(self) -> str:
        return self._state.prompt

    @property
    def context(self) -> dict[str, Any]:
        """The values and metadata, and while a question is open what it asks for."""
        return instance_context(self._state)

    @property
    def verification(self) -> Mapping[str, str]:
        return dict(self._state.verification)

    def get_main_task_instance(self) -> TaskInstance:
        return TaskInstance(self._state, self._state.plan.main)

    def get_task_instance(self, task_id: str) -> TaskInstance:
        return TaskInstance(self._state, task_id)

    @property
    def tasks(self) -> dict[str, TaskInstance]:
        ids = (task.task_id for task in self._state.plan.plan.tasks)
        return {one: TaskInstance(self._state, one) for one in ids}

    def start(self) -> None:
        """Harmless: an instance drives itself from the moment it exists."""


def instance_context(state: PlanState) -> dict[str, Any]:
    """The reader's own: changing it changes no run."""
    context: dict[str, Any] = {
        "values": dict(state.main_task.context),
        "metadata": {
            "plan_id": state.plan_id,
            "plan_instance_id": state.run_id,
            "prompt": state.prompt,
            "started_by": state.started_by,
            "created_at": iso(state.created_at),
        },
    }
    if waiting := waits_for(state):
        context |= _pause(state, *waiting)
    elif state.paused_children:
        context |= _paused_child(state)
    if state.continued_at is not None:
        context["provided_params"] = dict(state.provided_params)
        context["continue_timestamp"] = iso(state.continued_at)
    return {name: copied(value) for name, value in context.items()}


_REASONS = {
    "missing": "missing_params",
    "human": "waiting_for_person",
    "asked": "waiting_for_person",
}


def _pause(state: PlanState, listener_id: str, asked: Waiting) -> dict[str, Any]:
    """What is asked for, by the listener itself or by the child run that does its work."""
    child_id = state.steps[listener_id].child_id
    child = {} if child_id is None else {"paused_child_id": child_id}
    return {
        "paused_listener_id": f"{state.run_id}_{listener_id}",
        **child,
        "required_params": dump_form(asked.form),
        "pause_reason": _REASONS.get(asked.purpose, asked.purpose),
        "pause_timestamp": iso(asked.opened_at),
    }


def _paused_child(state: PlanState) -> dict[str, Any]:
    """A child run waits for a person, and an earlier version did not say for what."""
    paused = (
        (listener_id, step.child_id)
        for listener_id, step in sorted(state.steps.items())
        if step.child_status == PlanInstanceStatus.PAUSE
    )
    listener_id, child_id = next(paused)
    return {
        "paused_listener_id": f"{state.run_id}_{listener_id}",
        "paused_child_id": child_id,
        "pause_reason": "child_paused",
    }


def resumed_listeners(state: PlanState, now: float) -> list[str]:
    """What a resume would run again, children's own work included; nothing when it is refused."""
    try:
        decision = decide(state, c.Resume(""), c.Moment(now, b""))
    except CallerError:
        return []
    resumed = (event for event in decision.events if isinstance(event, RunResumed))
    return [one for event in resumed for one in (*event.refired, *event.children)]


def task_statuses(state: PlanState) -> dict[str, str]:
    return {task.task_id: state.task(task.task_id).status.value for task in state.plan.plan.tasks}


def changed_tasks(before: PlanState, after: PlanState) -> list[TaskInstance]:
    """The tasks whose status has changed between two states of one run."""
    return [
        TaskInstance(after, task.task_id)
        for task in after.plan.plan.tasks
        if _status(before, task.task_id) is not _status(after, task.task_id)
    ]


def _status(state: PlanState, task_id: str) -> TaskStatus:
    return state.task(task_id).status
