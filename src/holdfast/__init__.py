"""Plans, agents and conversations that stop for people and go on afterwards."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.agents.events import AgentEventType, AgentExecutionEvent
    from holdfast.agents.sessions import (
        AgentContext,
        AgentSession,
        AgentSessionHub,
        ReActAgentStrategy,
        ResumePoint,
        ToolApprovalCallback,
    )
    from holdfast.app import Holdfast
    from holdfast.client import Client, ServerEvent
    from holdfast.conversations.engine import (
        VALID_STATE_TRANSITIONS,
        ConversationEngine,
        EngineEvent,
        EngineEventType,
        EngineState,
        SubTask,
    )
    from holdfast.core.agent.tables import ReActStage
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
    from holdfast.plans.module import PlanModule, PlannerAgent, RetrySituation
    from holdfast.repair.alerts import Alert, AlertKind
    from holdfast.runs.handles import PlanInstance, TaskInstance
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
    "Alert",
    "AlertKind",
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
    "VALID_STATE_TRANSITIONS": "holdfast.conversations.engine",
    "Agent": "holdfast.model.agent",
    "AgentContext": "holdfast.agents.contexts",
    "AgentEventType": "holdfast.agents.events",
    "AgentExecutionEvent": "holdfast.agents.events",
    "AgentSession": "holdfast.runs.handles",
    "AgentSessionHub": "holdfast.agents.sessions",
    "Alert": "holdfast.repair.alerts",
    "AlertKind": "holdfast.repair.alerts",
    "AppCoordinator": "holdfast.work.coordinator",
    "ApprovalMode": "holdfast.model.approval",
    "Asking": "holdfast.model.interaction",
    "CallInfo": "holdfast.work.tools",
    "Client": "holdfast.client",
    "ConversationEngine": "holdfast.conversations.engine",
    "EngineEvent": "holdfast.conversations.engine",
    "EngineEventType": "holdfast.conversations.engine",
    "EngineState": "holdfast.conversations.engine",
    "GiveUp": "holdfast.model.retry",
    "GoalModel": "holdfast.work.goals",
    "Holdfast": "holdfast.app",
    "InteractionAction": "holdfast.model.interaction",
    "InteractionOption": "holdfast.model.interaction",
    "InteractionRequest": "holdfast.model.interaction",
    "InteractionResponse": "holdfast.model.interaction",
    "InteractionType": "holdfast.model.interaction",
    "Knowledge": "holdfast.work.knowledge",
    "PlanInstance": "holdfast.runs.handles",
    "PlanInstanceStatus": "holdfast.model.plan",
    "PlanModule": "holdfast.plans.module",
    "PlannerAgent": "holdfast.plans.module",
    "ReActAgentStrategy": "holdfast.agents.strategy",
    "ReActStage": "holdfast.core.agent.tables",
    "Resolution": "holdfast.model.interaction",
    "ResumePoint": "holdfast.agents.contexts",
    "Retry": "holdfast.model.retry",
    "RetrySituation": "holdfast.plans.module",
    "ServerEvent": "holdfast.client",
    "SubTask": "holdfast.conversations.engine",
    "TaskDriver": "holdfast.work.driver",
    "TaskInstance": "holdfast.runs.handles",
    "ToolApprovalCallback": "holdfast.agents.contexts",
}


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used: `import holdfast` itself stays light."""
    if name not in _HOMES:
        raise AttributeError(f"module 'holdfast' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
