"""Driving: do something to a run, then see it through until it comes to rest.

In a terminal a pause asks its question at once, while other branches go on, and the
run continues with the answer. Elsewhere nothing is asked: the run's standing says
how to answer. Ctrl-C lets go of the run; what is in flight ends, and nothing is lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from holdfast.cli.backend import Backend
from holdfast.cli.shell import OK, Interrupted, Settings
from holdfast.cli.terminal.plain import note, print_json
from holdfast.cli.terminal.progress import View, asks_or_rests, follow, rests, view_of
from holdfast.cli.terminal.prompts import ask
from holdfast.cli.terminal.report import NOT_KEPT, exit_code, say_standing, standing_json, way_on
from holdfast.cli.terminal.screen import say
from holdfast.cli.terminal.untrusted_text import rows
from holdfast.conversations.runner import ConversationRunner, Left
from holdfast.core.conversation.state import ConversationState
from holdfast.core.run.state import RunState
from holdfast.errors import AlreadyAnswered, InvalidAnswer, TooLate
from holdfast.journal.port import QuestionQuery, QuestionRow
from holdfast.model.run import RunStatus
from holdfast.runtime.machines import as_conversation
from holdfast.runtime.projections import request_of


@dataclass(frozen=True, slots=True)
class Driver:
    """Sees runs of one backend through."""

    backend: Backend
    settings: Settings
    asks: bool = True

    async def see_through(self, before: RunState, view: View | None = None) -> RunState:
        """Show what happens after `before` until the run rests; ask a person who is there.

        A conversation is pursued meanwhile, where that can be done; a server does so itself.
        """
        view = view or view_of(self.settings, before)
        if not isinstance(before, ConversationState) or self.backend.is_elsewhere:
            return await self._unless_stopped(before, self._go_on(before, view))
        state = as_conversation(await self.backend.state(before.run_id))
        runner = await self.backend.runner(state)
        if runner is None:
            return await self._unless_stopped(before, self._look(before, view))
        await runner.begin(None)
        return await self.pursue(runner, before, view)

    async def pursue(self, runner: ConversationRunner, before: RunState, view: View) -> RunState:
        """As `see_through`, of a conversation whose runner has begun; it ends here."""
        try:
            return await runner.alongside(self._go_on(before, view))
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
        self, before: RunState, seeing: Coroutine[Any, Any, RunState]
    ) -> RunState:
        try:
            return await seeing
        except asyncio.CancelledError:
            self._say_stopping()
            raise self._stopped(before) from None

    def _stopped(self, before: RunState) -> Interrupted:
        options = self.settings.repeated
        if not self.backend.keeps_runs:
            return Interrupted(f"stopped; {NOT_KEPT}")
        if self.backend.is_elsewhere:
            how = f"holdfast watch {before.run_id}{options}"
            return Interrupted(f"stopped watching; the run goes on there; to see it: {how}")
        return Interrupted(f"stopped; to go on: {way_on(before, options)}")

    async def _look(self, state: RunState, view: View) -> RunState:
        """What has happened to a run that nobody here drives; one that ends does so first."""

        async def settled(state: RunState) -> bool:
            ending = state.status is RunStatus.CANCELLING
            return await self.backend.is_newest(state) and not ending

        if await settled(state):
            return state
        heard = self.backend.listen(state.run_id, state.version)
        with view:
            return await follow(state, heard, view, settled)

    @property
    def _may_ask(self) -> bool:
        return self.asks and self.settings.interactive

    def _say_stopping(self) -> None:
        if not self.settings.as_json and not self.backend.is_elsewhere:
            note("stopping: what is in flight ends first (Ctrl-C again leaves at once)")

    async def _go_on(self, state: RunState, view: View) -> RunState:
        while True:
            with view:
                state = await self._follow(state, view)
            if not self._may_ask or state.status is not RunStatus.PAUSE:
                return state
            if not await self.asked(state.run_id):
                return state

    async def _follow(self, state: RunState, view: View) -> RunState:
        if await self._rests(state):
            return state
        heard = self.backend.listen(state.run_id, state.version)
        return await follow(state, heard, view, self._rests)

    async def _rests(self, state: RunState) -> bool:
        """Nothing newer is on disk, and nothing more will happen by itself.

        A run that waits for a sub-run's question may not have heard yet that it was
        answered: then no question is open any more.
        """
        at_rest = asks_or_rests if self._may_ask else rests
        if not at_rest(state) or not await self.backend.is_newest(state):
            return False
        paused = state.status is RunStatus.PAUSE
        return not paused or bool(await self.questions(state.run_id))

    async def questions(self, run_id: str) -> list[QuestionRow]:
        """What the run and its sub-runs ask, the oldest first."""
        root = (await self.backend.state(run_id)).root_id
        query = QuestionQuery(status=frozenset({"open"}), root_id=root, limit=1000)
        rows = await self.backend.questions(query)
        return [row for row in rows if f"{row.run_id}.".startswith(f"{run_id}.")]

    async def asked(self, run_id: str) -> bool:
        """Ask the oldest question that is open; False when the person leaves it for later."""
        questions = await self.questions(run_id)
        if not questions:
            return True
        given = await ask(request_of(questions[0]))
        if given is None:
            return False
        try:
            await self.backend.answer(given.response(questions[0].question_id))
        except (AlreadyAnswered, TooLate, InvalidAnswer) as error:
            say(*rows(str(error), ""))
        return True

    async def conclude(self, run_id: str, code: int | None = None) -> int:
        """Say where the run stands and how to go on; the exit code for that."""
        state = await self.backend.state(run_id)
        questions = await self.questions(run_id)
        if self.settings.as_json:
            print_json(standing_json(state, questions))
        else:
            say_standing(
                state,
                questions,
                self.settings.repeated,
                kept=self.backend.keeps_runs,
                elsewhere=self.backend.is_elsewhere,
            )
        return exit_code(state.status) if code is None else code


Action = Callable[[], Awaitable[object]]


async def do_and_see(
    driver: Driver, run_id: str, action: Action, *, wait: bool, code: int | None = None
) -> int:
    """Do something to a run, then see it through."""
    before = await driver.backend.state(run_id)
    await action()
    if wait:
        await driver.see_through(before)
    return await driver.conclude(run_id, code if wait else OK)
