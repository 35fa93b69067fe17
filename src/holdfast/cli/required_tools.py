"""Needs: what a run will call, and whether this process has it.

A run is pinned to its plan or agent, but its tools are those of the process that drives
it. Answering a question where they are not known would only fail the run, so it is
refused beforehand.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator

from holdfast.app import Holdfast
from holdfast.core.agent.state import ReactState
from holdfast.core.conversation import recovery
from holdfast.core.conversation.state import ConversationState
from holdfast.core.plan.state import PlanState
from holdfast.core.run.state import RunState
from holdfast.core.run.tables import StepStatus
from holdfast.errors import NotAllowed
from holdfast.model.agent import Agent
from holdfast.model.conversation import AfterFailure
from holdfast.model.plan import Action, AgentAction, CodeAction, Plan, PlanAction, ToolAction
from holdfast.model.run import RunStatus

_OVER = frozenset({StepStatus.DONE, StepStatus.SKIPPED, StepStatus.STOPPED})
_ENDED = frozenset({"completed", "skipped", "finished"})


async def refuse_without_tools(app: Holdfast, run_id: str, *, anyway: bool) -> None:
    """NotAllowed, with all their names, when the run needs tools that are not known here."""
    if anyway:
        return
    state = await app.engine.state(run_id)
    needed = dict.fromkeys([one async for one in _needed(app, state)])
    missing = [one for one in needed if one not in app.tools]
    if missing:
        some = f"tool{'s' if len(missing) > 1 else ''} {', '.join(missing)}"
        raise NotAllowed(
            f"{run_id} needs the {some}, not known here: go on from where they are declared "
            "(tools.yaml, --tools, --app), or say --anyway"
        )


def how_to_go_on(
    state: RunState, failed: str | None, options: str = "", *, elsewhere: bool = False
) -> AfterFailure | None:
    """What was chosen for a conversation that failed: nobody chooses it in a person's place.

    One that is paused on a server goes on without a choice.
    """
    conversation = isinstance(state, ConversationState)
    if failed is None and not conversation:
        return None
    if not isinstance(state, ConversationState) or state.status is not RunStatus.ERROR:
        if isinstance(state, ConversationState) and elsewhere and state.held and failed is None:
            return None
        go_on = (
            f": `holdfast converse --id {state.run_id}{options}` goes on with it"
            if conversation and not elsewhere
            else ""
        )
        raise NotAllowed(f"{state.run_id} is no conversation that has failed{go_on}")
    allowed = recovery.choices(state)
    if failed is None or AfterFailure(failed) not in allowed:
        ways = ", ".join(f"--failed {one}" for one in allowed)
        raise NotAllowed(f"{state.run_id} has failed; say how to go on: {ways}")
    return AfterFailure(failed)


async def _needed(app: Holdfast, state: RunState) -> AsyncIterator[str]:
    """The tools of the run, and of the runs below it that are under way."""
    for tool in _own(app, state):
        yield tool
    for step in state.steps.values():
        if step.child_id is not None and step.status not in _OVER:
            async for tool in _needed(app, await app.engine.state(step.child_id)):
                yield tool


def _own(app: Holdfast, state: RunState) -> Iterator[str]:
    match state:
        case PlanState():
            return _tools_of_plan_run(app, state)
        case ReactState():
            return _of_session(app, state)
        case ConversationState():
            return _of_conversation(app, state)
        case _:
            raise NotAllowed(f"{state.run_id} is of a kind that is not known here")


def _tools_of_plan_run(app: Holdfast, state: PlanState) -> Iterator[str]:
    """Of what has not been done yet."""
    plan = state.plan.plan
    for listener in plan.listeners:
        step = state.steps.get(listener.listener_id)
        if step is None or (step.status not in _OVER and step.child_id is None):
            yield from _of_action(app, listener.action, frozenset({plan.plan_id}))
    yield from (check.tool for check in plan.verify)


def _of_session(app: Holdfast, state: ReactState) -> Iterator[str]:
    yield from state.tools
    yield from _of_agents(app, state.helpers.values(), frozenset())


def _of_conversation(app: Holdfast, state: ConversationState) -> Iterator[str]:
    """Of the tasks that have not been done yet."""
    for step_id, task in state.tasks.items():
        step = state.steps.get(step_id)
        if task.status in _ENDED or (step is not None and step.child_id is not None):
            continue
        match task.route:
            case "tool":
                yield task.type
            case "agent":
                yield from _of_agents(app, [task.type], frozenset())
            case "plan":
                yield from _of_action(app, PlanAction(task.type), frozenset())


def _of_plan(app: Holdfast, plan: Plan, seen: frozenset[str]) -> Iterator[str]:
    for listener in plan.listeners:
        yield from _of_action(app, listener.action, seen | {plan.plan_id})
    yield from (check.tool for check in plan.verify)


def _of_action(app: Holdfast, action: Action, seen: frozenset[str]) -> Iterator[str]:
    library = app.engine.definitions
    match action:
        case ToolAction(tool=tool):
            yield tool
        case CodeAction(functions=functions):
            yield from functions
        case AgentAction(agent_id=agent_id):
            yield from _of_agents(app, [agent_id], frozenset())
        case PlanAction(plan_id=plan_id) if plan_id in library.plan_ids() and plan_id not in seen:
            yield from _of_plan(app, library.current(plan_id).plan, seen)
        case _:
            return


def _of_agents(app: Holdfast, agent_ids: Iterable[str], seen: frozenset[str]) -> Iterator[str]:
    library = app.engine.definitions
    for agent_id in agent_ids:
        if agent_id in library.agent_ids() and agent_id not in seen:
            agent: Agent = library.agent(agent_id).agent
            yield from agent.tools
            yield from _of_agents(app, agent.agents, seen | {agent_id})
