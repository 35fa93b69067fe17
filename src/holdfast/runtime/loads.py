"""The load that retries put on tools just now, as this process knows it.

Only tools that are strained have one: those whose calls failed a while ago, until their budget is
full again and none of their calls waits.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Container, Iterable
from typing import Final

from holdfast.i18n.message import msg
from holdfast.repair import alerts, budgets
from holdfast.repair.alerts import Alert
from holdfast.repair.budgets import NO_LOAD, Call, Load, Turn
from holdfast.repair.facts import Fact, Left, Tried
from holdfast.runtime.clock import Clock

log = logging.getLogger("holdfast")

MOST_TOOLS: Final = 1_000


class Loads:
    """`wake` is told which call need not wait any more, and how many seconds from now it goes on;
    `alert` must not raise."""

    def __init__(
        self, clock: Clock, alert: Callable[[Alert], None], wake: Callable[[Call, float], None]
    ) -> None:
        self._clock = clock
        self._alert = alert
        self._wake = wake
        self._by_tool: OrderedDict[str, Load] = OrderedDict()

    @property
    def strained(self) -> Container[str]:
        """The tools whose successes count: `succeeded` need not be called for others."""
        return self._by_tool

    def failed(self, tool: str, fingerprint: str, call: Call) -> tuple[float, str]:
        """For how many seconds a call that has failed is to be left alone, and why."""
        now = self._clock.now()
        load, turn = budgets.failed(self._of(tool), fingerprint, call, now)
        self._put(tool, load)
        if turn.began:
            self._alert(alerts.outage(tool, budgets.ALIKE, call.run_id, now))
        if turn.spent:
            self._alert(alerts.budget_spent(tool, call.run_id, now))
        return turn.hold, _why_held(tool, turn) if turn.hold else ""

    def succeeded(self, tool: str) -> None:
        self._put(tool, budgets.succeeded(self._of(tool)))

    def hear(self, fact: Fact) -> None:
        """Others may go on where a call has recovered, or is not tried any more."""
        if not isinstance(fact, Tried | Left) or fact.tool not in self._by_tool:
            return
        load = self._of(fact.tool)
        if isinstance(fact, Left):
            load, leader = budgets.left(load, fact.fingerprint, Call(fact.run_id, fact.step_id))
            self._wake_all([leader] if leader is not None else [])
        elif fact.won:
            load, waiting = budgets.recovered(load, fact.fingerprint)
            self._wake_all(waiting)
        self._put(fact.tool, load)

    def _wake_all(self, calls: Iterable[Call]) -> None:
        for place, call in enumerate(calls):
            try:
                self._wake(call, budgets.wake_after(place))
            except Exception:
                log.exception("%s of %s could not be woken", call.step_id, call.run_id)

    def _of(self, tool: str) -> Load:
        return self._by_tool.get(tool, NO_LOAD)

    def _put(self, tool: str, load: Load) -> None:
        if budgets.at_rest(load, self._clock.now()):
            self._by_tool.pop(tool, None)
            return
        self._by_tool[tool] = load
        self._by_tool.move_to_end(tool)
        while len(self._by_tool) > MOST_TOOLS:
            self._by_tool.popitem(last=False)


def _why_held(tool: str, turn: Turn) -> str:
    if turn.waits:
        return msg("{tool} is out: another run tries it, and this one goes on after it", tool=tool)
    return msg("too many calls of {tool} fail: its retries are put off", tool=tool)
