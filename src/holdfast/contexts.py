"""Who speaks to an agent, and where it waits for a person, as the seed names them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from holdfast.core.react.tables import ReActStage
from holdfast.model.interaction import InteractionRequest, InteractionResponse
from holdfast.model.values import Json
from holdfast.plans import LOCAL


class ToolApprovalCallback(Protocol):
    """Told of every approval that a strategy's session asks for; the pause is on disk by then."""

    async def request_approval(
        self,
        session_id: str,
        tool_call_id: str,
        tool_name: str,
        tool_args: Mapping[str, Json],
        context: AgentContext,
    ) -> None: ...


@dataclass(frozen=True, slots=True)
class AgentContext:
    """Who speaks to which agent in which session; `user_id` is a label, never authority."""

    agent_id: str
    session_id: str | None = None
    user_id: str = LOCAL
    approval: Mapping[str, object] = field(default_factory=dict)
    tool_approval_callback: ToolApprovalCallback | None = None


@dataclass(frozen=True, slots=True)
class ResumePoint:
    """Where a session waits for a person: a fold of its journal, made when it is asked for."""

    resume_id: str
    session_id: str
    current_iteration: int
    paused_stage: ReActStage
    interaction_request: InteractionRequest
    context: AgentContext
    original_task: str
    user_response: InteractionResponse | None = None
