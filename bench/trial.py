"""What happens inside the process of one system, ours or a peer's.

The process is started with one request (JSON in its only argument) and answers with JSON lines, one
per sample, so that a process cut short still leaves what it measured. Stages:

    measure   read names of probes from stdin, one a line, and say `done` after each
    fill      leave `count` runs waiting for an answer, then end
    wake      open that home again: memory added, start-up, continue of one run
    stall     bring `count` runs to where an effect is in flight, say so, hang until killed
    recover   open that home again and bring every run to its end

A run is timed from its start to its durable end; building graphs and plans is not timed. Every
run's result is checked, so a system cannot be fast by leaving steps out.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import resource
import shutil
import sqlite3
import statistics
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, closing
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

import uvloop

Run = Callable[[str], Awaitable[int]]
Figures = dict[str, float]

STALL_READY = "stalled"
DURABLE = ("wal", 2)


class System(Protocol):
    """One system under measurement; `home` is an empty directory, or one that it filled before."""

    @property
    def packages(self) -> Sequence[str]:
        """The distributions whose versions the report names."""
        ...

    async def open(self, home: Path) -> None: ...
    async def close(self) -> None: ...

    async def chain(self, length: int) -> Run:
        """A chain of distinct effects, declared where the system declares; returns its count."""
        ...

    async def loop(self, length: int) -> Run:
        """One effect `length` times over, where the system has loops."""
        ...

    async def pause(self, run: str) -> None:
        """Bring a new run to its durable pause, one effect before it."""
        ...

    async def answer(self, run: str) -> int:
        """Answer and wait for the end, one effect after it; returns the two effects done."""
        ...

    async def stall(self, run: str, in_flight: Callable[[], None]) -> None:
        """Do one of three effects, call `in_flight` from within the second and never return."""
        ...

    async def recover(self, runs: list[str]) -> int:
        """Bring stalled runs to their end; returns how many ended."""
        ...

    async def durability(self) -> dict[str, Any]:
        """Journal mode and synchronous level as the system's own connection reports them."""
        ...


def main(system: System) -> None:
    """Answer the one request in argv."""
    request = json.loads(sys.argv[1])
    home = Path(request["home"])
    stages = {"measure": _measure, "fill": _fill, "wake": _wake, "stall": _stall}
    stages["recover"] = _recover
    uvloop.run(stages[request["stage"]](system, home, request))


@asynccontextmanager
async def opened(system: System, home: Path) -> AsyncIterator[None]:
    await system.open(home)
    try:
        yield
    finally:
        await system.close()


def say(**line: Any) -> None:
    print(json.dumps(line), flush=True)


async def _measure(system: System, home: Path, request: dict[str, Any]) -> None:
    say(versions={name: version(name) for name in system.packages})
    await _say_durability(system, home / "durability")
    say(done="start")
    while probe := sys.stdin.readline().strip():
        await _probe_once(system, home / "probe", probe)
        say(done=probe)


async def _say_durability(system: System, home: Path) -> None:
    async with opened(system, made(home)):
        found = await system.durability()
    say(durability=found)
    if (found["journal_mode"], found["synchronous"]) != DURABLE:
        raise AssertionError(f"not the durability that is compared here: {found}")


async def _probe_once(system: System, home: Path, probe: str) -> None:
    try:
        say(figures=await _probe(system, made(home), probe))
    finally:
        shutil.rmtree(home)


async def _probe(system: System, home: Path, probe: str) -> Figures:
    kind, _, size = probe.partition(":")
    if kind == "runs":
        runs, length = map(int, size.split("x"))
        return {f"runs_{size}": await _runs(system, home, runs, length)}
    if kind == "pause":
        return {"pause_continue_ms": await _pauses(system, home, int(size))}
    if kind == "loop":
        return await _loop(system, home, int(size))
    return await _chain(system, home, int(size))


async def _chain(system: System, home: Path, length: int) -> Figures:
    seconds, growth = await _single(system, home, length, system.chain)
    return {
        f"chain_{length}": length / seconds,
        f"step_us_{length}": seconds / length * 1e6,
        f"bytes_per_step_{length}": growth / length,
    }


