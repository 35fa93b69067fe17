"""The timeline: a run's events in plain words, whichever kind of run it is."""

from __future__ import annotations

from holdfast.cli.conversation_story import ConversationStory
from holdfast.cli.plan_story import PlanStory
from holdfast.cli.session_story import SessionStory
from holdfast.cli.telling import Teller
from holdfast.core.conversation.state import ConversationState
from holdfast.core.plan.state import PlanState
from holdfast.core.react.state import ReactState
from holdfast.core.run.state import RunState


def storyteller(state: RunState) -> Teller:
    """Tells what happens after `state`, whose open questions it knows."""
    asked = [one.request for one in state.questions.values()]
    if isinstance(state, PlanState):
        return PlanStory(state.plan, asked)
    if isinstance(state, ReactState):
        return SessionStory(state, asked)
    assert isinstance(state, ConversationState)
    return ConversationStory(state, asked)
