"""What the tests of sessions share: a ledger of calls, a clerk with three tools, a slow speaker.

The ledger is a file, so it remembers what a killed process did. The clerk's model answers by the
conversation and not by a count, so it goes on after a restart as if nothing had happened.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from holdfast.agents.sessions import AgentSession
from holdfast.app import Holdfast
from holdfast.core.agent.state import ReactState
from holdfast.core.run.state import RunState
from holdfast.journal.codec import decode
from holdfast.journal.port import QuestionQuery, QuestionRow, Record
from holdfast.model.interaction import InteractionRequest
from holdfast.model.recorded import Event
from holdfast.model.retry import RetryPolicy
from holdfast.model.rows import request_of
from holdfast.runtime.machines import as_session, blank, definition_of, replay
from holdfast.testing.clock import ManualClock
from holdfast.testing.model_script import Entry, Seen, call, say
from holdfast.testing.scripted_model import ScriptedModel
from holdfast.work.models import ModelClient
from holdfast.work.tools import CallInfo

PATIENCE = 30.0
"""Far beyond what anything here takes; a test that reaches it has hung."""

ONCE = RetryPolicy(attempts=1)
QUICK = RetryPolicy(attempts=3, initial=0.001, maximum=0.001)


class Ledger:
    """A file with a line for every call that a tool has really made."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def note(self, tool: str, key: str = "", **args: Any) -> None:
        line = json.dumps({"tool": tool, "key": key, "args": args}) + "\n"
        file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.write(file, line.encode())
        os.close(file)

    @property
    def calls(self) -> list[dict[str, Any]]:
        if not self._path.exists():
            return []
        return [json.loads(line) for line in self._path.read_text().splitlines()]

    @property
    def counts(self) -> Counter[str]:
        return Counter(one["tool"] for one in self.calls)

    def of(self, tool: str) -> list[dict[str, Any]]:
        return [one for one in self.calls if one["tool"] == tool]


def three_calls(seen: Seen) -> Entry:
    """One call that is free, one that needs consent, one that lacks an argument.

    A boss has the clerk make them.
    """
    if seen.results:
        return "All done."
    if seen.system == "boss":
        return call("ask_clerk", task="please")
    if seen.asked != "please":
        return f"You said: {seen.asked}"
    return say(
        "Let me see.", call("look", city="Paris"), call("pay", amount=5), call("order", item="desk")
    )


def add_clerk(app: Holdfast, ledger: Ledger, **declared: Any) -> None:
    """A clerk who may look freely (under a key), pays with consent and orders what is complete."""

    @app.tool(idempotent=True)
    async def look(city: str, call: CallInfo) -> dict[str, Any]:
        ledger.note("look", call.key, city=city)
        return {"sun": True}

    @app.tool(approval="require")
    async def pay(amount: int, call: CallInfo) -> dict[str, Any]:
        ledger.note("pay", call.key, amount=amount)
        return {"paid": amount}

    @app.tool
    async def order(item: str, color: str, call: CallInfo) -> dict[str, Any]:
        ledger.note("order", call.key, item=item, color=color)
        return {"ordered": f"{color} {item}"}

    options: dict[str, Any] = {"name": "Clerk", "tools": ["look", "pay", "order"], **declared}
    app.agent("clerk", **options)
    app.agent("boss", name="Boss", system_context="boss", agents=["clerk"])


def clerks_office(
    home: Path, script: Any = three_calls, *, declared: dict[str, Any] | None = None, **options: Any
) -> tuple[Holdfast, Ledger]:
    """An application that is not open yet, on the real journal in `home`."""
    ledger = Ledger(home / "ledger.jsonl")
    app = Holdfast(home, model=ScriptedModel(script), **options)
    add_clerk(app, ledger, **(declared or {}))
    return app, ledger


def over_the_wire(url: str, retry: RetryPolicy = QUICK) -> ModelClient:
    return ModelClient(default_model="scripted", base_url=url, api_key="test", retry=retry)


async def begin(app: Holdfast, text: str = "please", agent_id: str = "clerk") -> AgentSession:
    session = await app.sessions.open(agent_id)
    await app.sessions.say(session.id, text, by="will.zhang")
    return session


