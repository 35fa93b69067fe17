"""A session's decision in the making."""

from __future__ import annotations

from holdfast.core.language.strict import canonical_json
from holdfast.core.react.apply import apply
from holdfast.core.react.state import ReactState
from holdfast.core.run.draft import RunDraft
from holdfast.model.react_events import Call, ReactEvent, StepEnded
from holdfast.model.values import Json


class Draft(RunDraft[ReactState, ReactEvent]):
    def apply(self, event: ReactEvent) -> ReactState:
        return apply(self.state, event, self.moment.now)

    def call(self, step_id: str) -> Call:
        return self.state.calls[step_id]

    def end(self, step_id: str, how: str, content: Json) -> None:
        self.emit(StepEnded(step_id, how, content, self._note(step_id, how)))

    def _note(self, step_id: str, how: str) -> str:
        """The model must know when a call was made otherwise than it wanted."""
        call, sent = self.call(step_id), self.step(step_id).args
        if how not in ("done", "failed") or sent is None or dict(sent) == dict(call.args):
            return ""
        return f"[{call.tool} was called with {canonical_json(dict(sent))}, as a person chose]"
