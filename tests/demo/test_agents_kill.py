"""kill -9 at every append and every effect of the onboarding with agents.

A process of its own runs it on a real SQLite file and is killed at one fault point; the office,
in another process, goes on and remembers every call. Then this process opens the same journal,
a truthful person answers whatever is asked, and the books are compared: the run is done, every
tool took effect once, and nothing whose result was on disk was called again.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from agents_child import REPORT, Furniture, begin

import warm
from holdfast.app import Holdfast
from holdfast.demo.office import Office
from holdfast.journal.codec import decode
from holdfast.journal.home import DATABASE
from holdfast.journal.port import QuestionRow
from holdfast.journal.sqlite import SqliteJournal
from holdfast.model import agent_events as r
from holdfast.model import events as e
from holdfast.model.rows import request_of
from holdfast.runtime.machines import blank, definition_of, replay

RUN = "inst_000001"
POINTS = ("append.before", "append.after", "effect.before", "effect.after")
HONOUR_KEYS = ("create_employee_profile", "grant_access")
DRAWERS = {"apply_computer": "orders", "outbound": "outbounds", "send_email": "mails"}
NUMBERS = {"apply_computer": "order_id", "outbound": "outbound_id", "send_email": "message_id"}
LOOKS = ("query_profile", "query_access", "check_outbound_status")
VERDICTS = {
    "verify.hr": "verified",
    "verify.access": "verified",
    "verify.inventory": "verified",
    "verify.it": "unable_to_verify",
    "verify.email": "unable_to_verify",
}


@dataclass(slots=True)
class Street:
    """The office, the processes that will die, and the plan that both know."""

    office: Office
    mortals: asyncio.subprocess.Process
    furniture: Furniture

    async def order(self, home: Path, **place: object) -> int:
        assert self.mortals.stdin is not None
        assert self.mortals.stdout is not None
        line = json.dumps({"home": str(home), **place})
        self.mortals.stdin.write(line.encode() + b"\n")
        return int(await self.mortals.stdout.readline())

    async def count(self, home: Path) -> dict[str, int]:
        """How often each fault point is reached when no process dies."""
        assert await self.order(home) == 0
        report = json.loads((home / REPORT).read_text())
        assert report["status"] == "done"
        await self.office.reset()
        return dict(report["reached"])


@pytest.fixture
async def street() -> AsyncIterator[Street]:
    child = str(Path(__file__).parent / "agents_child.py")
    pipe = asyncio.subprocess.PIPE
    async with Office.start() as office:
        mortals = await warm.create_subprocess_exec(
            sys.executable, child, office.url, stdin=pipe, stdout=pipe
        )
        furniture = Furniture(office.url)
        yield Street(office, mortals, furniture)
        await furniture.close()
        assert mortals.stdin is not None
        mortals.stdin.close()
        assert await mortals.wait() == 0


@dataclass(slots=True)
class Person:
    """Looks up in the office whether a call took effect, and says what it finds there."""

    office: Office
    asked: Counter[str] = field(default_factory=Counter)

    async def answer(self, app: Holdfast, question: QuestionRow) -> None:
        tool = str(request_of(question).context["tool"])
        self.asked[tool] += 1
        assert question.root_id == RUN
        entries = (await self.office.state())[DRAWERS[tool]]
        if not entries:
            await app.answer(question.question_id, option_id="run_again")
            return
        words = f"{NUMBERS[tool]}: {next(iter(entries))}"
        await app.answer(question.question_id, option_id="happened", data={"result": words})


@dataclass(frozen=True, slots=True)
class Left:
    """What the killed process left behind: runs, and calls whose results are on disk."""

    begun: bool
    active: frozenset[str]
    settled: frozenset[str]
    calls: Counter[str]


async def look_at_the_wreck(home: Path, office: Office) -> Left:
    journal = SqliteJournal(home / DATABASE)
    await journal.open()
    runs = [run.run_id for run in await journal.runs()]
    settled = {
        f"{run_id}:{event.step_id}"
        for run_id in runs
        for record in await journal.read(run_id)
        if isinstance(event := decode(record), r.StepEnded)
    }
    active = frozenset(await journal.active_runs())
    await journal.close()
    return Left(bool(runs), active, frozenset(settled), await calls_by_key(office))


async def calls_by_key(office: Office) -> Counter[str]:
    return Counter(call["key"] for call in await office.calls())


async def recover(street: Street, home: Path, left: Left, place: str) -> Person:
    """Open the wreck again, answer what is asked, and see the run to its end."""
    person = Person(street.office)
    async with street.furniture.app(home) as app:
        instance = await app.instance(RUN) if left.begun else await begin(app)
        while await instance.wait_for_completion(0.02) not in ("done", "cancelled", "error"):
            for question in await app.inbox():
                await person.answer(app, question)
        assert instance.status == "done", place
        state = await app.engine.state(RUN)
        assert state.verification == VERDICTS, place
        for row in await app.runs():
            assert row.status == "done", (place, row.run_id)
            await assert_sound(app, row.run_id, recovered=row.run_id in left.active)
    return person


async def assert_sound(app: Holdfast, run_id: str, *, recovered: bool) -> None:
    """The journal is gapless, its replay is the state, and a crash is counted where it hurt."""
    state = await app.engine.state(run_id)
    records = await app.journal.read(run_id)
    assert [record.seq for record in records] == list(range(1, state.version + 1))
    events = [(record.at, decode(record)) for record in records]
    assert replay(blank(run_id, definition_of(state)), events) == state
    assert sum(isinstance(event, e.RunRecovered) for _, event in events) == recovered, run_id


async def check_calls(office: Office, left: Left, place: str) -> None:
    calls = await office.calls()
    for tool in (*DRAWERS, *HONOUR_KEYS, *LOOKS):
        mine = [call for call in calls if call["tool"] == tool]
        assert len({call["key"] for call in mine}) == 1, (place, tool, mine)
        most = 1 if tool in DRAWERS else 2
        assert 1 <= len(mine) <= most, (place, tool, mine)
    state = await office.state()
    drawers = (*DRAWERS.values(), "profiles", "badges")
    assert [len(state[drawer]) for drawer in drawers] == [1] * len(drawers), place
    made = await calls_by_key(office) - left.calls
    again = [key for key in made if ":".join(key.split(":")[:2]) in left.settled]
    assert again == [], place


@pytest.mark.parametrize("point", POINTS)
async def test_the_onboarding_with_agents_survives_a_kill_anywhere(
    street: Street, tmp_path: Path, point: str
) -> None:
    points = await street.count(tmp_path / "whole")
    assert set(points) == set(POINTS)
    asked: Counter[str] = Counter()
    for nth in range(1, points[point] + 1):
        place = f"{point}.{nth}"
        home = tmp_path / place
        # Two results may share an append or not: the last one may never come.
        assert await street.order(home, point=point, nth=nth) in (-signal.SIGKILL, 0), place
        left = await look_at_the_wreck(home, street.office)
        asked += (await recover(street, home, left, place)).asked
        await check_calls(street.office, left, place)
        await street.office.reset()
    assert set(asked) == set(DRAWERS), "only what knows no keys is asked about"
