"""The shield: hosts, bodies, headers, on bare ASGI and with nothing behind it but an echo."""

from __future__ import annotations

import asyncio
import json
import tracemalloc
from collections.abc import AsyncIterator
from typing import Any

import pytest
from server_scene import Scene
from starlette.types import Message, Receive, Scope, Send

from holdfast.language.strict import extent
from holdfast.server.middleware.requests import HEADERS, RequestMiddleware, allows
from holdfast.server.settings import ServerSettings, is_loopback

SETTINGS = ServerSettings(body_limit=1000, body_seconds=5, json_depth=8)
LOCAL = (b"host", b"localhost:8420")


class Echo:
    """Answers what it was sent, and remembers having been asked."""

    def __init__(self) -> None:
        self.asked = 0
        self.scope: Scope = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.asked += 1
        self.scope = scope
        body = (await receive()).get("body", b"") if scope["method"] != "GET" else b""
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": body, "more_body": False})


class Exchange:
    """One request against a shielded application, message by message."""

    def __init__(self, app: Any = None, settings: ServerSettings = SETTINGS) -> None:
        self.app = app or Echo()
        self.shield = RequestMiddleware(self.app, settings)
        self.sent: list[Message] = []

    async def __call__(
        self,
        *chunks: bytes,
        method: str = "POST",
        headers: tuple[tuple[bytes, bytes], ...] = (LOCAL,),
    ) -> Exchange:
        waiting = [
            {"type": "http.request", "body": chunk, "more_body": at < len(chunks) - 1}
            for at, chunk in enumerate(chunks or (b"",))
        ]

        async def receive() -> Message:
            return waiting.pop(0) if waiting else {"type": "http.disconnect"}

        await self.run(receive, method, headers)
        return self

    async def run(
        self, receive: Receive, method: str, headers: tuple[tuple[bytes, bytes], ...]
    ) -> None:
        async def send(message: Message) -> None:
            self.sent.append(message)

        scope = {"type": "http", "method": method, "path": "/x", "headers": list(headers)}
        await self.shield(scope, receive, send)

    @property
    def status(self) -> int:
        return int(self.sent[0]["status"])

    @property
    def headers(self) -> dict[str, str]:
        return {name.decode().lower(): value.decode() for name, value in self.sent[0]["headers"]}

    @property
    def body(self) -> bytes:
        return b"".join(one.get("body", b"") for one in self.sent[1:])

    @property
    def problem(self) -> dict[str, Any]:
        assert self.headers["content-type"] == "application/problem+json"
        found: dict[str, Any] = json.loads(self.body)
        return found


@pytest.fixture
def exchange() -> Exchange:
    return Exchange()


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("localhost", True),
        ("localhost:8420", True),
        ("LOCALHOST:1", True),
        ("localhost.", True),
        ("127.0.0.1:8420", True),
        ("[::1]", True),
        ("[::1]:8420", True),
        ("::1", False),
        ("rebound.attacker.example:8420", False),
        ("localhost.attacker.example", False),
        ("attacker.example@localhost", False),
        ("localhost:8420:1", False),
        ("localhost:", False),
        ("localhost:abc", False),
        ("localhost/x", False),
        ("localhost x", False),
        (f"{'a' * 255}.localhost", False),
        ("", False),
        ("127.0.0.2", False),
        ("[::2]:8420", False),
        ("[::1", False),
        ("0.0.0.0", False),
    ],
)
async def test_a_local_server_answers_to_local_names_only(
    exchange: Exchange, host: str, allowed: bool
) -> None:
    await exchange(headers=((b"host", host.encode()),))
    assert exchange.status == (200 if allowed else 400)
    assert exchange.app.asked == (1 if allowed else 0)


@pytest.mark.parametrize("headers", [(), (LOCAL, (b"host", b"localhost"))])
async def test_exactly_one_host_is_named(
    exchange: Exchange, headers: tuple[tuple[bytes, bytes], ...]
) -> None:
    await exchange(headers=headers)
    assert exchange.status == 400
    assert "host is not allowed" in exchange.problem["detail"]


