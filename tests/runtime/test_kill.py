"""kill -9 at every append and every effect: the run ends well, and nothing happens twice.

A process of its own runs the plan on a real SQLite file and is killed at one fault point;
the office, in another process, goes on and remembers every call. Then this process opens
the same journal, a truthful person answers whatever is asked, and the books are compared.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from kill_child import REPORT, Furniture
from scenes import assert_sound, history, of_kind

import warm
from holdfast.app import Holdfast
from holdfast.demo.office import Office
from holdfast.errors import AlreadyAnswered
from holdfast.journal.codec import decode
from holdfast.journal.home import DATABASE
from holdfast.journal.port import QuestionRow
from holdfast.journal.sqlite import SqliteJournal
from holdfast.model import events as e
from holdfast.model.rows import request_of
from holdfast.runs.handles import PlanInstance

pytestmark = pytest.mark.own_store  # the process that is killed owns a home

ONBOARDING = "onboard_will_zhang"
RUN = "inst_000001"
KEEPS_NO_KEYS = ("apply_computer", "outbound", "send_email")
POINTS = ("append.after", "append.before", "effect.after", "effect.before")
DRAWERS = {"apply_computer": "orders", "outbound": "outbounds", "send_email": "mails"}
TOOLS = {
    "L001": "create_employee_profile",
    "L002": "grant_access",
    "L003": "apply_computer",
    "L005": "outbound",
    "L004": "send_email",
}


@dataclass(slots=True)
class Street:
    """The office, the processes that will die, and the plans that both know."""

    office: Office
    mortals: asyncio.subprocess.Process
    furniture: Furniture

    async def order(self, home: Path, plan: str, **place: object) -> int:
        assert self.mortals.stdin is not None
        assert self.mortals.stdout is not None
        line = json.dumps({"home": str(home), "plan": plan, **place})
        self.mortals.stdin.write(line.encode() + b"\n")
        return int(await self.mortals.stdout.readline())

    async def count(self, home: Path, plan: str) -> dict[str, int]:
        """How often each fault point is reached when nobody dies."""
        assert await self.order(home, plan) == 0
        report = json.loads((home / REPORT).read_text())
        assert report["status"] == "done"
        return dict(report["reached"])


@pytest.fixture
async def street() -> AsyncIterator[Street]:
    async with street_with_an_office() as street:
        yield street


@asynccontextmanager
async def street_with_an_office() -> AsyncIterator[Street]:
    child = str(Path(__file__).parent / "kill_child.py")
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
    """Looks up in the office whether a call took effect, and answers accordingly."""

    office: Office
    choice: str
    again: Counter[str] = field(default_factory=Counter)
    asked: Counter[str] = field(default_factory=Counter)
    stopped: bool = False

    async def answer(self, app: Holdfast, question: QuestionRow) -> None:
        tool = str(request_of(question).context["tool"])
        self.asked[tool] += 1
        entries = (await self.office.state())[DRAWERS[tool]]
        if self.choice == "stop":
            self.stopped = True
            await app.answer(question.question_id, option_id="stop")
        elif self.choice == "happened" and entries:
            data = self._fill_in(question, *entries.popitem())
            await app.answer(question.question_id, option_id="happened", data=data)
        else:
            self.again[tool] += bool(entries)
            await app.answer(question.question_id, option_id="run_again")

    @staticmethod
    def _fill_in(question: QuestionRow, number: str, entry: Mapping[str, Any]) -> dict[str, str]:
        known = {"model": entry.get("computer_model", "")}
        return {one.name: known.get(one.name, number) for one in request_of(question).form.fields}


@dataclass(frozen=True, slots=True)
class Left:
    """What the killed process left behind."""

    versions: Mapping[str, int]
    active: frozenset[str]
    done: frozenset[str]
    calls: Counter[str]


async def look_at_the_wreck(home: Path, office: Office) -> Left:
    journal = SqliteJournal(home / DATABASE)
    await journal.open()
    runs = await journal.runs()
    done = set()
    for run in runs:
        for record in await journal.read(run.run_id):
            event = decode(record)
            if isinstance(event, e.ListenerSucceeded | e.CheckConcluded):
                done.add(f"{run.run_id}:{event.listener_id}:{event.firing}")
    versions = {run.run_id: await journal.version(run.run_id) for run in runs}
    active = frozenset(await journal.active_runs())
    await journal.close()
    return Left(versions, active, frozenset(done), await calls_by_key(office))


async def calls_by_key(office: Office) -> Counter[str]:
    return Counter(call["key"] for call in await office.calls())


@asynccontextmanager
async def reopened(street: Street, home: Path) -> AsyncIterator[Holdfast]:
    async with street.furniture.app(home) as app:
        yield app


async def go_on(app: Holdfast, person: Person) -> PlanInstance:
    """Wait for the run's end, answering what is asked on the way."""
    instance = await app.instance(RUN)
    while await instance.wait_for_completion(0.02) not in ("done", "cancelled", "error"):
        for question in await app.inbox():
            await person.answer(app, question)
    return instance


