"""A service echoes what an HTTP tool sends with every call; nobody hears of the secrets in it."""

from __future__ import annotations

import asyncio
import json
import logging
from base64 import b64encode
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from holdfast import Holdfast
from holdfast.forms.secrets import HIDDEN
from holdfast.model.retry import RetryPolicy
from holdfast.testing.model_script import Entry, Seen, call
from holdfast.testing.scripted_model import ScriptedModel
from holdfast.work.http_secrets import secrets_in_address
from holdfast.work.http_tools import load_http_tools

CANARY = "Kanari+/7f3c9Q=="
BASIC = b64encode(b"will:hunter2hunter2").decode()
ENV = {"TOKEN": CANARY, "WHOLE": f"Bearer {CANARY}", "BASIC": BASIC}

ECHOES = {
    "as it was": lambda sent: sent,
    "token alone": lambda sent: sent.split()[-1],
    "within a text": lambda sent: f"who is <{sent}>?",
    "as a name": lambda sent: {sent: 1},
    "escaped": lambda sent: json.dumps({"headers": sent}),
    "percent-encoded": lambda sent: quote(sent, safe=""),
    "base64": lambda sent: b64encode(f"it is {sent}".encode()).decode(),
}
FORBIDDEN = (CANARY, "Kanari", quote(CANARY, safe=""), b64encode(CANARY.encode()).decode()[:16])


