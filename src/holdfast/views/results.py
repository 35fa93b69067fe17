"""What came of a conversation's tasks, as a person reads it."""

from __future__ import annotations

from holdfast.core.conversation.briefing import came_of, spelled_result

__all__ = ["came_of", "spelled_result"]
