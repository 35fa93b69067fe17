"""A model server on the loopback interface that speaks OpenAI's chat protocol.

    async with ModelPeer(["你好", fail(429, retry_after=1), cut("Hello, Will")]) as peer:
        model = resolve_model("scripted", base_url=peer.url, api_key="test")

It serves `POST /v1/chat/completions`, whole and as a stream, and `GET /v1/models`. What it says
is a script (see `model_script`), faults included, and they are real: a cut stream is a connection
that ends in the middle. `requests` keeps every request as it came over the wire, `seen` the same
in our words, `connections` how many were made; `asked` is set by the first request.

One connection serves requests one after the other; a slow turn blocks only its own connection.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, Self

from holdfast.model.message import Message, ModelSaid, ToolCall, ToolOffer, ToolReturned, UserSaid
from holdfast.model.values import Json, JsonObject
from holdfast.testing.model_script import Fault, Player, Script, ScriptedCall, Seen, Turn, pieces
from holdfast.work.model_wire import read_arguments

_CREATED: Final = 1_800_000_000
_CHAT: Final = "/v1/chat/completions"


@dataclass(frozen=True, slots=True)
class PeerRequest:
    """A request as it came; header names in lower case, `body` None where there was none."""

    method: str
    path: str
    headers: dict[str, str]
    body: Json


class ModelPeer:
    """Serves from `async with` to its end; `url` is the base URL for clients."""

    def __init__(self, script: Script, *, models: tuple[str, ...] = ("scripted",)) -> None:
        self.requests: list[PeerRequest] = []
        self.connections = 0
        self.asked = asyncio.Event()
        self._player = Player(script)
        self._models = models
        self._open: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    @property
    def seen(self) -> list[Seen]:
        return self._player.seen

    @property
    def url(self) -> str:
        if self._server is None:
            raise RuntimeError("the peer listens only within `async with`")
        host, port = self._server.sockets[0].getsockname()
        return f"http://{host}:{port}/v1"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for connection in self._open:
            connection.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)
        await self._server.wait_closed()
        self._server = None

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        connection = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._open.add(connection)
        connection.add_done_callback(self._open.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (request := await _read_request(reader)) is not None:
                self.requests.append(request)
                self.asked.set()
                if not await self._answer(request, writer):
                    break
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _answer(self, request: PeerRequest, writer: asyncio.StreamWriter) -> bool:
        """Whether the connection may serve another request."""
        if request.path == "/v1/models":
            listed = [{"id": name, "object": "model"} for name in self._models]
            return await _send(writer, 200, {"object": "list", "data": listed})
        if (request.method, request.path) != ("POST", _CHAT):
            return await _send(writer, 404, _error("no such address", "not_found"))
        seen = _seen(self._player.next_number, request.body)
        played = self._player.play(seen)
        if isinstance(played, Fault):
            return await _send_fault(writer, played)
        await asyncio.sleep(played.after)
        name = request.body["model"]
        if seen.streamed:
            return await _send_stream(writer, list(_chunks(seen, played, name)), played)
        return await _send_whole(writer, _completion(seen, played, name), played)


async def _read_request(reader: asyncio.StreamReader) -> PeerRequest | None:
    line = await reader.readline()
    if not line:
        return None
    method, path, _ = line.decode().split()
    headers: dict[str, str] = {}
    while header := (await reader.readline()).decode().strip():
        name, _, value = header.partition(":")
        headers[name.lower()] = value.strip()
    content = await reader.readexactly(int(headers.get("content-length", "0")))
    return PeerRequest(method, path, headers, json.loads(content) if content else None)


async def _send(
    writer: asyncio.StreamWriter, status: int, body: Json, headers: tuple[str, ...] = ()
) -> bool:
    content = body.encode() if isinstance(body, str) else _encode(body)
    head = [*headers, "Content-Type: application/json", f"Content-Length: {len(content)}"]
    writer.write(_head(status, head) + content)
    await writer.drain()
    return True


async def _send_fault(writer: asyncio.StreamWriter, fault: Fault) -> bool:
    wait = () if fault.retry_after is None else (f"Retry-After: {fault.retry_after:g}",)
    body = _error(fault.message, fault.code) if fault.body is None else fault.body
    return await _send(writer, fault.status, body, wait)


async def _send_whole(writer: asyncio.StreamWriter, body: Json, turn: Turn) -> bool:
    if not turn.cut:
        return await _send(writer, 200, body)
    content = _encode(body)
    head = ["Content-Type: application/json", f"Content-Length: {len(content)}"]
    writer.write(_head(200, head) + content[: len(content) // 2])
    await writer.drain()
    return False


async def _send_stream(writer: asyncio.StreamWriter, chunks: list[Json], turn: Turn) -> bool:
    head = ["Content-Type: text/event-stream", "Transfer-Encoding: chunked"]
    writer.write(_head(200, head))
    for chunk in chunks:
        await _send_piece(writer, b"data: " + _encode(chunk) + b"\n\n")
    if turn.cut and not turn.quiet:
        return False
    if not turn.cut:
        await _send_piece(writer, b"data: [DONE]\n\n")
    await _send_piece(writer, b"")
    return True


async def _send_piece(writer: asyncio.StreamWriter, content: bytes) -> None:
    writer.write(f"{len(content):x}\r\n".encode() + content + b"\r\n")
    await writer.drain()


def _head(status: int, headers: list[str]) -> bytes:
    lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", *headers, "", ""]
    return "\r\n".join(lines).encode()


def _encode(value: Json) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def _error(message: str, code: str | None) -> JsonObject:
    return {"error": {"message": message, "type": "scripted", "code": code}}


def _completion(seen: Seen, turn: Turn, model: str) -> JsonObject:
    message: dict[str, Any] = {"role": "assistant", "content": turn.text or None}
    if turn.calls:
        message["tool_calls"] = [_call(wanted, wanted.arguments) for wanted in turn.calls]
    choice = {"index": 0, "message": message, "finish_reason": turn.finish_reason}
    return {
        **_envelope(seen, model, "chat.completion"),
        "choices": [choice],
        "usage": _usage(seen, turn),
    }


def _chunks(seen: Seen, turn: Turn, model: str) -> Iterator[JsonObject]:
    envelope = _envelope(seen, model, "chat.completion.chunk")
    deltas = list(_deltas(turn))
    for delta in deltas[:-1] if turn.cut else deltas:
        yield {**envelope, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    if turn.cut:
        return
    end = {"index": 0, "delta": {}, "finish_reason": turn.finish_reason}
    yield {**envelope, "choices": [end]}
    yield {**envelope, "choices": [], "usage": _usage(seen, turn)}


def _deltas(turn: Turn) -> Iterator[JsonObject]:
    yield {"role": "assistant", "content": ""}
    for piece in pieces(turn.text):
        yield {"content": piece}
    for index, wanted in enumerate(turn.calls):
        yield {"tool_calls": [{"index": index, **_call(wanted, "")}]}
        for piece in pieces(wanted.arguments):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def _call(wanted: ScriptedCall, arguments: str) -> JsonObject:
    function = {"name": wanted.tool, "arguments": arguments}
    return {"id": wanted.call_id, "type": "function", "function": function}


def _envelope(seen: Seen, model: str, kind: str) -> JsonObject:
    return {"id": f"chat_{seen.number}", "object": kind, "created": _CREATED, "model": model}


def _usage(seen: Seen, turn: Turn) -> JsonObject:
    """Counts that a test can foresee: a token for each message, and for each piece of a reply."""
    asked = len(seen.messages)
    said = len(pieces(turn.text)) + len(turn.calls)
    return {"prompt_tokens": asked, "completion_tokens": said, "total_tokens": asked + said}


def _seen(number: int, body: JsonObject) -> Seen:
    system = [message["content"] for message in body["messages"] if message["role"] == "system"]
    offers = [tool["function"] for tool in body.get("tools", ())]
    return Seen(
        number,
        "\n\n".join(system),
        tuple(_read_messages(body["messages"])),
        tuple(ToolOffer(o["name"], o["description"], o["parameters"]) for o in offers),
        bool(body.get("stream")),
    )


def _read_messages(messages: list[JsonObject]) -> Iterator[Message]:
    tools: dict[str, str] = {}
    for message in messages:
        match message["role"]:
            case "user":
                yield UserSaid(message["content"])
            case "assistant":
                calls = tuple(_read_call(wanted) for wanted in message.get("tool_calls") or ())
                tools.update((wanted.call_id, wanted.tool) for wanted in calls)
                yield ModelSaid(message.get("content") or "", calls)
            case "tool":
                call_id = message["tool_call_id"]
                yield ToolReturned(call_id, tools.get(call_id, ""), message["content"])


def _read_call(wanted: JsonObject) -> ToolCall:
    function = wanted["function"]
    return ToolCall(wanted["id"], function["name"], *read_arguments(function["arguments"]))
