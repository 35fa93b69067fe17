"""A conversation in our words and in pydantic-ai's.

Providers insist that the results of a turn's calls follow that turn at once, one per call, before
anybody speaks. Our messages may come in any order between two turns of the model, since parallel
calls finish when they finish; `to_wire` sorts them: for every turn the results in the order of its
calls, then what people said. A call that never got a result is told so.

A reply's arguments are text from outside. What is no strict JSON object is kept as `malformed`,
for the model to be told; none at all is {}. Call ids are made distinct within the conversation,
because some servers count from zero every time.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

from holdfast.errors import InternalError, InvalidValue
from holdfast.language.jsontext import load_json
from holdfast.language.strict import copied, strict_json
from holdfast.model.message import (
    Message,
    ModelReply,
    ModelSaid,
    ToolCall,
    ToolOffer,
    ToolReturned,
    Usage,
    UserSaid,
)
from holdfast.model.values import JsonObject

if TYPE_CHECKING:
    from pydantic_ai.messages import (
        ModelMessage,
        ModelRequest,
        ModelRequestPart,
        ModelResponse,
        ModelResponsePart,
        ToolCallPart,
        ToolReturnPart,
    )
    from pydantic_ai.models import ModelRequestParameters

NO_RESULT: Final = "There is no result: this call was not carried out."


def to_wire(messages: Sequence[Message]) -> list[ModelMessage]:
    """The messages as pydantic-ai sends them; a result without its call is InternalError."""
    wire: list[ModelMessage] = []
    turn = ModelSaid()
    since: list[UserSaid | ToolReturned] = []
    for message in messages:
        if isinstance(message, ModelSaid):
            wire += _what_followed(turn, since)
            wire.append(_response(message))
            turn, since = message, []
        else:
            since.append(message)
    return [*wire, *_what_followed(turn, since)]


def to_parameters(system: str, tools: Iterable[ToolOffer]) -> ModelRequestParameters:
    from pydantic_ai.messages import InstructionPart
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.tools import ToolDefinition

    offers = [
        ToolDefinition(
            name=offer.name,
            description=offer.description,
            parameters_json_schema=copied(offer.parameters),
            # Strict, a model would invent what it does not know instead of leaving it out, and
            # the person who knows would never be asked.
            strict=False,
        )
        for offer in tools
    ]
    instructions = [InstructionPart(content=system)] if system else []
    return ModelRequestParameters(function_tools=offers, instruction_parts=instructions)


def from_wire(response: ModelResponse, taken: Iterable[str] = ()) -> ModelReply:
    """The reply; ids in `taken` already belong to other calls of the conversation."""
    from pydantic_ai.messages import TextPart, ToolCallPart

    text = "".join(part.content for part in response.parts if isinstance(part, TextPart))
    wanted = [part for part in response.parts if isinstance(part, ToolCallPart)]
    ids = _distinct_ids((part.tool_call_id for part in wanted), set(taken))
    return ModelReply(
        text=sound_text(text),
        calls=tuple(_call(part, call_id) for part, call_id in zip(wanted, ids, strict=True)),
        usage=_usage(response),
        model=response.model_name or "",
        finish=response.finish_reason or "stop",
    )


def call_ids(messages: Iterable[Message]) -> set[str]:
    return {
        call.call_id
        for message in messages
        if isinstance(message, ModelSaid)
        for call in message.calls
    }


def read_arguments(text: str) -> tuple[JsonObject, str | None]:
    """The arguments that a model wrote, and its text where that is no strict JSON object."""
    if not text.strip():
        return {}, None
    try:
        args = strict_json(load_json(text))
    except (ValueError, RecursionError, InvalidValue):
        return {}, sound_text(text)
    return (args, None) if isinstance(args, dict) else ({}, sound_text(text))


def sound_text(text: str) -> str:
    """Half a character, as a cut stream may leave one, becomes the sign for it."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _what_followed(
    turn: ModelSaid, since: Sequence[UserSaid | ToolReturned]
) -> Iterator[ModelRequest]:
    from pydantic_ai.messages import ModelRequest, UserPromptPart

    returned = _by_call(turn, since)
    parts: list[ModelRequestPart] = [
        _return(call, returned.get(call.call_id)) for call in turn.calls
    ]
    parts += [UserPromptPart(content=said.text) for said in since if isinstance(said, UserSaid)]
    if parts:
        yield ModelRequest(parts=parts)


def _by_call(turn: ModelSaid, since: Sequence[UserSaid | ToolReturned]) -> dict[str, ToolReturned]:
    returned = {one.call_id: one for one in since if isinstance(one, ToolReturned)}
    strangers = returned.keys() - {call.call_id for call in turn.calls}
    if strangers:
        raise InternalError(
            f"results without a call in the turn before them: {', '.join(sorted(strangers))}"
        )
    return returned


def _return(call: ToolCall, returned: ToolReturned | None) -> ToolReturnPart[Any]:
    from pydantic_ai.messages import ToolReturnPart

    if returned is None:
        return ToolReturnPart(call.tool, NO_RESULT, call.call_id, outcome="interrupted")
    outcome: Literal["failed", "success"] = "failed" if returned.failed else "success"
    return ToolReturnPart(call.tool, copied(returned.content), call.call_id, outcome=outcome)


def _response(said: ModelSaid) -> ModelResponse:
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart

    parts: list[ModelResponsePart] = [TextPart(content=said.text)] if said.text else []
    for call in said.calls:
        args = copied(call.args) if call.malformed is None else call.malformed
        parts.append(ToolCallPart(call.tool, args, call.call_id))
    return ModelResponse(parts=parts)


def _call(part: ToolCallPart[Any], call_id: str) -> ToolCall:
    text = part.args if isinstance(part.args, str) else json.dumps(part.args or {})
    args, malformed = read_arguments(text)
    return ToolCall(call_id, sound_text(part.tool_name), args, malformed)


def _distinct_ids(ids: Iterable[str], taken: set[str]) -> Iterator[str]:
    for wanted in ids:
        call_id, count = sound_text(wanted), 1
        while call_id in taken:
            count += 1
            call_id = f"{wanted}.{count}"
        taken.add(call_id)
        yield call_id


def _usage(response: ModelResponse) -> Usage:
    used = response.usage
    return Usage(used.input_tokens, used.output_tokens, _cost(response))


def _cost(response: ModelResponse) -> float | None:
    """What the request cost by the price list that came with the installation."""
    if response.usage.cost is not None:
        return float(response.usage.cost)
    if not response.model_name:
        return None
    try:
        return float(response.cost().total_price)
    except (LookupError, ValueError):
        return None
