"""A conversation, its replies and its failures in our words and in pydantic-ai's.

Providers insist that the results of a turn's calls follow that turn at once, one per call, before
any other message. Our messages may come in any order between two turns of the model, since parallel
calls finish when they finish; `to_wire` sorts them: for every turn the results in the order of its
calls, then what people said. A call that never got a result is told so.

A reply's arguments are text from outside. What is no strict JSON object is kept as `malformed`,
for the model to be told; none at all is {}. Call ids are made distinct within the conversation,
because some servers count from zero every time.

A failure is one of two: `ModelUnavailable`, where the same request may succeed later (rate limits,
server errors, lost connections, replies that broke off or make no sense), and `ModelRefused`, where
a person has to change something first, and the message says what. `read_failure` sorts; what it
does not know is a mistake of ours and passes unchanged. The texts name the model and repeat what
the provider said, shortened. They never hold the request.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

from holdfast.errors import (
    ContextTooLong,
    InternalError,
    InvalidValue,
    ModelRefused,
    ModelUnavailable,
)
from holdfast.i18n.message import msg
from holdfast.language.strict import NUL, copied, load_json, strict_json
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
    from pydantic_ai.exceptions import ModelAPIError
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

_LONGEST_REASON: Final = 300
# What the adapters trip over when an answer has a shape they did not foresee.
_TRIPPED: Final = (AttributeError, IndexError, KeyError, TypeError, ValueError)
_WORTH_ANOTHER: Final = frozenset({408, 409, 425, 429})
_TOO_LARGE: Final = 413

_CHECK_KEY: Final = msg(
    "check the key (HOLDFAST_MODEL_API_KEY or the provider's own variable) and its rights"
)
_CHECK_NAME: Final = msg("check the model's name (HOLDFAST_MODEL) and the base URL")
_SHORTEN: Final = msg("shorten the conversation or choose a model with a larger context window")
_TOP_UP: Final = msg("the account's quota is used up: raise it or choose another model")
_REPHRASE: Final = msg(
    "the provider's filter stopped it: change the request or choose another model"
)
_LOOK: Final = msg("the same request will be refused again: change it or choose another model")


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
    """Half a character, as a cut stream may leave one, becomes the sign for it; so does U+0000."""
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return whole.replace(NUL, "\ufffd")


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


def read_failure(error: Exception, model: str) -> ModelUnavailable | ModelRefused | None:
    """What `error` means for a request to `model`; None if it is no failure of the model's."""
    import httpx
    import httpx2
    from pydantic_ai import exceptions as theirs

    match error:
        case theirs.ModelAPIError():
            return _read_provider_error(error, model)
        case theirs.ContentFilterError():
            return _refused(model, str(error), _REPHRASE)
        case theirs.UnexpectedModelBehavior():
            return ModelUnavailable(
                msg(
                    "model {model!r} answered nonsense: {text}",
                    model=model,
                    text=_shorten(str(error)),
                )
            )
        case theirs.UserError():
            return _refused(model, str(error), _CHECK_NAME)
        # Some adapters let a connection that breaks within a stream through as it is.
        case (
            httpx.TransportError()
            | httpx2.TransportError()
            | httpx.StreamError()
            | httpx2.StreamError()
        ):
            return ModelUnavailable(
                msg("model {model!r}: the connection broke: {text}", model=model, text=_told(error))
            )
        case _ if isinstance(error, _TRIPPED):
            return ModelUnavailable(
                msg("model {model!r} answered nonsense: {text}", model=model, text=_told(error))
            )
        case _:
            return None


def declined(model: str, reason: str) -> ModelRefused:
    """The model itself, or a filter around it, would not answer."""
    return _refused(model, reason or msg("no reason given"), _REPHRASE)


def _read_provider_error(error: ModelAPIError, model: str) -> ModelUnavailable | ModelRefused:
    from pydantic_ai import exceptions as theirs

    status = error.status_code if isinstance(error, theirs.ModelHTTPError) else None
    reason = _said(error) if status is None else f"{status}: {_said(error)}"
    match error:
        case theirs.ModelContextWindowExceededError():
            return ContextTooLong(_sentence(model, reason, _SHORTEN))
        case theirs.ModelAuthenticationError():
            return _refused(model, reason, _CHECK_KEY)
        case theirs.ModelNotFoundError():
            return _refused(model, reason, _CHECK_NAME)
        case theirs.ModelQuotaExceededError():
            return _refused(model, reason, _TOP_UP)
        case theirs.ModelRequestRejectedError():
            return _refused(model, reason, _LOOK)
        case _ if status == _TOO_LARGE:
            return ContextTooLong(_sentence(model, reason, _SHORTEN))
        case _ if status is None or status >= 500 or status in _WORTH_ANOTHER:
            return ModelUnavailable(
                msg("model {model!r}: {reason}", model=model, reason=reason), error.retry_after
            )
        case _:
            return _refused(model, reason, _BY_STATUS.get(status, _LOOK))


_BY_STATUS: Final = {401: _CHECK_KEY, 403: _CHECK_KEY, 404: _CHECK_NAME, 402: _TOP_UP}


def _refused(model: str, reason: str, remedy: str) -> ModelRefused:
    return ModelRefused(_sentence(model, reason, remedy))


def _sentence(model: str, reason: str, remedy: str) -> str:
    return msg(
        "model {model!r} refused: {reason}; {remedy}",
        model=model,
        reason=_shorten(reason),
        remedy=remedy,
    )


def _said(error: ModelAPIError) -> str:
    """The provider's own sentence, without the envelope that differs from one to the next."""
    body = error.body
    if isinstance(body, Mapping):
        inner = body.get("error", body)
        message = inner.get("message") if isinstance(inner, Mapping) else inner
        return _shorten(str(message or body))
    return _shorten(str(body) if body else error.message)


def _told(error: Exception) -> str:
    return _shorten(f"{type(error).__name__}: {error}")


def _shorten(text: str) -> str:
    return text if len(text) <= _LONGEST_REASON else text[: _LONGEST_REASON - 1] + "…"
