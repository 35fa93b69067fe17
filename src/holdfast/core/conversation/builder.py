"""A conversation's decision in the making."""

from __future__ import annotations

from holdfast.core.conversation.reducers import REDUCERS
from holdfast.core.conversation.state import ConversationState
from holdfast.core.run.builder import DecisionBuilder
from holdfast.model.conversation import EngineState, SubTask
from holdfast.model.conversation_events import ConversationEvent, EngineFailed, PhaseChanged
from holdfast.model.events import QuestionWithdrawn


class Builder(DecisionBuilder[ConversationState, ConversationEvent]):
    REDUCERS = REDUCERS

    def task(self, step_id: str) -> SubTask:
        return self.state.tasks[step_id]

    def enter(self, phase: EngineState) -> None:
        self.emit(PhaseChanged(self.state.phase, phase))

    def fail(self, error: str, step_id: str = "", by: str = "") -> None:
        """The turn ends here, and says in which phase."""
        phase = self.state.phase
        self.withdraw_all(f"the conversation failed: {error}")
        self.enter(EngineState.ERROR)
        self.emit(EngineFailed(error, phase, step_id, by))

    def withdraw_all(self, reason: str) -> None:
        for question_id in sorted(self.state.open_questions):
            self.emit(QuestionWithdrawn(question_id, reason))