async def test_a_forwarded_host_is_not_believed(exchange: Exchange) -> None:
    evil = ((b"host", b"evil.example"), (b"x-forwarded-host", b"localhost"))
    assert (await exchange(headers=evil)).status == 400


@pytest.mark.parametrize(
    ("hosts", "given", "allowed"),
    [
        (("example.com",), "example.com:99", True),
        (("example.com:443",), "example.com:443", True),
        (("example.com:443",), "example.com", False),
        (("example.com:443",), "example.com:444", False),
        (("*.example.com",), "a.example.com", True),
        (("*.example.com",), "a.b.example.com:1", True),
        (("*.example.com",), "example.com", False),
        (("*.example.com",), "badexample.com", False),
        (("*",), "anything:5", True),
        (("[fe80::1]:80",), "[fe80::1]:80", True),
    ],
)
def test_a_name_is_allowed_with_its_ports_and_subdomains(
    hosts: tuple[str, ...], given: str, allowed: bool
) -> None:
    assert allows(hosts, given) is allowed


@pytest.mark.parametrize("port", ["", ":8420"])
def test_a_name_of_many_labels_takes_no_memory(port: str) -> None:
    long = f"{'a.' * 30_000}localhost{port}"
    tracemalloc.start()
    try:
        assert not allows(("*.localhost",), long)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 1_000_000


async def test_settings_say_which_hosts(exchange: Exchange) -> None:
    named = ServerSettings(allowed_hosts=("Hold.Example", "2001:db8::1"))
    for host in (b"hold.example:1", b"[2001:db8::1]:8420"):
        found = await Exchange(settings=named)(headers=((b"host", host),))
        assert found.status == 200
    assert (await Exchange(settings=named)()).status == 400


@pytest.mark.parametrize(
    ("host", "hosts", "local"),
    [
        ("127.0.0.1", {"localhost", "127.0.0.1", "::1"}, True),
        ("localhost", {"localhost", "127.0.0.1", "::1"}, True),
        ("0.0.0.0", {"localhost", "127.0.0.1", "::1"}, False),
        ("::", {"localhost", "127.0.0.1", "::1"}, False),
        ("", {"localhost", "127.0.0.1", "::1"}, False),
        ("10.0.0.5", {"localhost", "127.0.0.1", "::1", "10.0.0.5"}, False),
        ("box.example", {"localhost", "127.0.0.1", "::1", "box.example"}, False),
    ],
)
def test_unless_told_otherwise_hosts_are_loopback_and_what_is_bound(
    host: str, hosts: set[str], local: bool
) -> None:
    settings = ServerSettings(host=host)
    assert set(settings.hosts) == hosts
    assert settings.local_only is local


def test_loopback_is_known_in_every_spelling() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "127.8.8.8", "::1", "[::1]", "LOCALHOST")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "10.0.0.1", "localhost.evil", "")))


async def test_a_body_passes_whole_however_it_is_cut(exchange: Exchange) -> None:
    await exchange(b'{"a":', b' "\xe5\xbc', b'\xa0"}')
    assert exchange.body.decode() == '{"a": "张"}'


async def test_a_declared_size_beyond_the_limit_is_refused_unread(exchange: Exchange) -> None:
    async def receive() -> Message:
        assert exchange.sent, "nothing is read before the answer"
        return {"type": "http.request", "body": b"", "more_body": False}

    for size in (b"1001", b"100000000", b"9" * 30):
        exchange.sent.clear()
        await exchange.run(receive, "POST", (LOCAL, (b"content-length", size)))
        assert exchange.status == 413
        assert exchange.headers["connection"] == "close"
    assert exchange.app.asked == 0


@pytest.mark.parametrize("size", [b"-1", b"abc", b"1e3", b"", "٣".encode()])
async def test_a_size_that_is_none_is_refused(exchange: Exchange, size: bytes) -> None:
    await exchange(headers=(LOCAL, (b"content-length", size)))
    assert exchange.status == 400


