"""What happens inside the process of one system, ours or a peer's, on PostgreSQL.

It is started with the URL of its database, reads probes from stdin, one a line, answers with JSON
lines and says `done` after each, as in `bench.trial`. A run is timed from its start to its durable
end, and its result is checked. `first` is the time from a start to the beginning of the run's first
effect, by the clock that all processes of a machine share.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import time
from collections.abc import Sequence
from importlib.metadata import version
from itertools import count
from typing import Any, Protocol

import uvloop

from bench.trial import Figures, Run, say

DURABLE = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"}
WARM_RUNS, WARM = 40, 10
SETTINGS = ("server_version", *DURABLE)


class System(Protocol):
    @property
    def packages(self) -> Sequence[str]:
        """The distributions whose versions the report names."""
        ...

    async def open(self, url: str) -> None: ...
    async def close(self) -> None: ...

    async def chain(self, length: int) -> Run:
        """A chain of distinct effects; returns how many were done."""
        ...

    async def first(self, run: str) -> float:
        """Do a run of one effect to its end; when that effect began, by `time.monotonic`."""
        ...

    async def pause(self, run: str) -> None:
        """Bring a new run to its durable pause, one effect before it."""
        ...

    async def answer(self, run: str) -> int:
        """Answer and wait for the end, one effect after it; returns the two effects done."""
        ...


def main(system: System) -> None:
    uvloop.run(_serve(system, json.loads(sys.argv[1])["url"]))


async def _serve(system: System, url: str) -> None:
    say(versions={name: version(name) for name in system.packages})
    await system.open(url)
    try:
        loop = asyncio.get_running_loop()
        # Of this session alone: a name that was used in an earlier round is a run that is over.
        session = time.time_ns()
        names = (f"run-{session}-{number:06}" for number in count())
        # Connections are made and statements prepared, of every system alike and in each of its
        # processes.
        await _runs(system, WARM_RUNS, WARM, names)
        say(done="start")
        while probe := (await loop.run_in_executor(None, sys.stdin.readline)).strip():
            say(figures=await _probe(system, probe, names))
            say(done=probe)
    finally:
        await system.close()


async def _probe(system: System, probe: str, names: Any) -> Figures:
    kind, _, size = probe.partition(":")
    match kind:
        case "chain":
            return {f"chain_{size}": await _chain(system, int(size), names)}
        case "runs":
            runs, length = map(int, size.split("x"))
            return {f"runs_{size}": await _runs(system, runs, length, names)}
        case "first":
            samples = [await _first(system, next(names)) for _ in range(int(size))]
            return {"first_p50_ms": statistics.median(samples), "first_p99_ms": _p99(samples)}
        case "pause":
            samples = [await _pause(system, next(names)) for _ in range(int(size))]
            return {"pause_continue_ms": statistics.median(samples)}
        case _:
            raise AssertionError(probe)


async def _chain(system: System, length: int, names: Any) -> float:
    run = await system.chain(length)
    began = time.perf_counter()
    done = await run(next(names))
    seconds = time.perf_counter() - began
    _expect(done, length)
    return length / seconds


async def _runs(system: System, runs: int, length: int, names: Any) -> float:
    run = await system.chain(length)
    began = time.perf_counter()
    done = await asyncio.gather(*(run(next(names)) for _ in range(runs)))
    seconds = time.perf_counter() - began
    _expect(sum(done), runs * length)
    return runs * length / seconds


async def _first(system: System, name: str) -> float:
    began = time.monotonic()
    return (await system.first(name) - began) * 1e3


async def _pause(system: System, name: str) -> float:
    await system.pause(name)
    began = time.perf_counter()
    _expect(await system.answer(name), 2)
    return (time.perf_counter() - began) * 1e3


def _p99(samples: list[float]) -> float:
    return sorted(samples)[int(len(samples) * 0.99)] if len(samples) > 1 else samples[0]


def _expect(found: int, wanted: int) -> None:
    if found != wanted:
        raise AssertionError(f"the system did {found} steps where {wanted} were asked for")
