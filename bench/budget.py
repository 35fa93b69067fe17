"""`python -m bench.budget`: what a further step costs, in counts that no other process disturbs.

Counted are a plain step (a tool call that succeeds and starts the next) in a chain and in 40 runs
at once, a pause (the question, its answer, and the step that follows), a conversation of one task
from its opening to its end, and a further task of a conversation. Each work is done in two
lengths, and the difference is divided by the steps that one has more, so that the start and the end
of a run are not in it.

    calls, c_calls   of the loop's thread, as `sys.setprofile` sees them: a coroutine that goes on
                     counts as called, what uvloop does inside itself is not seen
    objects          records and states made
    tasks, futures   made by the loop
    statements       as SQLite runs them: one for each row of an `executemany`
    commits, reads   those of them that end a transaction, and those that select
    bytes            the text of the events
    written          all that the process gave to the system to write, where the system tells
    instructions     of the whole process, where valgrind is found

A stage is a part of the source. What belongs to none (enum, json, generated constructors) counts
where it was called from. The clock stands still, and commits stay on the loop however slow the disk
is: the same source gives the same figures each time. tests/runtime/test_budget.py keeps those of a
chain.
"""

from __future__ import annotations

import _weakrefset
import argparse
import asyncio
import gc
import itertools
import json
import math
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar, cast
from unittest.mock import patch

import uvloop

import holdfast
from bench import ours, trial
from bench.child import ROOT
from bench.conversation import Row, nothing
from bench.ours import Ours, sequence
from holdfast.conversations.engine import ConversationEngine, EngineEventType
from holdfast.journal import writer
from holdfast.journal.database import Connection
from holdfast.journal.port import RunQuery
from holdfast.testing.clock import ManualClock

STAGES = ("core", "work", "turn", "encode", "append", "commit", "publish", "asyncio")

PARTS = {
    "core/": "core",
    "language/": "core",
    "forms/": "core",
    "model/": "core",
    "work/": "work",
    "runtime/hub.py": "publish",
    "runtime/projections.py": "append",
    "runtime/": "turn",
    "journal/codec.py": "encode",
    "journal/writer.py": "commit",
    "journal/": "append",
    "": "publish",
}
"""The stage of each part of the package; the first that fits a path counts."""

FILES = {
    **{str(Path(holdfast.__file__).parent / part): stage for part, stage in PARTS.items()},
    str(Path(asyncio.__file__).parent): "asyncio",
    _weakrefset.__file__: "asyncio",
    ours.__file__: "work",
}

OURS = ""
"""The stage of the measuring itself, which is not counted."""

STAGED = ("calls", "c_calls", "objects", "tasks", "futures", "statements", "commits", "reads")
WHOLE = ("events", "bytes", "written", "instructions")
AT_ONCE = 40
WRITTEN = Path("/proc/self/io")
MEMORY = "/dev/shm"

Counts = dict[str, Counter[str]]
"""How many of what, and in which stage."""

T = TypeVar("T")
Work = Callable[["Metered", int], Awaitable[Callable[[], Awaitable[Any]]]]


class Meter:
    """Counts what is done within it, by the thread that entered it."""

    def __init__(self) -> None:
        self.counts: Counts = {}
        self._stages: dict[str, str | None] = {__file__: OURS}
        self._on = False

    def __enter__(self) -> None:
        self.counts = {kind: Counter() for kind in STAGED}
        self._on = True
        sys.setprofile(self._profile)

    def __exit__(self, *error: object) -> None:
        sys.setprofile(None)
        self._on = False

    def note(self, kind: str, frame: FrameType | None) -> None:
        if self._on and (stage := self._stage(frame)) != OURS:
            self.counts[kind][stage] += 1

    def statement(self, connection: sqlite3.Connection, text: str) -> None:
        """Called by SQLite for every statement; those of a trigger come as comments. One that
        writes outside of a transaction commits by itself."""
        frame = sys._getframe(1)  # noqa: SLF001
        if not text.startswith("--"):
            self.note("statements", frame)
        if text == "COMMIT" or (text.startswith("INSERT") and not connection.in_transaction):
            self.note("commits", frame)
        elif text.startswith("SELECT"):
            self.note("reads", frame)

    def _profile(self, frame: FrameType, event: str, called: Any) -> None:
        if event == "call":
            self.note("calls", frame)
            if frame.f_code.co_name == "__init__" and frame.f_code.co_filename == "<string>":
                self.note("objects", frame)
        elif event == "c_call":
            self.note("c_calls", frame)
            if called.__name__ == "__new__":
                self.note("objects", frame)

    def _stage(self, frame: FrameType | None) -> str:
        while frame is not None:
            file = frame.f_code.co_filename
            if file not in self._stages:
                self._stages[file] = _stage_of(file)
            if (stage := self._stages[file]) is not None:
                return stage
            frame = frame.f_back
        return "asyncio"


