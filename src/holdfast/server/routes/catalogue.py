"""The catalogue: the agents and tools that are known here, without anything secret of theirs."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path
from pydantic import BaseModel, Field

from holdfast.agents.approval import rule_to_json
from holdfast.errors import NotFound
from holdfast.forms.schemas import dump_form
from holdfast.i18n.message import msg, term
from holdfast.runtime.registry import AgentDefinition
from holdfast.server.auth.authentication import Called, Caller
from holdfast.server.auth.principal import Permission, agent, sees_all
from holdfast.server.routing import new_router
from holdfast.server.services import Served, Services
from holdfast.server.showing import taken
from holdfast.work.tools import ToolSpec

router = new_router("catalogue")

AgentId = Annotated[str, Path(min_length=1, max_length=200, examples=["clerk"])]
ToolName = Annotated[str, Path(min_length=1, max_length=200, examples=["apply_computer"])]


class AgentShown(BaseModel):
    """`approval` are the agent's own rules, which go before those of its tools."""

    agent_id: str
    name: str
    description: str
    model: str | None
    tools: list[str]
    agents: list[str]
    verification_tools: list[str]
    approval: dict[str, Any]
    asks_people: bool
    role: str | None
    max_iterations: int
    digest: str


class AgentsShown(BaseModel):
    agents: list[AgentShown]


class ToolShown(BaseModel):
    """A tool that is not `idempotent` is never repeated without asking after a crash."""

    name: str
    description: str
    parameters: dict[str, Any]
    approval: dict[str, Any]
    idempotent: bool
    read_only: bool
    timeout: float | None
    version: str
    fields: dict[str, Any] = Field(description="How people are asked for its arguments.")


class ToolsShown(BaseModel):
    tools: list[ToolShown]


@router.get("/agents", response_model=AgentsShown)
async def list_agents(served: Served, caller: Called) -> AgentsShown:
    """The agents whose sessions the caller may read."""
    await caller.require(served, Permission.READ)
    library = served.app.engine.definitions
    seen = [one for one in sorted(library.agent_ids()) if caller.sees(agent(one))]
    return AgentsShown(agents=[_agent(library.agent(one)) for one in seen])


@router.get("/agents/{agent_id}", response_model=AgentShown)
async def get_agent(agent_id: AgentId, served: Served, caller: Called) -> AgentShown:
    """An agent: what it may call, and what it must ask before."""
    return _agent(known_agent(served, caller, agent_id))


def known_agent(served: Services, caller: Caller, agent_id: str) -> AgentDefinition:
    """One that the caller may not read does not exist for them, nor do its neighbours."""
    library = served.app.engine.definitions
    known = caller.sees(agent(agent_id)) and agent_id in library.agent_ids()
    if not known and not sees_all(caller.principal):
        raise NotFound(msg("there is no {kind} {name!r}", kind=term("agent"), name=agent_id))
    return library.agent(agent_id)


def _agent(definition: AgentDefinition) -> AgentShown:
    agent = definition.agent
    approval = {tool: rule_to_json(rule) for tool, rule in agent.approval.items()}
    told = {"approval": approval, "role": agent.asking.role, "digest": definition.digest}
    return AgentShown.model_validate({**taken(agent, AgentShown), **told})


@router.get("/tools", response_model=ToolsShown)
async def list_tools(served: Served, caller: Called) -> ToolsShown:
    """The tools that plans and agents may call."""
    await caller.require(served, Permission.READ)
    specs = sorted(served.app.tools.specs(), key=lambda spec: spec.name)
    return ToolsShown(tools=[_tool(spec) for spec in specs])


@router.get("/tools/{name}", response_model=ToolShown)
async def get_tool(name: ToolName, served: Served, caller: Called) -> ToolShown:
    """A tool: its arguments, whether a person must agree, whether it may be repeated."""
    await caller.require(served, Permission.READ)
    for spec in served.app.tools.specs():
        if spec.name == name:
            return _tool(spec)
    raise NotFound(msg("there is no {kind} {name!r}", kind=term("tool"), name=name))


def _tool(spec: ToolSpec) -> ToolShown:
    told = {"approval": rule_to_json(spec.approval), "fields": dump_form(spec.fields)}
    return ToolShown.model_validate({**taken(spec, ToolShown), **told})
