"""What a session's followers see: one event per record that means something to them.

`seq` is the record's place in the session's journal, so a follower who comes back with
the last one it saw misses and repeats nothing. A model's words while it speaks have
none: they are for eyes only, and the finished reply follows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from holdfast.core.interactions.wire import camel, request_to_wire
from holdfast.model import agent_events as r
from holdfast.model import events as e
from holdfast.model.recorded import Event
from holdfast.model.values import Json
from holdfast.runtime.hub import Recorded, Spoken


class AgentEventType(StrEnum):
    STARTED = "STARTED"
    THINKING = "THINKING"
    ACTING = "ACTING"
    OBSERVING = "OBSERVING"
    TOOL = "TOOL"
    INTERACTION = "INTERACTION"
    PROGRESS = "PROGRESS"
    ERROR = "ERROR"
    COMPLETED = "COMPLETED"
    DONE = "DONE"


@dataclass(frozen=True, slots=True)
class AgentExecutionEvent:
    type: AgentEventType
    session_id: str
    data: Mapping[str, Json] = field(default_factory=dict)
    seq: int | None = None
    at: float | None = None

    def to_wire(self) -> dict[str, Json]:
        return {
            "type": self.type.value,
            "sessionId": self.session_id,
            "data": self._wire_data(),
            "seq": self.seq,
            "timestamp": self.at,
        }

    def _wire_data(self) -> Json:
        # A question is in its wire form already, and has users' own keys inside.
        asked = self.type is AgentEventType.INTERACTION
        return dict(self.data) if asked else _respelled(self.data)


_NOT_OURS = frozenset({"args", "content", "context", "data"})
"""What tools and users put in: their keys are theirs."""


def _respelled(value: Json) -> Json:
    match value:
        case Mapping():
            return {
                camel(key): one if key in _NOT_OURS else _respelled(one)
                for key, one in value.items()
            }
        case list():
            return [_respelled(one) for one in value]
    return value


_Told = tuple[AgentEventType, dict[str, Any]] | None


class Narrator:
    """Turns a session's records into what its followers see; remembers which call is which."""

    def __init__(self, session_id: str) -> None:
        self._session_id = session_id
        self._calls: dict[str, r.Call] = {}
        self._iteration = 0

    def tell(self, recorded: Recorded) -> AgentExecutionEvent | None:
        told = self._tell(recorded.event)
        if told is None:
            return None
        kind, data = told
        return AgentExecutionEvent(kind, self._session_id, data, recorded.seq, recorded.at)

    def speak(self, spoken: Spoken) -> AgentExecutionEvent:
        """Words of a reply that is not finished; `restart` takes back those before."""
        data = {"restart": True} if spoken.text is None else {"delta": spoken.text}
        return AgentExecutionEvent(AgentEventType.THINKING, self._session_id, data)

    def _tell(self, event: Event) -> _Told:
        match event:
            case r.TurnStarted():
                self._iteration = 0
                data = {"turn": event.turn, "message": event.text, "by": event.by}
                return AgentEventType.STARTED, data
            case r.CallProposed():
                return self._proposed(event)
            case r.ThinkingStarted():
                self._iteration += event.attempt == 1
                return AgentEventType.THINKING, {"iteration": self._iteration}
            case r.ModelReplied():
                return self._replied(event)
            case r.CallStarted():
                return AgentEventType.TOOL, {
                    **self._call(event.step_id),
                    "args": dict(event.args),
                    "attempt": event.attempt,
                }
            case r.StepEnded():
                data = {**self._call(event.step_id), "how": event.how, "content": event.content}
                return AgentEventType.OBSERVING, data
            case r.TurnCompleted():
                # An answer between turns opens the next one without saying so.
                self._iteration = 0
                return AgentEventType.COMPLETED, {"turn": event.turn, "answer": event.text}
            case r.TurnFailed():
                return AgentEventType.ERROR, {"message": event.message}
            case r.TurnResumed():
                self._iteration = 0
                return AgentEventType.PROGRESS, {"resumed_by": event.by}
            case e.QuestionOpened():
                return AgentEventType.INTERACTION, request_to_wire(event.request)
            case _:
                return _progress(event)

    def _proposed(self, event: r.CallProposed) -> _Told:
        self._iteration = 0
        self._calls = {event.call.step_id: event.call}
        data = {"turn": event.turn, "proposed": _shown(event.call), "by": event.by}
        return AgentEventType.STARTED, data

    def _replied(self, event: r.ModelReplied) -> _Told:
        if not event.calls:
            return AgentEventType.PROGRESS, {"replied": True, "usage": asdict(event.usage)}
        self._calls = {call.step_id: call for call in event.calls}
        calls = [_shown(call) for call in event.calls]
        data = {"text": event.text, "calls": calls, "usage": asdict(event.usage)}
        return AgentEventType.ACTING, data

    def _call(self, step_id: str) -> dict[str, Json]:
        call = self._calls.get(step_id)
        if call is None:
            return {"step_id": step_id}
        return {"step_id": step_id, "call_id": call.call_id, "tool": call.tool}


def _shown(call: r.Call) -> dict[str, Json]:
    return {
        "step_id": call.step_id,
        "call_id": call.call_id,
        "tool": call.tool,
        "args": dict(call.args),
    }


def _progress(event: Event) -> _Told:
    data: dict[str, Json]
    match event:
        case e.QuestionAnswered():
            data = {"answered": event.question_id, "option": event.option_id, "by": event.by}
        case e.QuestionExpired():
            data = {"expired": event.question_id, "option": event.option_id}
        case e.QuestionWithdrawn():
            data = {"withdrawn": event.question_id, "reason": event.reason}
        case e.QuestionReminded():
            data = {"reminded": event.question_id, "count": event.count}
        case e.QuestionEscalated():
            data = {"escalated": event.question_id, "role": event.role}
        case e.AttemptFailed():
            message = event.failure.message
            data = {"step_id": event.step_id, "failed": message, "retry_at": event.retry_at}
        case e.ChildHeard():
            data = {"child": event.child_id, "status": event.status}
        case e.CancelRequested():
            data = {"cancelled_by": event.by, "reason": event.reason}
        case _:
            return None
    return AgentEventType.PROGRESS, data