class Echo:
    """Answers with a status and with whatever it makes of the Authorization header."""

    def __init__(self) -> None:
        self.status = 200
        self.make: Any = ECHOES["as it was"]
        self.port = 0
        self.received: list[str] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        self.received.append(head)
        lines = dict(line.split(": ", 1) for line in head.splitlines()[1:] if ": " in line)
        sent = {name.lower(): value for name, value in lines.items()}
        body = json.dumps({"error": self.make(sent.get("authorization", head.split()[1]))}).encode()
        told = (
            f"HTTP/1.1 {self.status} X\r\nX-Echo: {CANARY}\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        writer.write(told.encode() + body)
        await writer.drain()
        writer.close()


@pytest.fixture
async def echo() -> AsyncIterator[Echo]:
    service = Echo()
    server = await asyncio.start_server(service.serve, "127.0.0.1", 0)
    service.port = server.sockets[0].getsockname()[1]
    async with server:
        yield service


def look_up(seen: Seen) -> Entry:
    return "Seen." if seen.results else call("look_up", city="Oslo")


async def everything_told(home: Path, echo: Echo, **declared: Any) -> str:
    """Every record, question and file of a chat whose agent calls the service once."""
    tool = {"name": "look_up", "endpoint": "http://127.0.0.1:${PORT}/", **declared}
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    file = home / "tools.yaml"
    file.write_text(json.dumps({"tools": [{**tool, "parameters": schema}]}))
    app = Holdfast(home, model=ScriptedModel(look_up))
    app.load_tools(file, {**ENV, "PORT": str(echo.port)})
    app.agent("clerk", tools=["look_up"], retry=RetryPolicy(attempts=1))
    async with app:
        session = await app.sessions.open("clerk")
        await app.sessions.say(session.id, "please")
        await session.wait_until_settled(30)
        records = await app.journal.read(session.id)
        questions = await app.journal.questions()
    return f"{records}{questions}{on_disk(home)}"


def on_disk(home: Path) -> str:
    kept = [path for path in home.rglob("*") if path.is_file() and path.name != "tools.yaml"]
    assert kept
    return b"".join(path.read_bytes() for path in kept).decode("utf-8", "replace")


@pytest.mark.parametrize("status", [200, 502])
@pytest.mark.parametrize("header", ["Bearer ${TOKEN}", "${WHOLE}", f"Bearer {CANARY}"])
@pytest.mark.parametrize("make", ECHOES)
async def test_an_echoed_header_reaches_nobody(
    tmp_path: Path,
    echo: Echo,
    caplog: pytest.LogCaptureFixture,
    make: str,
    header: str,
    status: int,
) -> None:
    caplog.set_level(logging.DEBUG)
    echo.status, echo.make = status, ECHOES[make]
    told = await everything_told(tmp_path, echo, headers={"Authorization": header})
    assert f"Authorization: Bearer {CANARY}" in echo.received[0]
    assert [one for one in FORBIDDEN if one in told + caplog.text] == []
    assert "127.0.0.1" in caplog.text


@pytest.mark.parametrize(
    "endpoint", ["?key=${TOKEN}", "?key=Kanari%2B%2F7f3c9Q%3D%3D", "in/${TOKEN}/by/path"]
)
async def test_an_echoed_address_reaches_nobody(
    tmp_path: Path, echo: Echo, caplog: pytest.LogCaptureFixture, endpoint: str
) -> None:
    caplog.set_level(logging.DEBUG)
    told = await everything_told(
        tmp_path, echo, endpoint="http://127.0.0.1:${PORT}/" + endpoint, method="GET"
    )
    assert "Kanari" in echo.received[0]
    assert [one for one in FORBIDDEN if one in told + caplog.text] == []


async def test_an_echoed_password_reaches_nobody(tmp_path: Path, echo: Echo) -> None:
    endpoint = "http://will:${TOKEN}@127.0.0.1:${PORT}/"
    told = await everything_told(tmp_path, echo, endpoint=endpoint.replace("${TOKEN}", "hunter2x"))
    sent = b64encode(b"will:hunter2x").decode()
    assert sent in echo.received[0]
    assert sent[-12:] not in told
    assert "hunter2x" not in told


async def test_the_rest_of_an_answer_stays_as_it_was(tmp_path: Path, echo: Echo) -> None:
    echo.make = lambda sent: {"sent": sent, "none": "nonexistent", "from": "127.0.0.1", "n": 8080}
    told = await everything_told(
        tmp_path, echo, headers={"Authorization": "Bearer ${TOKEN}", "X-Kind": "${KIND:-none}"}
    )
    expected = {"sent": f"Bearer {HIDDEN}", "none": "nonexistent", "from": "127.0.0.1", "n": 8080}
    assert json.dumps(expected, separators=(",", ":")) in told


@pytest.mark.parametrize(
    ("header", "secrets"),
    [
        (("Authorization", "Bearer ${TOKEN}"), {CANARY}),
        (("Authorization", "${WHOLE}"), {CANARY, f"Bearer {CANARY}"}),
        (("Authorization", "Basic ${BASIC}"), {BASIC, "will:hunter2hunter2", "hunter2hunter2"}),
        (("Authorization", "Basic not-base64"), {"not-base64"}),
        (("Authorization", "Bearer ${NONE:-nothing}"), set()),
        (("X-Api-Key", "written down"), {"down"}),
        (("Cookie", "sid=s3cr3t; theme=dark"), {"theme=dark", "s3cr3t", "dark"}),
        (("Authorization", 'Token token="s3cr3t"'), {'token="s3cr3t"', "s3cr3t"}),
        (("Authorization", "Bearer  s3cr3t"), {"s3cr3t"}),
        (("X-Tenant", "${TOKEN}"), {CANARY}),
        (("Accept", "application/json"), set()),
    ],
)
def test_what_is_secret_about_a_header(header: tuple[str, str], secrets: set[str]) -> None:
    name, template = header
    [tool] = load_http_tools(
        [{"name": "t", "endpoint": "http://127.0.0.1/", "headers": {name: template}}], ENV
    )
    assert tool.secrets - {""} == secrets


@pytest.mark.parametrize(
    ("address", "taken", "secrets"),
    [
        ("https://api.example.com:8443/v1", ["https", "api.example.com", "8443"], set()),
        ("https://api.example.com:8443/v1", ["api.example.com:8443"], set()),
        ("https://a.example.com/x?k=abcd", ["https://a.example.com/x?k=abcd"], {"abcd"}),
        ("https://a.example.com/x?token=abcd&page=2", [], {"abcd"}),
        ("https://will:hunter2@a.example.com/", [], {"hunter2"}),
        ("https://a.example.com/hook/T0/abcd", ["T0/abcd"], {"T0/abcd"}),
    ],
)
def test_what_is_secret_about_an_address(address: str, taken: list[str], secrets: set[str]) -> None:
    assert set(secrets_in_address(httpx.URL(address), taken)) - {""} == secrets
