"""Attacks by bytes: names, bodies, paths and headers that no honest client sends.

Where a client library would make them honest again they are written to the socket by hand.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from chat_scene import STREAM, listening_to
from hostile_scene import Ground, standing_ground
from starlette.routing import BaseRoute, Mount, Route
from test_authority import DOCUMENT

from holdfast import Holdfast
from holdfast.server.settings import ServerSettings

START = {"plan_id": "apply_computer"}
HUNDRED_MEGABYTES = 100 * 1024 * 1024


@pytest.fixture
async def ground(app: Holdfast) -> AsyncIterator[Ground]:
    async with standing_ground(app) as ground:
        yield ground


async def sent(ground: Ground, *parts: bytes) -> bytes:
    """Everything that comes back until the server closes, or has nothing more to say."""
    place = urlsplit(ground.scene.url)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    try:
        for part in parts:
            writer.write(part)
            await writer.drain()
        return await asyncio.wait_for(reader.read(), 30)
    finally:
        writer.close()


def request(ground: Ground, line: str, *headers: str, body: bytes = b"") -> bytes:
    """A request of the admin's that is to be the last on its connection."""
    known = [f"Authorization: Bearer {ground.tokens['admin']}", "Connection: close", *headers]
    if not any(one.lower().startswith("host:") for one in headers):
        known.insert(0, f"Host: {urlsplit(ground.scene.url).netloc}")
    return "\r\n".join([f"{line} HTTP/1.1", *known, "", ""]).encode() + body


def json_request(ground: Ground, body: bytes, path: str = "/instances") -> bytes:
    return request(
        ground,
        f"POST {path}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        body=body,
    )


