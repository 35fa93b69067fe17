"""What tests of chats and questions share: a clerk who pays with consent, and ears for streams.

The clerk pays what is asked ("pay 5") when somebody agrees, and otherwise says what was said.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
from server_scene import Scene

from holdfast import Holdfast
from holdfast.testing.model_script import Entry, Seen, call
from holdfast.testing.scripted_model import ScriptedModel

PATIENCE = 30.0
STREAM = "/api/agent/chat/react/stream"
RESPONSE = "/api/agent/chat/react/interaction_response"


@dataclass
class Till:
    """What has really been paid."""

    paid: list[int] = field(default_factory=list)

    async def pay(self, amount: int) -> dict[str, Any]:
        """Pay somebody."""
        self.paid.append(amount)
        return {"paid": amount}


def clerks_mind(seen: Seen) -> Entry:
    if seen.results:
        return f"Done: {json.dumps(seen.results[-1].content)}"
    if seen.asked.startswith("pay "):
        return call("pay", amount=int(seen.asked.removeprefix("pay ")))
    return f"You said: {seen.asked}"


def employ(app: Holdfast, **declared: Any) -> Till:
    """A clerk with a till; `declared` goes into the agent's declaration."""
    till = Till()
    app.tool(till.pay, approval="require")
    app.agent("clerk", name="Clerk", model=None, tools=["pay"], **declared)
    app.models.default_model = ScriptedModel(clerks_mind)
    return till


async def forget(*given: Any) -> None:
    """In place of `Requests._keep`: the server fell right after the commit."""


async def open_chat(client: httpx.AsyncClient, **body: Any) -> str:
    answer = await client.post("/chats", json={"agentId": "clerk", **body})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["sessionId"])


async def tell(scene: Scene, client: httpx.AsyncClient, session_id: str, message: str) -> str:
    """Say something; how the session stands when it rests or waits."""
    answer = await client.post(f"/chats/{session_id}/messages", json={"message": message})
    assert answer.status_code == 200, answer.text
    return await rested(scene, session_id)


async def rested(scene: Scene, session_id: str) -> str:
    return await (await scene.app.sessions.session(session_id)).wait_until_settled(PATIENCE)


async def asked(client: httpx.AsyncClient, session_id: str) -> dict[str, Any]:
    """The one question of a session that is open."""
    chat = (await client.get(f"/chats/{session_id}")).json()
    [question] = chat["interactions"]
    return dict(question)


async def asks_to_pay(scene: Scene, amount: int = 5) -> dict[str, Any]:
    """A question, as the admin sees it: may the clerk pay?"""
    operator = await scene.as_a("operator")
    session_id = await open_chat(operator)
    assert await tell(scene, operator, session_id, f"pay {amount}") == "pause"
    return await asked(scene.admin, session_id)


@dataclass(frozen=True)
class Heard:
    event: str
    data: dict[str, Any]
    id: str | None


class Ear:
    """Listens to one event stream as a browser does."""

    def __init__(self, lines: AsyncIterator[str]) -> None:
        self._lines = lines
        self.last_id: str | None = None

    async def next(self) -> Heard | None:
        """The next event, or None at the end of the stream."""
        got: dict[str, str] = {}
        async with asyncio.timeout(PATIENCE):
            async for line in self._lines:
                if line:
                    name, _, value = line.partition(": ")
                    got[name] = value
                    continue
                self.last_id = got.get("id", self.last_id)
                if "data" in got:
                    return Heard(got["event"], json.loads(got["data"]), got.get("id"))
                got = {}
        return None

    async def until(self, event: str) -> list[Heard]:
        """Everything up to the first event of that name."""
        heard = []
        while (one := await self.next()) is not None:
            heard.append(one)
            if one.event == event:
                return heard
        raise AssertionError(f"no {event}, only {[one.event for one in heard]}")

    async def rest(self) -> list[Heard]:
        """Everything until the stream ends."""
        heard = []
        while (one := await self.next()) is not None:
            heard.append(one)
        return heard

    async def place(self) -> str:
        """The id that the stream gives whoever comes to it, before any event."""
        async with asyncio.timeout(PATIENCE):
            async for line in self._lines:
                if line.startswith("id: "):
                    self.last_id = line.removeprefix("id: ")
                    return self.last_id
        raise AssertionError("the stream has ended")


@asynccontextmanager
async def listening_to(
    client: httpx.AsyncClient,
    method: str = "GET",
    path: str = STREAM,
    *,
    json: Any = None,
    headers: Mapping[str, str] | None = None,
) -> AsyncIterator[Ear]:
    async with client.stream(method, path, json=json, headers=headers) as response:
        assert response.status_code == 200, await response.aread()
        assert response.headers["content-type"].startswith("text/event-stream")
        async with aclosing(response.aiter_lines()) as lines:
            yield Ear(lines)
