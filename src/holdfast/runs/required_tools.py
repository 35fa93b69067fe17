"""Which tools a run will still call.

A run is pinned to its plan or agent, but its tools are those of the process that drives it.
Answering a question where they are not known would only fail the run.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Container, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from holdfast.core.agent.state import ReactState
from holdfast.core.conversation.state import ConversationState
from holdfast.core.plan.state import PlanState
from holdfast.core.run.state import RunState
from holdfast.errors import NotAllowed
from holdfast.model.plan import (
    VERSION,
    Action,
    AgentAction,
    CodeAction,
    Plan,
    PlanAction,
    ToolAction,
)
from holdfast.model.run import StepStatus
from holdfast.runtime.engine import Engine
from holdfast.runtime.registry import DefinitionRegistry

_ENDED_STEPS = frozenset({StepStatus.DONE, StepStatus.SKIPPED, StepStatus.STOPPED})
_ENDED_TASKS = frozenset({"completed", "skipped", "finished"})
_KINDS = frozenset({"tool", "agent", "plan"})


class Need(NamedTuple):
    """`kind` is tool, agent or plan."""

    kind: str
    name: str


async def missing_tools(engine: Engine, tools: Container[str], run_id: str) -> list[str]:
    """What the run and those below it that are under way will call, and `tools` has not."""
    needed = [one async for one in _of_tree(engine, await engine.state(run_id))]
    return [one for one in dict.fromkeys(needed) if one not in tools]


def own_tools(state: RunState) -> Iterator[str]:
    """What the run itself will call; runs below it are driven by themselves."""
    return (name for kind, name in own_needs(state) if kind == "tool")


def own_needs(state: RunState) -> Iterator[Need]:
    """Whatever the run itself will still ask its process for."""
    match state:
        case PlanState():
            for action in _left_of(state):
                yield from _needed(action)
            yield from (Need("tool", check.tool) for check in state.plan.plan.verify)
        case ReactState():
            yield from (Need("tool", one) for one in state.tools)
            yield from (Need("agent", one) for one in state.helpers.values())
        case ConversationState():
            left = (task for task in state.tasks.values() if task.status not in _ENDED_TASKS)
            yield from (Need(task.route, task.type) for task in left if task.route in _KINDS)


def _needed(action: Action) -> Iterator[Need]:
    match action:
        case ToolAction(tool=tool):
            yield Need("tool", tool)
        case CodeAction(functions=functions):
            yield from (Need("tool", one) for one in functions)
        case AgentAction(agent_id=agent_id):
            yield Need("agent", agent_id)
        case PlanAction(plan_id=plan_id, values=values) if VERSION not in values:
            yield Need("plan", plan_id)
        case _:
            return


def _left_of(state: PlanState) -> Iterator[Action]:
    """What listeners have not done yet."""
    for listener in state.plan.plan.listeners:
        step = state.steps.get(listener.listener_id)
        if step is None or (step.status not in _ENDED_STEPS and step.child_id is None):
            yield listener.action


async def _of_tree(engine: Engine, state: RunState) -> AsyncIterator[str]:
    for tool in _Needs(engine.definitions).of_run(state):
        yield tool
    for step in state.steps.values():
        if step.child_id is not None and step.status not in _ENDED_STEPS:
            if not await engine.journal.version(step.child_id):
                continue  # it could not be started
            async for tool in _of_tree(engine, await engine.state(step.child_id)):
                yield tool


@dataclass(frozen=True, slots=True)
class _Needs:
    definitions: DefinitionRegistry

    def of_run(self, state: RunState) -> Iterator[str]:
        match state:
            case PlanState():
                return self._of_instance(state)
            case ReactState():
                return self._of_session(state)
            case ConversationState():
                return self._of_conversation(state)
            case _:
                raise NotAllowed(f"{state.run_id} is of a kind that is not known here")

    def _of_instance(self, state: PlanState) -> Iterator[str]:
        """Of what has not been done yet."""
        plan = state.plan.plan
        for action in _left_of(state):
            yield from self._of_action(action, frozenset({plan.plan_id}))
        yield from (check.tool for check in plan.verify)

    def _of_session(self, state: ReactState) -> Iterator[str]:
        yield from state.tools
        yield from self._of_agents(state.helpers.values(), frozenset())

    def _of_conversation(self, state: ConversationState) -> Iterator[str]:
        """Of the tasks that have not been done yet."""
        for step_id, task in state.tasks.items():
            step = state.steps.get(step_id)
            if task.status in _ENDED_TASKS or (step is not None and step.child_id is not None):
                continue
            match task.route:
                case "tool":
                    yield task.type
                case "agent":
                    yield from self._of_agents([task.type], frozenset())
                case "plan":
                    yield from self._of_action(PlanAction(task.type), frozenset())

    def _of_plan(self, plan: Plan, seen: frozenset[str]) -> Iterator[str]:
        for listener in plan.listeners:
            yield from self._of_action(listener.action, seen | {plan.plan_id})
        yield from (check.tool for check in plan.verify)

    def _of_action(self, action: Action, seen: frozenset[str]) -> Iterator[str]:
        known = self.definitions
        match action:
            case ToolAction(tool=tool):
                yield tool
            case CodeAction(functions=functions):
                yield from functions
            case AgentAction(agent_id=agent_id):
                yield from self._of_agents([agent_id], frozenset())
            case PlanAction(plan_id=plan_id) if plan_id not in seen and plan_id in known.plan_ids():
                yield from self._of_plan(known.current(plan_id).plan, seen)
            case _:
                return

    def _of_agents(self, agent_ids: Iterable[str], seen: frozenset[str]) -> Iterator[str]:
        known = self.definitions
        for agent_id in agent_ids:
            if agent_id in known.agent_ids() and agent_id not in seen:
                agent = known.agent(agent_id).agent
                yield from agent.tools
                yield from self._of_agents(agent.agents, seen | {agent_id})
