"""Drives runs that the dispatcher hands to this process, as far as it has what they need.

A conversation moves while its events are asked for. `pursue` asks, where the process has something
that does (the server's supervisor).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Container
from contextlib import suppress
from contextvars import Context
from typing import Final, TypeAlias

from holdfast.core.conversation.state import ConversationState
from holdfast.errors import HoldfastError, NotFound
from holdfast.journal.port import Drive
from holdfast.model import commands as c
from holdfast.runs.required_tools import own_tools
from holdfast.runtime.drives import HandedBack, Refused
from holdfast.runtime.engine import Engine

Pursue: TypeAlias = Callable[[str], Awaitable[None]]

TRY_SECONDS: Final = 1.0
LONGEST_TRY: Final = 60.0


class RunDriver:
    def __init__(
        self, engine: Engine, tools: Container[str], pursuer: Callable[[], Pursue | None]
    ) -> None:
        self._engine = engine
        self._tools = tools
        self._pursuer = pursuer
        self._pursuits: set[asyncio.Task[None]] = set()

    async def drive(self, run_id: str, drive: Drive, *, anyway: bool = False) -> None:
        """Refused where something is not here that the run needs. Driven anyway, a run without a
        tool shows a person what is missing; a conversation waits for a process that pursues it."""
        try:
            state = await self._engine.state(run_id)
        except NotFound:
            return  # it was removed
        delay = min(TRY_SECONDS * 2**drive.attempt, LONGEST_TRY)
        missing = [one for one in own_tools(state) if one not in self._tools]
        if missing and not anyway:
            reason = f"this process has no tool {', '.join(dict.fromkeys(missing))}"
            raise Refused(run_id, reason, delay)
        if not isinstance(state, ConversationState):
            await self._engine.drive(run_id, drive)
        elif (pursue := self._pursuer()) is None:
            kind = HandedBack if anyway else Refused
            raise kind(run_id, "this process pursues no conversations", delay)
        else:
            await self._converse(run_id, drive, pursue, delay)

    async def _converse(self, run_id: str, drive: Drive, pursue: Pursue, delay: float) -> None:
        pursuits: list[asyncio.Task[None]] = []

        def begin() -> None:
            pursued = self._pursued(run_id, pursue, delay)
            pursuits.append(asyncio.create_task(pursued, context=Context()))
            self._pursuits.add(pursuits[0])

        try:
            await self._engine.drive(run_id, drive, begin)
        finally:
            for pursuit in pursuits:
                self._pursuits.discard(pursuit)
                pursuit.cancel()
                await asyncio.wait((pursuit,))

    async def _pursued(self, run_id: str, pursue: Pursue, delay: float) -> None:
        await pursue(run_id)
        with suppress(HoldfastError):
            await self._engine.submit(run_id, c.Tick())  # its driver looks whether it is over
        await asyncio.sleep(TRY_SECONDS)
        self._engine.hand_back(run_id, "it cannot be pursued here", delay)

    async def drain(self) -> None:
        """Leave the conversations in order; their drives end with the engine."""
        pursuits = tuple(self._pursuits)
        for pursuit in pursuits:
            pursuit.cancel()
        if pursuits:
            await asyncio.wait(pursuits)

    def holds(self, job: int) -> bool:
        return self._engine.holds(job)
