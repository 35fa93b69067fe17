"""A session's story: what was said, thought, called and answered, in plain words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar, TypeAlias, assert_never, cast

from holdfast.cli.foreign import named
from holdfast.cli.screen import visible
from holdfast.cli.telling import Sentence, Teller, reason
from holdfast.core.language.strict import canonical_json
from holdfast.core.react.state import THINK, ReactState
from holdfast.model import react_events as r
from holdfast.model.interaction import InteractionRequest
from holdfast.model.recorded import Event
from holdfast.model.values import Json

_Turn: TypeAlias = r.TurnStarted | r.TurnCompleted | r.TurnFailed | r.TurnResumed
_Call: TypeAlias = r.CallProposed | r.CallStarted | r.StepEnded | r.StepAbandoned

_ENDS: Mapping[str, str] = {
    "done": "returned",
    "failed": "failed",
    "refused": "was refused",
    "rejected": "was rejected and did not run",
    "retry": "did not run; the agent thinks again",
    "skipped": "was skipped and did not run",
    "expired": "did not run: nobody answered in time",
    "provided": "is answered",
}


class SessionStory(Teller):
    """Remembers which call is which: later events name it by its number only."""

    engine: ClassVar[str] = "agent"

    def __init__(self, state: ReactState, asked: Iterable[InteractionRequest] = ()) -> None:
        super().__init__(asked)
        self._tools = {step_id: call.tool for step_id, call in state.calls.items()}

    def step(self, step_id: str) -> str:
        if step_id == THINK:
            return "the model"
        tool = self._tools.get(step_id)
        return f"{named(tool)} ({step_id})" if tool else f"question {step_id}"

    def sentence(self, event: Event) -> Sentence:
        # The journal of a session holds a session's events only.
        return self._sentence(cast(r.ReactEvent, event))

    def _sentence(self, event: r.ReactEvent) -> Sentence:
        match event:
            case r.SessionStarted():
                return event.by or self.engine, f"opened a chat with {visible(event.agent_id)}"
            case r.TurnStarted() | r.TurnCompleted() | r.TurnFailed() | r.TurnResumed():
                return self._turn(event)
            case r.ThinkingStarted():
                attempt = f", attempt {event.attempt}" if event.attempt > 1 else ""
                return self.engine, f"asks the model{attempt}"
            case r.ModelReplied():
                return self.engine, self._reply(event)
            case r.CallProposed() | r.CallStarted() | r.StepEnded() | r.StepAbandoned():
                return self._call(event)
            case r.ApprovalRemembered(grant=grant):
                fits = f" with {visible(spelled(grant.pattern))}" if grant.pattern else ""
                return grant.by, f"always allows {visible(grant.tool)}{fits}"
            case r.ApprovalRevoked():
                return event.by, f"takes the remembered approval {visible(event.grant_id)} back"
            case _:
                return self.shared(event)

    def _turn(self, event: _Turn) -> Sentence:
        match event:
            case r.TurnStarted():
                return event.by, f"said: {visible(event.text)}"
            case r.TurnCompleted():
                return self.engine, f"answered{reason(event.text) or ' without a word'}"
            case r.TurnFailed():
                return self.engine, f"cannot go on by itself{reason(event.message)}"
            case r.TurnResumed():
                return event.by, "resumed the turn"
            case _:
                assert_never(event)

    def _reply(self, event: r.ModelReplied) -> str:
        for call in event.calls:
            self._tools[call.step_id] = call.tool
        wants = ", ".join(self.step(call.step_id) for call in event.calls)
        if wants:
            words = f", saying: {visible(event.text)}" if event.text else ""
            return f"wants to call {wants}{words}"
        usage = event.usage
        return f"has a reply ({usage.input_tokens + usage.output_tokens} tokens)"

    def _call(self, event: _Call) -> Sentence:
        match event:
            case r.CallProposed(call=call):
                self._tools[call.step_id] = call.tool
                return event.by, f"proposed {self.step(call.step_id)} {visible(spelled(call.args))}"
            case r.CallStarted():
                attempt = f", attempt {event.attempt}" if event.attempt > 1 else ""
                child = f" as {event.child_id}" if event.child_id else ""
                step = self.step(event.step_id)
                args = visible(spelled(event.args))
                return self.engine, f"calls {step} {args}{attempt}{visible(child)}"
            case r.StepEnded():
                return self.engine, f"{self.step(event.step_id)} {ended(event)}"
            case r.StepAbandoned():
                return event.by, f"goes on without {self.step(event.step_id)}"
            case _:
                assert_never(event)


def spelled(value: Mapping[str, Json]) -> str:
    return canonical_json(dict(value))


def ended(event: r.StepEnded) -> str:
    """How a call or a question ended, and what the model is told of it."""
    content = event.content
    words = content if isinstance(content, str) else canonical_json(content)
    note = f" {visible(event.note)}" if event.note else ""
    return f"{_ENDS.get(event.how, visible(event.how))}: {visible(words)}{note}"
