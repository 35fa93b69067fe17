"""Does something to a run, then shows it until it comes to rest.

In a terminal a pause asks its question at once, while other branches go on, and the run continues
with the answer. Without one nothing is asked: the report says how to answer. Ctrl-C lets go of
the run; what is in flight ends, and nothing is lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from holdfast.cli.backend import Backend
from holdfast.cli.shell import OK, Interrupted, Settings
from holdfast.cli.terminal.plain import note, print_json
from holdfast.cli.terminal.progress import Display, Point, display_of, follow
from holdfast.cli.terminal.prompts import ask
from holdfast.cli.terminal.repairs import rehearsal_asked
from holdfast.cli.terminal.report import NOT_KEPT, exit_code, report_json, say_report, way_on
from holdfast.cli.terminal.screen import say
from holdfast.cli.terminal.untrusted_text import rows
from holdfast.conversations.runner import ConversationRunner, Left
from holdfast.errors import AlreadyAnswered, InvalidAnswer, TooLate
from holdfast.model.run import RunKind, RunStatus
from holdfast.views.records import RunView


@dataclass(frozen=True, slots=True)
class Driver:
    """Shows runs of one backend until they rest."""

    backend: Backend
    settings: Settings
    asks: bool = True

    async def see_through(
        self, before: RunView, display: Display | None = None, *, after: int | None = None
    ) -> RunView:
        """Show what happens after event `after`, by default after `before`, until the run rests.

        A conversation is carried on meanwhile, where that can be done; a server does so itself.
        """
        display = display or display_of(self.settings, before)
        start = Point.of(before) if after is None else Point(before.run_id, after)
        if before.kind is not RunKind.CONVERSATION or self.backend.is_elsewhere:
            return await self._unless_stopped(before, self._go_on(start, display))
        runner = await self.backend.runner(before.run_id)
        if runner is None:
            return await self._unless_stopped(before, self._look(start, display))
        await runner.begin(None)
        return await self.carry_on(runner, before, display, start)

    async def carry_on(
        self,
        runner: ConversationRunner,
        before: RunView,
        display: Display,
        start: Point,
    ) -> RunView:
        """As `see_through`, of a conversation whose runner has begun; the runner ends here."""
        try:
            return await runner.alongside(self._go_on(start, display))
        except asyncio.CancelledError:
            self._say_stopping()
            await runner.leave()
            raise self._stopped(before) from None
        except Left:
            if await runner.has_to_finish():
                self._say_stopping()
            raise
        finally:
            await runner.leave()

    async def _unless_stopped(
        self, before: RunView, seeing: Coroutine[Any, Any, RunView]
    ) -> RunView:
        try:
            return await seeing
        except asyncio.CancelledError:
            self._say_stopping()
            raise self._stopped(before) from None

    def _stopped(self, before: RunView) -> Interrupted:
        options = self.settings.repeated
        if not self.backend.keeps_runs:
            return Interrupted(f"stopped; {NOT_KEPT}")
        if self.backend.is_shared:
            how = f"holdfast watch {before.run_id}{options}"
            return Interrupted(f"stopped watching; the run goes on there; to see it: {how}")
        return Interrupted(f"stopped; to go on: {way_on(before, options)}")

    async def _look(self, point: Point, display: Display) -> RunView:
        """What has happened to a run that is not carried on here; one that is being cancelled is
        shown until it is cancelled."""

        async def settled(point: Point) -> bool:
            ending = point.status is RunStatus.CANCELLING
            return await self.backend.is_newest(point.run_id, point.version) and not ending

        if not await settled(point):
            with display:
                point = await self._shown(point, display, settled)
        return await self.backend.run(point.run_id)

    @property
    def _may_ask(self) -> bool:
        return self.asks and self.settings.interactive

    def _say_stopping(self) -> None:
        if not self.settings.as_json and not self.backend.is_elsewhere:
            note("stopping: what is in flight ends first (Ctrl-C again leaves at once)")

    async def _go_on(self, point: Point, display: Display) -> RunView:
        while True:
            with display:
                if not await self._rests(point):
                    point = await self._shown(point, display, self._rests)
            asks = self._may_ask and point.status is RunStatus.PAUSE
            if not asks or not await self.asked(point.run_id):
                return await self.backend.run(point.run_id)

    async def _shown(
        self, point: Point, display: Display, at_rest: Callable[[Point], Awaitable[bool]]
    ) -> Point:
        run_id, views = point.run_id, display.wants_views
        updates = self.backend.follow(run_id, point.version, views=views)
        point = await follow(point, updates, display, at_rest)
        if views:
            display.update(await self.backend.run(run_id))
        return point

    async def _rests(self, point: Point) -> bool:
        """Nothing newer is on disk, and nothing more will happen by itself.

        A run that waits for a sub-run's question may not have heard yet that it was
        answered: then no question is open any more.
        """
        at_rest = point.asks_or_rests if self._may_ask else point.rests
        if not at_rest or not await self.backend.is_newest(point.run_id, point.version):
            return False
        paused = point.status is RunStatus.PAUSE
        return not paused or bool(await self.backend.open_questions(point.run_id))

    async def asked(self, run_id: str) -> bool:
        """Ask the oldest question that is open and for this person; False when they leave it for
        later, or there is none such."""
        questions = await self.backend.open_questions(run_id)
        ours = next((one for one in questions if one.is_ours), None)
        if ours is None:
            return not questions
        given = await ask(ours.request, more=await rehearsal_asked(self.backend, ours))
        if given is None:
            return False
        try:
            await self.backend.answer(given.response(ours.question_id))
        except (AlreadyAnswered, TooLate, InvalidAnswer) as error:
            say(*rows(str(error), ""))
        return True

    async def conclude(self, run_id: str, code: int | None = None) -> int:
        """Report how the run is and how to go on; the exit code for that."""
        run = await self.backend.run(run_id)
        questions = await self.backend.open_questions(run_id)
        if self.settings.as_json:
            print_json(report_json(run, questions))
        else:
            say_report(
                run,
                questions,
                self.settings.repeated,
                kept=self.backend.keeps_runs,
                elsewhere=self.backend.is_elsewhere,
                shared=self.backend.is_shared,
            )
        return exit_code(run.status) if code is None else code


Action = Callable[[], Awaitable[object]]


async def do_and_see(
    driver: Driver,
    run_id: str,
    action: Action,
    *,
    wait: bool,
    code: int | None = None,
    first: str | None = None,
) -> int:
    """Do something to a run, then see it through; `first` a sub-run, which goes on by itself while
    the run above it is in error."""
    seen = [await driver.backend.run(one) for one in (first, run_id) if one is not None]
    await action()
    for before in seen if wait else ():
        await driver.see_through(before)
    return await driver.conclude(run_id, code if wait else OK)
