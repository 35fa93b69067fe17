"""Two servers and four workers in a storm, in short; `make chaos` has it long.

What befalls them goes by how many runs have ended, not by the clock.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from chaos_campaign import campaign
from chaos_people import People
from chaos_storm import Storm

RUNS = 40
SEED = 14
PATIENCE = 600.0


async def test_every_run_ends_as_it_should_and_nothing_happens_twice(tmp_path: Path) -> None:
    counts = await campaign(tmp_path, RUNS, SEED, shower, patience=PATIENCE)
    assert (counts["kills"], counts["restarts"]) == (3, 2)
    assert counts["contested"] > 0


async def shower(storm: Storm, people: People) -> None:
    chance = storm.chance("faults")
    office = storm.cluster.office
    acts: list[tuple[float, Callable[[], Awaitable[None]]]] = [
        (0.0, lambda: office.configure_delays({"apply_computer": 0.5, "outbound": 0.5})),
        (0.0, lambda: storm.let_fail(chance)),
        (0.05, lambda: storm.kill(0)),
        (0.15, lambda: storm.restart(immediate=True)),
        (0.2, lambda: storm.let_fail(chance)),
        (0.25, lambda: storm.kill(1)),
        (0.4, lambda: storm.kill(2)),
        (0.5, lambda: storm.restart(immediate=False)),
    ]
    for share, act in acts:
        while people.ended < share * people.runs:  # noqa: ASYNC110 - people look by themselves
            await asyncio.sleep(0.05)
        await act()