def status_of(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


FOREIGN_HOSTS = [
    "Host: evil.example",
    "Host: evil.example:8420",
    "Host: 127.0.0.1.evil.example",
    "Host: localhost.evil.example",
    "Host: 127.0.0.1@evil.example",
    "Host: 127.0.0.1, evil.example",
    "Host: [::ffff:10.0.0.1]",
    "Host: ",
    "Host: 127.0.0.1\r\nHost: evil.example",
    "Host: 127.0.0.1/../evil.example",
]


@pytest.mark.parametrize("host", FOREIGN_HOSTS)
async def test_under_another_name_nobody_is_served(host: str, ground: Ground) -> None:
    """DNS rebinding: the page of another name reaches our port, and gets nothing of it."""
    before = await ground.standing()
    body = json.dumps(START).encode()
    start = request(
        ground,
        "POST /instances",
        host,
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        body=body,
    )
    for attack in (start, request(ground, "GET /me", host), request(ground, "GET /healthz", host)):
        assert status_of(await sent(ground, attack)) == 400
    assert await ground.standing() == before


async def test_a_forwarded_or_absolute_name_does_not_help(ground: Ground) -> None:
    foreign = request(ground, "GET http://127.0.0.1/me", "Host: evil.example")
    assert status_of(await sent(ground, foreign)) == 400
    helped = request(ground, "GET /me", "Host: evil.example", "X-Forwarded-Host: 127.0.0.1")
    assert status_of(await sent(ground, helped)) == 400


TRICKS = [
    "..",
    ".",
    "%2e%2e",
    "%252e%252e",
    "..%2f..%2ftokens",
    "%2e%2e%2f%2e%2e%2fetc%2fpasswd",
    "..%5c..%5ctokens",
    "%00",
    "inst_000001%00",
    "inst_000001%0d%0aSet-Cookie:%20holdfast=1",
    "inst_000001%2f",
    "inst_000001;admin=1",
    "%e2%80%ae",
    "%ff%fe",
    "%ed%a0%80",
    "%f0%9f%92%a3",
    "INST_000001",
    "inst_000001%20",
    "inst_000001.",
    "inst_000001.c1",
    "%25",
    "%",
    "'%20OR%20'1'='1",
    "x" * 5000,
]


def templates() -> Iterator[tuple[str, str]]:
    for path, item in DOCUMENT["paths"].items():
        if "{" in path:
            yield from ((method.upper(), path) for method in item)


async def test_no_id_leads_to_what_it_does_not_name(ground: Ground) -> None:
    """Every path that takes an id, with every trick in place of it; also for the second one."""
    instance_id = await ground.waiting()
    assert instance_id == "inst_000001"
    before = await ground.standing()
    whoami = ground.tokens["admin"]
    place = urlsplit(ground.scene.url)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    for method, template in templates():
        for trick in TRICKS:
            path = filled(template, trick)
            head = f"{method} {path} HTTP/1.1\r\nHost: {place.netloc}\r\n"
            bodied = "Content-Type: application/json\r\nContent-Length: 2\r\n"
            writer.write(f"{head}{bodied}Authorization: Bearer {whoami}\r\n\r\n{{}}".encode())
            status, headers = await answered(reader)
            assert 400 <= status < 500, (method, path, status)
            assert b"set-cookie" not in headers.lower()
    writer.close()
    assert await ground.standing() == before


def filled(template: str, trick: str) -> str:
    """The first id is the trick; a second one is good."""
    start, _, rest = template.partition("{")
    _, _, tail = rest.partition("}")
    return start + trick + tail.replace("{", "").replace("}", "")


async def answered(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """One answer, read whole, so that the next request may follow it."""
    async with asyncio.timeout(30):
        head = await reader.readuntil(b"\r\n\r\n")
        [length] = [
            int(line.partition(b":")[2])
            for line in head.split(b"\r\n")
            if line.lower().startswith(b"content-length:")
        ]
        await reader.readexactly(length)
    return status_of(head), head


async def test_a_viewer_finds_no_way_round_through_a_path(ground: Ground) -> None:
    for path in (
        "/plans/../tokens",
        "/plans/%2e%2e/tokens",
        "//tokens",
        "/tokens/",
        "/tokens;/healthz",
        "/healthz/../tokens",
        "/healthz%2f..%2ftokens",
        "/tokens%3f",
        "/%74okens",
        "/TOKENS",
        "/audit/..;/audit",
    ):
        attack = request(ground, f"GET {path}").replace(
            ground.tokens["admin"].encode(), ground.tokens["viewer"].encode()
        )
        assert status_of(await sent(ground, attack)) in (403, 404), path


async def test_a_hundred_megabytes_declared_are_refused_unread(ground: Ground) -> None:
    before = await ground.standing()
    head = request(
        ground,
        "POST /instances",
        "Content-Type: application/json",
        f"Content-Length: {HUNDRED_MEGABYTES}",
    )
    assert status_of(await sent(ground, head, b'{"plan_id":')) == 413
    assert await ground.standing() == before


async def test_a_hundred_megabytes_in_pieces_are_cut_off(ground: Ground) -> None:
    before = await ground.standing()
    pieces = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal pieces
        while pieces * 65_536 < HUNDRED_MEGABYTES:
            pieces += 1
            yield b" " * 65_536

    json_kind = {"Content-Type": "application/json"}
    answer = await ground.scene.admin.post("/instances", content=endless(), headers=json_kind)
    assert answer.status_code == 413
    assert await ground.standing() == before


async def test_a_body_that_trickles_is_not_waited_for(app: Holdfast) -> None:
    settings = ServerSettings(body_seconds=0.05)
    async with standing_ground(app, settings) as ground:
        before = await ground.standing()
        length = HUNDRED_MEGABYTES // 1000
        head = request(ground, "POST /instances", f"Content-Length: {length}")
        answer = await sent(ground, head, b"{", b'"')
        assert status_of(answer) == 408
        assert await ground.standing() == before


async def test_a_request_has_one_length(ground: Ground) -> None:
    """Two lengths are how one request is smuggled behind another."""
    before = await ground.standing()
    body = json.dumps(START).encode()
    smuggled = b"0\r\n\r\nPOST /instances HTTP/1.1\r\nHost: x\r\n\r\n"
    for lengths in (
        (f"Content-Length: {len(body)}", "Transfer-Encoding: chunked"),
        (f"Content-Length: {len(body)}", "Content-Length: 0"),
        ("Transfer-Encoding: chunked", "Transfer-Encoding: identity"),
        ("Content-Length: +5",),
        ("Content-Length: -1",),
        ("Transfer-Encoding: xchunked",),
    ):
        kind = "Content-Type: application/json"
        head = request(ground, "POST /instances", kind, *lengths)
        answer = await sent(ground, head, smuggled)
        assert status_of(answer) in (400, 408, 422, 501), (lengths, answer)
        assert b" 201 " not in answer
    assert await ground.standing() == before


BODIES: dict[str, bytes] = {
    "deep list": b'{"values": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "deep object": b'{"a":' * 20_000 + b"1" + b"}" * 20_000,
    "never closed": b"[" * 500_000,
    "number beyond a float": b'{"plan_id": "apply_computer", "values": {"n": 1e999}}',
    "number beyond 64 bits": b'{"plan_id": "apply_computer", "values": {"n": 1'
    + b"0" * 400
    + b"}}",
    "number of a million digits": b'{"values": {"n": ' + b"9" * 900_000 + b"}}",
    "a key twice": b'{"plan_id": "grant_access", "plan_id": "apply_computer"}',
    "a key twice, deeper": b'{"plan_id": "apply_computer", "values": {"a": 1, "a": 2}}',
    "a key twice, escaped": b'{"plan_id": "grant_access", "plan\\u005fid": "apply_computer"}',
    "half a character": b'{"plan_id": "apply_computer", "prompt": "\\ud800"}',
    "no utf-8": b'{"plan_id": "apply_computer", "prompt": "\xff"}',
    "overlong utf-8": b'{"plan_id": "apply_computer", "prompt": "\xc0\xaf"}',
    "utf-16": json.dumps(START).encode("utf-16"),
    "not a number": b'{"plan_id": "apply_computer", "values": {"n": NaN}}',
    "more after the end": json.dumps(START).encode() * 2,
    "a null byte": b'{"plan_id": "apply_computer", "prompt": "\x00"}',
    "a control character": b'{"plan_id": "apply_computer\\u0000"}',
}


@pytest.mark.parametrize("name", BODIES)
async def test_a_body_that_is_no_honest_json_is_refused(name: str, ground: Ground) -> None:
    before = await ground.standing()
    answer = await sent(ground, json_request(ground, BODIES[name]))
    refused = (
        (400, 413) if name in ("deep list", "deep object", "never closed") else (400, 404, 422)
    )
    assert status_of(answer) in refused, answer[:500]
    assert await ground.standing() == before


async def test_an_answer_that_says_two_things_says_nothing(ground: Ground) -> None:
    question = await ground.approval()
    before = await ground.standing()
    path = f"/interactions/{question['requestId']}/answer"
    twice = b'{"selectedOptionId": "terminate", "selectedOptionId": "approve"}'
    answer = await sent(ground, json_request(ground, twice, path))
    assert status_of(answer) == 422, answer
    assert b"selectedOptionId" in answer
    assert await ground.standing() == before


async def test_too_many_or_too_long_headers_are_refused_and_others_are_served(
    ground: Ground,
) -> None:
    before = await ground.standing()
    many = [f"X-Header-{number}: {'v' * 100}" for number in range(2000)]
    for headers in (many, [f"X-Long: {'v' * 300_000}"], [f"Cookie: holdfast={'v' * 200_000}"]):
        attack = request(ground, "POST /instances", *headers)
        try:
            answer = await sent(ground, attack)
        except ConnectionError:
            answer = b""
        assert not answer or status_of(answer) >= 400, answer[:200]
    assert await ground.standing() == before
    assert (await ground.scene.admin.get("/me")).status_code == 200


async def test_no_line_is_slipped_into_an_answer_s_head(ground: Ground) -> None:
    for name, value in (
        ("X-Request-ID", "r7\r\n Set-Cookie: holdfast=1"),
        ("X-Request-ID", "r7\tSet-Cookie: holdfast=1"),
        ("Idempotency-Key", "k\r\n Set-Cookie: holdfast=1"),
        ("Last-Event-ID", "1\r\n Set-Cookie: holdfast=1"),
    ):
        answer = await sent(ground, request(ground, "GET /me", f"{name}: {value}"))
        head = answer.split(b"\r\n\r\n")[0].lower()
        assert b"set-cookie" not in head, (name, head)


async def test_no_event_is_slipped_into_a_stream(ground: Ground) -> None:
    forged = 'x\n\nevent: FORGED\ndata: {"type": "FORGED"}\n\n\r\revent: FORGED\u2028event: FORGED'
    client = ground.crowd["operator"]
    async with listening_to(client, "POST", STREAM, json={"message": forged}) as ear:
        heard = await ear.until("DONE")
        assert await ear.rest() == []
    assert "FORGED" not in {one.event for one in heard}
    assert any("event: FORGED" in str(one.data) for one in heard), "it is there, as text"


OPEN_TO_ALL = {
    ("GET", "/openapi.json"),
    ("HEAD", "/openapi.json"),
    ("GET", "/healthz"),
    ("GET", "/readyz"),
    ("POST", "/login"),
}
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")


def paths_of(routes: list[BaseRoute], before: str = "") -> Iterator[str]:
    for route in routes:
        if isinstance(route, Mount):
            yield from paths_of(list(route.routes), before + route.path)
        elif isinstance(route, Route):
            yield before + route.path
        else:
            yield from paths_of(route.original_router.routes, before)  # type: ignore[attr-defined]


async def test_without_a_credential_only_the_doors_answer(ground: Ground) -> None:
    """By what the router has, not by what is described; with every method there is."""
    before = await ground.standing()
    every = set(paths_of(list(Holdfast.in_memory().asgi().routes)))
    assert set(DOCUMENT["paths"]) <= every
    answering: set[tuple[str, str]] = set()
    for path in sorted(every):
        filled_in = path.replace("{", "").replace("}", "")
        for method in METHODS:
            answer = await ground.scene.stranger.request(method, filled_in)
            if answer.status_code not in (401, 404, 405):
                answering.add((method, path))
    assert answering == OPEN_TO_ALL
    linked = await ground.scene.stranger.get("/login", params={"token": "link_x"})
    assert (linked.status_code, "<button>" in linked.text) == (200, True)
    assert await ground.standing() == before


async def test_a_token_in_the_address_or_the_body_proves_nothing(ground: Ground) -> None:
    token: Any = ground.tokens["admin"]
    stranger = ground.scene.stranger
    for path in (f"/me?token={token}", f"/me?access_token={token}", f"/me?Authorization={token}"):
        assert (await stranger.get(path)).status_code == 401
    answer = await stranger.post("/instances", json={**START, "access_token": token})
    assert answer.status_code == 401
    for header in ("X-Api-Key", "X-Auth-Token", "Proxy-Authorization"):
        assert (await stranger.get("/me", headers={header: f"Bearer {token}"})).status_code == 401
