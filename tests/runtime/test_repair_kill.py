"""kill -9 at every append, effect and request of a repair: the run ends done, and its plan was
changed once.

Access is granted to Will Zhang, whom HR does not know. A process of its own carries the run from
that failure over diagnosis, proposal and consent to its end, and is killed at one fault point; then
this process opens the same journal, a person who tells the truth answers whatever is asked, and the
books are compared with those of a life that nobody ended.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from kill_child import REPORT
from repair_kill_child import MOST, RUN, WHO, Furniture, begun, finished, requests
from scenes import assert_sound, history, of_kind
from test_kill import Person, journaled_calls_again, look_at_the_wreck

import warm
from holdfast.app import Holdfast
from holdfast.demo.office import Office
from holdfast.demo.onboarding import WILL_ZHANG
from holdfast.errors import AlreadyAnswered
from holdfast.journal.port import QuestionRow
from holdfast.model import events as e
from holdfast.model.recorded import Event
from holdfast.model.repair import CaseStatus
from holdfast.model.rows import request_of

pytestmark = pytest.mark.own_store  # the process that is killed owns a home

APPEND = ("append.after", "append.before")
EFFECT = ("effect.after", "effect.before")
REQUEST = ("request.after", "request.before")
LONGEST = 30.0
"""Seconds, in which a run that was killed has long come to its end."""


@dataclass(slots=True)
class Bureau:
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
async def bureau() -> AsyncIterator[Bureau]:
    child = str(Path(__file__).parent / "repair_kill_child.py")
    pipe = asyncio.subprocess.PIPE
    async with Office.start() as office:
        mortals = await warm.create_subprocess_exec(
            sys.executable, child, office.url, stdin=pipe, stdout=pipe
        )
        furniture = Furniture(office.url)
        yield Bureau(office, mortals, furniture)
        await furniture.close()
        assert mortals.stdin is not None
        mortals.stdin.close()
        assert await mortals.wait() == 0


class Consenting(Person):
    """Agrees to repairs, and looks up in the office what became of a call."""

    consents = 0

    async def answer(self, app: Holdfast, question: QuestionRow) -> None:
        if "case_id" in request_of(question).context:
            self.consents += 1
            await app.answer(question.question_id, option_id="apply", by=WHO)
        else:
            await Person.answer(self, app, question)


async def recover(bureau: Bureau, home: Path, plan: str) -> Consenting:
    """Open what the killed process left, go on to the end, and look at all journals."""
    left = await look_at_the_wreck(home, bureau.office)
    person = Consenting(bureau.office, "happened")
    async with opened(bureau, home, plan) as app:
        instance = await begun(app, plan)
        await finished(app, instance, lambda one: person.answer(app, one))
        for row in await app.runs():
            await assert_sound(app, row.run_id)
            recoveries = of_kind(await history(app, row.run_id), e.RunRecovered)
            assert len(recoveries) == (row.run_id in left.active), row.run_id
        await check_the_repair(app, plan)
    assert await journaled_calls_again(bureau.office, left) == {}
    return person


@asynccontextmanager
async def opened(bureau: Bureau, home: Path, plan: str) -> AsyncIterator[Holdfast]:
    async with asyncio.timeout(LONGEST), bureau.furniture.app(home, plan) as app:
        yield app


async def check_the_repair(app: Holdfast, plan: str) -> None:
    """Of the run that failed: proposed once, one patch, gone on once, and it was proven."""
    run_id = max(row.run_id for row in await app.runs())
    state, events = await assert_sound(app, run_id), await history(app, run_id)
    [patch] = of_kind(events, e.PlanPatched)
    assert isinstance(patch, e.PlanPatched)
    assert state.repair.patches == (patch,)
    assert (patch.base, patch.digest) == (state.origin and state.origin.digest, state.plan.digest)
    went_on = e.PlannerRetried if plan == "by_itself" else e.RunResumed
    for kind in (e.CaseOpened, e.PatchProposed, went_on, e.RepairProven):
        assert len(of_kind(events, kind)) == 1, kind
    assert [case.status for case in state.repair.cases.values()] == [CaseStatus.PROVEN]
    check_the_requests(events)


def check_the_requests(events: Sequence[Event]) -> None:
    """Each has an end, even where the process that made it had one first."""
    asked = [one.number for one in events if isinstance(one, e.DiagnosisRequested)]
    ended = [one.number for one in events if isinstance(one, e.DiagnosisReceived)]
    assert asked == ended == list(range(1, len(asked) + 1))


async def prepare(office: Office, plan: str) -> None:
    """As on the first day; where the plan mends itself, HR knows Will Zhang, and the badge has
    another name in what the door answers."""
    await office.reset()
    if plan == "by_itself":
        await office.use("create_employee_profile", WILL_ZHANG)
        await office.configure_faults(
            {"grant_access": {"rename": {"result": {"badge": "badge_no"}}}}
        )


async def check_the_office(office: Office, plan: str, place: str) -> None:
    """As often as without a kill: the access twice, of which the first was refused, the profile and
    the mail once. Whoever honours keys may be called again under the same."""
    calls = await office.calls()
    keys = {call["key"]: (call["tool"], call["ok"]) for call in calls}
    expected = {
        ("grant_access", False): int(plan != "by_itself"),
        ("create_employee_profile", True): 1,
        ("grant_access", True): 1,
        ("send_email", True): 1,
    }
    assert Counter(keys.values()) == {one: times for one, times in expected.items() if times}, (
        place,
        calls,
    )
    state = await office.state()
    done = {drawer: len(state[drawer]) for drawer in ("profiles", "badges", "mails")}
    assert done == {"profiles": 1, "badges": 1, "mails": 1}, place
    assert len([call for call in calls if call["tool"] == "send_email"]) == 1, place


async def kill_everywhere(
    bureau: Bureau, tmp_path: Path, plan: str, points: Mapping[str, int]
) -> Counter[str]:
    """What people were asked, over all kills."""
    asked: Counter[str] = Counter()
    for point, reached in sorted(points.items()):
        for nth in range(1, reached + 1):
            await prepare(bureau.office, plan)
            place = f"{point}.{nth}"
            home = tmp_path / place
            died = await bureau.order(home, plan, point=point, nth=nth)
            # Two results may share an append or not: the last one may never come.
            assert died in (-signal.SIGKILL, 0), place
            person = await recover(bureau, home, plan)
            await check_the_office(bureau.office, plan, place)
            assert requests(home) <= MOST[plan], place
            assert person.again.total() == 0, "what had happened was not done again"
            asked += person.asked + Counter(consents=person.consents)
    return asked


@pytest.mark.parametrize("plan", ["by_rules", "chosen", "written"])
async def test_a_repair_survives_a_kill_at_every_append_effect_and_request(
    bureau: Bureau, tmp_path: Path, plan: str
) -> None:
    points = await bureau.count(tmp_path / "whole", plan)
    asks = dict.fromkeys(REQUEST, MOST[plan]) if MOST[plan] else {}
    assert {name: points[name] for name in points if name not in APPEND} == {
        **dict.fromkeys(EFFECT, 5),
        **asks,
    }
    assert await bureau.office.counts() == {
        "grant_access": 2,
        "create_employee_profile": 1,
        "send_email": 1,
    }
    assert requests(tmp_path / "whole") == MOST[plan]
    asked = await kill_everywhere(bureau, tmp_path, plan, points)
    assert asked["send_email"] > 0, "nobody but a person can know what became of the mail"
    assert set(asked) == {"consents", "send_email"}


async def test_a_repair_that_its_author_allows_survives_a_kill_at_every_append_and_effect(
    bureau: Bureau, tmp_path: Path
) -> None:
    """The door has done its work, and only what that means was mended: it is not called again but
    under its key."""
    await prepare(bureau.office, "by_itself")
    points = await bureau.count(tmp_path / "whole", "by_itself")
    assert {name: points[name] for name in EFFECT} == dict.fromkeys(EFFECT, 3)
    asked = await kill_everywhere(bureau, tmp_path, "by_itself", points)
    assert set(asked) == {"send_email"}


async def test_a_repair_of_a_child_run_survives_a_kill_at_every_append_of_either(
    bureau: Bureau, tmp_path: Path
) -> None:
    points = await bureau.count(tmp_path / "whole", "above")
    every = {point: points[point] for point in APPEND}
    asked = await kill_everywhere(bureau, tmp_path, "above", every)
    assert set(asked) == {"consents", "send_email"}


async def test_a_proposal_that_was_open_at_the_kill_is_consented_to_after_the_restart(
    bureau: Bureau, tmp_path: Path
) -> None:
    assert await bureau.order(tmp_path, "chosen", die="proposed") == -signal.SIGKILL
    left = await look_at_the_wreck(tmp_path, bureau.office)
    assert left.active == frozenset(), "it waits for a person, and no owner has anything to do"
    person = await recover(bureau, tmp_path, "chosen")
    assert (person.consents, requests(tmp_path)) == (1, 1)
    await check_the_office(bureau.office, "chosen", "proposed")


async def test_an_acknowledged_consent_is_there_after_the_kill(
    bureau: Bureau, tmp_path: Path
) -> None:
    assert await bureau.order(tmp_path, "by_rules", die="answered") == -signal.SIGKILL
    async with opened(bureau, tmp_path, "by_rules") as app:
        [answered] = of_kind(await history(app, RUN), e.QuestionAnswered)
        assert isinstance(answered, e.QuestionAnswered)
        assert (answered.by, answered.option_id) == (WHO, "apply")
        await app.answer(answered.question_id, option_id="apply", by=WHO)
        with pytest.raises(AlreadyAnswered, match=WHO):
            await app.answer(answered.question_id, option_id="refuse", feedback="no", by="操作员")
        person = Consenting(bureau.office, "happened")
        await finished(app, await begun(app, "by_rules"), lambda one: person.answer(app, one))
        assert person.consents == 0
        await check_the_repair(app, "by_rules")
    await check_the_office(bureau.office, "by_rules", "answered")


@pytest.mark.parametrize(("plan", "kills"), [("chosen", 1), ("written", 2)])
async def test_a_process_that_goes_down_at_each_request_asks_no_more_often_than_it_may(
    bureau: Bureau, tmp_path: Path, plan: str, kills: int
) -> None:
    """Once the budget is spent, what rules have found is proposed."""
    for _ in range(kills):
        died = await bureau.order(tmp_path, plan, point="request.before", nth=1)
        assert died == -signal.SIGKILL
    assert await bureau.order(tmp_path, plan, die="proposed") == -signal.SIGKILL
    assert requests(tmp_path) == kills == MOST[plan]
    async with opened(bureau, tmp_path, plan) as app:
        [question] = await app.inbox()
        assert request_of(question).context["source"] == "rule:made_first"
        events = await history(app, RUN)
        received = [one for one in events if isinstance(one, e.DiagnosisReceived)]
        assert [one.lost for one in received] == [True] * kills
        person = Consenting(bureau.office, "happened")
        await finished(app, await begun(app, plan), lambda one: person.answer(app, one))
    await check_the_office(bureau.office, plan, plan)
    assert requests(tmp_path) == kills
