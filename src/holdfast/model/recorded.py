"""Whatever may stand in a journal: the events of all machines."""

from __future__ import annotations

from typing import TypeAlias

from holdfast.model.agent_events import ReactEvent
from holdfast.model.conversation_events import ConversationEvent
from holdfast.model.events import PlanEvent

Event: TypeAlias = PlanEvent | ReactEvent | ConversationEvent
