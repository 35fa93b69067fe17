"""Plans, agents and conversations that stop for people and go on afterwards."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.app import Holdfast
    from holdfast.client import Client, ServerEvent
    from holdfast.conversation import (
        VALID_STATE_TRANSITIONS,
        ConversationEngine,
        EngineEvent,
        EngineEventType,
        EngineState,
        SubTask,
    )
    from holdfast.core.react.tables import ReActStage
    from holdfast.instances import PlanInstance, TaskInstance
    from holdfast.model.agent import Agent
    from holdfast.model.approval import ApprovalMode
    from holdfast.model.interaction import (
        Asking,
        InteractionAction,
        InteractionOption,
        InteractionRequest,
        InteractionResponse,
        InteractionType,
        Resolution,
    )
    from holdfast.model.plan import PlanInstanceStatus
    from holdfast.model.retry import GiveUp, Retry
    from holdfast.plans import PlanModule, PlannerAgent, RetrySituation
    from holdfast.sessions import (
        AgentContext,
        AgentSession,
        AgentSessionHub,
        ReActAgentStrategy,
        ResumePoint,
        ToolApprovalCallback,
    )
    from holdfast.stream import AgentEventType, AgentExecutionEvent
    from holdfast.work.coordinator import AppCoordinator
    from holdfast.work.driver import TaskDriver
    from holdfast.work.goals import GoalModel
    from holdfast.work.knowledge import Knowledge
    from holdfast.work.tools import CallInfo

__all__ = [
    "VALID_STATE_TRANSITIONS",
    "Agent",
    "AgentContext",
    "AgentEventType",
    "AgentExecutionEvent",
    "AgentSession",
    "AgentSessionHub",
    "AppCoordinator",
    "ApprovalMode",
    "Asking",
    "CallInfo",
    "Client",
    "ConversationEngine",
    "EngineEvent",
    "EngineEventType",
    "EngineState",
    "GiveUp",
    "GoalModel",
    "Holdfast",
    "InteractionAction",
    "InteractionOption",
    "InteractionRequest",
    "InteractionResponse",
    "InteractionType",
    "Knowledge",
    "PlanInstance",
    "PlanInstanceStatus",
    "PlanModule",
    "PlannerAgent",
    "ReActAgentStrategy",
    "ReActStage",
    "Resolution",
    "ResumePoint",
    "Retry",
    "RetrySituation",
    "ServerEvent",
    "SubTask",
    "TaskDriver",
    "TaskInstance",
    "ToolApprovalCallback",
]

_HOMES = {
    "VALID_STATE_TRANSITIONS": "holdfast.conversation",
    "Agent": "holdfast.model.agent",
    "AgentContext": "holdfast.contexts",
    "AgentEventType": "holdfast.stream",
    "AgentExecutionEvent": "holdfast.stream",
    "AgentSession": "holdfast.handles",
    "AgentSessionHub": "holdfast.sessions",
    "AppCoordinator": "holdfast.work.coordinator",
    "ApprovalMode": "holdfast.model.approval",
    "Asking": "holdfast.model.interaction",
    "CallInfo": "holdfast.work.tools",
    "Client": "holdfast.client",
    "ConversationEngine": "holdfast.conversation",
    "EngineEvent": "holdfast.conversation",
    "EngineEventType": "holdfast.conversation",
    "EngineState": "holdfast.conversation",
    "GiveUp": "holdfast.model.retry",
    "GoalModel": "holdfast.work.goals",
    "Holdfast": "holdfast.app",
    "InteractionAction": "holdfast.model.interaction",
    "InteractionOption": "holdfast.model.interaction",
    "InteractionRequest": "holdfast.model.interaction",
    "InteractionResponse": "holdfast.model.interaction",
    "InteractionType": "holdfast.model.interaction",
    "Knowledge": "holdfast.work.knowledge",
    "PlanInstance": "holdfast.instances",
    "PlanInstanceStatus": "holdfast.model.plan",
    "PlanModule": "holdfast.plans",
    "PlannerAgent": "holdfast.plans",
    "ReActAgentStrategy": "holdfast.strategy",
    "ReActStage": "holdfast.core.react.tables",
    "Resolution": "holdfast.model.interaction",
    "ResumePoint": "holdfast.contexts",
    "Retry": "holdfast.model.retry",
    "RetrySituation": "holdfast.plans",
    "ServerEvent": "holdfast.client",
    "SubTask": "holdfast.conversation",
    "TaskDriver": "holdfast.work.driver",
    "TaskInstance": "holdfast.instances",
    "ToolApprovalCallback": "holdfast.contexts",
}


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used: `import holdfast` itself stays light."""
    if name not in _HOMES:
        raise AttributeError(f"module 'holdfast' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
