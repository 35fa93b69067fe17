"""`python -m bench.streams`: what two hundred listeners cost the runs, and how fast continue is.

The server has this process, its SQLite journal lies on the project's disk, and whoever listens
or asks has a process of its own. Rounds with and without listeners take turns, and a ratio of
1 says that the runs did not notice them; 20 of the 200 take nothing at all. Then runs that wait
for a parameter are continued over HTTP, 100 a second whether or not the last ones have been
answered, so that an answer that is late makes the next ones late too.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import uvicorn
import uvloop

from bench.child import ROOT
from bench.ours import MAX_EFFECTS, effect, sequence
from holdfast import Client, Holdfast
from holdfast.model.plan import Listener, Output, Plan, Task, TaskStatus, ToolAction
from holdfast.server.serving import listening, url_of
from holdfast.server.settings import ServerSettings

LISTENERS = 200
DEAF = 20
AT_ONCE = 50
STEPS = 10
RATE = 100
P99_MS = 50.0
"""What DESIGN.md promises for continue over HTTP under load."""


@dataclass(frozen=True, slots=True)
class Pace:
    """Runs by the clock, and what each cost the server's processor."""

    per_second: float
    cpu_ms: float


@dataclass(frozen=True, slots=True)
class Figures:
    alone: Pace
    heard: Pace
    ratio: float
    cpu_ratio: float
    events_heard: int
    continue_p50_ms: float
    continue_p99_ms: float
    continue_cpu_ms: float


async def order(model: str) -> dict[str, str]:
    return {"order": model}


def waiting_plan() -> Plan:
    """Asks for a parameter, orders, and is done."""
    output = Output("goal", TaskStatus.DONE, {"order": "{{result.order}}"})
    step = Listener("L1", ("goal",), "goal.status == Running", ToolAction("order", {}), output)
    return Plan("waiting", "waiting", "goal", (Task("goal"),), (step,))


@asynccontextmanager
async def served(home: Path) -> AsyncIterator[tuple[Holdfast, str, str]]:
    """An application, where it is served, and a token for it."""
    app = Holdfast(home, max_effects=MAX_EFFECTS)
    app.tool(effect, idempotent=True)
    app.tool(order, idempotent=True)
    app.add_plan(sequence("chain", *["effect"] * STEPS))
    app.add_plan(waiting_plan())
    async with app:
        with listening("127.0.0.1", 0) as listener:
            web = app.asgi(ServerSettings())
            config = uvicorn.Config(web, log_config=None, access_log=False, ws="none")
            server = uvicorn.Server(config)
            serving = asyncio.create_task(server.serve([listener]))
            while not server.started:  # noqa: ASYNC110 - it has no event
                await asyncio.sleep(0.01)
            services = web.state.services
            _, token = await services.tokens.issue("bench", "service", ["operator"], None)
            try:
                yield app, url_of("127.0.0.1", listener.getsockname()[1]), token
            finally:
                services.streams.close()
                server.should_exit = True
                await serving


class Crowd:
    """The process of those who listen; `leave` says how many events they heard."""

    def __init__(self, url: str, token: str) -> None:
        self._place = ("listen", url, token)

    async def come(self) -> None:
        self._process = await _child(*self._place)
        await _line(self._process)

    async def leave(self) -> int:
        told, _ = await self._process.communicate(b"leave\n")
        return int(json.loads(told)["events"])


async def _child(*arguments: str) -> asyncio.subprocess.Process:
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.streams", *arguments, stdin=pipe, stdout=pipe, cwd=ROOT
    )


async def _line(process: asyncio.subprocess.Process) -> str:
    assert process.stdout is not None
    return (await process.stdout.readline()).decode()


async def pace(app: Holdfast, seconds: float) -> Pace:
    """Chains of effects, so many at once, for about so long."""
    began, spent, count = time.perf_counter(), time.process_time(), 0
    while time.perf_counter() - began < seconds:
        started = [await app.plans.start_plan_by_prompt("", "chain") for _ in range(AT_ONCE)]
        done = [await one.wait_for_completion() for one in started]
        count += done.count("done")
    cpu = (time.process_time() - spent) / count * 1e3
    return Pace(count / (time.perf_counter() - began), cpu)


async def continue_times(
    app: Holdfast, url: str, token: str, seconds: int
) -> tuple[list[float], float]:
    """Milliseconds from when each request was due until its answer, and what one cost us."""
    waiting = []
    for _ in range(RATE * seconds):
        one = await app.plans.start_plan_by_prompt("", "waiting")
        await one.wait_until_settled()
        waiting.append(one.id)
    process = await _child("continue", url, token)
    spent = time.process_time()
    told, _ = await process.communicate(json.dumps(waiting).encode() + b"\n")
    cpu = (time.process_time() - spent) / len(waiting) * 1e3
    for run_id in waiting:
        assert await (await app.instance(run_id)).wait_for_completion() == "done", run_id
    return sorted(json.loads(told)), cpu


