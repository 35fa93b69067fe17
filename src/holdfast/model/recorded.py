"""Whatever may stand in a journal: the events of all machines."""

from __future__ import annotations

from typing import TypeAlias

from holdfast.model.conversation_events import ConversationEvent
from holdfast.model.events import PlanEvent
from holdfast.model.react_events import ReactEvent

Event: TypeAlias = PlanEvent | ReactEvent | ConversationEvent
