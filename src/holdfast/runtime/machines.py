"""The machines, as the engine sees them: one port, a plan's and a session's.

The engine moves commands, events and effects; what they mean is the machine's. Everything
here is a thin word for something in the core.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Protocol, TypeAlias

from holdfast.core.conversation import decide as conversation
from holdfast.core.conversation import follow_up as conversation_effects
from holdfast.core.conversation.state import ConversationDefinition, ConversationState
from holdfast.core.language.strict import digest
from holdfast.core.plan import decide as plan
from holdfast.core.plan import follow_up as plan_effects
from holdfast.core.plan.compiled import CompiledPlan
from holdfast.core.plan.planner import error_info
from holdfast.core.plan.state import PlanState
from holdfast.core.react import decide as react
from holdfast.core.react import follow_up as react_effects
from holdfast.core.react import outcome
from holdfast.core.react.state import THINK, AgentDefinition, ReactState
from holdfast.core.run.decision import Decision
from holdfast.core.run.moves import asks
from holdfast.core.run.state import RunState
from holdfast.core.source.agentjson import agent_from_json, agent_to_json
from holdfast.core.source.planjson import plan_from_json, plan_to_json
from holdfast.errors import NotFound
from holdfast.model.adapters import adapter
from holdfast.model.commands import Command, Moment
from holdfast.model.conversation import ConversationSettings, EngineState
from holdfast.model.effects import Effect
from holdfast.model.form import FieldType
from holdfast.model.plan import ToolAction, WhilePaused
from holdfast.model.recorded import Event
from holdfast.model.run import RunStatus
from holdfast.model.values import Json

Definition: TypeAlias = CompiledPlan | AgentDefinition | ConversationDefinition


_HOLD = WhilePaused.HOLD
_STARTING = (RunStatus.RUNNING, RunStatus.PAUSE, RunStatus.CONTINUE)


class Machine(Protocol):
    kind: str

    own_steps: tuple[str, ...]
    """Steps that follow from what becomes of the others, and that no event names."""

    pulled: bool
    """It moves when its consumer pulls, and has nobody to do its work where there is none."""

    def blank(self, run_id: str, definition: Any) -> RunState: ...

    def replay(self, state: Any, records: Iterable[tuple[float, Any]]) -> RunState: ...

    def decide(self, state: Any, command: Command, moment: Moment) -> Decision[Any, Any]: ...

    def effects_in_flight(self, state: Any) -> Sequence[Effect]: ...

    def goes_on_by_itself(self, state: Any) -> bool: ...

    def may_start(self, state: Any) -> bool:
        """Nobody may take a permit who cannot use it: others wait for it."""

    def priority(self, state: Any, step_id: str) -> int:
        """Smaller is more urgent."""

    def tool_of(self, state: Any, step_id: str) -> str | None:
        """The tool that starting this step would call."""

    def describe(self, state: Any) -> Description: ...

    def error(self, state: Any) -> str: ...

    def result(self, state: Any) -> Json:
        """What a run that is done tells its parent."""


class Description:
    """What lists say of a run."""

    __slots__ = ("definition", "name", "summary", "title")

    def __init__(self, name: str, definition: str, title: str, summary: Mapping[str, Json]) -> None:
        self.name = name
        self.definition = definition
        self.title = title
        self.summary = json.dumps(summary, ensure_ascii=False)


_FACTS = 2
_LONGEST_FACT = 40
_LONGEST_TITLE = 80


def _title(text: str) -> str:
    return text[:_LONGEST_TITLE].partition("\n")[0]


def _first_line(value: Json) -> str:
    return str(value)[:_LONGEST_FACT].partition("\n")[0]


def facts_of(state: PlanState) -> str:
    """The first inputs, which tell the runs of one plan apart; what is secret is not told."""
    known = state.main_task.context
    told = (
        f"{field.label or field.name}: {_first_line(value)}"
        for field in state.plan.plan.inputs.fields
        if field.type is not FieldType.SECRET
        and isinstance(value := known.get(field.name), str | int | float)
        and not isinstance(value, bool)
    )
    return ", ".join(islice(told, _FACTS))


class PlanMachine:
    kind = "plan"
    pulled = False
    own_steps: tuple[str, ...] = ()
    blank = staticmethod(plan.blank)
    replay = staticmethod(plan.replay)
    decide = staticmethod(plan.decide)
    effects_in_flight = staticmethod(plan_effects.effects_in_flight)
    goes_on_by_itself = staticmethod(plan_effects.goes_on_by_itself)

    def may_start(self, state: PlanState) -> bool:
        held = state.plan.plan.while_paused is _HOLD and asks(state)
        return state.status in _STARTING and not held

    def priority(self, state: PlanState, step_id: str) -> int:
        return state.plan.listeners[step_id].listener.priority

    def tool_of(self, state: PlanState, step_id: str) -> str | None:
        action = state.plan.listeners[step_id].action
        if not isinstance(action, ToolAction) or state.steps[step_id].carried is not None:
            return None
        return action.tool

    def describe(self, state: PlanState) -> Description:
        summary = {
            "prompt": _title(state.prompt),
            "facts": facts_of(state),
            "done": state.done_tasks,
            "tasks": len(state.plan.plan.tasks),
            "waiting": len(state.open_questions) + state.paused_children,
            "failed": list(state.failed),
            "retries": state.retried,
        }
        return Description(state.plan_id, state.plan.digest, state.plan.plan.name, summary)

    def error(self, state: PlanState) -> str:
        return str(error_info(state.main_task).get("message", ""))

    def result(self, state: PlanState) -> dict[str, Json]:
        return dict(state.main_task.context)


class ReactMachine:
    kind = "react"
    pulled = False
    own_steps: tuple[str, ...] = (THINK,)
    blank = staticmethod(react.blank)
    replay = staticmethod(react.replay)
    decide = staticmethod(react.decide)
    effects_in_flight = staticmethod(react_effects.effects_in_flight)
    goes_on_by_itself = staticmethod(react_effects.goes_on_by_itself)
    result = staticmethod(outcome.result)

    def may_start(self, state: ReactState) -> bool:
        return state.status in _STARTING

    def priority(self, state: ReactState, step_id: str) -> int:
        return 0

    def tool_of(self, state: ReactState, step_id: str) -> str | None:
        if step_id == THINK or state.steps[step_id].carried is not None:
            return None
        tool = state.calls[step_id].tool
        return tool if tool in state.tools else None

    def describe(self, state: ReactState) -> Description:
        summary = {
            "prompt": _title(state.text),
            "turn": state.turn,
            "waiting": len(state.open_questions) + state.paused_children,
            "failed": list(state.failed),
            "retries": state.retried,
            "tokens": state.usage.input_tokens + state.usage.output_tokens,
        }
        title = state.agent.name or state.agent.agent_id
        return Description(state.agent.agent_id, state.definition.digest, title, summary)

    def error(self, state: ReactState) -> str:
        return state.error


class ConversationMachine:
    kind = "conversation"
    pulled = True
    own_steps: tuple[str, ...] = ()
    blank = staticmethod(conversation.blank)
    replay = staticmethod(conversation.replay)
    decide = staticmethod(conversation.decide)
    effects_in_flight = staticmethod(conversation_effects.effects_in_flight)
    goes_on_by_itself = staticmethod(conversation_effects.goes_on_by_itself)

    def may_start(self, state: ConversationState) -> bool:
        return state.phase is EngineState.EXECUTING and state.status in _STARTING

    def priority(self, state: ConversationState, step_id: str) -> int:
        return state.tasks[step_id].priority if step_id in state.tasks else 0

    def tool_of(self, state: ConversationState, step_id: str) -> str | None:
        task = state.tasks.get(step_id)
        if task is None or task.route != "tool" or state.steps[step_id].carried is not None:
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
        title = _title(state.text) or "Conversation"
        return Description("conversation", state.definition.digest, title, summary)

    def error(self, state: ConversationState) -> str:
        return state.error

    def result(self, state: ConversationState) -> Json:
        return {task.id: task.result for task in state.tasks.values()}


PLAN = PlanMachine()
REACT = ReactMachine()
CONVERSATION = ConversationMachine()

_BY_STATE: Mapping[type, Machine] = {
    PlanState: PLAN,
    ReactState: REACT,
    ConversationState: CONVERSATION,
}
_BY_DEFINITION: Mapping[type, Machine] = {
    CompiledPlan: PLAN,
    AgentDefinition: REACT,
    ConversationDefinition: CONVERSATION,
}


def machine_of(state: RunState) -> Machine:
    return _BY_STATE[type(state)]


def blank(run_id: str, definition: Definition) -> RunState:
    """The state of a run of which nothing has been recorded yet."""
    return _BY_DEFINITION[type(definition)].blank(run_id, definition)


def definition_of(state: RunState) -> Definition:
    """What the run is pinned to."""
    if isinstance(state, PlanState):
        return state.plan
    assert isinstance(state, ReactState | ConversationState)
    return state.definition


def as_plan(state: RunState) -> PlanState:
    if not isinstance(state, PlanState):
        raise NotFound(f"{state.run_id} is not an instance of a plan")
    return state


def as_session(state: RunState) -> ReactState:
    if not isinstance(state, ReactState):
        raise NotFound(f"{state.run_id} is not a session with an agent")
    return state


def as_conversation(state: RunState) -> ConversationState:
    if not isinstance(state, ConversationState):
        raise NotFound(f"{state.run_id} is not a conversation")
    return state


def replay(state: RunState, records: Iterable[tuple[float, Event]]) -> RunState:
    return machine_of(state).replay(state, records)


def kind_and_body(definition: Definition) -> tuple[str, str, dict[str, Json]]:
    """A definition's kind, name and content, as it is stored."""
    match definition:
        case CompiledPlan(plan=one):
            return PLAN.kind, one.plan_id, plan_to_json(one)
        case AgentDefinition(agent=agent):
            return REACT.kind, agent.agent_id, agent_to_json(agent)
        case ConversationDefinition(settings=settings):
            return (
                CONVERSATION.kind,
                "conversation",
                adapter(ConversationSettings).dump_python(settings, mode="json"),
            )


def definition_from(kind: str, body: Mapping[str, Json], name: str) -> Definition:
    """A stored definition; its digest is its name."""
    if kind == PLAN.kind:
        return CompiledPlan(plan_from_json(body), name)
    if kind == REACT.kind:
        return AgentDefinition(agent_from_json(body), name)
    return ConversationDefinition(adapter(ConversationSettings).validate_python(body), name)


def pinned_settings(settings: ConversationSettings) -> ConversationDefinition:
    return ConversationDefinition(
        settings, digest(adapter(ConversationSettings).dump_python(settings, mode="json"))
    )