def _stage_of(file: str) -> str | None:
    return next((stage for path, stage in FILES.items() if file.startswith(path)), None)


class _Loop(uvloop.Loop):
    """Tells the meter what is asked of it."""

    meter: Meter

    def create_task(self, *args: Any, **options: Any) -> asyncio.Task[Any]:
        self.meter.note("tasks", sys._getframe(1))  # noqa: SLF001
        return super().create_task(*args, **options)

    def create_future(self) -> asyncio.Future[Any]:
        self.meter.note("futures", sys._getframe(1))  # noqa: SLF001
        return super().create_future()


class Metered(Ours):
    """Holdfast with a clock that stands still, and a meter at its connections."""

    def __init__(self, meter: Meter | None = None) -> None:
        super().__init__(ManualClock())
        self._meter = meter
        self._talks = itertools.count(100)

    def _connect(self, path: Path) -> Connection:
        connection = cast(sqlite3.Connection, super()._connect(path))
        if self._meter is not None:
            connection.set_trace_callback(partial(self._meter.statement, connection))
        return connection

    async def pauses(self, count: int) -> Callable[[], Awaitable[None]]:
        """A run that asks so often, each time after a tool call."""
        name = f"pauses_{count}"
        self.app.add_plan(sequence(name, "effect", *["ask", "effect"] * count))

        async def run() -> None:
            instance = await self.app.plans.start_plan_by_prompt("", name)
            for _ in range(count):
                await instance.wait_until_settled()
                [question] = (await self.app.engine.state(instance.id)).open_questions
                await self.app.answer(question, option_id="confirm")
            assert await instance.wait_for_completion() == "done"

        return run

    async def talks(self, count: int) -> Callable[[], Awaitable[None]]:
        """So many conversations of one task, one after the other."""

        async def run() -> None:
            for _ in range(count):
                await self._talk(1)

        return run

    async def talk(self, tasks: int) -> Callable[[], Awaitable[None]]:
        """A conversation of so many tasks, each of which waits for the one before."""
        return lambda: self._talk(tasks)

    async def _talk(self, tasks: int) -> None:
        name = f"talk_{next(self._talks)}"
        options = {"llm": Row(tasks), "executors": {"nothing": nothing}}
        engine = await ConversationEngine.open(self.app, name, **options)
        events = [event async for event in engine.run(ours.GOAL)]
        assert events[-1].event_type is EngineEventType.ENGINE_COMPLETED
        assert engine.completed_tasks == tasks

    def empty_the_log(self) -> None:
        """So that none of what is measured is copied from it into the database."""
        self.connections[0].execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    async def stored(self) -> Counter[str]:
        """How many events there are, and how many bytes of text they have."""
        runs = await self.app.runs(RunQuery(limit=10_000))
        events = [event for run in runs for event in await self.app.journal.read(run.run_id)]
        size = sum(len(event.payload.encode()) for event in events)
        return Counter({"events": len(events), "bytes": size, "written": _written()})


def _written() -> int:
    if not WRITTEN.exists():
        return 0
    return int(re.search(r"^wchar: (\d+)", WRITTEN.read_text(), re.MULTILINE)[1])  # type: ignore[index]


async def _chain(system: Metered, length: int) -> Callable[[], Awaitable[Any]]:
    run = await system.chain(length)
    return lambda: run("")


async def _load(system: Metered, length: int) -> Callable[[], Awaitable[Any]]:
    run = await system.chain(length)
    return lambda: asyncio.gather(*(run("") for _ in range(AT_ONCE)))


@dataclass(frozen=True, slots=True)
class Measure:
    """A work, the two lengths in which it is done, and how many are at it at once.

    The lengths have the same number of digits in everything that events write down.
    """

    title: str
    work: Work
    lengths: tuple[int, int]
    at_once: int = 1

    @property
    def steps(self) -> int:
        short, long = self.lengths
        return (long - short) * self.at_once


MEASURES = {
    "chain": Measure("a further step in a chain", _chain, (60, 90)),
    "load": Measure(f"a further step of {AT_ONCE} runs at once", _load, (12, 20), AT_ONCE),
    "pause": Measure("a further pause, its answer and the step after it", Metered.pauses, (18, 24)),
    "conversation": Measure("a conversation of one task", Metered.talks, (2, 6)),
    "task": Measure("a further task of a conversation", Metered.talk, (12, 32)),
}


def counted(measure: Measure) -> Counts:
    """What a further step costs, by kind and stage."""
    short, long = (_count(measure.work, length) for length in measure.lengths)
    return {kind: _per_step(long[kind], short[kind], measure.steps) for kind in long}


