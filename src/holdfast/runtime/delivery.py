"""Letters to runs, and what becomes of them when the journal could not acknowledge.

A refused append may have happened or not. So callers are told, results already obtained
stay in the mailbox, and the run is loaded anew as soon as the journal answers.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from typing import Any

from holdfast.errors import JournalUnavailable, NotFound, OperatorError
from holdfast.i18n.message import msg
from holdfast.journal.port import OutboxMessage
from holdfast.model import commands as c
from holdfast.runtime import projections as views
from holdfast.runtime.actor import Actor, Envelope
from holdfast.runtime.actors import ActorRegistry
from holdfast.runtime.background import BackgroundTasks

log = logging.getLogger("holdfast")

RETRY_JOURNAL = 0.25
LONGEST_RETRY = 600.0
"""How soon a journal that was down is tried again, in seconds, and how rarely at last what a
mistake of ours keeps from it."""


class Delivery:
    """`carry` decides what is in an actor's mailbox, turn after turn."""

    def __init__(
        self,
        actors: ActorRegistry,
        background: BackgroundTasks,
        carry: Callable[..., Coroutine[Any, Any, None]],
    ) -> None:
        self._actors = actors
        self._background = background
        self.carry = carry
        self.closing = False

    def put(self, actor: Actor, envelope: Envelope) -> None:
        """Have a letter decided by a task of the engine's own."""
        actor.mailbox.append(envelope)
        self._actors.wake(actor)
        if not actor.draining:
            actor.draining = True
            self._background.spawn(self.carry(actor))

    async def post(self, run_id: str, envelope: Envelope) -> None:
        """Have a letter of the engine's own decided, however long the journal is down."""
        while True:
            try:
                actor = await self._actors.find(run_id)
                break
            except JournalUnavailable as error:
                if self.closing:
                    return
                log.warning("run %s waits for the journal: %s", run_id, error)
                await asyncio.sleep(RETRY_JOURNAL)
        actor.mailbox.append(envelope)
        self._actors.wake(actor)
        if not actor.draining:
            await self.carry(actor)

    async def deliver(self, notice: OutboxMessage) -> None:
        envelope = Envelope(views.heard(notice), notice=(notice.source_id, notice.seq))
        await self.post(notice.target_id, envelope)

    async def wake(self, run_id: str) -> None:
        await self.post(run_id, Envelope(c.Tick(), lazy=True))

    def stall(self, actor: Actor, error: OperatorError) -> None:
        """Tell the callers; keep what was obtained, and try again by and by."""
        kept = [envelope for envelope in actor.mailbox if envelope.reply is None]
        for envelope in actor.mailbox:
            envelope.answer(actor.committed, error)
        actor.mailbox.clear()
        actor.mailbox.extend(kept)
        if actor.committed.version == 0:
            self._actors.drop(actor)
            self.doubt(actor.run_id)
            return
        actor.stale = True
        if actor.retry is None:
            log.warning("run %s waits for the journal: %s", actor.run_id, error)
            loop = asyncio.get_running_loop()
            actor.retry = loop.call_later(RETRY_JOURNAL, self.retry, actor)

    def retry(self, actor: Actor) -> None:
        actor.retry = None
        if not actor.draining and not self.closing:
            actor.draining = True
            self._background.spawn(self.carry(actor))

    def put_off(self, actor: Actor, envelopes: Sequence[Envelope]) -> None:
        """A mistake of ours keeps these from the journal: they are tried again, ever more rarely,
        and one after another, for each may spoil it for the others. A result is lost at the second
        time, and the run must know that."""
        loop = asyncio.get_running_loop()
        for number, envelope in enumerate(envelopes):
            place, command = ("", id(envelope)), envelope.command
            if isinstance(command, c.ReportOutcome):
                place = (command.step_id, command.claim)
                if envelope.tries:
                    lost = c.Lost(msg("its result could not be recorded"))
                    envelope = Envelope(replace(command, outcome=lost), tries=envelope.tries)
            delay = min(RETRY_JOURNAL * (2.0 ** min(envelope.tries, 20) + number), LONGEST_RETRY)
            envelope.tries += 1
            actor.flying[place] = loop.create_future()  # it is still on its way
            loop.call_later(delay, self._put_again, actor, place, envelope)

    def _put_again(self, actor: Actor, place: tuple[str, int], envelope: Envelope) -> None:
        if not self.closing and actor.flying.pop(place, None) is not None:
            self.put(actor, envelope)

    def doubt(self, run_id: str) -> None:
        """A run whose birth was refused may be on disk all the same, and then needs an owner."""
        self._actors.doubtful.add(run_id)
        asyncio.get_running_loop().call_later(RETRY_JOURNAL, self._adopt, run_id)

    def _adopt(self, run_id: str) -> None:
        if not self.closing and run_id in self._actors.doubtful:
            self._background.spawn(self._wake_if_born(run_id))

    async def _wake_if_born(self, run_id: str) -> None:
        try:
            await self.wake(run_id)
        except NotFound:
            self._actors.doubtful.discard(run_id)
