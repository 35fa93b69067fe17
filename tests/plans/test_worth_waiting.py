"""When `repair: {mode: auto}` has a failed tool tried again: by what is known of others like it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from failing_service import EDGES, Scene, Service
from plan_texts import start

from holdfast import Holdfast, PlanInstance, PlannerAgent, Retry, RetrySituation
from holdfast.errors import OperatorError
from holdfast.model.events import PlannerGaveUp, PlannerRetried
from holdfast.model.recorded import Event
from holdfast.repair.alerts import AlertKind
from holdfast.repair.budgets import HELD
from holdfast.testing.clock import ManualClock

OpenApp = Callable[..., Awaitable[Holdfast]]
EventsOf = Callable[[Holdfast, str], Awaitable[list[Event]]]


@pytest.fixture
async def scene(open_app: OpenApp, clock: ManualClock) -> Scene:
    return Scene(await open_app(clock=clock), clock)


@pytest.fixture
def why(events_of: EventsOf) -> Callable[[Scene, PlanInstance], Awaitable[list[str]]]:
    """What the journal says of each decision to try again, or not to."""

    async def told(scene: Scene, instance: PlanInstance) -> list[str]:
        events = await events_of(scene.app, instance.id)
        return [one.why for one in events if isinstance(one, PlannerRetried | PlannerGaveUp)]

    return told


Why = Callable[[Scene, PlanInstance], Awaitable[list[str]]]


async def test_of_what_too_little_is_known_the_author_has_it(scene: Scene, why: Why) -> None:
    await scene.knows(3, *EDGES[:4], won=120.0)
    service = Service(scene.clock, lasts=3.0)
    scene.offers(service)
    instance = await scene.play()
    assert (instance.status, service.waits) == ("done", [0.5, 1.0, 2.0])
    assert await why(scene, instance) == [
        "backoff after 1 try",
        "backoff after 2 tries",
        "backoff after 3 tries",
    ]


async def test_from_five_cases_on_it_is_tried_when_others_have_recovered(
    scene: Scene, why: Why
) -> None:
    await scene.knows(5, *EDGES[:4], won=120.0)
    service = Service(scene.clock, lasts=100.0)
    scene.offers(service)
    instance = await scene.play()
    assert (instance.status, service.waits) == ("done", [120.0])
    [told] = await why(scene, instance)
    assert told.startswith("of failures like it, 5 known, ")
    assert told.endswith(" % are over 120 s after they began")


async def test_where_the_first_moment_fails_the_next_counts_from_the_first_failure(
    scene: Scene, why: Why
) -> None:
    await scene.knows(20, 0.5, 2.0, 8.0, 30.0, won=120.0)
    await scene.knows(20, 0.5, 2.0, 8.0, 30.0, 120.0, won=600.0)
    service = Service(scene.clock, lasts=400.0)
    scene.offers(service)
    instance = await scene.play()
    assert (instance.status, service.waits) == ("done", [120.0, 480.0])
    assert [one.rpartition(" are over ")[2] for one in await why(scene, instance)] == [
        "120 s after they began",
        "600 s after they began",
    ]


async def test_the_drivers_own_attempts_come_first_and_count(scene: Scene) -> None:
    await scene.knows(5, *EDGES[:4], won=120.0)
    service = Service(scene.clock, lasts=100.0)
    scene.offers(service, retry={"attempts": 3})
    await scene.play()
    assert service.waits == [0.5, 1.0, 118.5]


async def test_what_has_never_recovered_is_not_tried_again(scene: Scene, why: Why) -> None:
    await scene.knows(40, *EDGES)
    service = Service(scene.clock, lasts=1_000_000.0)
    scene.offers(service)
    instance = await scene.play()
    assert (instance.status, len(service.calls)) == ("error", 1)
    [told] = await why(scene, instance)
    assert told.startswith("of failures like it, 40 known, ")
    assert told.endswith(" % are over within half an hour")
    assert not scene.keeper.loads._by_tool, "what is not tried again strains nothing"


@pytest.mark.parametrize(
    ("won", "asked", "waited", "told"),
    [
        (120.0, 300.0, 300.0, "the service asked for 300 s"),
        (120.0, 30.0, 120.0, " % are over 120 s after they began"),
        (None, 30.0, 30.0, "the service asked for 30 s"),
    ],
    ids=["for more", "for less", "where nothing else would help"],
)
async def test_a_service_that_asks_for_more_has_it(
    scene: Scene, why: Why, won: float | None, asked: float, waited: float, told: str
) -> None:
    await scene.knows(40, *(EDGES[:4] if won else EDGES), won=won, asked=asked)
    service = Service(scene.clock, lasts=20.0, retry_after=asked)
    scene.offers(service)
    instance = await scene.play()
    assert (instance.status, service.waits) == ("done", [waited])
    [said] = await why(scene, instance)
    assert said.endswith(told)


async def test_a_service_that_asks_for_too_much_is_left_to_a_person(scene: Scene, why: Why) -> None:
    await scene.knows(5, *EDGES[:4], won=120.0, asked=90.0)
    service = Service(scene.clock, lasts=100.0, retry_after=90.0)
    scene.offers(service, retry={"longest_wait": 60, "maximum": 10})
    instance = await scene.play()
    assert (instance.status, len(service.calls)) == ("error", 1)
    [told] = await why(scene, instance)
    assert told == "the service asked for 90 s, and longest_wait is 60 s"


@pytest.mark.parametrize(
    ("retry_after", "known", "told"),
    [
        (None, 5, "120 s after they began"),
        (90.0, 5, "120 s after they began"),
        (90.0, 0, "the service asked for 90 s"),
    ],
    ids=["learned", "both", "asked for"],
)
async def test_the_plan_says_how_long_may_be_waited_in_all(
    scene: Scene, why: Why, retry_after: float | None, known: int, told: str
) -> None:
    await scene.knows(known, *EDGES[:4], won=120.0, asked=retry_after)
    service = Service(scene.clock, lasts=100.0, retry_after=retry_after)
    scene.offers(service, repair={"mode": "auto", "most": {"wait": 60}})
    instance = await scene.play()
    assert (instance.status, len(service.calls)) == ("error", 1)
    [said] = await why(scene, instance)
    assert said.endswith(f"{told}: longer than the plan allows")


@pytest.mark.parametrize("mode", ["propose", "off"])
async def test_without_the_authors_word_nothing_changes(scene: Scene, why: Why, mode: str) -> None:
    await scene.knows(40, *EDGES)
    service = Service(scene.clock, lasts=3.0)
    scene.offers(service, repair={"mode": mode})
    instance = await scene.play()
    assert (instance.status, service.waits) == ("done", [0.5, 1.0, 2.0])
    assert (await why(scene, instance))[0] == "backoff after 1 try"
    assert not scene.keeper.loads._by_tool


async def test_a_hook_that_says_when_is_obeyed(open_app: OpenApp, clock: ManualClock) -> None:
    class Patient(PlannerAgent):
        async def decide_retry_strategy(self, situation: RetrySituation) -> Retry:
            return Retry(1, delay=7.0, why="at lunch")

    scene = Scene(await open_app(clock=clock, planner_agent=Patient()), clock)
    await scene.knows(40, *EDGES)
    service = Service(clock, lasts=5.0)
    scene.offers(service)
    assert (await scene.play()).status == "done"
    assert service.waits == [7.0]


async def test_retries_are_bounded_by_the_planner_all_the_same(
    open_app: OpenApp, clock: ManualClock
) -> None:
    scene = Scene(await open_app(clock=clock, max_retry_count=1), clock)
    await scene.knows(20, 0.5, 2.0, 8.0, 30.0, won=120.0)
    await scene.knows(20, 0.5, 2.0, 8.0, 30.0, 120.0, won=600.0)
    service = Service(clock, lasts=400.0)
    scene.offers(service)
    assert (await scene.play()).status == "error"
    assert service.waits == [120.0]


async def test_experience_that_cannot_be_read_leaves_it_to_the_author(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def unreadable() -> None:
        raise OperatorError("the disk is gone")

    monkeypatch.setattr(scene.app.engine.learning, "experience", unreadable)
    service = Service(scene.clock, lasts=0.4)
    scene.offers(service)
    assert (await scene.play()).status == "done"
    assert service.waits == [0.5]
    assert "what is known of failures cannot be read: the disk is gone" in caplog.text


async def outage(scene: Scene, runs: int, **repair: Any) -> tuple[Service, list[PlanInstance]]:
    """So many runs find the tool down, for a minute and a half."""
    service = Service(scene.clock, lasts=90.0)
    scene.offers(service, repair={"mode": "auto", **repair})
    instances = [await start(scene.app) for _ in range(runs)]
    for one in instances:
        await scene.app.engine.wait_for(one.id, lambda state: bool(state.timers))
    return service, instances


@pytest.mark.parametrize("runs", [12, 200])
async def test_in_an_outage_one_run_tries_and_wakes_the_others(
    open_app: OpenApp, clock: ManualClock, why: Why, runs: int
) -> None:
    scene = Scene(await open_app(clock=clock, max_retry_count=12), clock)
    service, instances = await outage(scene, runs)
    lasted = await scene.turn_until_all_are_over(instances)
    assert {one.status for one in instances} == {"done"}
    assert lasted < HELD, "those that waited were woken before their time"
    retries = [one for one in service.calls if one < service.until][runs:]
    assert len(retries) <= 20, "the first four once more, then one alone"
    assert len(service.calls) == runs + len(retries) + runs
    held = ["work is out: another run tries it, and this one goes on after it"]
    told = [await why(scene, one) for one in instances]
    assert told.count(held) == runs - 5, "all but the first four and the one that tries"
    assert scene.app.engine.learning.alerts[AlertKind.OUTAGE] == 1


async def test_those_that_wait_in_an_outage_do_so_no_longer_than_their_plan_allows(
    open_app: OpenApp, clock: ManualClock
) -> None:
    scene = Scene(await open_app(clock=clock, max_retry_count=12), clock)
    _, instances = await outage(scene, 6, most={"wait": 40})
    state = await scene.app.engine.state(instances[-1].id)
    assert list(state.timers.values()) == [clock.now() + 40.0]


async def test_what_succeeds_earns_the_retries_of_others(scene: Scene) -> None:
    keeper, service = scene.keeper, Service(scene.clock, lasts=0.1)
    scene.offers(service)
    assert (await scene.play()).status == "done"
    before = keeper.loads._by_tool["work"].tokens
    for _ in range(3):
        assert (await scene.play()).status == "done"
    assert keeper.loads._by_tool["work"].tokens == before + 3
