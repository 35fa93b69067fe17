"""A tool that is down for a while, and an application whose plan lets experience decide of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plan_texts import end, load, start, step

from holdfast import Holdfast, PlanInstance
from holdfast.core.repair.causes import judged
from holdfast.core.run.state import RunState
from holdfast.errors import TransientError
from holdfast.model.recovery import passed_at
from holdfast.model.retry import Failure, FailureKind
from holdfast.model.run import RunStatus
from holdfast.repair.facts import Tried
from holdfast.runtime.experience import ExperienceKeeper
from holdfast.testing.clock import ManualClock

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

    def fails_for(self, lasts: float) -> None:
        """From now on, and nothing has been called yet."""
        self.until, self.calls = self.clock.now() + lasts, []

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
        """From timer to timer until one is over, then by half seconds, as others are woken; how
        many seconds went by."""
        began, left = self.clock.now(), list(instances)
        while left:
            states = [
                await self.app.engine.wait_for(one.id, self._waits_or_is_over) for one in left
            ]
            told = zip(left, states, strict=True)
            left = [one for one, state in told if state.status not in OVER]
            if len(left) < len(instances):
                self.clock.advance(0.5)
            else:
                due = min(min(state.timers.values()) for state in states)
                self.clock.advance(due - self.clock.now())
        return self.clock.now() - began

    def _waits_or_is_over(self, state: RunState) -> bool:
        due = min(state.timers.values(), default=0.0)
        return state.status in OVER or due > self.clock.now()
