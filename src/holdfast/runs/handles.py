"""Runs as their users hold them: plan instances, sessions and conversations.

A handle stays current: the engine tells it of every commit. A task is seen as it was when it was
asked for. What is handed out is a copy: changing it changes no run.
"""

from __future__ import annotations

import weakref
from abc import ABC, abstractmethod
from collections.abc import Mapping
from copy import deepcopy
from functools import cached_property
from typing import Any, Generic, TypeVar

from holdfast.core.agent.state import ReactState, result
from holdfast.core.conversation.state import ConversationState
from holdfast.core.plan.decide import decide
from holdfast.core.plan.state import PlanState
from holdfast.core.run.state import RunState, waits_for
from holdfast.errors import CallerError
from holdfast.forms.schemas import dump_form
from holdfast.i18n.message import msg
from holdfast.language.instants import iso
from holdfast.language.strict import copied
from holdfast.model import commands as c
from holdfast.model.approval import Grant, Rules
from holdfast.model.conversation import EngineState
from holdfast.model.events import RunResumed
from holdfast.model.interaction import Waiting
from holdfast.model.message import Message, Usage
from holdfast.model.plan import PlanInstanceStatus, TaskStatus
from holdfast.model.run import RunStatus
from holdfast.model.values import Json
from holdfast.runtime.engine import Engine
from holdfast.runtime.hub import Latest
from holdfast.runtime.machines import PLAN, as_conversation, as_plan, as_session

S = TypeVar("S", bound=RunState)

AT_REST = frozenset({RunStatus.DONE, RunStatus.ERROR, RunStatus.CANCELLED})
SETTLED = AT_REST | {RunStatus.PAUSE}


class LiveRun(ABC, Generic[S]):
    def __init__(self, engine: Engine, state: RunState) -> None:
        self._engine = engine
        self._latest = Latest(self._of_our_kind(state))
        weakref.finalize(self, engine.hub.keep_current(self._latest))

    @staticmethod
    @abstractmethod
    def _of_our_kind(state: RunState) -> S:
        """The state of the machine that this is about, or NotFound."""

    @property
    def _state(self) -> S:
        return self._latest.state  # type: ignore[return-value]  # a run stays of its kind

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id}: {self._about}, {self.status}>"

    @property
    @abstractmethod
    def _about(self) -> str:
        """What it is a run of."""

    @property
    def id(self) -> str:
        return self._state.run_id

    @property
    def version(self) -> int:
        return self._state.version

    @property
    def status(self) -> str:
        return self._state.status.value

    async def wait_for_completion(self, timeout: float | None = None) -> str:
        """The status once it is done, error or cancelled; at the time-out, whatever it is."""
        return await self._wait(AT_REST, timeout)

    async def wait_until_settled(self, timeout: float | None = None) -> str:
        """As `wait_for_completion`, and also when it waits for a person."""
        return await self._wait(SETTLED, timeout)

    async def _wait(self, statuses: frozenset[RunStatus], timeout: float | None) -> str:
        run_id, latest = self._latest.state.run_id, self._latest
        latest.state = await self._engine.wait_for_status(run_id, statuses, timeout)
        return latest.state.status.value


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


class AgentSession(LiveRun[ReactState]):
    _of_our_kind = staticmethod(as_session)

    @property
    def _about(self) -> str:
        return self._state.agent.agent_id

    @property
    def agent_id(self) -> str:
        return self._state.agent.agent_id

    @property
    def turn(self) -> int:
        return self._state.turn

    @property
    def answer(self) -> str:
        """The last turn's final answer."""
        return self._state.answer

    @property
    def error(self) -> str:
        return self._state.error

    @property
    def result(self) -> dict[str, Json]:
        """The last turn as the caller that handed over the work sees it."""
        return {name: copied(value) for name, value in result(self._state).items()}

    @property
    def usage(self) -> Usage:
        return self._state.usage

    @property
    def model_requests(self) -> int:
        return self._state.requests

    @property
    def messages(self) -> list[Message]:
        return deepcopy(list(self._state.messages))[::-1]

    @property
    def rules(self) -> Rules:
        """The rules of approval that it was opened with."""
        return self._state.approval

    @property
    def approvals(self) -> list[Grant]:
        """Approvals that are remembered."""
        return list(self._state.grants.values())


class ConversationRun(LiveRun[ConversationState]):
    """A conversation from outside; its consumer alone moves it on."""

    _of_our_kind = staticmethod(as_conversation)

    @property
    def _about(self) -> str:
        return self._state.phase.value

    @property
    def state(self) -> EngineState:
        return self._state.phase

    @property
    def progress(self) -> float:
        return self._state.progress

    @property
    def error(self) -> str:
        return self._state.error


def opened(engine: Engine, state: RunState) -> PlanInstance | AgentSession | ConversationRun:
    """A run as its users see it, whichever kind it is."""
    if isinstance(state, ReactState):
        return AgentSession(engine, state)
    if isinstance(state, ConversationState):
        return ConversationRun(engine, state)
    return PlanInstance(engine, state)


def instance_context(state: PlanState) -> dict[str, Any]:
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
    step = state.steps.get(listener_id)  # none where a change of the plan as a whole is proposed
    child = {} if step is None or step.child_id is None else {"paused_child_id": step.child_id}
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


def changed_tasks(before: PlanState, after: PlanState) -> list[TaskInstance]:
    """The tasks whose status has changed between two states of one run."""
    return [
        TaskInstance(after, task.task_id)
        for task in after.plan.plan.tasks
        if _status(before, task.task_id) is not _status(after, task.task_id)
    ]


def _status(state: PlanState, task_id: str) -> TaskStatus:
    return state.task(task_id).status
