"""What is tried again when: in calls and in the times that the journal has."""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from plan_texts import end, load, start, step

import warm
from holdfast import GiveUp, Holdfast, PlanInstance, PlannerAgent, Retry, RetrySituation
from holdfast.errors import TransientError
from holdfast.model.events import AttemptFailed, PlannerGaveUp, PlannerRetried
from holdfast.model.recorded import Event
from holdfast.testing.clock import ManualClock
from holdfast.views.folds import run_view
from holdfast.views.stories.attempts import try_words
from holdfast.views.stories.text import clock as local_time

OpenApp = Callable[..., Awaitable[Holdfast]]
EventsOf = Callable[[Holdfast, str], Awaitable[list[Event]]]

STEADY = {"retry": {"jitter": 0}}
ONCE = {"retry": {"attempts": 1, "jitter": 0}}


class Service:
    """Fails as it is told to, and keeps the times of its calls."""

    def __init__(self, clock: ManualClock, *failures: Exception | dict[str, Any]) -> None:
        self.clock, self.failures, self.calls = clock, list(failures), list[float]()

    async def __call__(self) -> dict[str, Any]:
        self.calls.append(self.clock.now())
        if not self.failures:
            return {"success": True}
        failure = self.failures.pop(0)
        if isinstance(failure, Exception):
            raise failure
        return failure

    @property
    def waits(self) -> list[float]:
        return [later - before for before, later in zip(self.calls, self.calls[1:], strict=False)]


async def play(
    app: Holdfast, clock: ManualClock, service: Service, **listener: Any
) -> PlanInstance:
    """Run it with the clock turned to each timer, until nothing goes on by itself."""
    app.tool(service.__call__, name="work")
    load(app, step("A", "001", "002", tool="work", **listener), end("002"))
    instance = await start(app)
    while True:
        state = await app.engine.wait_for(
            instance.id, lambda one: bool(one.timers) or one.status in ("done", "error")
        )
        if state.status in ("done", "error"):
            return instance
        (due,) = state.timers.values()
        clock.advance(due - clock.now())
        await app.engine.wait_for(instance.id, lambda one: not one.timers)


class TestBackoff:
    async def test_goes_on_across_the_planners_retries(
        self, open_app: OpenApp, clock: ManualClock, events_of: EventsOf
    ) -> None:
        app = await open_app(clock=clock)
        service = Service(clock, *[RuntimeError("down")] * 12)
        instance = await play(app, clock, service, **STEADY)
        assert instance.status == "error"
        assert service.waits == [0.5, 1, 2, 4, 8, 16, 32, 60, 60, 60, 60]
        events = await events_of(app, instance.id)
        retried = [one.why for one in events if isinstance(one, PlannerRetried)]
        assert retried == [f"backoff after {n} tries" for n in (3, 6, 9)]

    async def test_a_retry_due_while_nobody_ran_comes_at_its_time(
        self, clock: ManualClock, tmp_path: Path
    ) -> None:
        """The next owner reads the same time from the journal, and nobody is consulted again."""
        service = Service(clock, RuntimeError("down"))
        asked: list[int] = []

        class Counting(PlannerAgent):
            async def decide_retry_strategy(self, situation: RetrySituation) -> int:
                asked.append(situation.retry_count)
                return 1

        def owner() -> Holdfast:
            app = Holdfast(tmp_path, clock=clock, planner_agent=Counting())
            app.tool(service.__call__, name="work")
            load(app, step("A", "001", "002", tool="work", **ONCE), end("002"))
            return app

        async with owner() as first:
            instance = await start(first)
            state = await first.engine.wait_for(instance.id, lambda one: bool(one.timers))
            (due,) = state.timers.values()
        async with owner() as second:
            again = await second.engine.state(instance.id)
            assert dict(again.timers) == {"retry:A": due}
            clock.advance(due - clock.now())
            found = await second.plans.get_plan_instance(instance.id)
            assert found is not None
            assert await found.wait_for_completion() == "done"
        assert (asked, service.waits) == ([0], [0.5])

    @pytest.mark.own_store  # the process that is killed owns a home
    async def test_after_a_sigkill_it_comes_at_its_time(self, tmp_path: Path) -> None:
        """The process dies in the planner's backoff; the next one wakes the step when it is due."""
        child = await warm.create_subprocess_exec(
            sys.executable, "-c", DIES_IN_BACKOFF, str(tmp_path), stdout=asyncio.subprocess.PIPE
        )
        said, _ = await child.communicate()
        assert child.returncode == -signal.SIGKILL
        run_id, due = json.loads(said)
        clock = ManualClock(due - 1)
        service = Service(clock)
        app = Holdfast(tmp_path, clock=clock)
        app.tool(service.__call__, name="work")
        async with app:
            state = await app.engine.state(run_id)
            assert dict(state.timers) == {"retry:A": due}
            assert state.steps["A"].status == "backoff"
            clock.advance(1)
            instance = await app.plans.get_plan_instance(run_id)
            assert instance is not None
            assert await instance.wait_for_completion() == "done"
        assert service.calls == [due]


