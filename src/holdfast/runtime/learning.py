"""What an installation learns of failures, opened when the first run is in trouble.

Runs that never fail cost nothing.

An alert goes to the log, to the counts for monitoring, and to whoever listens (`listeners`).
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from contextvars import Context
from typing import Any, Final

from holdfast.core.plan.state import PlanState
from holdfast.errors import OperatorError
from holdfast.journal.port import Journal, Written
from holdfast.model.retry import Cause
from holdfast.repair.alerts import Alert, AlertKind
from holdfast.repair.budgets import Call
from holdfast.runtime.alerting import AlertHook
from holdfast.runtime.background import BackgroundTasks
from holdfast.runtime.case_counts import Outcome, outcomes
from holdfast.runtime.clock import Clock
from holdfast.runtime.experience import ExperienceKeeper

log = logging.getLogger("holdfast")

LOOK_SECONDS: Final = 60.0
"""Tuning: how long it takes at most until what other processes have learned is known here."""


class Learning:
    """`wake` is told which step of which run need not wait any longer."""

    def __init__(
        self,
        journal: Journal,
        clock: Clock,
        background: BackgroundTasks,
        wake: Callable[[str, str], None],
    ) -> None:
        self.keeper = ExperienceKeeper(journal, clock, background, self._alert, self._wake)
        self.alerts: Counter[AlertKind] = Counter()
        """How many there were of each kind, in this process."""
        self.cases: Counter[tuple[Cause, Outcome]] = Counter()
        """How many cases have come to what, by commits of this process."""
        self.listeners: list[Callable[[Alert], object]] = []
        """They are told at once, and may not take their time: `on_alert` is for those that do."""
        self._shared = journal.shared
        self._background = background
        self._clock = clock
        self._wake_now = wake
        self._waking: set[asyncio.Task[None]] = set()
        self._opening = asyncio.Lock()
        self._is_open = False
        self._look_at = 0.0

    async def experience(self) -> ExperienceKeeper:
        """What is known, read first where nothing was known yet."""
        async with self._opening:
            if not self._is_open:
                await self.keeper.open()
                self._is_open, self._look_at = True, self._clock.now() + LOOK_SECONDS
        return self.keeper

    async def newest(self) -> ExperienceKeeper:
        """As `experience`, with what other processes have kept by now."""
        keeper = await self.experience()
        if self._shared:
            await keeper.refresh()
        return keeper

    async def look(self) -> None:
        """A sweep, where other processes learn too: once in a while what they have learned is
        read."""
        now = self._clock.now()
        if self._is_open and now >= self._look_at:
            self._look_at = now + LOOK_SECONDS
            await self.keeper.refresh()

    def note(self, before: PlanState, after: PlanState, records: Sequence[Written]) -> None:
        """A run in trouble has committed something."""
        if not self._is_open:
            self._background.spawn(self._open())
        if after.repair is not before.repair:
            self.cases.update(outcomes(after, records))
        self.keeper.note(before, after, records)

    async def _open(self) -> None:
        try:
            await self.experience()
        except OperatorError as error:
            log.info("what is known of failures is read later: %s", error)

    async def close(self) -> None:
        for task in tuple(self._waking):
            task.cancel()
        if self._is_open:
            await self.keeper.close()

    def on_alert(self, function: Callable[[Alert], Any]) -> None:
        """Have a function told of each alert, in its own time."""
        self.listeners.append(AlertHook(function, self._background))

    def _alert(self, alert: Alert) -> None:
        self.alerts[alert.kind] += 1
        about = {"run": alert.run_id or None, "alert": alert.kind.value}
        log.warning("%s", alert.message, extra=about)
        for listener in tuple(self.listeners):
            try:
                listener(alert)
            except Exception:
                log.exception("a listener to alerts failed")

    def _wake(self, call: Call, seconds: float) -> None:
        due = self._clock.now() + seconds
        waking, loop = self._wake_at(due, call), asyncio.get_running_loop()
        task = loop.create_task(waking, context=Context())
        self._waking.add(task)
        task.add_done_callback(self._waking.discard)

    async def _wake_at(self, due: float, call: Call) -> None:
        while self._clock.now() < due:
            await self._clock.wait(due, asyncio.Event())
        self._wake_now(call.run_id, call.step_id)