async def test_a_body_that_grows_beyond_the_limit_is_cut_off(exchange: Exchange) -> None:
    read = 0

    async def receive() -> Message:
        nonlocal read
        read += not exchange.sent
        return {"type": "http.request", "body": b"x" * 400, "more_body": not exchange.sent}

    await exchange.run(receive, "POST", (LOCAL, (b"transfer-encoding", b"chunked")))
    assert exchange.status == 413
    assert read == 3
    assert "1,000 bytes" in exchange.problem["detail"]


async def test_the_limit_itself_is_allowed(exchange: Exchange) -> None:
    assert (await exchange(b"x" * 1000)).status == 200


async def test_a_body_that_does_not_arrive_is_not_waited_for() -> None:
    exchange = Exchange(settings=ServerSettings(body_seconds=0.01))
    first = [{"type": "http.request", "body": b"{", "more_body": True}]

    async def receive() -> Message:
        if first:
            return first.pop()
        await asyncio.Event().wait()
        raise AssertionError

    await exchange.run(receive, "POST", (LOCAL,))
    assert exchange.status == 408
    assert "0.01 seconds" in exchange.problem["detail"]
    assert exchange.app.asked == 0


async def test_who_leaves_before_the_end_has_asked_nothing(exchange: Exchange) -> None:
    messages: list[Message] = [
        {"type": "http.disconnect"},
        {"type": "http.request", "body": b"{", "more_body": True},
    ]

    async def receive() -> Message:
        return messages.pop()

    await exchange.run(receive, "POST", (LOCAL,))
    assert exchange.sent == []
    assert exchange.app.asked == 0


async def test_a_get_with_a_body_is_held_to_the_same(exchange: Exchange) -> None:
    await exchange(b"x", method="GET", headers=(LOCAL, (b"content-length", b"2000")))
    assert exchange.status == 413


async def test_a_get_without_a_body_is_not_read_for() -> None:
    exchange = Exchange()

    async def receive() -> Message:
        raise AssertionError("nothing is read")

    await exchange.run(receive, "GET", (LOCAL,))
    assert exchange.status == 200


@pytest.mark.parametrize("body", [b"\xff", b'{"a": "\xc3"}', b'"\xed\xa0\x80"', b"\xc0\xaf"])
async def test_what_is_not_utf8_is_refused(exchange: Exchange, body: bytes) -> None:
    await exchange(body)
    assert exchange.status == 400
    assert "UTF-8" in exchange.problem["detail"]


@pytest.mark.parametrize(
    ("text", "levels"),
    [
        (b"", 0),
        (b"7", 0),
        (b"[]", 1),
        (b'{"a": [1, {"b": []}]}', 4),
        (b'"[[[["', 0),
        (rb'["\"[[", "\\", []]', 2),
        (b"[],[],{}", 1),
        (b'"[[[', 0),
        (b'"a\\', 0),
        (b"]]]][[", 0),
        (b"[[[[", 4),
    ],
)
def test_depth_counts_brackets_outside_of_strings(text: bytes, levels: int) -> None:
    assert extent(text).depth == levels


@pytest.mark.parametrize("kind", [b"application/json", b"text/plain", b""])
async def test_a_body_nested_too_deep_is_refused_before_it_is_parsed(
    exchange: Exchange, kind: bytes
) -> None:
    headers = (LOCAL, (b"content-type", kind))
    assert (await Exchange()(b"[" * 8 + b"]" * 8, headers=headers)).status == 200
    await exchange(b"[" * 9 + b"]" * 9, headers=headers)
    assert exchange.status == 400
    assert "8 levels" in exchange.problem["detail"]
    assert exchange.app.asked == 0


@pytest.mark.parametrize("value", [b"[]", b'""', b"1", b"{}", b"null"])
async def test_a_body_of_too_many_values_is_refused_before_it_is_parsed(value: bytes) -> None:
    settings = ServerSettings(json_values=100)
    few, many = (b"[" + b",".join([value] * count) + b"]" for count in (40, 101))
    assert (await Exchange(settings=settings)(few, headers=(LOCAL,))).status == 200
    exchange = Exchange(settings=settings)
    await exchange(many, headers=(LOCAL,))
    assert exchange.status == 413
    assert "more than 100 values" in exchange.problem["detail"]
    assert exchange.app.asked == 0
    form = (b"content-type", b"application/x-www-form-urlencoded")
    exchange = Exchange(settings=settings)
    await exchange(b"a=&" * 200, headers=(LOCAL, form))
    assert exchange.status == 413


