"""The state of a session: what was said, what is being called, what is remembered."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from immutables import Map
from rpds import List

from holdfast.core.agent.tables import SESSION, ReActStage
from holdfast.core.run.state import RunState
from holdfast.core.run.tables import ACTIVE_STEPS, Lifecycle, StepStatus
from holdfast.errors import InvalidValue
from holdfast.i18n.message import msg
from holdfast.language.strict import strict_json
from holdfast.model.agent import Agent, helper_name
from holdfast.model.agent_events import Call
from holdfast.model.approval import ApprovalRule, Grant
from holdfast.model.commands import ToolFacts
from holdfast.model.message import Message, Usage
from holdfast.model.record import state
from holdfast.model.retry import FailureKind
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


FAILED_ENDS = frozenset({"failed", "refused", "rejected", "retry", "skipped", "expired"})
_BY_A_PERSON = frozenset({"rejected", "skipped", "expired", "refused"})


def result(state: ReactState) -> dict[str, Json]:
    """Success, the answer in words and its own fields, and what each tool last returned."""
    fields = _object(state.answer)
    ended = {tool: content for tool, how, content in state.did if how == "done"}
    told = {**fields, "answer": state.answer, "tools": ended}
    if state.only is not None:
        return {**told, "success": verdict(state) != "failed", "verdict": verdict(state)}
    return {**told, **_success(state, fields)}


def _success(state: ReactState, fields: Mapping[str, Json]) -> dict[str, Json]:
    how, content = (state.did[-1][1], state.did[-1][2]) if state.did else ("done", None)
    if how in FAILED_ENDS:
        return {"success": False, "error": _why(content), **_kind(how)}
    if fields.get("success") is False:
        return {"success": False, "error": str(fields.get("error") or state.answer)}
    return {"success": True}


def _kind(how: str) -> dict[str, Json]:
    """What a person refused is not tried again by itself."""
    return {"error_class": FailureKind.FORBIDDEN.value} if how in _BY_A_PERSON else {}


def _why(content: Json) -> str:
    if not isinstance(content, Mapping):
        return str(content)
    named = (content.get(one) for one in ("error", "reason", "rejected", "retry", "skipped"))
    return next((str(one) for one in named if one), msg("the last call failed"))


def verdict(state: ReactState) -> str:
    """What the tools of a session that only checks have answered: verified, failed or neither."""
    answered = [content for _, how, content in state.did if how in ("done", "failed")]
    denied = any(isinstance(one, Mapping) and one.get("success") is False for one in answered)
    if denied:
        return "failed"
    done = [how for _, how, _ in state.did if how == "done"]
    return "verified" if done and len(done) == len(state.did) else "unable_to_verify"


def _object(text: str) -> dict[str, Json]:
    stripped = text.strip().removeprefix("```json").removesuffix("```").strip()
    if not stripped.startswith("{"):
        return {}
    try:
        found = strict_json(json.loads(stripped))
    except (ValueError, RecursionError, InvalidValue):
        return {}
    return dict(found)
