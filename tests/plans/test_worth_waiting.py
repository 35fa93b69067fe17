"""When `repair: {mode: auto}` has a failed tool tried again: by what is known of others like it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest
from plan_texts import end, load, start, step

from holdfast import Holdfast, PlanInstance, PlannerAgent, Retry, RetrySituation
from holdfast.core.repair.causes import judged
from holdfast.errors import OperatorError, TransientError
from holdfast.model.events import PlannerGaveUp, PlannerRetried
from holdfast.model.recorded import Event
from holdfast.model.recovery import passed_at
from holdfast.model.retry import Failure, FailureKind
from holdfast.model.run import RunStatus
from holdfast.repair.alerts import AlertKind
from holdfast.repair.facts import Tried
from holdfast.runtime.experience import ExperienceKeeper
from holdfast.testing.clock import ManualClock

OpenApp = Callable[..., Awaitable[Holdfast]]
EventsOf = Callable[[Holdfast, str], Awaitable[list[Event]]]

EDGES = (0.5, 2.0, 8.0, 30.0, 120.0, 600.0, 1_800.0)
OVER = (RunStatus.DONE, RunStatus.ERROR)


class Service:
    """A tool that is down until a moment, and says when to come again, if that is known."""

    def __init__(self, clock: ManualClock, lasts: float, retry_after: float | None = None) -> None:
        self.clock, self.until, self.retry_after = clock, clock.now() + lasts, retry_after
        self.calls: list[float] = []

    async def __call__(self) -> dict[str, Any]:
        self.calls.append(self.clock.now())
        if self.clock.now() < self.until:
            raise TransientError("down", retry_after=self.retry_after)
        return {}

    @property
    def waits(self) -> list[float]:
        return [later - before for before, later in zip(self.calls, self.calls[1:], strict=False)]


class Scene:
    """An application whose plan lets experience decide about one tool."""

    def __init__(self, app: Holdfast, clock: ManualClock) -> None:
        self.app, self.clock = app, clock

    @property
    def keeper(self) -> ExperienceKeeper:
        return self.app.engine.learning.keeper

    async def knows(
        self, cases: int, *tried: float, won: float | None = None, asked: float | None = None
    ) -> None:
        """So many calls failed at these seconds, and recovered at the last, or never."""
        await self.app.engine.learning.experience()
        failed = Failure(FailureKind.TRANSIENT, "down", asked, code="TransientError")
        failed = judged(failed, "work")
        assert failed.cause is not None
        moments = [*((one, False) for one in tried), *([(won, True)] if won else [])]
        passed, told = 0, []
        for since, good in moments:
            of = ("work", failed.fingerprint, failed.cause.value, passed, since, good)
            told.append(Tried(*of, "inst_000099", "A", self.clock.now()))
            passed = passed_at(since)
        for _ in range(cases):
            self.keeper._take(told)

    def offers(
        self, service: Service, repair: dict[str, Any] | None = None, **listener: Any
    ) -> None:
        self.app.tool(service.__call__, name="work")
        retry = {"attempts": 1, "jitter": 0, **listener.pop("retry", {})}
        work = step("A", "001", "002", tool="work", retry=retry, **listener)
        load(self.app, work, end("002"), repair=repair or {"mode": "auto"})

    async def play(self) -> PlanInstance:
        """One run, the clock turned to each timer, until nothing goes on by itself."""
        instance = await start(self.app)
        engine = self.app.engine
        while True:
            state = await engine.wait_for(
                instance.id, lambda one: bool(one.timers) or one.status in OVER
            )
            if state.status in OVER:
                return instance
            (due,) = state.timers.values()
            self.clock.advance(due - self.clock.now())
            await engine.wait_for(instance.id, lambda one: not one.timers)

    async def turn_until_all_are_over(self, instances: Sequence[PlanInstance]) -> float:
        """By half seconds; how many went by."""
        began, engine = self.clock.now(), self.app.engine
        while True:
            states = [
                await engine.wait_for(
                    one.id,
                    lambda state: (
                        state.status in OVER or min(state.timers.values(), default=0.0) > self.now()
                    ),
                )
                for one in instances
            ]
            if all(one.status in OVER for one in states):
                return self.clock.now() - began
            self.clock.advance(0.5)

    def now(self) -> float:
        return self.clock.now()


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


@pytest.mark.parametrize("runs", [12, pytest.param(200, marks=pytest.mark.own_store)])
async def test_in_an_outage_one_run_tries_and_wakes_the_others(
    open_app: OpenApp, clock: ManualClock, why: Why, runs: int
) -> None:
    scene = Scene(await open_app(clock=clock, max_retry_count=12), clock)
    service, instances = await outage(scene, runs)
    lasted = await scene.turn_until_all_are_over(instances)
    assert {one.status for one in instances} == {"done"}
    assert lasted < 300.0, "those that waited were woken long before their time"
    retries = [one for one in service.calls if one < service.until][runs:]
    assert len(retries) <= 20, "the first four once more, then one alone"
    assert len(service.calls) == runs + len(retries) + runs
    held = "work is out: another run tries it, and this one goes on after it"
    assert (await why(scene, instances[-1])) == [held]
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
