"""`python -m bench.postgres.journal`: the journal alone.

One process appends by 1, 8 and 100 writers, each to a run of its own. Then 8 processes append by
one writer each: as they do, with their order sealed each second and at the end, and without any
order (statements that leave nothing to be sealed); both with the server as it is, and with
`commit_delay = 2000`, `commit_siblings = 0`. All take turns, round by round.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import statistics
import subprocess
import sys
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

import psycopg
from psycopg.conninfo import conninfo_to_dict

from bench.child import ROOT
from bench.postgres.server import migrated_database, private_server
from holdfast.journal import postgres_appends
from holdfast.journal.postgres import PostgresJournal
from holdfast.testing.journal_samples import birth, step

if TYPE_CHECKING:
    from postgresql_server import Server

WRITERS = (1, 8, 100)
CLIENTS = 8
SECONDS = 2.0
ROUNDS = 5
SEAL_SECONDS = 1.0
DELAYED = {"commit_delay": 2000, "commit_siblings": 0}
MARKS = {"server": 0.7, "delayed": 0.9}

_NOTED = re.compile(r", noted AS \(.*?\n\)", re.DOTALL)


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    if options.client:
        asyncio.run(_client(*options.client))
        return 0
    with private_server() as server:
        rates = _measure(server, options.rounds)
    figures = {name: round(statistics.median(samples), 1) for name, samples in rates.items()}
    for kind in MARKS:
        ratios = zip(rates[f"{kind}, sealed"], rates[f"{kind}, no order"], strict=True)
        figures[f"{kind}, sealed : no order"] = round(
            statistics.median(a / b for a, b in ratios), 2
        )
    print(json.dumps(figures) if options.json else _told(figures))
    return 0


def _measure(server: Server, rounds: int) -> dict[str, list[float]]:
    rates: dict[str, list[float]] = {}
    databases = {
        (kind, order): migrated_database(server)
        for kind in MARKS
        for order in ("sealed", "no order")
    }
    with psycopg.connect(server.url(), autocommit=True) as connection:
        for (kind, _), url in databases.items():
            name = conninfo_to_dict(url)["dbname"]
            for setting, value in DELAYED.items() if kind == "delayed" else ():
                connection.execute(f"ALTER DATABASE {name} SET {setting} = {value}".encode())
    alone = migrated_database(server)
    turns = list(databases.items())
    for _ in range(rounds):
        for writers in WRITERS:
            rate = asyncio.run(_appends(alone, writers, SECONDS))
            rates.setdefault(f"{writers} writers", []).append(rate)
        for (kind, order), url in turns:
            rates.setdefault(f"{kind}, {order}", []).append(_by_clients(url, order))
        turns.reverse()
    return rates


async def _appends(url: str, writers: int, seconds: float) -> float:
    """Acknowledged appends a second, of one process."""
    journal = PostgresJournal(url)
    await journal.open()
    try:
        runs = [f"run_{time.time_ns()}_{number}" for number in range(writers)]
        for run in runs:
            await journal.append(birth(run))
        began = time.perf_counter()
        counts = await asyncio.gather(*(_write(journal, run, began + seconds) for run in runs))
        return sum(counts) / (time.perf_counter() - began)
    finally:
        await journal.close()


async def _write(journal: PostgresJournal, run: str, until: float) -> int:
    version = 1
    while time.perf_counter() < until:
        version = await journal.append(step(run, version))
    return version - 1


def _by_clients(url: str, order: str) -> float:
    """Acknowledged appends a second, of all processes together, until all of them are sealed."""
    command = [sys.executable, "-m", "bench.postgres.journal", "--client", url, order]
    with ExitStack() as stack:
        clients = [
            stack.enter_context(
                subprocess.Popen(
                    command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
                )
            )
            for _ in range(CLIENTS)
        ]
        for client in clients:
            assert client.stdout
            client.stdout.readline()
        began = time.perf_counter()
        for client in clients:
            assert client.stdin
            client.stdin.write("go\n")
            client.stdin.flush()
        if order == "sealed":
            asyncio.run(_seal(url, began + SECONDS))
        appended = sum(int(client.stdout.readline()) for client in clients if client.stdout)
        if order == "sealed":
            asyncio.run(_seal(url, 0.0))
        rate = appended / (time.perf_counter() - began)
        for client in clients:
            client.communicate()
        return rate


async def _seal(url: str, until: float) -> None:
    """Each second, as servers do, and once at the end."""
    journal = PostgresJournal(url)
    await journal.open()
    while time.perf_counter() < until:
        await asyncio.sleep(min(SEAL_SECONDS, max(0.0, until - time.perf_counter())))
        await journal.seal(wait=False)
    await journal.seal()
    await journal.close()


async def _client(url: str, order: str) -> None:
    if order == "no order":
        postgres_appends._ONE[:] = map(_without_order, postgres_appends._ONE)  # noqa: SLF001
    journal = PostgresJournal(url)
    await journal.open()
    run = f"run_{time.time_ns()}_{id(journal)}"
    await journal.append(birth(run))
    print("ready", flush=True)
    sys.stdin.readline()
    print(await _write(journal, run, time.perf_counter() + SECONDS), flush=True)
    await journal.close()


def _without_order(statement: bytes) -> bytes:
    return _NOTED.sub("", statement.decode()).encode()


def _told(figures: dict[str, float]) -> str:
    lines = ["| journal alone | appends/s |", "| --- | --- |"]
    lines += [f"| {name} | {figure:,.4g} |" for name, figure in figures.items()]
    lines += ["", *(f"wanted: {kind}, sealed : no order >= {it}" for kind, it in MARKS.items())]
    return "\n".join(lines)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.postgres.journal")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--json", action="store_true", help="print {what: appends per second}")
    parser.add_argument("--client", nargs=2, metavar=("URL", "ORDER"), help=argparse.SUPPRESS)
    return parser


if __name__ == "__main__":
    sys.exit(main())