async def until(
    app: Holdfast, run_id: str, holds: Callable[[ReactState], bool], patience: float = PATIENCE
) -> ReactState:
    """The first committed state of a session for which `holds`."""

    def asked(state: RunState) -> bool:
        return holds(as_session(state))

    state = as_session(await app.engine.wait_for(run_id, asked, patience))
    assert holds(state), f"{run_id} is {state.status}: {state.error}"
    return state


async def ended(session: AgentSession) -> str:
    return await session.wait_for_completion(PATIENCE)


def _moved(version: int, state: ReactState) -> bool:
    return state.version > version


async def answering(
    app: Holdfast, session: AgentSession, answer: Callable[[InteractionRequest], Awaitable[object]]
) -> None:
    """Have everything answered that is asked, also by runs below, until the turn is over."""
    async with asyncio.timeout(PATIENCE):
        while await session.wait_until_settled() == "pause":
            version = session.version
            requests = await open_requests(app)
            for request in requests:
                await answer(request)
            if not requests:
                await until(app, session.id, partial(_moved, version))


async def open_requests(app: Holdfast, **query: Any) -> list[InteractionRequest]:
    rows = await app.inbox(QuestionQuery(status=frozenset({"open"}), **query))
    return [request_of(row) for row in rows]


async def asked(app: Holdfast, run_id: str, count: int = 1) -> list[InteractionRequest]:
    """The open questions of a session, once there are so many."""
    state = await until(app, run_id, lambda state: len(state.open_questions) == count)
    found = [state.questions[one] for one in state.open_questions]
    return [one.request for one in sorted(found, key=lambda one: one.opened_seq)]


async def row_of(app: Holdfast, question_id: str) -> QuestionRow:
    row = await app.journal.question(question_id)
    assert row is not None
    return row


async def history(app: Holdfast, run_id: str) -> list[Event]:
    return [decode(record) for record in await app.journal.read(run_id)]


def of_kind(events: Iterable[Event], kind: Any) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


async def assert_sound(app: Holdfast, run_id: str) -> RunState:
    """The journal is gapless, and its replay is the state."""
    state, records = await _at_rest(app, run_id)
    assert [record.seq for record in records] == list(range(1, state.version + 1))
    told = ((record.at, decode(record)) for record in records)
    assert replay(blank(run_id, definition_of(state)), told) == state
    return state


async def _at_rest(app: Holdfast, run_id: str) -> tuple[RunState, list[Record]]:
    """State and journal of the same moment; a late word may still be on its way."""
    while True:
        state = await app.engine.state(run_id)
        records = await app.journal.read(run_id)
        if len(records) == state.version == (await app.engine.state(run_id)).version:
            return state, records
        await asyncio.sleep(0.01)


class DeafClock(ManualClock):
    """A clock that tells the time but rings for nobody: the timers never fire by themselves."""

    async def wait(self, until: float | None, nudge: asyncio.Event) -> None:
        await asyncio.Event().wait()


class Conversation:
    """One request to a slow speaker: what it says when the test says so, and the client's end."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def speak(self, text: str) -> None:
        await self._send({"content": text}, None)

    async def finish(self) -> None:
        await self._send({}, "stop")
        self._writer.write(b"data: [DONE]\n\n")
        self._writer.close()

    def break_off(self) -> None:
        self._writer.close()

    async def hung_up(self) -> None:
        """Return when the client has closed its end of the connection."""
        async with asyncio.timeout(PATIENCE):
            while await self._reader.read(1024):
                pass
        self._writer.close()

    async def _send(self, delta: dict[str, str], finish: str | None) -> None:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        chunk = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "slow"}
        self._writer.write(f"data: {json.dumps({**chunk, 'choices': [choice]})}\n\n".encode())
        await self._writer.drain()


_SPEAKING = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"


@asynccontextmanager
async def slow_speaker() -> AsyncIterator[tuple[str, Callable[[], Awaitable[Conversation]]]]:
    """A model server that says nothing but what the test has it say: its URL, and the next call."""
    calls: asyncio.Queue[Conversation] = asyncio.Queue()
    writers: list[asyncio.StreamWriter] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        head = await reader.readuntil(b"\r\n\r\n")
        [length] = [line for line in head.lower().split(b"\r\n") if b"content-length" in line]
        await reader.readexactly(int(length.partition(b":")[2]))
        writer.write(_SPEAKING)
        await writer.drain()
        calls.put_nowait(Conversation(reader, writer))

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    async with server:
        yield f"http://{host}:{port}/v1", calls.get
        for writer in writers:
            writer.close()
