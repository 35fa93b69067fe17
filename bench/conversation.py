"""`python -m bench.conversation`: what a conversation costs per task, whatever their number.

The tasks form a grid: each depends on two of the row before, so that every completion frees
others. A task does nothing, so what is measured is scheduling: choosing, starting, recording,
telling the consumer. The cost must be flat from 100 to 10,000 tasks, in memory and on disk. It
is told as time that passed and as time of the processor; the latter is judged, because it does not
depend on what else a shared machine has to do.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from holdfast.conversations.engine import ConversationEngine, EngineEventType
from holdfast.journal.memory import MemoryJournal
from holdfast.journal.port import Journal
from holdfast.journal.sqlite import SqliteJournal

SIZES = (100, 1_000, 10_000)
WIDTH = 10
FLAT = 1.2
"""How far the dearest size may be above the cheapest."""


class Grid:
    def __init__(self, count: int) -> None:
        self.count = count

    async def decompose_goal(self, text: str) -> list[dict[str, Any]]:
        return [self._task(number) for number in range(self.count)]

    def _task(self, number: int) -> dict[str, Any]:
        row, column = divmod(number, WIDTH)
        above = [(row - 1) * WIDTH + one for one in (column, (column + 1) % WIDTH)]
        return {
            "id": f"n{number}",
            "type": "nothing",
            "priority": number * 7 % 13,
            "dependencies": [f"n{one}" for one in above if row],
        }


class Row:
    """Tasks each of which depends on the one before."""

    def __init__(self, count: int) -> None:
        self.count = count

    async def decompose_goal(self, text: str) -> list[dict[str, Any]]:
        ids = [f"n{number:03}" for number in range(self.count)]
        before: list[list[str]] = [[], *([one] for one in ids)]
        return [
            {"id": one, "type": "nothing", "dependencies": needed}
            for one, needed in zip(ids, before, strict=False)
        ]


async def nothing(task: object) -> None:
    return None


@dataclass(frozen=True, slots=True)
class Cost:
    """Microseconds per task, from the start of the first task to the end of the last."""

    wall: float
    cpu: float


async def cost_per_task(journal: Journal, count: int) -> Cost:
    engine = await ConversationEngine.open(
        journal, "grid", llm=Grid(count), executors={"nothing": nothing}
    )
    marks = []
    async for event in engine.run("all of it"):
        first = not marks and event.event_type is EngineEventType.TASK_STARTED
        if first or event.event_type is EngineEventType.ENGINE_COMPLETED:
            marks.append((time.perf_counter(), time.process_time()))
    assert engine.completed_tasks == engine.total_tasks == count
    wall, cpu = (after - before for before, after in zip(*marks, strict=True))
    return Cost(wall / count * 1e6, cpu / count * 1e6)


async def measure(sizes: list[int], repeats: int) -> dict[str, dict[int, Cost]]:
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as folder:
        made = iter(range(1_000))
        journals: dict[str, Callable[[], Journal]] = {
            "memory": MemoryJournal,
            "sqlite": lambda: SqliteJournal(Path(folder) / f"{next(made)}.db"),
        }
        return {
            name: {size: await _median(journal, size, repeats) for size in sizes}
            for name, journal in journals.items()
        }


async def _median(journal: Callable[[], Journal], size: int, repeats: int) -> Cost:
    times = repeats if size < SIZES[-1] else max(1, repeats // 3)
    costs = [await cost_per_task(journal(), size) for _ in range(times)]
    return Cost(
        statistics.median(one.wall for one in costs), statistics.median(one.cpu for one in costs)
    )


def flatness(figures: dict[int, Cost]) -> float:
    spent = [one.cpu for one in figures.values()]
    return max(spent) / min(spent)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.conversation", description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    figures = asyncio.run(measure(options.sizes, options.repeats))
    if options.json:
        plain = {name: {n: asdict(one) for n, one in row.items()} for name, row in figures.items()}
        print(json.dumps(plain))
        return
    print("µs of the processor per task (and of the clock)\n")
    print("| journal | " + " | ".join(f"{size:,} tasks" for size in options.sizes) + " | spread |")
    print("|---" * (len(options.sizes) + 2) + "|")
    for name, row in figures.items():
        cells = " | ".join(
            f"{row[size].cpu:,.0f} ({row[size].wall:,.0f})" for size in options.sizes
        )
        told = "flat" if flatness(row) <= FLAT else "not flat"
        print(f"| {name} | {cells} | {flatness(row):.2f} ({told}) |")


if __name__ == "__main__":
    main()
