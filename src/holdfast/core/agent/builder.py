"""A session's decision in the making."""

from __future__ import annotations

from holdfast.core.agent.reducers import REDUCERS
from holdfast.core.agent.state import ReactState
from holdfast.core.run.builder import DecisionBuilder
from holdfast.core.run.state import StepState
from holdfast.language.strict import canonical_json
from holdfast.model.agent_events import Call, ReactEvent, StepEnded
from holdfast.model.values import Json


class Builder(DecisionBuilder[ReactState, ReactEvent]):
    REDUCERS = REDUCERS

    def call(self, step_id: str) -> Call:
        return self.state.calls[step_id]

    def end(self, step_id: str, how: str, content: Json) -> None:
        self.emit(StepEnded(step_id, how, content, self._note(step_id, how)))

    def _note(self, step_id: str, how: str) -> str:
        """The model must know when a call was made otherwise than it wanted, and what the person
        who let it run had to say."""
        if how not in ("done", "failed"):
            return ""
        call, step = self.call(step_id), self.step(step_id)
        notes = []
        if step.args is not None and dict(step.args) != dict(call.args):
            sent = canonical_json(dict(step.args))
            notes.append(f"[{call.tool} was called with {sent}, as a person chose]")
        if said := self._said_with_consent(step):
            notes.append(f"[who approved {call.tool} said: {said}]")
        return "\n".join(notes)

    def _said_with_consent(self, step: StepState) -> str | None:
        if step.consent is None or step.grant_id is not None:
            return None
        asked = self.state.questions.values()
        return next((one.feedback for one in asked if one.consent == step.consent), None)