async def recover(street: Street, home: Path, plan: str, choice: str) -> Person:
    """Open the wreck again, go on to the end, and see that all promises were kept."""
    left = await look_at_the_wreck(home, street.office)
    person = Person(street.office, choice)
    async with reopened(street, home) as app:
        if not left.versions:
            await app.plans.start_plan_by_prompt("入职", plan)
        instance = await go_on(app, person)
        assert instance.status == ("cancelled" if person.stopped else "done")
        for row in await app.runs():
            await assert_sound(app, row.run_id)
            events = await history(app, row.run_id)
            recoveries = of_kind(events, e.RunRecovered)
            assert len(recoveries) == (row.run_id in left.active), row.run_id
    assert await journaled_calls_again(street.office, left) == {}
    return person


async def journaled_calls_again(office: Office, left: Left) -> Counter[str]:
    """Calls made after the crash for firings whose result was on disk before it."""
    made = await calls_by_key(office) - left.calls
    return Counter({key: n for key, n in made.items() if key.rpartition(":")[0] in left.done})


async def kill_everywhere(
    street: Street, tmp_path: Path, plan: str, points: Mapping[str, int], choice: str
) -> AsyncIterator[tuple[str, Person]]:
    for point, reached in sorted(points.items()):
        for nth in range(1, reached + 1):
            yield await kill_at(street, tmp_path, plan, point, nth, choice)


async def kill_at(
    street: Street, tmp_path: Path, plan: str, point: str, nth: int, choice: str
) -> tuple[str, Person]:
    place = f"{point}.{nth}.{choice}"
    home = tmp_path / place
    # Two results may share an append or not: the last one may never come.
    assert await street.order(home, plan, point=point, nth=nth) in (-signal.SIGKILL, 0), place
    person = await recover(street, home, plan, choice)
    return place, person


async def check_calls(office: Office, person: Person, place: str, failures: int = 0) -> None:
    """What the outside world has seen: one effect each, under one key each."""
    calls = await office.calls()
    for tool in TOOLS.values():
        mine = [call for call in calls if call["tool"] == tool]
        keys = {call["key"] for call in mine}
        if tool in KEEPS_NO_KEYS:
            assert len(mine) == 1 + person.again[tool], (place, tool, mine)
            assert len(keys) == 1, (place, tool, keys)
        else:
            failed = [call for call in mine if not call["ok"]]
            assert len(mine) - len(failed) in (1, 2), (place, tool, mine)
            assert len({call["key"] for call in mine if call["ok"]}) == 1, (place, tool, mine)
            assert len(failed) <= failures
    state = await office.state()
    assert len(state["profiles"]) == len(state["badges"]) == 1, place


@pytest.mark.parametrize("point", POINTS)
async def test_the_onboarding_survives_a_kill_at_every_append_and_every_effect(
    street: Street, tmp_path: Path, point: str
) -> None:
    points = await street.count(tmp_path / "whole", ONBOARDING)
    assert set(points) == set(POINTS)
    assert points["effect.before"] == points["effect.after"] == 9
    await street.office.reset()
    asked: Counter[str] = Counter()
    every = {point: points[point]}
    async for place, person in kill_everywhere(street, tmp_path, ONBOARDING, every, "run_again"):
        await check_calls(street.office, person, place)
        asked += person.asked
        await street.office.reset()
    assert set(asked) == set(KEEPS_NO_KEYS)


