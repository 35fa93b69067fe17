"""Who speaks to an agent, and where it waits for a person, as the seed names them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, Final, Protocol, Self

from holdfast.core.agent.tables import ReActStage
from holdfast.core.approval import read_rule, rule_to_json
from holdfast.core.interactions.wire import (
    camel,
    request_from_wire,
    request_to_wire,
    response_from_wire,
    response_to_wire,
)
from holdfast.errors import HoldfastError, InvalidAnswer
from holdfast.i18n.message import joined, msg
from holdfast.language.strict import strict_text
from holdfast.model.interaction import InteractionRequest, InteractionResponse
from holdfast.model.values import Json
from holdfast.runtime.identity import LOCAL


class ToolApprovalCallback(Protocol):
    """Told of every approval that a strategy's session asks for; the pause is on disk by then."""

    async def request_approval(
        self,
        session_id: str,
        tool_call_id: str,
        tool_name: str,
        tool_args: Mapping[str, Json],
        context: AgentContext,
    ) -> None: ...


@dataclass(frozen=True, slots=True)
class AgentContext:
    """Who speaks to which agent in which session; `user_id` is a label, never authority."""

    agent_id: str
    session_id: str | None = None
    user_id: str = LOCAL
    approval: Mapping[str, object] = field(default_factory=dict)
    tool_approval_callback: ToolApprovalCallback | None = None

    def to_wire(self) -> dict[str, Json]:
        """Without the callback, which only a process can hold."""
        rules = {name: rule_to_json(read_rule(raw)) for name, raw in self.approval.items()}
        return {
            "agentId": self.agent_id,
            "sessionId": self.session_id,
            "userId": self.user_id,
            "approval": rules,
        }

    @classmethod
    def from_wire(cls, raw: object) -> Self:
        """The context, or InvalidAnswer with one message per wrong field."""
        return cls(**_read(cls, raw, _OF_A_CONTEXT))


@dataclass(frozen=True, slots=True)
class ResumePoint:
    """Where a session waits for a person: a fold of its journal, made when it is asked for."""

    resume_id: str
    session_id: str
    current_iteration: int
    paused_stage: ReActStage
    interaction_request: InteractionRequest
    context: AgentContext
    original_task: str
    user_response: InteractionResponse | None = None

    def to_wire(self) -> dict[str, Json]:
        response = self.user_response
        return {
            "resumeId": self.resume_id,
            "sessionId": self.session_id,
            "currentIteration": self.current_iteration,
            "pausedStage": self.paused_stage.value,
            "interactionRequest": request_to_wire(self.interaction_request),
            "userResponse": None if response is None else response_to_wire(response),
            "context": self.context.to_wire(),
            "originalTask": self.original_task,
        }

    @classmethod
    def from_wire(cls, raw: object) -> Self:
        """The point in either spelling, or InvalidAnswer with one message per wrong field."""
        return cls(**_read(cls, raw, _OF_A_RESUME_POINT))


_Readers = Mapping[str, Callable[[Any], object]]


def _read(kind: Any, raw: object, readers: _Readers) -> dict[str, Any]:
    if not isinstance(raw, Mapping):
        raise InvalidAnswer(
            msg("a {kind} must be an object", kind=kind.__name__), {"$": msg("must be an object")}
        )
    wrong: dict[str, str] = {}
    read: dict[str, Any] = {}
    names = {spelling: name for name in readers for spelling in (name, camel(name))}
    for key, value in raw.items():
        name = names.get(key)
        if name is None or name in read:
            wrong[str(key)] = (
                msg("unknown key") if name is None else msg("is given in two spellings")
            )
        elif value is not None:
            read[name] = _value(readers[name], value, str(key), wrong)
    needed = (each.name for each in fields(kind) if _is_needed(each))
    wrong |= {camel(name): msg("is required") for name in needed if name not in read}
    if wrong:
        each = (msg("{place}: {problem}", place=k, problem=v) for k, v in wrong.items())
        listed = joined("; ", each)
        raise InvalidAnswer(
            msg("this {what} cannot be read: {problem}", what=kind.__name__, problem=listed), wrong
        )
    return read


def _is_needed(each: Any) -> bool:
    return each.default is MISSING and each.default_factory is MISSING


def _value(
    reader: Callable[[Any], object], value: object, key: str, wrong: dict[str, str]
) -> object:
    try:
        return reader(value)
    except InvalidAnswer as refused:
        wrong |= {f"{key}.{name}": message for name, message in refused.fields.items()}
    except (HoldfastError, ValueError) as refused:
        wrong[key] = str(refused)
    return None


def _text(value: object) -> str:
    return strict_text(value, "text", longest=1_000_000)


def _count(value: object) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(msg("must be a whole number from 0"))
    return value


def _rules(value: object) -> dict[str, object]:
    if not isinstance(value, Mapping):
        raise ValueError(msg("must be an object with a rule for each tool"))
    return {_text(name): read_rule(rule) for name, rule in value.items()}


_OF_A_CONTEXT: Final[_Readers] = {
    "agent_id": _text,
    "session_id": _text,
    "user_id": _text,
    "approval": _rules,
}
_OF_A_RESUME_POINT: Final[_Readers] = {
    "resume_id": _text,
    "session_id": _text,
    "current_iteration": _count,
    "paused_stage": ReActStage,
    "interaction_request": request_from_wire,
    "user_response": response_from_wire,
    "context": AgentContext.from_wire,
    "original_task": _text,
}
