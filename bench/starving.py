"""`python -m bench.starving`: what runs keep of their speed while others want the event loop.

Two who would starve them: 16 clients that read `/runs` as fast as they are answered, and a
coroutine of the same program that holds the loop for 5 ms at a time. The server has a process of
its own with its journal on the project's disk, the clients have another. Rounds alone and with
company take turns. `--before TREE` measures another source tree in the same run, in alternation.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import uvloop

from bench.served import Served, child, variants

READERS = 16
RUNS_BESIDE_READERS = 20
RUNS_BESIDE_BUSY = 50
BUSY_MS = 5


@contextmanager
def reading(served: Served) -> Iterator[dict[str, float]]:
    """Clients that read until the end; how many answers they had stands in what is given."""
    figures: dict[str, float] = {}
    with child("bench.starving", "read", served.url, served.token) as process:
        assert process.stdin
        assert process.stdout
        process.stdout.readline()
        yield figures
        process.stdin.write("leave\n")
        process.stdin.flush()
        figures |= json.loads(process.stdout.readline())


async def read(url: str, token: str) -> None:
    """Be the readers until a line comes."""
    place = urlsplit(url)
    assert place.hostname
    request = (
        f"GET /runs HTTP/1.1\r\nHost: {place.netloc}\r\nAuthorization: Bearer {token}\r\n\r\n"
    ).encode()
    waits: list[float] = []

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            began = time.perf_counter()
            writer.write(request)
            await take_answer(reader)
            waits.append(time.perf_counter() - began)

    pairs = [await asyncio.open_connection(place.hostname, place.port) for _ in range(READERS)]
    tasks = [asyncio.create_task(one(*pair)) for pair in pairs]
    began, spent = time.perf_counter(), time.process_time()
    print("here", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    seconds = time.perf_counter() - began
    waits.sort()
    figures = {
        "reads_per_second": len(waits) / seconds,
        "read_p50_ms": waits[len(waits) // 2] * 1e3,
        "read_p99_ms": waits[int(len(waits) * 0.99)] * 1e3,
        "client_processor": (time.process_time() - spent) / seconds,
    }
    print(json.dumps(figures), flush=True)
    for task in tasks:
        task.cancel()


async def take_answer(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    assert head[9:12] in (b"200", b"201"), head
    length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
    return await reader.readexactly(length)


def beside_readers(served: Served, seconds: float) -> dict[str, float]:
    pace = f"pace {RUNS_BESIDE_READERS} {seconds}"
    alone = served.ask(pace)["steps_per_second"]
    with reading(served) as figures:
        beside = served.ask(pace)["steps_per_second"]
    return {"alone": alone, "beside": beside, **figures}


def beside_a_busy_coroutine(served: Served, seconds: float) -> dict[str, float]:
    pace = f"pace {RUNS_BESIDE_BUSY} {seconds}"
    alone = served.ask(pace)["steps_per_second"]
    served.ask(f"busy {BUSY_MS}")
    beside = served.ask(pace)["steps_per_second"]
    served.ask("calm")
    return {"alone": alone, "beside": beside}


WORKS = {f"{READERS} readers": beside_readers, "a busy coroutine": beside_a_busy_coroutine}


def measure(before: list[Path], rounds: int, seconds: float) -> dict[str, Any]:
    samples: dict[str, dict[str, list[dict[str, float]]]] = {}
    with variants(before) as servers:
        for served in servers.values():
            served.ask("pace 20 1")
        for _ in range(rounds):
            for work, probe in WORKS.items():
                for name, served in servers.items():
                    found = samples.setdefault(work, {}).setdefault(name, [])
                    found.append(probe(served, seconds))
    return {
        work: {name: _medians(rounds) for name, rounds in of_work.items()}
        for work, of_work in samples.items()
    }


def _medians(rounds: list[dict[str, float]]) -> dict[str, float]:
    medians = {key: statistics.median(one[key] for one in rounds) for key in rounds[0]}
    shares = [one["beside"] / one["alone"] for one in rounds]
    return {**medians, "share": statistics.median(shares)}


def told(figures: dict[str, Any]) -> str:
    titles = "| beside | tree | alone, steps/s | beside, steps/s | share | the others |"
    rows = [
        f"| {work} | {name} | {one['alone']:,.0f} | {one['beside']:,.0f} "
        f"| {one['share']:.2f} | {_reads(one)} |"
        for work, trees in figures.items()
        for name, one in trees.items()
    ]
    return "\n".join([titles, "|---" * 6 + "|", *rows])


def _reads(one: dict[str, float]) -> str:
    if "reads_per_second" not in one:
        return ""
    return (
        f"{one['reads_per_second']:,.0f} reads/s, p50 {one['read_p50_ms']:.0f} ms, "
        f"p99 {one['read_p99_ms']:.0f} ms, {one['client_processor']:.0%} of a processor"
    )


def main() -> None:
    options = _parser().parse_args()
    if options.role == "read":
        uvloop.run(read(options.url, options.token))
        return
    figures = measure(options.before, options.rounds, options.seconds)
    print(json.dumps(figures) if options.json else told(figures))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.starving", description=__doc__)
    parser.add_argument("role", nargs="?", default="measure", help=argparse.SUPPRESS)
    parser.add_argument("url", nargs="?", help=argparse.SUPPRESS)
    parser.add_argument("token", nargs="?", help=argparse.SUPPRESS)
    parser.add_argument("--before", type=Path, action="append", default=[], metavar="TREE")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each round")
    parser.add_argument("--json", action="store_true")
    return parser


if __name__ == "__main__":
    main()