@pytest.mark.parametrize(
    "hostile",
    [b"[" * 2**20, b"[]," * 2**18, b'"' * 2**20, b'"\\' * 2**19, b'["\\"' * 2**18, b"{" * 2**20],
    ids=["deep", "wide", "quotes", "escapes", "mixed", "objects"],
)
def test_hostile_text_is_scanned_in_linear_time(hostile: bytes) -> None:
    assert extent(hostile).values >= 0


async def test_every_answer_carries_the_headers_a_refusal_too() -> None:
    served = await Exchange()(method="GET")
    refused = await Exchange()(headers=((b"host", b"evil"),))
    for found in (served, refused):
        for name, value in HEADERS.items():
            assert found.headers[name.lower()] == value
        assert "access-control-allow-origin" not in found.headers
        assert "strict-transport-security" not in found.headers
    policy = served.headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy


async def test_over_tls_browsers_are_told_to_stay_there() -> None:
    found = await Exchange(settings=ServerSettings(secure_cookies=True))()
    assert "max-age" in found.headers["strict-transport-security"]


async def test_a_route_that_knows_better_keeps_its_header() -> None:
    async def styled(scope: Scope, receive: Receive, send: Send) -> None:
        headers = [(b"cache-control", b"max-age=60")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b""})

    found = await Exchange(styled)(method="GET")
    assert found.headers["cache-control"] == "max-age=60"


async def test_a_stream_passes_piece_by_piece() -> None:
    exchange = Exchange()
    seen: list[int] = []

    async def streaming(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(3):
            await send({"type": "http.response.body", "body": b"x", "more_body": True})
            seen.append(len(exchange.sent))
        await send({"type": "http.response.body", "body": b""})

    exchange.shield = RequestMiddleware(streaming, SETTINGS)
    await exchange(method="GET")
    assert seen == [2, 3, 4]


async def test_a_request_keeps_its_name_or_is_given_one() -> None:
    named = await Exchange()(headers=(LOCAL, (b"x-request-id", b"abc-1.2_3")))
    assert named.headers["x-request-id"] == "abc-1.2_3"
    assert named.app.scope["state"]["request_id"] == "abc-1.2_3"
    for odd in (b"", b"a b", b"x" * 65, b"a\r\nSet-Cookie: x"):
        given = (await Exchange()(headers=(LOCAL, (b"x-request-id", odd)))).headers["x-request-id"]
        assert len(given) == 32
    refused = await Exchange()(headers=((b"host", b"evil"), (b"x-request-id", b"r1")))
    assert refused.problem["request_id"] == "r1"


async def test_there_are_no_websockets_here() -> None:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "websocket.connect"}

    await RequestMiddleware(Echo(), SETTINGS)({"type": "websocket"}, receive, send)
    assert sent == [{"type": "websocket.close", "code": 1008}]


async def test_a_hundred_megabytes_are_refused_over_a_real_connection(scene: Scene) -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(1600):
            yield b"x" * 65_536

    answer = await scene.stranger.post("/login", content=endless())
    assert answer.status_code == 413
    assert "bytes" in answer.json()["detail"]


async def test_a_client_that_never_stops_sending_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.server.middleware.requests.LINGER_SECONDS", 0.01)
    exchange = Exchange()

    async def receive() -> Message:
        await asyncio.sleep(0)
        return {"type": "http.request", "body": b"x" * 400, "more_body": True}

    await exchange.run(receive, "POST", (LOCAL,))
    assert exchange.status == 413
    assert exchange.sent[-1] == {"type": "http.response.body", "body": b""}


async def test_a_problem_that_nobody_foresaw_carries_the_headers_too(scene: Scene) -> None:
    answer = await scene.stranger.get("/no/such/path", headers={"X-Request-ID": "r7"})
    assert answer.status_code == 404
    assert answer.headers["x-request-id"] == answer.json()["request_id"] == "r7"
    assert answer.headers["x-content-type-options"] == "nosniff"
