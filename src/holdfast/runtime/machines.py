"""The three machines behind one port: plan, session and conversation.

The engine moves commands, events and effects; what they mean is the machine's. Each method passes
on to the core. `run_row` is what lists say of a run, `kind_and_body` how a definition is stored.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Final, TypeAlias

from holdfast.core.agent import decide as react
from holdfast.core.agent.state import THINK, AgentDefinition, ReactState
from holdfast.core.agent.state import result as session_result
from holdfast.core.conversation import decide as conversation
from holdfast.core.conversation.state import ConversationDefinition, ConversationState
from holdfast.core.decider import Decision
from holdfast.core.plan import decide as plan
from holdfast.core.plan.compiled import CompiledPlan
from holdfast.core.plan.planner import error_info
from holdfast.core.plan.state import PlanState
from holdfast.core.run.builder import DecisionBuilder
from holdfast.core.run.state import RunState, StepState, asks, next_moment
from holdfast.core.storing import record_from_json, record_to_json
from holdfast.errors import NotFound
from holdfast.i18n.message import msg
from holdfast.language.strict import digest
from holdfast.model.agent import Agent
from holdfast.model.commands import Command, Moment
from holdfast.model.conversation import ConversationSettings, EngineState
from holdfast.model.effects import Effect
from holdfast.model.form import FieldType
from holdfast.model.plan import Plan
from holdfast.model.record import adapter, constructor
from holdfast.model.recorded import Event
from holdfast.model.rows import RunRow
from holdfast.model.run import RunStatus
from holdfast.model.values import Json

_row: Final = constructor(RunRow)
to_json = json.JSONEncoder(ensure_ascii=False).encode

Definition: TypeAlias = CompiledPlan | AgentDefinition | ConversationDefinition

_STARTING = (RunStatus.RUNNING, RunStatus.PAUSE, RunStatus.CONTINUE)

Description: TypeAlias = tuple[str, str, str, Mapping[str, Json]]
"""What lists say of a run: the name and the digest of its definition, a title and a summary."""


class Machine(ABC):
    """`state` is always one of this machine."""

    kind: str
    pulled = False
    """It moves when its consumer pulls; without a consumer its work is not done."""

    blank: Callable[[str, Any], RunState]
    replay: Callable[[Any, Iterable[tuple[float, Any]]], RunState]
    decide: Callable[[Any, Command, Moment], Decision[Any, Any]]
    builder: Callable[[Any, Moment], DecisionBuilder[Any, Any]]
    carry_out: Callable[[Any, Command], Sequence[Effect]]
    """As `decide`, with a builder that may have decided other commands before."""
    effects_in_flight: Callable[[Any], Sequence[Effect]]
    goes_on_by_itself: Callable[[Any], bool]

    def may_start(self, state: Any) -> bool:
        """A run that could not use a permit takes none: others wait for it."""
        return state.status in _STARTING

    def priority(self, state: Any, step_id: str) -> int:
        """Smaller is more urgent."""
        return 0

    @abstractmethod
    def tool_of(self, state: Any, step_id: str, step: StepState) -> str | None:
        """The tool that starting this step would call."""

    @abstractmethod
    def describe(self, state: Any) -> Description: ...

    def error(self, state: Any) -> str:
        return str(state.error)

    @abstractmethod
    def result(self, state: Any) -> Json:
        """What a run that is done tells its parent."""


_FACTS = 2
_LONGEST_FACT = 40
_LONGEST_TITLE = 80


def _first_line(text: str, most: int = _LONGEST_TITLE) -> str:
    return text[:most].partition("\n")[0]


def facts_of(state: PlanState) -> str:
    """The first inputs, which tell the runs of one plan apart; what is secret is not told."""
    fields = state.plan.plan.inputs.fields
    if not fields:
        return ""
    known = state.main_task.context
    told = (
        f"{field.label or field.name}: {_first_line(str(value), _LONGEST_FACT)}"
        for field in fields
        if field.type is not FieldType.SECRET
        and isinstance(value := known.get(field.name), str | int | float)
        and not isinstance(value, bool)
    )
    return ", ".join(islice(told, _FACTS))


class PlanMachine(Machine):
    kind = "plan"
    blank = staticmethod(plan.blank)
    replay = staticmethod(plan.replay)
    decide = staticmethod(plan.decide)
    builder = plan.PlanDecider
    carry_out = staticmethod(plan.PlanDecider.carry_out)
    effects_in_flight = staticmethod(plan.effects_in_flight)
    goes_on_by_itself = staticmethod(plan.goes_on_by_itself)

    def may_start(self, state: PlanState) -> bool:
        return state.status in _STARTING and not (state.plan.holds and asks(state))

    def priority(self, state: PlanState, step_id: str) -> int:
        return state.plan.listeners[step_id].listener.priority

    def tool_of(self, state: PlanState, step_id: str, step: StepState) -> str | None:
        return state.plan.listeners[step_id].tool if step.carried is None else None

    def describe(self, state: PlanState) -> Description:
        summary = {
            "prompt": _first_line(state.prompt),
            "facts": facts_of(state),
            "done": state.done_tasks,
            "tasks": len(state.plan.plan.tasks),
            "waiting": len(state.open_questions) + state.paused_children,
            "failed": list(state.failed),
            "retries": state.retried,
        }
        if state.timers and (moment := next_moment(state)) is not None:
            summary["waits_until"] = moment
        if state.repair.cases:
            summary["cases"] = len(state.repair.cases)
        pinned = state.origin or state.plan
        return state.plan_id, pinned.digest, state.plan.plan.name, summary

    def error(self, state: PlanState) -> str:
        return str(error_info(state.main_task).get("message", ""))

    def result(self, state: PlanState) -> dict[str, Json]:
        return dict(state.main_task.context)


class ReactMachine(Machine):
    kind = "react"
    blank = staticmethod(react.blank)
    replay = staticmethod(react.replay)
    decide = staticmethod(react.decide)
    builder = react.SessionDecider
    carry_out = staticmethod(react.SessionDecider.carry_out)
    effects_in_flight = staticmethod(react.effects_in_flight)
    goes_on_by_itself = staticmethod(react.goes_on_by_itself)
    result = staticmethod(session_result)

    def tool_of(self, state: ReactState, step_id: str, step: StepState) -> str | None:
        if step_id == THINK or step.carried is not None:
            return None
        tool = state.calls[step_id].tool
        return tool if tool in state.tools else None

    def describe(self, state: ReactState) -> Description:
        summary = {
            "prompt": _first_line(state.text),
            "turn": state.turn,
            "waiting": len(state.open_questions) + state.paused_children,
            "failed": list(state.failed),
            "retries": state.retried,
            "tokens": state.usage.input_tokens + state.usage.output_tokens,
        }
        title = state.agent.name or state.agent.agent_id
        return state.agent.agent_id, state.definition.digest, title, summary


class ConversationMachine(Machine):
    kind = "conversation"
    pulled = True
    blank = staticmethod(conversation.blank)
    replay = staticmethod(conversation.replay)
    decide = staticmethod(conversation.decide)
    builder = conversation.ConversationDecider
    carry_out = staticmethod(conversation.ConversationDecider.carry_out)
    effects_in_flight = staticmethod(conversation.effects_in_flight)
    goes_on_by_itself = staticmethod(conversation.ConversationDecider.goes_on_by_itself)

    def may_start(self, state: ConversationState) -> bool:
        return state.phase is EngineState.EXECUTING and state.status in _STARTING

    def priority(self, state: ConversationState, step_id: str) -> int:
        return state.tasks[step_id].priority if step_id in state.tasks else 0

    def tool_of(self, state: ConversationState, step_id: str, step: StepState) -> str | None:
        task = state.tasks.get(step_id)
        if task is None or task.route != "tool" or step.carried is not None:
            return None
        return task.type

    def describe(self, state: ConversationState) -> Description:
        summary = {
            "done": state.completed,
            "skipped": state.skipped,
            "tasks": state.total,
            "waiting": len(state.open_questions) + state.paused_children,
            "failed": list(state.failed),
            "retries": state.retried,
            "phase": state.phase.value,
            "stopped": state.stopped,
            "turn": state.turn,
        }
        title = _first_line(state.text) or "Conversation"
        return "conversation", state.definition.digest, title, summary

    def result(self, state: ConversationState) -> Json:
        return {task.id: task.result for task in state.tasks.values()}


PLAN = PlanMachine()
REACT = ReactMachine()
CONVERSATION = ConversationMachine()

_MACHINES: Mapping[type[RunState] | type[Definition], Machine] = {
    PlanState: PLAN,
    CompiledPlan: PLAN,
    ReactState: REACT,
    AgentDefinition: REACT,
    ConversationState: CONVERSATION,
    ConversationDefinition: CONVERSATION,
}


def machine_of(state: RunState) -> Machine:
    return _MACHINES[type(state)]


def run_row(state: RunState) -> RunRow:
    """What lists say of the run."""
    machine = _MACHINES[type(state)]
    name, definition, title, summary = machine.describe(state)
    return _row(
        run_id=state.run_id,
        kind=machine.kind,
        name=name,
        definition=definition,
        status=state.status.value,
        active=machine.goes_on_by_itself(state),
        wake_at=min(state.timers.values(), default=None),
        root_id=state.root_id,
        parent_id=state.parent.run_id if state.parent else None,
        created_at=state.created_at,
        updated_at=state.updated_at,
        title=title,
        summary=to_json(summary),
    )


def blank(run_id: str, definition: Definition) -> RunState:
    """The state of a run of which nothing has been recorded yet."""
    return _MACHINES[type(definition)].blank(run_id, definition)


def definition_of(state: RunState) -> Definition:
    """What the run is pinned to: of a plan that was patched the one of its birth."""
    if isinstance(state, PlanState):
        return state.origin or state.plan
    assert isinstance(state, ReactState | ConversationState)
    return state.definition


def as_plan(state: RunState) -> PlanState:
    if isinstance(state, PlanState):
        return state
    raise NotFound(msg("{id} is not an instance of a plan", id=state.run_id))


def as_session(state: RunState) -> ReactState:
    if isinstance(state, ReactState):
        return state
    raise NotFound(msg("{id} is not a session with an agent", id=state.run_id))


def as_conversation(state: RunState) -> ConversationState:
    if isinstance(state, ConversationState):
        return state
    raise NotFound(msg("{id} is not a conversation", id=state.run_id))


def replay(state: RunState, records: Iterable[tuple[float, Event]]) -> RunState:
    return machine_of(state).replay(state, records)


def kind_and_body(definition: Definition) -> tuple[str, str, dict[str, Json]]:
    """A definition's kind, name and content, as it is stored."""
    match definition:
        case CompiledPlan(plan=one):
            return PLAN.kind, one.plan_id, record_to_json(one)
        case AgentDefinition(agent=agent):
            return REACT.kind, agent.agent_id, record_to_json(agent)
        case ConversationDefinition(settings=settings):
            return CONVERSATION.kind, "conversation", _dumped(settings)


def definition_from(kind: str, body: Mapping[str, Json], name: str) -> Definition:
    """A stored definition; its digest is its name."""
    if kind == PLAN.kind:
        return CompiledPlan(record_from_json(Plan, body), name)
    if kind == REACT.kind:
        return AgentDefinition(record_from_json(Agent, body), name)
    return ConversationDefinition(adapter(ConversationSettings).validate_python(body), name)


def pinned_settings(settings: ConversationSettings) -> ConversationDefinition:
    return ConversationDefinition(settings, digest(_dumped(settings)))


def _dumped(settings: ConversationSettings) -> dict[str, Json]:
    dumped: dict[str, Json] = adapter(ConversationSettings).dump_python(settings, mode="json")
    return dumped
