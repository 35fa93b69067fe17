"""A server in a process of its own, for benchmarks that load it from outside.

`variants` starts one for each source tree, so that what was before and what is now are measured in
one run, in alternation: a server that is not being measured rests. The process takes lines:

    pace RUNS SECONDS   keep so many runs going for so long; answers {"steps_per_second": …}
    busy MS             from now on a coroutine holds the loop for so long, again and again
    calm                it no longer does
    spent               answers {"cpu_seconds": …} since the process began
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import uvloop

from bench.child import ROOT
from bench.ours import MAX_EFFECTS, effect, sequence
from holdfast import Holdfast
from holdfast.model.plan import Plan
from holdfast.server.serving import Serving, serve
from holdfast.server.settings import ServerSettings

STEPS = 20
NOW = "now"


def application(home: Path) -> Holdfast:
    app = Holdfast(home, max_effects=MAX_EFFECTS)
    app.tool(effect, idempotent=True)
    app.add_plan(sequence("chain", *["effect"] * STEPS))
    app.add_plan(paused())
    return app


def paused() -> Plan:
    """Asks first, so that who starts it is told the question; then there is no number yet."""
    plan = sequence("paused", "ask", "effect")
    asking, *others = plan.listeners
    assert asking.success_output
    made = replace(asking.success_output, context={"n": 0})
    return replace(plan, listeners=(replace(asking, success_output=made), *others))


class Work:
    """What the process does beside serving, as its lines say."""

    def __init__(self, app: Holdfast) -> None:
        self._app = app
        self._busy: asyncio.Task[None] | None = None

    async def take(self, line: str) -> Mapping[str, float]:
        match line.split():
            case ["pace", runs, seconds]:
                return await self._pace(int(runs), float(seconds))
            case ["busy", milliseconds]:
                self._busy = asyncio.create_task(hold_the_loop(float(milliseconds) / 1e3))
            case ["calm"] if self._busy is not None:
                self._busy.cancel()
            case ["spent"]:
                return {"cpu_seconds": time.process_time()}
        return {}

    async def _pace(self, runs: int, seconds: float) -> Mapping[str, float]:
        """Each run that ends is followed by another; what is counted is the steps on disk."""
        began, ends, steps = time.perf_counter(), time.perf_counter() + seconds, 0

        async def keep_going() -> None:
            nonlocal steps
            while time.perf_counter() < ends:
                instance = await self._app.plans.start_plan_by_prompt("", "chain")
                assert await instance.wait_for_completion() == "done"
                steps += STEPS

        await asyncio.gather(*(keep_going() for _ in range(runs)))
        return {"steps_per_second": steps / (time.perf_counter() - began)}


async def hold_the_loop(seconds: float) -> None:
    """Somebody's coroutine that computes, and yields as one should."""
    while True:
        began = time.perf_counter()
        while time.perf_counter() - began < seconds:
            pass
        await asyncio.sleep(0)


async def main(home: Path) -> None:
    app = application(home)
    work = Work(app)

    async def ready(serving: Serving) -> None:
        _, token = await serving.services.tokens.issue("bench", "person", ["admin"])
        _say({"url": serving.url, "token": token})
        tasks.append(asyncio.create_task(_listen(work)))

    tasks: list[asyncio.Task[None]] = []
    async with app:
        await serve(app, ServerSettings(port=0), ready)


async def _listen(work: Work) -> None:
    while line := await asyncio.to_thread(sys.stdin.readline):
        _say(await work.take(line))


def _say(told: Mapping[str, Any]) -> None:
    print(json.dumps(told), flush=True)


class Served:
    """The parent's side: one server, where it is, and what it says."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        place = self._hear()
        self.url, self.token = str(place["url"]), str(place["token"])

    def ask(self, line: str) -> dict[str, float]:
        self.tell(line)
        return self._hear()

    def tell(self, line: str) -> None:
        assert self._process.stdin
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def _hear(self) -> dict[str, Any]:
        assert self._process.stdout
        told: dict[str, Any] = json.loads(self._process.stdout.readline())
        return told


@contextmanager
def variants(before: Sequence[Path]) -> Iterator[dict[str, Served]]:
    """A server of this tree, and one of each tree that is named, each with an empty home."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-", dir=ROOT))
        yield {
            name: stack.enter_context(_started(tree, Path(folder) / name))
            for name, tree in [*((tree.name, tree) for tree in before), (NOW, ROOT)]
        }


@contextmanager
def _started(tree: Path, home: Path) -> Iterator[Served]:
    with child("bench.served", str(home), tree=tree) as process:
        yield Served(process)


@contextmanager
def child(module: str, *arguments: str, tree: Path = ROOT) -> Iterator[subprocess.Popen[str]]:
    """A process of the bench that runs the library of a source tree."""
    process = subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(tree / "src")},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


if __name__ == "__main__":
    uvloop.run(main(Path(sys.argv[1])))