def _per_step(long: Counter[str], short: Counter[str], steps: int) -> Counter[str]:
    spent = {stage: (long[stage] - short[stage]) / steps for stage in sorted(long)}
    return Counter({stage: tidy(number) for stage, number in spent.items() if number})


def tidy(number: float) -> float:
    return int(number) if number == int(number) else round(number, 3)


def _count(work: Work, length: int) -> Counts:
    async def once(meter: Meter, home: Path) -> Counts:
        system = Metered(meter)
        async with trial.opened(system, home):
            run = await work(system, length)
            await run()
            system.empty_the_log()
            before = await system.stored()
            with meter:
                await run()
            grown = await system.stored() - before
        return meter.counts | {kind: Counter({"append": grown[kind]}) for kind in grown}

    return metered(once)


def metered(job: Callable[[Meter, Path], Coroutine[Any, Any, T]]) -> T:
    """Run a job on a loop that has the meter, with an empty directory."""
    meter = Meter()

    def loop() -> _Loop:
        made = _Loop()
        made.meter = meter
        return made

    with alike() as home, asyncio.Runner(loop_factory=loop) as runner:
        return runner.run(job(meter, home))


@contextmanager
def alike() -> Iterator[Path]:
    """An empty directory, in memory if the system has that; nothing depends on the disk's pace, or
    on when the collector runs."""
    collecting, memory = gc.isenabled(), MEMORY if os.path.isdir(MEMORY) else None
    gc.collect()
    gc.disable()
    try:
        with (
            patch.object(writer, "SLOW_SECONDS", math.inf),
            tempfile.TemporaryDirectory(dir=memory) as home,
        ):
            yield Path(home)
    finally:
        if collecting:
            gc.enable()


def instructions(name: str) -> float | None:
    """Those of a further step; None where there is no valgrind."""
    if shutil.which("valgrind") is None:
        return None
    measure = MEASURES[name]
    short, long = (_instructions(f"{name}:{length}") for length in measure.lengths)
    return round((long - short) / measure.steps)


def _instructions(work: str) -> int:
    tool = "--tool=cachegrind --cache-sim=no --branch-sim=no --cachegrind-out-file=/dev/null"
    command = [sys.executable, "-W", "ignore", "-m", "bench.budget", "--do", work]
    done = subprocess.run(
        ["valgrind", *tool.split(), *command],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        check=True,
    )
    return int(re.search(r"I\s+refs:\s+([\d,]+)", done.stderr)[1].replace(",", ""))  # type: ignore[index]


async def _do(measure: Measure, length: int, home: Path) -> None:
    system = Metered()
    async with trial.opened(system, home):
        runs = {one: await measure.work(system, one) for one in measure.lengths}
        for run in (*runs.values(), runs[length]):
            await run()


def do(name: str) -> None:
    """Both lengths of a work and then one of them again, for valgrind to look at. The process ends
    at once: how Python clears up is no part of a step."""
    kind, _, length = name.partition(":")
    with alike() as home:
        uvloop.run(_do(MEASURES[kind], int(length), home))
        shutil.rmtree(home)
        os._exit(0)


def measured() -> dict[str, Counts]:
    """Everything, by the name of the work."""
    found = {name: counted(measure) for name, measure in MEASURES.items()}
    for name, counts in found.items():
        if (spent := instructions(name)) is not None:
            counts["instructions"] = Counter({"process": spent})
    return found


def markdown(budget: dict[str, Counts]) -> str:
    lines = ["# The budget of a step"]
    for name, counts in budget.items():
        lines += ["", f"## {MEASURES[name].title}", "", *_table(counts)]
    return "\n".join(lines) + "\n"


def _table(counts: Counts) -> list[str]:
    rows = [_row(stage, [counts[kind][stage] for kind in STAGED]) for stage in STAGES]
    totals = _row("all", [counts[kind].total() for kind in STAGED])
    whole = [f"{kind} {tidy(counts[kind].total()):,}" for kind in WHOLE if counts.get(kind)]
    return [
        _row("stage", STAGED),
        _row("---", ["---"] * len(STAGED)),
        *rows,
        totals,
        "",
        ", ".join(whole),
    ]


def _row(head: str, cells: Any) -> str:
    shown = [cell if isinstance(cell, str) else f"{tidy(cell):,}" for cell in cells]
    return "| " + " | ".join([head, *shown]) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.budget", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print {work: {kind: {stage: count}}}")
    parser.add_argument("--do", metavar="WORK:LENGTH", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.do:
        do(options.do)
    else:
        found = measured()
        print(json.dumps(found) if options.json else markdown(found))


if __name__ == "__main__":
    main()
