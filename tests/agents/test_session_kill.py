"""kill -9 at every append and every effect of a session: it ends well, and no tool runs twice.

A process of its own talks with the clerk on a real SQLite file and is killed at one fault point.
Then this process opens the same journal, a truthful person answers whatever is asked, and the
ledger, which outlived the kill, is compared with what was consented to.
"""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest
from session_child import REPORT
from session_scenes import (
    PATIENCE,
    Ledger,
    answering,
    assert_sound,
    begin,
    clerks_office,
    ended,
    history,
    of_kind,
    open_requests,
)

import warm
from holdfast.agents.sessions import AgentSession
from holdfast.app import Holdfast
from holdfast.journal.codec import decode
from holdfast.journal.home import DATABASE
from holdfast.journal.sqlite import SqliteJournal
from holdfast.model import agent_events as r
from holdfast.model import events as e
from holdfast.model.interaction import InteractionRequest, InteractionType

SESSION = "chat_000001"
BELOW = f"{SESSION}.c1.1"
POINTS = ("append.after", "append.before", "effect.after", "effect.before")
TOOLS = ("look", "pay", "order")
NOT_REPEATABLE = ("pay", "order")


class Mortals:
    """The processes that will die."""

    def __init__(self) -> None:
        child = str(Path(__file__).parent / "session_child.py")
        pipe = subprocess.PIPE
        self.process = warm.Popen([sys.executable, child], stdin=pipe, stdout=pipe, text=True)

    async def order(self, home: Path, **place: object) -> int:
        return await asyncio.to_thread(self._order, home, place)

    def _order(self, home: Path, place: dict[str, object]) -> int:
        stdin, stdout = self.process.stdin, self.process.stdout
        assert stdin is not None
        assert stdout is not None
        home.mkdir(exist_ok=True)
        print(json.dumps({"home": str(home), **place}), file=stdin, flush=True)
        return int(stdout.readline())


@pytest.fixture(scope="module")
def mortals() -> Iterator[Mortals]:
    mortals = Mortals()
    with mortals.process:
        yield mortals
    assert mortals.process.returncode == 0


@dataclass(slots=True)
class Person:
    """Consents, completes, and looks into the ledger before saying what became of a call."""

    ledger: Ledger
    choice: str
    asked: Counter[str] = field(default_factory=Counter)
    again: Counter[str] = field(default_factory=Counter)

    async def answer(self, app: Holdfast, request: InteractionRequest) -> None:
        tool = str(request.context["tool"])
        match request.type:
            case InteractionType.TOOL_APPROVAL:
                await app.answer(request.request_id, option_id="approve")
            case InteractionType.MISSING_INFO:
                await app.answer(request.request_id, data={"color": "red"})
            case _:
                self.asked[tool] += 1
                await self._tell(app, request.request_id, tool)

    async def _tell(self, app: Holdfast, question_id: str, tool: str) -> None:
        made = bool(self.ledger.of(tool))
        if made and self.choice == "happened":
            data = {"result": "it is in the ledger"}
            await app.answer(question_id, option_id="happened", data=data)
        else:
            self.again[tool] += made
            await app.answer(question_id, option_id="run_again")


@dataclass(frozen=True, slots=True)
class Left:
    """What the killed process left behind."""

    version: int
    turn_begun: bool
    active: frozenset[str]
    ended: frozenset[str]
    calls: Counter[str]


async def look_at_the_wreck(home: Path, ledger: Ledger) -> Left:
    journal = SqliteJournal(home / DATABASE)
    await journal.open()
    events = [decode(record) for record in await journal.read(SESSION)]
    below = [decode(record) for record in await journal.read(BELOW)]
    active = await journal.active_runs()
    await journal.close()
    calls = of_kind([*events, *below], r.ModelReplied)
    tools = {one.step_id: one.tool for reply in calls for one in reply.calls}
    return Left(
        len(events),
        bool(of_kind(events, r.TurnStarted)),
        frozenset(active),
        frozenset(tools[one.step_id] for one in of_kind(below or events, r.StepEnded)),
        ledger.counts,
    )


async def go_on(app: Holdfast, person: Person) -> AgentSession:
    session = await app.sessions.session(SESSION)
    await answering(app, session, partial(person.answer, app))
    return session


async def recover(home: Path, choice: str, agent: str) -> tuple[Person, Left]:
    """Open the wreck again, go on to the end, and see that all promises were kept."""
    app, ledger = clerks_office(home)
    left = await look_at_the_wreck(home, ledger)
    person = Person(ledger, choice)
    async with app:
        if not left.version:
            await begin(app, agent_id=agent)
        elif not left.turn_begun:
            await app.sessions.say(SESSION, "please")
        session = await go_on(app, person)
        assert (session.status, session.answer) == ("done", "All done.")
        for row in await app.runs():
            await assert_sound(app, row.run_id)
            recoveries = of_kind(await history(app, row.run_id), e.RunRecovered)
            assert len(recoveries) == (row.run_id in left.active)
    return person, left


