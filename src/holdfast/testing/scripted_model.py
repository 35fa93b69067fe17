"""A model that needs no key and no network: it says what its script says.

    model = ScriptedModel(["你好", say("One moment.", call("find_person", name="张三"))])
    reply = await ModelClient().request(model, system="", messages=[UserSaid("hi")], tools=[])
    model.seen[0].messages

It is a pydantic-ai model like any other, so everything around it is the real thing: translation,
streaming, retries. Its faults are the errors that a provider's adapter would raise.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence

from pydantic_ai.exceptions import (
    ModelAPIError,
    ModelConnectionError,
    ModelHTTPError,
    UnexpectedModelBehavior,
)
from pydantic_ai.messages import (
    FinishReason,
    ModelMessage,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel

from holdfast.model.message import Message, ModelSaid, ToolCall, ToolOffer, ToolReturned, UserSaid
from holdfast.testing.model_script import Entry, Fault, Player, Script, Seen, Turn, pieces, rules
from holdfast.work.model_wire import read_arguments

_FINISH: dict[str, FinishReason] = {"tool_calls": "tool_call"}


class ScriptedModel(FunctionModel):
    """Plays `script`; `seen` has every request, in the words of `holdfast.model.message`."""

    def __init__(self, script: Script, *, name: str = "scripted") -> None:
        super().__init__(self._reply, stream_function=self._stream, model_name=name)
        self._player = Player(script)

    @property
    def seen(self) -> list[Seen]:
        return self._player.seen

    async def _reply(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        turn = await self._next_turn(messages, info, streamed=False)
        if turn.cut:
            raise self._broken()
        finish = _FINISH.get(turn.finish_reason, turn.finish_reason)
        return ModelResponse(parts=_parts(turn), finish_reason=finish)  # type: ignore[arg-type]

    async def _stream(
        self, messages: list[ModelMessage], info: AgentInfo
    ) -> AsyncIterator[str | DeltaToolCalls]:
        turn = await self._next_turn(messages, info, streamed=True)
        deltas = list(_deltas(turn))
        for delta in deltas[:-1] if turn.cut else deltas:
            yield delta
        if turn.cut:
            raise self._broken()

    async def _next_turn(
        self, messages: list[ModelMessage], info: AgentInfo, *, streamed: bool
    ) -> Turn:
        number = self._player.next_number
        played = self._player.play(_seen(number, messages, info, streamed))
        if isinstance(played, Fault):
            raise self._error(played) from played.cause
        await asyncio.sleep(played.after)
        return played

    def _broken(self) -> ModelAPIError:
        return ModelConnectionError(self.model_name, "the scripted stream broke", phase="read")

    def _error(self, fault: Fault) -> Exception:
        if fault.body is not None:
            return UnexpectedModelBehavior("the scripted answer is no reply", fault.body)
        return ModelHTTPError(
            fault.status,
            self.model_name,
            {"message": fault.message, "code": fault.code},
            provider_error_code=fault.code,
            retry_after=fault.retry_after,
        )


class RuleModel(ScriptedModel):
    """Answers by the first rule whose condition holds; see `model_script.rules`."""

    def __init__(
        self, pairs: Sequence[tuple[str | Callable[[Seen], bool], Entry]], *, name: str = "rules"
    ) -> None:
        super().__init__(rules(*pairs), name=name)


def _parts(turn: Turn) -> list[ModelResponsePart]:
    said: list[ModelResponsePart] = [TextPart(turn.text)] if turn.text else []
    return said + [
        ToolCallPart(wanted.tool, wanted.arguments, wanted.call_id or "") for wanted in turn.calls
    ]


def _deltas(turn: Turn) -> Iterator[str | DeltaToolCalls]:
    # A stream without any delta counts as broken, so silence is an empty one.
    yield from pieces(turn.text) or [""]
    for index, wanted in enumerate(turn.calls):
        yield {index: DeltaToolCall(wanted.tool, "", tool_call_id=wanted.call_id)}
        for piece in pieces(wanted.arguments):
            yield {index: DeltaToolCall(json_args=piece)}


def _seen(number: int, messages: list[ModelMessage], info: AgentInfo, streamed: bool) -> Seen:
    return Seen(
        number,
        info.instructions or "",
        tuple(said for message in messages for said in _read(message)),
        tuple(
            ToolOffer(tool.name, tool.description or "", tool.parameters_json_schema)
            for tool in info.function_tools
        ),
        streamed,
    )


def _read(message: ModelMessage) -> Iterator[Message]:
    if isinstance(message, ModelResponse):
        yield _read_response(message)
        return
    for part in message.parts:
        if isinstance(part, UserPromptPart) and isinstance(part.content, str):
            yield UserSaid(part.content)
        elif isinstance(part, ToolReturnPart):
            failed = part.outcome == "failed"
            yield ToolReturned(part.tool_call_id, part.tool_name, part.content, failed)


def _read_response(response: ModelResponse) -> ModelSaid:
    text = "".join(part.content for part in response.parts if isinstance(part, TextPart))
    wanted = [part for part in response.parts if isinstance(part, ToolCallPart)]
    return ModelSaid(text, tuple(_read_call(part) for part in wanted))


def _read_call(part: ToolCallPart) -> ToolCall:
    if isinstance(part.args, str):
        return ToolCall(part.tool_call_id, part.tool_name, *read_arguments(part.args))
    return ToolCall(part.tool_call_id, part.tool_name, part.args or {})
