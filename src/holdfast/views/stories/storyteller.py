"""Who tells the story of a run, by its kind."""

from __future__ import annotations

from holdfast.core.agent.state import ReactState
from holdfast.core.conversation.state import ConversationState
from holdfast.core.plan.state import PlanState
from holdfast.core.run.state import RunState
from holdfast.views.stories.conversations import ConversationStory
from holdfast.views.stories.lines import Teller
from holdfast.views.stories.plans import PlanStory
from holdfast.views.stories.sessions import SessionStory


def storyteller(state: RunState) -> Teller:
    """Tells what happens after `state`, whose questions it knows."""
    asked = state.questions.values()
    if isinstance(state, PlanState):
        return PlanStory(state.plan, asked)
    if isinstance(state, ReactState):
        return SessionStory(state, asked)
    assert isinstance(state, ConversationState)
    return ConversationStory(state, asked)