async def _loop(system: System, home: Path, length: int) -> Figures:
    seconds, growth = await _single(system, home, length, system.loop)
    return {f"loop_{length}": length / seconds, f"loop_{length}_bytes": growth / length}


async def _single(
    system: System, home: Path, length: int, build: Callable[[int], Awaitable[Run]]
) -> tuple[float, int]:
    async with opened(system, home):
        pass
    empty = stored_bytes(home)
    async with opened(system, home):
        run = await build(length)
        began = time.perf_counter()
        _expect(await run("run-1"), length)
        seconds = time.perf_counter() - began
    return seconds, stored_bytes(home) - empty


async def _runs(system: System, home: Path, runs: int, length: int) -> float:
    async with opened(system, home):
        run = await system.chain(length)
        began = time.perf_counter()
        counts = await asyncio.gather(*(run(name) for name in _names(runs)))
        seconds = time.perf_counter() - began
    _expect(sum(counts), runs * length)
    return runs * length / seconds


async def _pauses(system: System, home: Path, runs: int) -> float:
    samples = []
    async with opened(system, home):
        for name in _names(runs):
            await system.pause(name)
            samples.append(await _timed_answer(system, name))
    return statistics.median(samples) * 1e3


async def _timed_answer(system: System, run: str) -> float:
    began = time.perf_counter()
    _expect(await system.answer(run), 2)
    return time.perf_counter() - began


async def _fill(system: System, home: Path, request: dict[str, Any]) -> None:
    names = _names(request["count"])
    async with opened(system, home):
        for first in range(0, len(names), 100):
            await asyncio.gather(*(system.pause(name) for name in names[first : first + 100]))
    say(filled=len(names))


async def _wake(system: System, home: Path, request: dict[str, Any]) -> None:
    empty, count = home.with_name(home.name + "-empty"), request["count"]
    async with opened(system, made(empty)):
        pass
    gc.collect()
    before, began = resident_bytes(), time.perf_counter()
    async with opened(system, home):
        startup = time.perf_counter() - began
        waited = await _timed_answer(system, _names(count)[count // 2])
        added = resident_bytes() - before
    figures = {"memory_mb": added / 1e6, "startup_s": startup, "continue_ms": waited * 1e3}
    say(figures={f"waiting_{count}_{key}": value for key, value in figures.items()})


async def _stall(system: System, home: Path, request: dict[str, Any]) -> None:
    """Hang with every run in flight; an exception of any run ends the process instead."""
    waiting, ready = set(_names(request["count"])), asyncio.Event()

    def one_more(name: str) -> None:
        waiting.discard(name)
        if not waiting:
            ready.set()

    async with opened(system, home), asyncio.TaskGroup() as group:
        for name in sorted(waiting):
            group.create_task(system.stall(name, partial(one_more, name)))
        await ready.wait()
        say(stage=STALL_READY)
        await asyncio.Event().wait()


async def _recover(system: System, home: Path, request: dict[str, Any]) -> None:
    began, count = time.perf_counter(), request["count"]
    async with opened(system, home):
        _expect(await system.recover(_names(count)), count)
        say(figures={f"recovery_{count}_s": time.perf_counter() - began})


def _names(count: int) -> list[str]:
    return [f"run-{number:06}" for number in range(count)]


def _expect(found: int, wanted: int) -> None:
    if found != wanted:
        raise AssertionError(f"the system did {found} steps where {wanted} were asked for")


def made(home: Path) -> Path:
    home.mkdir()
    return home


def create_wal_database(path: Path) -> None:
    """WAL is a property of the file, so a peer that never asks for it still gets it."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")


def stored_bytes(home: Path) -> int:
    """The size of every file in `home`, once write-ahead logs are folded into their databases."""
    for path in _databases(home):
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return sum(path.stat().st_size for path in home.rglob("*") if path.is_file())


def _databases(home: Path) -> list[Path]:
    return [path for path in home.rglob("*") if path.is_file() and _is_database(path)]


def _is_database(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(15) == b"SQLite format 3"


def resident_bytes() -> int:
    """Memory in use now; where the system does not tell, the most ever used."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
