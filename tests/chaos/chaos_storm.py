"""What befalls the cluster: workers are killed, PostgreSQL is restarted and taken away, tools fail.

`rage` goes by the clock, for as long as it is let; the single acts can be had one by one.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from chaos_cluster import Cluster

KILL_EVERY = (1.5, 5.0)
RESTART_EVERY = (5.0, 20.0)
FAULT_EVERY = (0.5, 2.0)
FAILURES = (1, 1, 2, 8)
"""Of a tool one after the other: of the last, some runs use up their attempts."""

LONGEST_DELAY = 1.0

FAILING = (
    "create_employee_profile",
    "grant_access",
    "apply_computer",
    "outbound",
    "pay_expense",
    "send_email",
)


@dataclass
class Storm:
    cluster: Cluster
    seed: object
    say: Callable[[str], None]
    counts: Counter[str] = field(default_factory=Counter)
    _database: asyncio.Lock = field(default_factory=asyncio.Lock)
    _acting: asyncio.Future[None] | None = None

    async def rage(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._kills(self.chance("kills")))
            group.create_task(self._restarts(self.chance("restarts")))
            group.create_task(self._faults(self.chance("faults")))

    def chance(self, what: str) -> random.Random:
        return random.Random(f"{what} {self.seed}")

    async def _kills(self, chance: random.Random) -> None:
        while True:
            await asyncio.sleep(chance.uniform(*KILL_EVERY))
            await self.kill(chance.randrange(len(self.cluster.workers)))

    async def _restarts(self, chance: random.Random) -> None:
        while True:
            await asyncio.sleep(chance.uniform(*RESTART_EVERY))
            await self.restart(immediate=chance.random() < 0.5)

    async def _faults(self, chance: random.Random) -> None:
        while True:
            await asyncio.sleep(chance.uniform(*FAULT_EVERY))
            await self.let_fail(chance)

    async def kill(self, worker: int) -> None:
        one = self.cluster.workers[worker]
        if one.ready.is_set():
            await one.kill()
            self.counts["kills"] += 1

    async def restart(self, *, immediate: bool) -> None:
        async with self._database:
            await self._act(partial(self.cluster.postgres.restart, immediate=immediate))
        self.counts["restarts"] += 1

    async def take_away(self, seconds: float) -> None:
        """PostgreSQL is away for so long."""
        async with self._database:
            await self._act(self.cluster.postgres.stop)
            self.say(f"PostgreSQL is away for {seconds:g} s")
            begun = time.monotonic()
            await asyncio.sleep(seconds)
            await self._act(self.cluster.postgres.start)
            self.say(f"PostgreSQL is back after {time.monotonic() - begun:.0f} s")
        self.counts["absences"] += 1

    async def calm(self) -> None:
        """What was begun comes to its end."""
        if self._acting is not None:
            await asyncio.wait((self._acting,))

    async def _act(self, act: Callable[[], None]) -> None:
        self._acting = asyncio.ensure_future(asyncio.to_thread(act))
        await asyncio.shield(self._acting)

    async def let_fail(self, chance: random.Random) -> None:
        tool = chance.choice(FAILING)
        await self.cluster.office.configure_failures({tool: chance.choice(FAILURES)})
        tool = chance.choice(FAILING)
        await self.cluster.office.configure_delays({tool: chance.uniform(0, LONGEST_DELAY)})
        self.counts["faults"] += 1