def check_ledger(ledger: Ledger, person: Person, left: Left, place: str) -> None:
    """One call each, under one key each; what was on disk before the kill was never redone."""
    for tool in TOOLS:
        keys = {one["key"] for one in ledger.of(tool)}
        assert len(keys) == 1, (place, tool, keys)
    assert ledger.counts["look"] in (1, 2), place
    for tool in NOT_REPEATABLE:
        assert ledger.counts[tool] == 1 + person.again[tool], (place, tool)
    for tool in left.ended:
        assert ledger.counts[tool] == left.calls[tool], (place, tool, "ran although it had ended")
    assert [one["args"] for one in ledger.of("pay")][-1] == {"amount": 5}


async def kill_everywhere(
    mortals: Mortals, tmp_path: Path, points: dict[str, int], choice: str, agent: str = "clerk"
) -> Counter[str]:
    """Which calls a person was asked about, over all places to die in."""
    questioned: Counter[str] = Counter()
    for point, reached in sorted(points.items()):
        for nth in range(1, reached + 1):
            place = f"{point}.{nth}.{choice}"
            home = tmp_path / place
            # Two results may share an append or not: the last one may never come.
            died = await mortals.order(home, point=point, nth=nth, agent=agent)
            assert died in (-signal.SIGKILL, 0), place
            person, left = await recover(home, choice, agent)
            check_ledger(person.ledger, person, left, place)
            questioned += person.asked
    return questioned


@pytest.mark.parametrize("point", POINTS)
async def test_a_session_survives_a_kill_at_every_append_and_every_effect(
    mortals: Mortals, tmp_path: Path, point: str
) -> None:
    whole = tmp_path / "whole"
    assert await mortals.order(whole) == 0
    report = json.loads((whole / REPORT).read_text())
    assert report["status"] == "done"
    points = report["reached"]
    assert set(points) == set(POINTS)
    assert points["effect.before"] == points["effect.after"] == 5, "two replies, three calls"
    assert Ledger(whole / "ledger.jsonl").counts == {"look": 1, "pay": 1, "order": 1}
    asked = await kill_everywhere(mortals, tmp_path, {point: points[point]}, "run_again")
    assert set(asked) == set(NOT_REPEATABLE)


async def test_of_a_call_in_flight_a_person_may_say_that_it_happened(
    mortals: Mortals, tmp_path: Path
) -> None:
    """Killed between the call and its record: nothing is called again."""
    asked = await kill_everywhere(mortals, tmp_path, {"effect.after": 5}, "happened")
    assert set(asked) == set(NOT_REPEATABLE)


async def test_a_session_with_a_sub_agent_survives_a_kill_at_every_append_of_either(
    mortals: Mortals, tmp_path: Path
) -> None:
    whole = tmp_path / "whole"
    assert await mortals.order(whole, agent="boss") == 0
    report = json.loads((whole / REPORT).read_text())
    assert report["status"] == "done"
    points = {"append.before": report["reached"]["append.before"], "effect.after": 7}
    assert report["reached"]["effect.after"] == 7, "four replies, three calls"
    asked = await kill_everywhere(mortals, tmp_path, points, "happened", "boss")
    assert set(asked) == set(NOT_REPEATABLE)


async def test_an_approval_that_was_open_at_the_kill_is_answered_after_the_restart(
    mortals: Mortals, tmp_path: Path
) -> None:
    assert await mortals.order(tmp_path, die="paused") == -signal.SIGKILL
    app, ledger = clerks_office(tmp_path)
    assert ledger.counts["pay"] == 0
    async with app:
        session = await app.sessions.session(SESSION)
        assert session.status == "pause"
        approval, missing = await open_requests(app)
        assert approval.context["args"] == {"amount": 5}
        await app.answer(missing.request_id, data={"color": "red"})
        assert ledger.counts["pay"] == 0, "the answer to one question never runs another call"
        await app.answer(approval.request_id, option_id="approve")
        assert await ended(session) == "done"
        await app.sessions.say(SESSION, "and now?")
        assert await ended(session) == "done"
        assert (session.turn, session.answer) == (2, "You said: and now?")
        await assert_sound(app, SESSION)
    assert (ledger.counts["pay"], ledger.counts["order"]) == (1, 1)


async def test_a_session_that_takes_its_process_down_is_left_to_a_person(
    mortals: Mortals, tmp_path: Path
) -> None:
    """The first call of the model kills three processes; the fourth asks nobody again by itself."""
    for known in (None, SESSION, SESSION):
        died = await mortals.order(tmp_path, point="effect.before", nth=1, session=known)
        assert died == -signal.SIGKILL
    app, ledger = clerks_office(tmp_path)
    async with app:
        session = await app.sessions.session(SESSION)
        assert await session.wait_until_settled(PATIENCE) == "error"
        assert "went down 3 times" in session.error
        assert ledger.counts == {}
        await app.sessions.resume(SESSION)
        await go_on(app, Person(ledger, "happened"))
        assert session.status == "done"
    assert ledger.counts["pay"] == 1
