"""Raw sockets against a server: heads without end, without a rest, and more of them than may be."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
from server_scene import listening
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

from holdfast.server.middleware import connections
from holdfast.server.middleware.connections import PIPELINED, Gate
from holdfast.server.settings import ServerSettings

HEAD = b"GET / HTTP/1.1\r\nHost: x\r\n"
WHOLE = HEAD + b"\r\n"
CHUNKED = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"


@dataclass
class Site:
    """A server that answers with the length of what it was sent; `parsed` counts bytes."""

    port: int = 0
    served: int = 0
    parsed: int = 0
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    holding: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        self.served += 1
        request = Request(scope, receive)
        if scope["path"] == "/hold":
            self.reached.set()
            await self.holding.wait()
        body = await request.body()
        answer: Response = PlainTextResponse(str(len(body)))
        await answer(scope, receive, send)

    async def open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port)

    async def sent(self, *parts: bytes) -> bytes:
        """All that is answered until the server closes."""
        reader, writer = await self.open()
        try:
            for part in parts:
                writer.write(part)
                await writer.drain()
            return await reader.read()
        except ConnectionError:
            return b""
        finally:
            writer.close()


@asynccontextmanager
async def site(monkeypatch: pytest.MonkeyPatch, **bounds: Any) -> AsyncIterator[Site]:
    made = Site()
    feed = connections.HttpToolsProtocol.data_received

    def counted(protocol: Any, data: bytes) -> None:
        made.parsed += len(data)
        feed(protocol, data)

    monkeypatch.setattr(connections.HttpToolsProtocol, "data_received", counted)
    async with asyncio.timeout(60), listening(made, ServerSettings(**bounds)) as url:
        made.port = int(url.rpartition(":")[2])
        yield made


def status_of(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def problem_of(answer: bytes) -> dict[str, Any]:
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"content-type: application/problem+json" in head.lower()
    assert b"connection: close" in head.lower()
    found: dict[str, Any] = json.loads(body)
    return found


LONG = 2 * 1024 * 1024
"""More than any bound, and little enough to be sent in a moment."""

READ_AT_ONCE = 256 * 1024
"""What asyncio takes off a socket in one go."""


@pytest.mark.parametrize(
    ("attack", "status"),
    [
        (b"GET /" + b"a" * LONG, 414),
        (b"GET /?" + b"a" * LONG, 414),
        (HEAD + b"X: 1\r\n" * (LONG // 6), 431),
        (HEAD + b"X-Long: " + b"v" * LONG, 431),
        (HEAD + b"v" * LONG + b": 1", 431),
        (b"\r\n" * (LONG // 2), 431),
        (b"G" * LONG, 400),
        (b"\x16\x03\x01" + b"\x00" * LONG, 400),
    ],
)
async def test_a_head_without_end_is_cut_off_and_little_of_it_read(
    attack: bytes, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with site(monkeypatch) as one:
        reader, writer = await one.open()
        writer.write(attack[: LONG // 16])
        answer = await reader.read()
        assert problem_of(answer)["status"] == status_of(answer) == status
        writer.write(attack)
        writer.close()
        assert one.parsed <= ServerSettings().header_bytes
        assert one.served == 0
        assert status_of(await one.sent(HEAD + b"Connection: close\r\n\r\n")) == 200


async def test_whoever_goes_on_sending_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    async with site(monkeypatch) as one:
        _, writer = await one.open()

        async def send_on() -> None:
            for _ in range(100 * LONG // 65_536):
                writer.write(b"a" * 65_536)
                await writer.drain()

        with pytest.raises(ConnectionError):
            await send_on()
        writer.transport.abort()
        assert one.parsed <= ServerSettings().header_bytes


async def test_bounds_are_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    closing = HEAD + b"Connection: close\r\n"
    room = 1024 - len(closing) - len(b"X: \r\n\r\n")
    async with site(monkeypatch, header_bytes=1024, header_count=4, url_bytes=100) as one:
        for more, status in ((0, 200), (1, 431)):
            head = closing + b"X: " + b"v" * (room + more) + b"\r\n\r\n"
            assert len(head) == 1024 + more
            assert status_of(await one.sent(head)) == status
            assert status_of(await one.sent(head[:500], head[500:])) == status
        for count, status in ((2, 200), (3, 431)):
            assert status_of(await one.sent(closing + b"X: 1\r\n" * count + b"\r\n")) == status
        for length, status in ((99, 200), (100, 414)):
            url = closing.replace(b"/ ", b"/" + b"u" * length + b" ", 1)
            assert status_of(await one.sent(url + b"\r\n")) == status


async def test_bodies_are_not_counted_as_heads(monkeypatch: pytest.MonkeyPatch) -> None:
    body = b"b" * 300_000
    post = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 300000\r\n\r\n" + body
    async with site(monkeypatch, header_bytes=1024) as one:
        last = HEAD + b"Connection: close\r\n\r\n"
        answer = await one.sent(post, post, last)
        assert answer.count(b"HTTP/1.1 200 OK") == 3
        assert answer.count(b"300000") == 2


async def test_half_a_request_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    async with site(monkeypatch, header_seconds=0.05) as one:
        answers = await asyncio.gather(*(one.sent(HEAD) for _ in range(40)))
        assert {problem_of(answer)["status"] for answer in answers} == {408}
        assert await one.sent() == b""
        assert one.served == 0


async def test_the_time_is_for_the_whole_head_however_it_trickles(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with site(monkeypatch, header_seconds=0.2) as one:
        reader, writer = await one.open()
        answer = asyncio.create_task(reader.read())
        writer.write(HEAD)
        while not answer.done():
            writer.write(b"X: 1\r\n")
            await asyncio.wait({answer}, timeout=0.02)
        writer.close()
        assert status_of(answer.result()) == 408


async def test_between_two_requests_the_next_head_has_its_time_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with site(monkeypatch, header_seconds=0.05) as one:
        answer = await one.sent(WHOLE, HEAD)
        assert answer.count(b"HTTP/1.1 200 OK") == 1
        assert answer.count(b"HTTP/1.1 408") == 1
        assert one.served == 1


async def test_an_answer_that_takes_long_has_no_such_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with site(monkeypatch, header_seconds=0.05) as one:
        held = HEAD.replace(b"/", b"/hold", 1) + b"Connection: close\r\n\r\n"
        answer = asyncio.create_task(one.sent(held))
        assert status_of(await one.sent(HEAD)) == 408
        one.holding.set()
        assert status_of(await answer) == 200


@pytest.mark.parametrize("bound", ["max_connections", "connections_per_address"])
async def test_more_connections_than_may_be_are_refused_until_some_leave(
    bound: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    closing = HEAD + b"Connection: close\r\n\r\n"
    async with site(monkeypatch, **{bound: 5}) as one, AsyncExitStack() as stack:
        for _ in range(5):
            reader, writer = await one.open()
            stack.callback(writer.close)
            writer.write(WHOLE)
            await reader.readuntil(b"\r\n\r\n0")
        for _ in range(20):
            refused = await one.sent()
            assert problem_of(refused)["title"] == "Too many connections"
            assert status_of(refused) == 503
            assert b"retry-after: 1\r\n" in refused.lower()
        await stack.aclose()
        while status_of(await one.sent(closing) or b"x 503 x") == 503:
            assert one.served == 5


@pytest.mark.parametrize("count", [30, 200])
async def test_requests_sent_ahead_are_few_and_the_first_are_answered(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with site(monkeypatch) as one:
        answer = await one.sent(WHOLE * count)
        assert answer.count(b"HTTP/1.1 200 OK") == one.served == 1 + PIPELINED
        last = answer[answer.rindex(b"HTTP/1.1 ") :]
        detail = f"more than {PIPELINED} requests were sent ahead"
        assert (status_of(last), problem_of(last)["detail"]) == (400, detail)


async def test_as_many_as_may_be_sent_ahead_are_all_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with site(monkeypatch) as one:
        answer = await one.sent(WHOLE * PIPELINED + HEAD + b"Connection: close\r\n\r\n")
        assert answer.count(b"HTTP/1.1 200 OK") == answer.count(b"HTTP/1.1 ") == 1 + PIPELINED


@pytest.mark.parametrize(
    ("bad", "status"),
    [
        (HEAD + b"X: 1\r\n" * 200, 431),
        (b"GET /" + b"a" * 20_000, 414),
        (b"NONSENSE\r\n\r\n", 400),
        (b"GET http://[ HTTP/1.1\r\n\r\n", 400),
        (CHUNKED + b"no number\r\n", 400),
        (CHUNKED + b"1;" + b"a" * LONG, 413),
    ],
)
async def test_what_came_whole_before_a_bad_request_is_answered_first(
    bad: bytes, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = HEAD.replace(b"/", b"/hold", 1) + b"\r\n"
    async with site(monkeypatch) as one:
        reader, writer = await one.open()
        writer.write(held + WHOLE + bad[: LONG // 8])
        await one.reached.wait()
        one.holding.set()
        answer = await reader.read()
        writer.close()
        assert answer.count(b"HTTP/1.1 200 OK") == 2
        assert status_of(answer[answer.rindex(b"HTTP/1.1 ") :]) == status


@pytest.mark.parametrize(
    "flood",
    [
        b"1;" + b"a" * LONG,
        b"0\r\nX: " + b"a" * LONG,
        b"1;aaaaaaaaaaaaaaaa\r\nb\r\n" * (LONG // 23),
    ],
)
async def test_little_is_read_of_what_stands_around_a_body(
    flood: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with site(monkeypatch) as one:
        reader, writer = await one.open()
        writer.write(CHUNKED)

        async def send_on() -> None:
            for start in range(0, LONG, 65_536):
                writer.write(flood[start : start + 65_536])
                await writer.drain()

        with suppress(ConnectionError):
            await send_on()
        with suppress(ConnectionError):
            await reader.read()
        writer.close()
        assert one.parsed <= 2 * ServerSettings().header_bytes + READ_AT_ONCE


async def test_too_much_around_a_body_is_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    async with site(monkeypatch, header_bytes=1024) as one:
        refused = await one.sent(CHUNKED, b"1;" + b"a" * 2_000)
        detail = "more than 1,024 bytes stand around the parts of the body"
        assert (status_of(refused), problem_of(refused)["detail"]) == (413, detail)


async def test_short_chunks_make_a_body_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    body = b"1\r\nb\r\n" * 20_000 + b"0\r\n\r\n"
    last = HEAD + b"Connection: close\r\n\r\n"
    async with site(monkeypatch, header_bytes=1024) as one:
        answer = await one.sent(CHUNKED, body, CHUNKED, body + last)
        assert answer.count(b"HTTP/1.1 200 OK") == 3
        assert answer.count(b"20000") == 2


async def test_a_refusal_is_in_the_reader_s_language(monkeypatch: pytest.MonkeyPatch) -> None:
    async with site(monkeypatch, header_count=3) as one:
        head = HEAD + b"Accept-Language: zh-CN\r\n" + b"X: 1\r\n" * 5
        assert problem_of(await one.sent(head))["detail"] == "请求头多于 3 个"


def test_an_address_of_ipv6_is_its_network_and_who_leaves_makes_room() -> None:
    gate = Gate(ServerSettings(connections_per_address=1, max_connections=2))
    assert gate.admit("a")
    assert not gate.admit("a")
    assert gate.admit("b")
    assert not gate.admit("c")
    gate.leave("a")
    assert gate.admit("c")
    gate.leave("b")
    gate.leave("c")
    assert len(gate) == 0


def test_none_is_no_limit() -> None:
    gate = Gate(ServerSettings(connections_per_address=0, max_connections=0))
    assert all(gate.admit("a") for _ in range(5_000))
