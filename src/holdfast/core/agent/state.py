"""The state of a session: what was said, what is being called, what is remembered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from immutables import Map
from rpds import List

from holdfast.core.agent.tables import SESSION, ReActStage
from holdfast.core.run.state import RunState
from holdfast.core.run.tables import ACTIVE_STEPS, Lifecycle, StepStatus
from holdfast.model.agent import Agent, helper_name
from holdfast.model.agent_events import Call
from holdfast.model.approval import ApprovalRule, Grant
from holdfast.model.commands import ToolFacts
from holdfast.model.message import Message, Usage
from holdfast.model.record import state
from holdfast.model.values import Json

THINK = "think"
HELPER = ToolFacts(
    parameters={
        "type": "object",
        "properties": {"task": {"type": "string"}},
        "required": ["task"],
    },
    version="agent",
    idempotent=True,
)
"""An agent that is handed work, as the tool that it looks like."""


@dataclass(frozen=True)
class AgentDefinition:
    """An agent as a session is pinned to it."""

    agent: Agent
    digest: str


@state
class ReactState(RunState):
    """`messages` has the newest first. `calls` are those of the model's last reply, and the
    questions since. `did` lists what this turn has called, with how it ended and what came
    of it; `asides` are people's answers that the model has yet to hear. `open` says that a
    turn is under way."""

    LIFECYCLE: ClassVar[Lifecycle] = SESSION

    definition: AgentDefinition = field(kw_only=True)
    approval: Mapping[str, ApprovalRule] = field(default_factory=dict)
    only: tuple[str, ...] | None = None
    messages: List[Message] = List()
    calls: Map[str, Call] = Map()
    did: tuple[tuple[str, str, Json], ...] = ()
    asides: tuple[str, ...] = ()
    turn: int = 0
    text: str = ""
    open: bool = False
    iteration: int = 0
    numbered: int = 0
    answer: str = ""
    error: str = ""
    usage: Usage = Usage()
    requests: int = 0
    grants: Map[str, Grant] = Map()

    @property
    def agent(self) -> Agent:
        return self.definition.agent

    @property
    def tools(self) -> tuple[str, ...]:
        """The tools that this session offers to its model."""
        return self.agent.tools if self.only is None else self.only

    @property
    def helpers(self) -> Mapping[str, str]:
        """The agents that it may hand work to, by the names of the tools they look like."""
        agents = self.agent.agents if self.only is None else ()
        return {helper_name(one): one for one in agents}

    @property
    def stage(self) -> ReActStage:
        thinking = self.steps.get(THINK)
        if thinking is not None and thinking.status is StepStatus.RUNNING:
            return ReActStage.THINKING
        acting = any(self.steps[one].status in ACTIVE_STEPS for one in self.calls)
        return ReActStage.ACTING if acting else ReActStage.OBSERVING
