"""Runs as their users hold them, whichever kind they are."""

from __future__ import annotations

from copy import deepcopy

from holdfast.core.agent.state import ReactState, result
from holdfast.core.conversation.state import ConversationState
from holdfast.core.run.state import RunState
from holdfast.language.strict import copied
from holdfast.model.approval import Grant, Rules
from holdfast.model.conversation import EngineState
from holdfast.model.message import Message, Usage
from holdfast.model.values import Json
from holdfast.runs.live import LiveRun
from holdfast.runs.plan_instance import PlanInstance
from holdfast.runtime.engine import Engine
from holdfast.runtime.machines import as_conversation, as_session


class AgentSession(LiveRun[ReactState]):
    _of_our_kind = staticmethod(as_session)

    @property
    def _about(self) -> str:
        return self._state.agent.agent_id

    @property
    def agent_id(self) -> str:
        return self._state.agent.agent_id

    @property
    def turn(self) -> int:
        return self._state.turn

    @property
    def answer(self) -> str:
        """The last turn's final answer."""
        return self._state.answer

    @property
    def error(self) -> str:
        return self._state.error

    @property
    def result(self) -> dict[str, Json]:
        """The last turn as whoever handed over the work sees it."""
        return {name: copied(value) for name, value in result(self._state).items()}

    @property
    def usage(self) -> Usage:
        return self._state.usage

    @property
    def model_requests(self) -> int:
        return self._state.requests

    @property
    def messages(self) -> list[Message]:
        return deepcopy(list(self._state.messages))[::-1]

    @property
    def rules(self) -> Rules:
        """The rules of approval that it was opened with."""
        return self._state.approval

    @property
    def approvals(self) -> list[Grant]:
        """Approvals that are remembered."""
        return list(self._state.grants.values())


class ConversationRun(LiveRun[ConversationState]):
    """A conversation from outside; its consumer alone moves it on."""

    _of_our_kind = staticmethod(as_conversation)

    @property
    def _about(self) -> str:
        return self._state.phase.value

    @property
    def state(self) -> EngineState:
        return self._state.phase

    @property
    def progress(self) -> float:
        return self._state.progress

    @property
    def error(self) -> str:
        return self._state.error


def opened(engine: Engine, state: RunState) -> PlanInstance | AgentSession | ConversationRun:
    """A run as its users see it, whichever kind it is."""
    if isinstance(state, ReactState):
        return AgentSession(engine, state)
    if isinstance(state, ConversationState):
        return ConversationRun(engine, state)
    return PlanInstance(engine, state)