DIES_IN_BACKOFF = f"""
import asyncio, json, os, signal, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from plan_texts import end, load, start, step
from holdfast import Holdfast

async def main():
    app = Holdfast(sys.argv[1])

    @app.tool
    async def work():
        raise RuntimeError("down")

    retry = {{"attempts": 1, "initial": 3600}}
    load(app, step("A", "001", "002", tool="work", retry=retry), end("002"))
    async with app:
        instance = await start(app)
        state = await app.engine.wait_for(instance.id, lambda one: bool(one.timers))
        print(json.dumps([instance.id, *state.timers.values()]), flush=True)
        os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


async def test_whoever_looks_sees_when_the_next_round_comes_and_why(
    open_app: OpenApp, clock: ManualClock
) -> None:
    app = await open_app(clock=clock)
    app.tool(Service(clock, RuntimeError("down")).__call__, name="work")
    retry = {"attempts": 1, "initial": 60, "jitter": 0}
    load(app, step("A", "001", "002", tool="work", retry=retry), end("002"))
    instance = await start(app)
    state = await app.engine.wait_for(instance.id, lambda one: bool(one.timers))
    due = local_time(clock.now() + 60)
    run = run_view(state, clock.now())
    [work] = [one for one in run.steps if one.step_id == "A"]
    assert try_words(run, work) == f"round 2 at {due} (backoff after 1 try)"


class TestRetryAfter:
    @pytest.mark.parametrize(
        "failure",
        [
            TransientError("busy", retry_after=30),
            TransientError("busy", retry_after="30"),
            {"success": False, "error": "busy", "retry_after": 30},
            httpx.HTTPStatusError(
                "busy",
                request=httpx.Request("GET", "http://x"),
                response=httpx.Response(429, headers={"retry-after": "30"}),
            ),
        ],
        ids=["seconds", "header", "result", "status error"],
    )
    @pytest.mark.parametrize("listener", [STEADY, ONCE], ids=["driver", "planner"])
    async def test_is_obeyed(
        self,
        open_app: OpenApp,
        clock: ManualClock,
        failure: Exception | dict[str, Any],
        listener: dict[str, Any],
    ) -> None:
        service = Service(clock, failure)
        instance = await play(await open_app(clock=clock), clock, service, **listener)
        assert (instance.status, service.waits) == ("done", [30])

    async def test_stands_in_the_journal_with_its_reason(
        self, open_app: OpenApp, clock: ManualClock, events_of: EventsOf
    ) -> None:
        app = await open_app(clock=clock)
        service = Service(clock, TransientError("busy", retry_after=90))
        instance = await play(app, clock, service, **STEADY)
        (failed,) = [
            one for one in await events_of(app, instance.id) if isinstance(one, AttemptFailed)
        ]
        assert failed.failure.retry_after == 90
        assert failed.retry_at == service.calls[1]
        assert failed.why == "the service asked for 90 s"

    async def test_beyond_the_longest_wait_a_person_decides(
        self, open_app: OpenApp, clock: ManualClock
    ) -> None:
        service = Service(clock, TransientError("busy", retry_after=7_200))
        instance = await play(await open_app(clock=clock), clock, service, **STEADY)
        assert (instance.status, len(service.calls)) == ("error", 1)
        message = instance.get_main_task_instance().context["error_info"]["message"]
        assert "the service asked for 7200 s, and longest_wait is 3600 s" in message


def planner(decide: Callable[[RetrySituation], Any], **settings: Any) -> PlannerAgent:
    """One whose hook is an async function that returns what `decide` does."""

    class Own(PlannerAgent):
        async def decide_retry_strategy(self, situation: RetrySituation) -> Any:
            returned = decide(situation)
            return await returned if asyncio.iscoroutine(returned) else returned

    return Own(**settings)


class TestHook:
    async def test_may_return_a_delay_and_a_reason(
        self, open_app: OpenApp, clock: ManualClock, events_of: EventsOf
    ) -> None:
        app = await open_app(
            clock=clock, planner_agent=planner(lambda _: Retry(2, delay=300, why="at lunch"))
        )
        service = Service(clock, *[RuntimeError("down")] * 9)
        instance = await play(app, clock, service, **ONCE)
        assert service.waits == [300, 300]
        events = await events_of(app, instance.id)
        retried = [one for one in events if isinstance(one, PlannerRetried)]
        assert {one.why for one in retried} == {"at lunch"}
        assert [one.retry_at for one in retried] == service.calls[1:]

    async def test_may_give_up_and_say_why(self, open_app: OpenApp, clock: ManualClock) -> None:
        app = await open_app(clock=clock, planner_agent=planner(lambda _: GiveUp("call Ann")))
        instance = await play(app, clock, Service(clock, RuntimeError("down")), **ONCE)
        message = instance.get_main_task_instance().context["error_info"]["message"]
        assert message == "A failed: down; call Ann"

    async def test_need_not_be_async(self, open_app: OpenApp, clock: ManualClock) -> None:
        class Plain(PlannerAgent):
            def decide_retry_strategy(self, situation: RetrySituation) -> int:  # type: ignore[override]
                return 2

        app = await open_app(clock=clock, planner_agent=Plain())
        service = Service(clock, *[RuntimeError("down")] * 9)
        await play(app, clock, service, **ONCE)
        assert len(service.calls) == 3

    async def test_hears_what_the_service_asked_for(
        self, open_app: OpenApp, clock: ManualClock
    ) -> None:
        heard: list[float | None] = []
        app = await open_app(
            clock=clock, planner_agent=planner(lambda one: heard.append(one.retry_after) or 0)
        )
        await play(app, clock, Service(clock, TransientError("busy", retry_after=9)), **ONCE)
        assert heard == [9]

    @pytest.mark.parametrize("stubborn", [False, True], ids=["cancelled", "does not listen"])
    async def test_that_never_returns_leaves_it_to_the_usual_policy(
        self, open_app: OpenApp, clock: ManualClock, events_of: EventsOf, stubborn: bool
    ) -> None:
        ended = asyncio.Event()

        async def brood() -> int:
            while not ended.is_set():
                try:
                    await asyncio.wait_for(ended.wait(), 600)
                except asyncio.CancelledError:
                    if not stubborn:
                        raise
            return 99

        own = planner(lambda _: brood(), max_retry_count=1, decision_timeout=0.01)
        app = await open_app(clock=clock, planner_agent=own)
        service = Service(clock, *[RuntimeError("down")] * 9)
        instance = await play(app, clock, service, **ONCE)
        ended.set()
        assert (instance.status, service.waits) == ("error", [0.5])
        told = "decide_retry_strategy took longer than 0.01 s: the usual policy decided"
        events = await events_of(app, instance.id)
        (retried,) = [one for one in events if isinstance(one, PlannerRetried)]
        (gave_up,) = [one for one in events if isinstance(one, PlannerGaveUp)]
        assert retried.why == f"{told}; backoff after 1 try"
        assert gave_up.why == told

    @pytest.mark.parametrize(
        ("returned", "complaint"),
        [
            (None, "must return a number of retries, Retry(…) or GiveUp(…), not NoneType"),
            (True, "must return a number of retries, Retry(…) or GiveUp(…), not bool"),
            ("3", "must return a number of retries, Retry(…) or GiveUp(…), not str"),
            (Retry("many"), "must return a number of retries, Retry(…) or GiveUp(…), not str"),  # type: ignore[arg-type]
            (Retry(1, -1), "must return a delay in seconds, from 0 to a year"),
            (Retry(1, float("nan")), "must return a delay in seconds, from 0 to a year"),
            (Retry(1, "soon"), "must return a delay in seconds, from 0 to a year"),  # type: ignore[arg-type]
        ],
    )
    async def test_that_returns_nonsense_leaves_it_to_the_usual_policy(
        self,
        open_app: OpenApp,
        clock: ManualClock,
        caplog: pytest.LogCaptureFixture,
        returned: Any,
        complaint: str,
    ) -> None:
        own = planner(lambda _: returned, max_retry_count=1)
        app = await open_app(clock=clock, planner_agent=own)
        service = Service(clock, *[RuntimeError("down")] * 9)
        with caplog.at_level(logging.ERROR, "holdfast"):
            instance = await play(app, clock, service, **ONCE)
        assert len(service.calls) == 2
        told = f"decide_retry_strategy {complaint}: the usual policy decided"
        assert told in caplog.text
        assert told in instance.get_main_task_instance().context["error_info"]["message"]

    async def test_that_cancels_itself_gives_up(
        self, open_app: OpenApp, clock: ManualClock
    ) -> None:
        async def stop() -> int:
            raise asyncio.CancelledError

        app = await open_app(clock=clock, planner_agent=planner(lambda _: stop()))
        instance = await play(app, clock, Service(clock, RuntimeError("down")), **ONCE)
        message = instance.get_main_task_instance().context["error_info"]["message"]
        assert message == "A failed: down; decide_retry_strategy raised CancelledError"

    @pytest.mark.parametrize("seconds", [0, -1, float("inf"), float("nan")])
    def test_has_a_time_limit_that_is_one(self, seconds: float) -> None:
        with pytest.raises(ValueError, match="decision_timeout"):
            PlannerAgent(decision_timeout=seconds)