@pytest.mark.parametrize("choice", ["happened", "stop"])
async def test_an_unknown_outcome_may_be_confirmed_or_may_stop_the_run(
    street: Street, tmp_path: Path, choice: str
) -> None:
    """Killed between the call and its record, wherever a call cannot be repeated."""
    asked: Counter[str] = Counter()
    between = {"effect.after": len(TOOLS)}
    async for place, person in kill_everywhere(street, tmp_path, ONBOARDING, between, choice):
        if person.stopped:
            counts = await street.office.counts()
            assert all(counts.get(tool, 0) <= 1 for tool in KEEPS_NO_KEYS), place
        else:
            await check_calls(street.office, person, place)
        assert person.again.total() == 0, "where it had happened, nobody had to run it again"
        asked += person.asked
        await street.office.reset()
    assert set(asked) == set(KEEPS_NO_KEYS)


@pytest.mark.parametrize("point", ["append.before", "effect.after"])
async def test_a_failure_that_the_tool_answered_is_retried_once_wherever_the_kill_comes(
    street: Street, tmp_path: Path, point: str
) -> None:
    await street.office.configure_failures({"grant_access": 1})
    points = await street.count(tmp_path / "whole", ONBOARDING)
    assert points["effect.after"] == 10
    await street.office.reset()
    for nth in range(2, points[point] + 1):
        await street.office.configure_failures({"grant_access": 1})
        place, person = await kill_at(street, tmp_path, ONBOARDING, point, nth, "happened")
        await check_calls(street.office, person, place, failures=1)
        await street.office.reset()


@pytest.mark.parametrize("point", POINTS)
async def test_a_run_with_a_child_run_survives_a_kill_at_every_append_of_either(
    street: Street, tmp_path: Path, point: str
) -> None:
    points = await street.count(tmp_path / "whole", "welcome")
    assert set(points) == set(POINTS)
    await street.office.reset()
    every = {point: points[point]}
    async for place, person in kill_everywhere(street, tmp_path, "welcome", every, "happened"):
        counts = await street.office.counts()
        assert counts == {"apply_computer": 1, "send_email": 1}, place
        assert person.again.total() == 0, place
        await street.office.reset()


async def test_a_question_that_was_open_at_the_kill_is_answered_after_the_restart(
    street: Street, tmp_path: Path
) -> None:
    assert await street.order(tmp_path, "apply_computer", die="paused") == -signal.SIGKILL
    async with reopened(street, tmp_path) as app:
        instance = await app.instance(RUN)
        assert instance.status == "pause"
        assert of_kind(await history(app, RUN), e.RunRecovered) == []
        result = await app.planner_agent.continue_plan(RUN, {"computer_model": "Dell XPS"})
        assert result["success"] is True
        assert await instance.wait_for_completion(20) == "done"
        await assert_sound(app, RUN)
    assert await street.office.counts() == {"apply_computer": 1}


async def test_an_acknowledged_answer_is_there_after_the_kill(
    street: Street, tmp_path: Path
) -> None:
    assert await street.order(tmp_path, "apply_computer", die="answered") == -signal.SIGKILL
    person = Person(street.office, "happened")
    async with reopened(street, tmp_path) as app:
        [answered] = of_kind(await history(app, RUN), e.QuestionAnswered)
        assert isinstance(answered, e.QuestionAnswered)
        assert (answered.by, answered.data) == ("will.zhang", {"computer_model": "ThinkPad X1"})
        same = {"data": {"computer_model": "ThinkPad X1"}, "by": "will.zhang"}
        await app.answer(answered.question_id, **same)
        with pytest.raises(AlreadyAnswered, match=r"will\.zhang"):
            await app.answer(answered.question_id, data={"computer_model": "Dell XPS"})
        instance = await go_on(app, person)
        assert instance.status == "done"
        assert instance.get_task_instance("002").context["model"] == "ThinkPad X1"
    assert await street.office.counts() == {"apply_computer": 1}
