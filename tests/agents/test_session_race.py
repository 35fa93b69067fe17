"""A thousand approvals, each answered twice at the same moment by clients in two processes.

The front is a line of JSON for each answer, over TCP. It holds an answer back until its rival
has come too, and then hands both in at once: the closest that two people can get.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from session_scenes import PATIENCE, Ledger, asked, ended, history, of_kind

import warm
from holdfast.agents.sessions import AgentSession
from holdfast.app import Holdfast
from holdfast.errors import AlreadyAnswered, CallerError
from holdfast.model import agent_events as r
from holdfast.model import events as e
from holdfast.testing.model_script import Entry, Seen, call, say
from holdfast.testing.scripted_model import ScriptedModel

SESSIONS = 20
CALLS = 50
RIVALS = ("ann", "bob")


def many_calls(seen: Seen) -> Entry:
    if seen.results:
        return "All done."
    first = int(seen.asked)
    return say("", *(call("pay", number=number) for number in range(first, first + CALLS)))


def office(home: Path) -> tuple[Holdfast, Ledger]:
    ledger = Ledger(home / "ledger.jsonl")
    app = Holdfast(home, model=ScriptedModel(many_calls))

    @app.tool(approval="require")
    async def pay(number: int) -> dict[str, int]:
        ledger.note("pay", str(number))
        return {"paid": number}

    app.agent("clerk", tools=["pay"])
    return app, ledger


class Front:
    """Takes answers over TCP; each waits for its rival, so that both are given at once."""

    def __init__(self, app: Holdfast) -> None:
        self._app = app
        self._pairs: dict[str, asyncio.Barrier] = defaultdict(lambda: asyncio.Barrier(2))

    @asynccontextmanager
    async def open(self) -> AsyncIterator[int]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        async with server:
            yield server.sockets[0].getsockname()[1]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.TaskGroup() as group:
            while line := await reader.readline():
                group.create_task(self._answer(json.loads(line), writer))
        writer.close()

    async def _answer(self, given: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        await self._pairs[given["question_id"]].wait()
        told: dict[str, Any] = {"question_id": given["question_id"], "by": given["by"]}
        try:
            await self._app.answer(**given)
            told["error"] = None
        except AlreadyAnswered as error:
            told |= {"error": "AlreadyAnswered", "winner": error.by, "option": error.option_id}
        except CallerError as error:
            told["error"] = type(error).__name__
        writer.write(json.dumps(told).encode() + b"\n")


async def send_all(port: int, answers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    client = str(Path(__file__).parent / "session_client.py")
    pipe = asyncio.subprocess.PIPE
    process = await warm.create_subprocess_exec(
        sys.executable, client, str(port), stdin=pipe, stdout=pipe
    )
    lines = "".join(json.dumps(one) + "\n" for one in answers)
    out, _ = await process.communicate(lines.encode())
    assert process.returncode == 0
    return [json.loads(line) for line in out.splitlines()]


def answer_of(rival: str, number: int, question_id: str) -> dict[str, Any]:
    """By number: the same person twice, two people of one mind, or one against the other."""
    approve = {"question_id": question_id, "option_id": "approve", "by": rival}
    if number % 4 == 0:
        return {**approve, "by": "ann"}
    # Who refuses alternates, so that neither process is always the one that says no.
    refuses = number % 2 and rival == RIVALS[number // 2 % 2]
    return {**approve, "option_id": "reject", "feedback": "no"} if refuses else approve


async def questions_by_number(app: Holdfast) -> tuple[list[AgentSession], dict[int, str]]:
    sessions = []
    for first in range(0, SESSIONS * CALLS, CALLS):
        session = await app.sessions.open("clerk")
        sessions.append(await app.sessions.say(session.id, str(first)))
    found: dict[int, str] = {}
    for session in sessions:
        for request in await asked(app, session.id, CALLS):
            found[request.context["args"]["number"]] = request.request_id
    return sessions, found


async def winners(app: Holdfast, sessions: list[AgentSession]) -> dict[str, e.QuestionAnswered]:
    """The one recorded answer of each question."""
    found: dict[str, e.QuestionAnswered] = {}
    for session in sessions:
        for answered in of_kind(await history(app, session.id), e.QuestionAnswered):
            assert answered.question_id not in found, "answered twice"
            found[answered.question_id] = answered
    return found


async def test_a_thousand_approvals_answered_twice_at_once_have_one_outcome_each(
    tmp_path: Path,
) -> None:
    app, ledger = office(tmp_path)
    async with app:
        sessions, questions = await questions_by_number(app)
        assert len(questions) == SESSIONS * CALLS == 1000
        orders = [
            [answer_of(rival, number, question) for number, question in questions.items()]
            for rival in RIVALS
        ]
        async with Front(app).open() as port, asyncio.timeout(2 * PATIENCE):
            told = await asyncio.gather(*(send_all(port, order) for order in orders))
        for session in sessions:
            assert await ended(session) == "done"
        won = await winners(app, sessions)
        started: Counter[int] = Counter()
        for session in sessions:
            calls = of_kind(await history(app, session.id), r.CallStarted)
            started.update(one.args["number"] for one in calls)
    replies = defaultdict(list)
    for reply in [*told[0], *told[1]]:
        replies[reply["question_id"]].append(reply)
    for number, question_id in questions.items():
        assert_one_outcome(number, replies[question_id], won[question_id])
    approved = {n for n, one in questions.items() if won[one].option_id == "approve"}
    assert {int(one["key"]) for one in ledger.calls} == approved
    assert len(ledger.calls) == len(approved), "one execution for each approval that won"
    assert started == Counter(approved)
    assert 500 < len(approved) < 1000, "of those who disagreed, now one won and now the other"


def assert_one_outcome(number: int, replies: list[dict[str, Any]], won: e.QuestionAnswered) -> None:
    assert len(replies) == 2
    refused = [one for one in replies if one["error"] is not None]
    if number % 4 == 0:
        assert refused == [], "the same answer of the same person again is no conflict"
        return
    [loser] = refused
    [winner] = [one for one in replies if one["error"] is None]
    assert loser["error"] == "AlreadyAnswered"
    assert (loser["winner"], loser["option"]) == (won.by, won.option_id)
    assert winner["by"] == won.by
