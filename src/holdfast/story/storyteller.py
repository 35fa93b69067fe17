"""Who tells the story of a run, by its kind."""

from __future__ import annotations

from holdfast.core.conversation.state import ConversationState
from holdfast.core.plan.state import PlanState
from holdfast.core.react.state import ReactState
from holdfast.core.run.state import RunState
from holdfast.story.conversations import ConversationStory
from holdfast.story.plans import PlanStory
from holdfast.story.sessions import SessionStory
from holdfast.story.telling import Teller
from holdfast.story.voice import ENGLISH, Voice


def storyteller(state: RunState, say: Voice = ENGLISH) -> Teller:
    """Tells what happens after `state`, whose questions it knows."""
    asked = [one.request for one in state.questions.values()]
    if isinstance(state, PlanState):
        return PlanStory(state.plan, asked, say)
    if isinstance(state, ReactState):
        return SessionStory(state, asked, say)
    assert isinstance(state, ConversationState)
    return ConversationStory(state, asked, say)
