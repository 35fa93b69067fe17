"""The supervisor of conversations: they move on only while a consumer asks for more; here the
server does.

Every conversation that is not at its end is pursued from the moment the server starts, or from
its first message. One that waits for people alone, because they are asked or have paused it,
is let go of: it costs nothing but a place in a dictionary, and the next thing that is recorded
of it, be it an answer, a resume or a deadline, has it pursued again. While the journal is down
a runner waits and tries again.

A runner has a context of its own, so that nothing that it does is put down to the request that
happened to begin it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextvars import Context
from dataclasses import replace

from holdfast.app import Holdfast
from holdfast.conversations.runner import ConversationRunner, is_over, may_rest, runner_of
from holdfast.errors import CallerError, OperatorError
from holdfast.model import commands as c
from holdfast.model.rows import RunQuery
from holdfast.model.run import RunStatus
from holdfast.runtime.machines import as_conversation

log = logging.getLogger("holdfast")

GRACE = 10.0
"""How many seconds work that cannot be repeated is given to end when the server closes."""

RETRY_JOURNAL = 0.25
PATIENCE = 1.0
"""How long one that is taken up after another may keep the next from being taken up."""

_GOING = frozenset({RunStatus.RUNNING.value, RunStatus.CONTINUE.value})
_WAITING = frozenset({RunStatus.PAUSE.value})


class Supervisor:
    def __init__(self, app: Holdfast) -> None:
        self._app = app
        self._shared = app.engine.journal.shared
        self._asked: set[str] = set()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._resting: dict[str, Callable[[], None]] = {}
        self._taking_up: asyncio.Task[None] | None = None
        self._closed = False

    def __len__(self) -> int:
        return len(self._tasks)

    async def start(self) -> None:
        """Take up every conversation that is not at its end; those that wait, one by one.

        On a shared journal each is pursued by its driver alone (`see_through`).
        """
        if self._shared:
            self._app.pursue = self.see_through
            return
        for run_id in await self._found(_GOING):
            self.pursue(run_id)
        waiting = await self._found(_WAITING)
        self._taking_up = asyncio.create_task(self._take_up(waiting), context=Context())

    async def _found(self, statuses: frozenset[str]) -> list[str]:
        query = RunQuery(kind="conversation", status=statuses, roots_only=True, limit=500)
        found: list[str] = []
        while rows := await self._app.runs(query):
            found += (row.run_id for row in rows)
            query = replace(query, before=rows[-1].run_id)
        return found

    async def _take_up(self, run_ids: Sequence[str]) -> None:
        for run_id in run_ids:
            self.pursue(run_id)
            if run_id in self._tasks:
                await asyncio.wait((self._tasks[run_id],), timeout=PATIENCE)

    def pursue(self, run_id: str) -> None:
        """Have it go on; harmless when it does already."""
        if self._closed or self._shared:
            return
        self._wake(run_id)
        self._asked.add(run_id)
        if run_id not in self._tasks:
            self._tasks[run_id] = asyncio.create_task(self._pursue(run_id), context=Context())

    async def close(self) -> None:
        """Let go of all of them: each goes on when a server takes it up again."""
        self._closed = True
        for run_id in tuple(self._resting):
            self._wake(run_id)
        tasks = [*self._tasks.values(), *([self._taking_up] if self._taking_up else ())]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def see_through(self, run_id: str) -> None:
        """Pursue a conversation that is driven here, until it is over or waits for people."""
        self._wake(run_id)
        try:
            await self._see_through(run_id)
        finally:
            self._wake(run_id)

    async def _pursue(self, run_id: str) -> None:
        try:
            while run_id in self._asked and not self._closed:
                self._asked.discard(run_id)
                await self._see_through(run_id)
        finally:
            # No await lies between the last look at `_asked` and this.
            del self._tasks[run_id]

    async def _see_through(self, run_id: str) -> None:
        """Until it is over or waits for people; for one that cannot be pursued, at once."""
        while run_id not in self._resting:
            try:
                runner = await self._runner(run_id)
                if runner is None:
                    return
                await self._attend(run_id, runner)
            except OperatorError as error:
                if self._closed or self._app.engine.hub.closed:
                    return
                log.warning(
                    "conversation %s waits for the journal: %s",
                    run_id,
                    error,
                    extra={"run": run_id},
                )
                await asyncio.sleep(RETRY_JOURNAL)
            except CallerError as error:
                log.warning(
                    "conversation %s is not pursued: %s", run_id, error, extra={"run": run_id}
                )
                return
            except Exception:
                log.exception("conversation %s is not pursued", run_id, extra={"run": run_id})
                return

    async def _runner(self, run_id: str) -> ConversationRunner | None:
        state = as_conversation(await self._app.engine.state(run_id))
        if is_over(state):
            return None
        runner = await runner_of(self._app, state)
        if runner is None:
            log.warning(
                "conversation %s has tasks for a model, and none is configured",
                run_id,
                extra={"run": run_id},
            )
        return runner

    async def _attend(self, run_id: str, runner: ConversationRunner) -> None:
        resting = None
        try:
            await runner.attend()
            resting = asyncio.ensure_future(self._comes_to_rest(run_id))
            ended = asyncio.ensure_future(runner.ended())
            await asyncio.wait((resting, ended), return_when=asyncio.FIRST_COMPLETED)
            for done in (resting, ended):
                if done.done():
                    done.result()
        finally:
            if resting is not None:
                resting.cancel()
                ended.cancel()
                await asyncio.wait((resting, ended))
            await _leave(runner)

    async def _comes_to_rest(self, run_id: str) -> None:
        """Until it waits for people alone, and would not go on if it were asked to."""
        engine = self._app.engine
        while True:
            before = await engine.wait_for(run_id, may_rest)
            self._rest(run_id)
            after = await engine.submit(run_id, c.Advance())
            if run_id in self._resting and after.version == before.version:
                return
            self._wake(run_id)

    def _rest(self, run_id: str) -> None:
        """From now on whatever is recorded of it has it pursued again."""

        def moved(_: object) -> None:
            self.pursue(run_id)

        self._wake(run_id)
        self._resting[run_id] = self._app.engine.hub.watch(run_id, moved)

    def _wake(self, run_id: str) -> None:
        unwatch = self._resting.pop(run_id, None)
        if unwatch is not None:
            unwatch()


async def _leave(runner: ConversationRunner) -> None:
    """Leave the conversation in order, within GRACE also where the caller is cancelled."""
    leaving = asyncio.ensure_future(runner.leave())
    done, _ = await asyncio.wait((leaving,), timeout=GRACE)
    if not done:
        leaving.cancel()
        await asyncio.wait((leaving,))