async def measure(rounds: int, seconds: float, continue_seconds: int) -> Figures:
    with tempfile.TemporaryDirectory(prefix="bench-streams-", dir=ROOT) as folder:
        async with served(Path(folder)) as (app, url, token):
            await pace(app, 0.5)
            alone, heard, events = [], [], 0
            for _ in range(rounds):
                alone.append(await pace(app, seconds))
                crowd = Crowd(url, token)
                await crowd.come()
                heard.append(await pace(app, seconds))
                events += await crowd.leave()
            times, cpu = await continue_times(app, url, token, continue_seconds)
    both = list(zip(alone, heard, strict=True))
    return Figures(
        alone=_median(alone),
        heard=_median(heard),
        ratio=statistics.median(two.per_second / one.per_second for one, two in both),
        cpu_ratio=statistics.median(two.cpu_ms / one.cpu_ms for one, two in both),
        events_heard=events,
        continue_p50_ms=times[len(times) // 2],
        continue_p99_ms=times[int(len(times) * 0.99)],
        continue_cpu_ms=cpu,
    )


def _median(paces: list[Pace]) -> Pace:
    return Pace(
        statistics.median(one.per_second for one in paces),
        statistics.median(one.cpu_ms for one in paces),
    )


async def listen(url: str, token: str) -> None:
    """Be the crowd until a line comes."""
    place = urlsplit(url)
    heard = [0]

    async def one(deaf: bool) -> None:
        reader, writer = await asyncio.open_connection(place.hostname, place.port, limit=1 << 16)
        writer.write(
            f"GET /events HTTP/1.1\r\nHost: {place.netloc}\r\n"
            f"Authorization: Bearer {token}\r\n\r\n".encode()
        )
        assert b" 200 " in await reader.readline()
        crowd.append(asyncio.create_task(_take_nothing() if deaf else _take_all(reader, heard)))
        writers.append(writer)

    crowd: list[asyncio.Task[None]] = []
    writers: list[asyncio.StreamWriter] = []
    await asyncio.gather(*(one(number < DEAF) for number in range(LISTENERS)))
    print("here", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    print(json.dumps({"events": heard[0]}), flush=True)
    for writer in writers:
        writer.transport.abort()
    for task in crowd:
        task.cancel()


async def _take_all(reader: asyncio.StreamReader, heard: list[int]) -> None:
    while chunk := await reader.read(1 << 16):
        heard[0] += chunk.count(b"\nevent: ")


async def _take_nothing() -> None:
    await asyncio.Event().wait()


async def continue_all(url: str, token: str) -> None:
    """Continue each run when it is due, and say how long each answer took."""
    waiting: list[str] = json.loads(sys.stdin.readline())
    async with Client(url, token) as client:
        await client.me()
        began = time.perf_counter() + 0.1

        async def one(number: int, run_id: str) -> float:
            due = began + number / RATE
            await asyncio.sleep(due - time.perf_counter())
            await client.instances.continue_with(run_id, {"model": "T14"})
            return (time.perf_counter() - due) * 1e3

        times = await asyncio.gather(*(one(n, run_id) for n, run_id in enumerate(waiting)))
    print(json.dumps(times), flush=True)


def told(figures: Figures) -> str:
    verdict = "kept" if figures.continue_p99_ms <= P99_MS else "not kept"
    return "\n".join(
        (
            f"| | alone | {LISTENERS} listeners, {DEAF} deaf | ratio |",
            "|---|---|---|---|",
            f"| runs of {STEPS} effects per second | {figures.alone.per_second:,.0f} "
            f"| {figures.heard.per_second:,.0f} | {figures.ratio:.2f} |",
            f"| ms of the processor per run | {figures.alone.cpu_ms:.2f} "
            f"| {figures.heard.cpu_ms:.2f} | {figures.cpu_ratio:.2f} |",
            "",
            f"Events heard: {figures.events_heard:,}.",
            f"Continue over HTTP at {RATE}/s: p50 {figures.continue_p50_ms:.1f} ms, "
            f"p99 {figures.continue_p99_ms:.1f} ms (at most {P99_MS:.0f} ms: {verdict}), "
            f"{figures.continue_cpu_ms:.1f} ms of the processor each.",
        )
    )


def main(arguments: list[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    match options.role:
        case "listen":
            uvloop.run(listen(options.url, options.token))
        case "continue":
            uvloop.run(continue_all(options.url, options.token))
        case _:
            figures = uvloop.run(measure(options.rounds, options.seconds, options.continue_seconds))
            print(json.dumps(asdict(figures)) if options.json else told(figures))


def _parser() -> Any:
    parser = argparse.ArgumentParser(prog="python -m bench.streams", description=__doc__)
    parser.add_argument("role", nargs="?", default="measure", help=argparse.SUPPRESS)
    parser.add_argument("url", nargs="?", help=argparse.SUPPRESS)
    parser.add_argument("token", nargs="?", help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each round")
    parser.add_argument("--continue-seconds", type=int, default=10)
    parser.add_argument("--json", action="store_true")
    return parser


if __name__ == "__main__":
    main()
