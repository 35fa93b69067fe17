"""`python -m bench.http_load`: how long start and answer take over HTTP, from many clients at once.

300 clients, each with a connection of its own, start a run that asks a person, and answer it, in
turns: together 400 requests a second, each when it is due, whether or not others have been
answered. A time is taken from when the request was due, so an answer that is late makes the next
one of its client late too. The clients have a process of their own, and its share of a processor
is told beside the server's. `--before TREE` measures another source tree in the same run, in
alternation.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import uvloop

from bench.served import Served, child, variants
from bench.starving import take_answer

CLIENTS = 300
RATE = 400
P99_MS = 150.0


class Person:
    """One client: starts a run, answers what it asks, and so on."""

    def __init__(
        self, place: str, token: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._head = f"HTTP/1.1\r\nHost: {place}\r\nAuthorization: Bearer {token}\r\n"
        self._reader = reader
        self._writer = writer
        self._questions: list[str] = []

    async def go_on(self) -> str:
        """Send the next request and take its answer; what it was."""
        if self._questions:
            path = f"/interactions/{self._questions.pop()}/answer"
            await self._post(path, {"selectedOptionId": "confirm"})
            return "answer"
        started = await self._post("/instances", {"plan_id": "paused"})
        self._questions += started["interactions"]
        return "start"

    async def _post(self, path: str, body: dict[str, str]) -> Any:
        sent = json.dumps(body)
        self._writer.write(
            f"POST {path} {self._head}Idempotency-Key: {uuid4().hex}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(sent)}\r\n\r\n{sent}".encode()
        )
        return json.loads(await take_answer(self._reader))


async def load(url: str, token: str, seconds: float) -> dict[str, float]:
    place = urlsplit(url)
    pairs = [await asyncio.open_connection(place.hostname, place.port) for _ in range(CLIENTS)]
    people = [Person(place.netloc, token, *pair) for pair in pairs]
    times: dict[str, list[float]] = {"start": [], "answer": []}
    began = time.perf_counter() + 0.2

    async def live(number: int, person: Person) -> None:
        for due in _due(began, number, seconds):
            await asyncio.sleep(due - time.perf_counter())
            asked = await person.go_on()
            times[asked].append((time.perf_counter() - due) * 1e3)

    spent = time.process_time()
    await asyncio.gather(*(live(number, one) for number, one in enumerate(people)))
    took = time.perf_counter() - began
    return {
        "requests_per_second": sum(map(len, times.values())) / took,
        **{f"{name}_p50_ms": _percentile(times[name], 0.5) for name in times},
        **{f"{name}_p99_ms": _percentile(times[name], 0.99) for name in times},
        "client_processor": (time.process_time() - spent) / took,
        "seconds": took,
    }


def _due(began: float, number: int, seconds: float) -> Iterator[float]:
    """When one client sends: they follow each other, and none sends twice before all have."""
    rounds = int(seconds * RATE / CLIENTS)
    return (began + (turn * CLIENTS + number) / RATE for turn in range(rounds))


def _percentile(times: list[float], share: float) -> float:
    return sorted(times)[int(len(times) * share)]


def loaded(served: Served, seconds: float) -> dict[str, float]:
    """One round, and what the server's processor had to do with it."""
    spent = served.ask("spent")["cpu_seconds"]
    arguments = ("load", served.url, served.token, "--seconds", str(seconds))
    with child("bench.http_load", *arguments) as process:
        assert process.stdout
        figures: dict[str, float] = json.loads(process.stdout.readline())
    took = figures.pop("seconds")
    busy = served.ask("spent")["cpu_seconds"] - spent
    return {
        **figures,
        "server_processor": busy / took,
        "cpu_ms_per_request": busy * 1e3 / (figures["requests_per_second"] * took),
    }


def measure(before: list[Path], rounds: int, seconds: float) -> dict[str, dict[str, float]]:
    with variants(before) as servers:
        samples: dict[str, list[dict[str, float]]] = {name: [] for name in servers}
        for served in servers.values():
            loaded(served, 2.0)
        for _ in range(rounds):
            for name, served in servers.items():
                samples[name].append(loaded(served, seconds))
    return {name: _medians(found) for name, found in samples.items()}


def _medians(rounds: list[dict[str, float]]) -> dict[str, float]:
    return {key: statistics.median(one[key] for one in rounds) for key in rounds[0]}


def told(figures: dict[str, dict[str, float]]) -> str:
    """One row per figure, one column per tree."""
    rows = [f"| {CLIENTS} clients, {RATE} requests/s | {' | '.join(figures)} |"]
    rows.append("|---" * (len(figures) + 1) + "|")
    for key in next(iter(figures.values())):
        values = " | ".join(f"{one[key]:,.2f}" for one in figures.values())
        rows.append(f"| {key.replace('_', ' ')} | {values} |")
    return "\n".join(rows)


def main() -> None:
    options = _parser().parse_args()
    if options.role == "load":
        print(json.dumps(uvloop.run(load(options.url, options.token, options.seconds))), flush=True)
        return
    figures = measure(options.before, options.rounds, options.seconds)
    print(json.dumps(figures) if options.json else told(figures))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.http_load", description=__doc__)
    parser.add_argument("role", nargs="?", default="measure", help=argparse.SUPPRESS)
    parser.add_argument("url", nargs="?", help=argparse.SUPPRESS)
    parser.add_argument("token", nargs="?", help=argparse.SUPPRESS)
    parser.add_argument("--before", type=Path, action="append", default=[], metavar="TREE")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=6.0, help="of each round")
    parser.add_argument("--json", action="store_true")
    return parser


if __name__ == "__main__":
    main()
