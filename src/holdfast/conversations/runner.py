"""Runs a conversation for a person at a terminal or for a server's callers.

A conversation moves on only while its events are asked for; the runner asks, and surfaces read what
happens from the journal, like that of any other run. Leaving it loses nothing: work that may be
repeated is broken off, and what may not is waited for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import aclosing, suppress
from typing import Any, TypeVar

from holdfast.app import Holdfast
from holdfast.conversations.arguments import new_id
from holdfast.conversations.engine import ConversationEngine
from holdfast.conversations.workers import coordinator_of
from holdfast.core.conversation import resting
from holdfast.core.conversation.resting import is_over as is_over
from holdfast.core.conversation.state import ConversationState
from holdfast.core.run.state import RunState, StepState
from holdfast.core.run.tables import StepStatus
from holdfast.model import commands as c
from holdfast.model.conversation import ConversationSettings, EngineState
from holdfast.model.run import RunStatus
from holdfast.runtime.engine import Engine
from holdfast.runtime.identity import LOCAL
from holdfast.runtime.machines import as_conversation, pinned_settings
from holdfast.work.goals import GoalModel

T = TypeVar("T")

_ENDED_OR_CANCELLING = frozenset(
    {RunStatus.DONE, RunStatus.ERROR, RunStatus.CANCELLING, RunStatus.CANCELLED}
)


async def open_conversation(
    engine: Engine, conversation_id: str | None, settings: ConversationSettings, by: str
) -> str:
    """A new conversation, in which nothing was said yet, under its id or the next free one."""
    if conversation_id is None:
        run_id = f"conv_{await engine.journal.next_number('conv'):06d}"
    else:
        run_id = new_id(conversation_id)
    await engine.begin(
        run_id, pinned_settings(settings), c.OpenConversation(by=by, unattended=True)
    )
    return run_id


class Left(Exception):
    """The person has left; the conversation stays as it is."""


class ConversationRunner:
    """Asks one conversation for more, until it has come to its end or is left."""

    def __init__(self, app: Holdfast, engine: ConversationEngine) -> None:
        self.engine = engine
        self._app = app
        self._begun = asyncio.Event()
        self._leaving = asyncio.Event()
        self._asking: asyncio.Task[None] | None = None

    async def begin(self, text: str | None) -> None:
        """Begin a goal, or what is left of one; returns when that is on disk."""
        state = await self._recorded()
        if state is not None and state.phase is EngineState.PAUSED:
            await self._app.engine.submit(self.engine.id, c.Unhold())
        await self.attend(text)

    async def attend(self, text: str | None = None) -> None:
        """As `begin`, but a paused conversation stays paused."""
        self._asking = asyncio.ensure_future(self._ask_for_more(text))
        if text is not None:
            await self.alongside(self._begun.wait())

    async def _ask_for_more(self, text: str | None) -> None:
        async with aclosing(self.engine.run(text)) as events:
            async for _ in events:
                self._begun.set()

    def quit(self) -> None:
        self._leaving.set()

    async def alongside(self, seeing: Coroutine[Any, Any, T]) -> T:
        """What `seeing` returns; the conversation's own error comes first, and so does `Left`."""
        assert self._asking is not None
        seen = asyncio.ensure_future(seeing)
        leaving = asyncio.ensure_future(self._leaving.wait())
        try:
            waited: set[asyncio.Future[Any]] = {seen, leaving, self._asking}
            while not seen.done():
                await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
                if leaving.done():
                    raise Left
                if self._asking.done():
                    self._asking.result()
                    waited.discard(self._asking)
            return seen.result()
        finally:
            await _end(seen)
            await _end(leaving)

    async def ended(self) -> None:
        """Until there is nothing more to ask for; the conversation's own error is raised."""
        assert self._asking is not None
        await asyncio.wait((self._asking,))
        self._asking.result()

    async def leave(self) -> None:
        """Go, after what cannot be repeated has ended."""
        asking, self._asking = self._asking, None
        if asking is None:
            return
        try:
            if not asking.done():
                await self._let_finish()
        finally:
            await _end(asking)

    async def _let_finish(self) -> None:
        if not await self.has_to_finish():
            return
        paused = self.engine.pause()
        await self._app.engine.wait_for(
            self.engine.id, lambda state: not unrepeatable(as_conversation(state))
        )
        if paused:
            self.engine.resume()

    async def has_to_finish(self) -> bool:
        """Whether something is under way that cannot simply be done again."""
        state = await self._recorded()
        return state is not None and unrepeatable(state)

    async def _recorded(self) -> ConversationState | None:
        """How it stands on disk, which may be ahead of what was told."""
        if not self.engine.id or not await self._app.journal.version(self.engine.id):
            return None
        return as_conversation(await self._app.engine.state(self.engine.id))


def unrepeatable(state: ConversationState) -> bool:
    return any(_cannot_be_repeated(step) for step in state.steps.values())


def _cannot_be_repeated(step: StepState) -> bool:
    """A child run goes on by itself."""
    return step.status is StepStatus.RUNNING and not step.idempotent and not step.awaits_child


async def _end(work: asyncio.Future[Any]) -> None:
    work.cancel()
    with suppress(asyncio.CancelledError, Exception):
        await work


def model_of(app: Holdfast, model: str | None = None) -> GoalModel | None:
    if model is None and app.models.default_model is None:
        return None
    return GoalModel(app.models, model)


def lacks_model(app: Holdfast, state: ConversationState, model: str | None = None) -> bool:
    """Its tasks are for a model, and here is none: they would come to nothing."""
    if model_of(app, model) is not None or _made_without_model(state):
        return False
    return any(
        task.route == "default" and task.status not in ("completed", "finished")
        for task in state.tasks.values()
    )


def _made_without_model(state: ConversationState) -> bool:
    return [(task.id, task.description) for task in state.tasks.values()] == [
        ("task_1", state.text)
    ]


async def runner_of(
    app: Holdfast, state: ConversationState, by: str = LOCAL
) -> ConversationRunner | None:
    """To go on with the turn under way; None where that cannot be done here."""
    if state.status in _ENDED_OR_CANCELLING or lacks_model(app, state):
        return None
    engine = await ConversationEngine.open(
        app, state.run_id, coordinator=coordinator_of(app), llm=model_of(app), by=by
    )
    return ConversationRunner(app, engine)


def may_rest(run: RunState) -> bool:
    """Nothing of a conversation is done here, and no clock but that of its questions runs."""
    return resting.may_rest(as_conversation(run))
