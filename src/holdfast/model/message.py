"""What is said between people, models and tools in a conversation with an agent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from holdfast.model.values import Json, JsonObject


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that a model wants; `malformed` holds its text where that is no JSON object."""

    call_id: str
    tool: str
    args: JsonObject
    malformed: str | None = None


@dataclass(frozen=True, slots=True)
class UserSaid:
    text: str


@dataclass(frozen=True, slots=True)
class ModelSaid:
    text: str = ""
    calls: tuple[ToolCall, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolReturned:
    """A tool's result, or what the model is told instead of one."""

    call_id: str
    tool: str
    content: Json
    failed: bool = False


Message: TypeAlias = UserSaid | ModelSaid | ToolReturned


@dataclass(frozen=True, slots=True)
class Usage:
    """What a model request cost; `cost` in US dollars where the price is known."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None
    seconds: float = 0.0

    def __add__(self, more: Usage) -> Usage:
        """Costs that are not known stay unknown, rather than be taken for nothing."""
        known = [one for one in (self.cost, more.cost) if one is not None]
        return Usage(
            self.input_tokens + more.input_tokens,
            self.output_tokens + more.output_tokens,
            sum(known) if known else None,
            self.seconds + more.seconds,
        )


@dataclass(frozen=True, slots=True)
class ToolOffer:
    """A tool as a model sees it."""

    name: str
    description: str
    parameters: JsonObject


@dataclass(frozen=True, slots=True)
class ModelReply:
    """`finish` says why the model stopped: stop, tool_call, length, content_filter or error."""

    text: str
    calls: tuple[ToolCall, ...]
    usage: Usage
    model: str
    finish: str = "stop"
