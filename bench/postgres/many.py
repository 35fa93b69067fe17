"""`python -m bench.postgres.many`: an answer among many runs, beside one in an empty database.

A database gets 1,000,000 runs, of which 100,000 wait for a timer and as many for a person, each
with a record; one is empty. An application works on each, in this process, and a run in each of
them is answered by turns: from the answer to its end. Meanwhile no table that is large may be read
as a whole, by whatever the application does beside.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from base64 import b64encode
from contextlib import AsyncExitStack
from typing import Any, LiteralString

import psycopg
import uvloop

from bench.postgres.ours import Ours
from bench.postgres.server import migrated_database, private_server

RUNS, TIMERS, QUESTIONS = 1_000_000, 100_000, 100_000
WANTED = 1.2
ANSWERS = 200
LARGE = 10_000

FILL: tuple[LiteralString, ...] = (
    """
    INSERT INTO runs (run_id, version, kind, name, definition, status, active, wake_at, root_id,
                      parent_id, created_at, updated_at, title, summary)
    SELECT 'run_' || n, 1, 'plan', 'plan_' || mod(n, 20), 'sha256:plan',
           CASE WHEN n <= %(timers)s::bigint + %(questions)s THEN 'pause' ELSE 'done' END, false,
           CASE WHEN n <= %(timers)s THEN extract(epoch FROM now()) + 3600 + n END,
           'run_' || n, NULL, n, n, 'A run of the fill', '{}'
    FROM generate_series(1, %(runs)s) AS n
    """,
    """
    INSERT INTO events (run, seq, at, type, payload, crc)
    SELECT id, 1, created_at, 'started', '{}', 0 FROM runs
    """,
    """
    INSERT INTO questions (question_id, run_id, root_id, status, type, title, role, opened_at,
                           deadline, closed_at, body, crc)
    SELECT 'q_' || n, 'run_' || n, 'run_' || n, 'open', 'missing_info', 'A question', 'approver',
           n, NULL, NULL, '{}', 0
    FROM generate_series(%(timers)s::bigint + 1, %(timers)s::bigint + %(questions)s) AS n
    """,
)


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    os.environ.setdefault("HOLDFAST_SECRET_KEY", b64encode(os.urandom(32)).decode())
    with private_server(autovacuum="off") as server:
        databases = {name: migrated_database(server) for name in ("empty", "many")}
        _fill(databases["many"], options.runs)
        samples = uvloop.run(_answers(databases, options.answers))
        scans = _scans(databases["many"])
    figures: dict[str, Any] = {
        f"{name} p50 ms": round(statistics.median(some), 2) for name, some in samples.items()
    }
    figures["many : empty"] = round(figures["many p50 ms"] / figures["empty p50 ms"], 2)
    figures["scans"] = scans
    print(json.dumps(figures) if options.json else _told(figures))
    return 0


def _fill(url: str, runs: int) -> None:
    share = {"runs": runs, "timers": runs * TIMERS // RUNS, "questions": runs * QUESTIONS // RUNS}
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in FILL:
            connection.execute(statement, share)
        connection.execute("VACUUM ANALYZE")
        connection.execute("SELECT pg_stat_reset()")


async def _answers(databases: dict[str, str], count: int) -> dict[str, list[float]]:
    """Milliseconds from each answer to its run's end, by turns."""
    samples: dict[str, list[float]] = {name: [] for name in databases}
    async with AsyncExitStack() as stack:
        systems = {}
        for name, url in databases.items():
            systems[name] = Ours()
            await systems[name].open(url)
            stack.push_async_callback(systems[name].close)
        for turn in range(count):
            for name, system in systems.items():
                await system.pause(f"turn {turn}")
                began = time.perf_counter()
                await system.answer(f"turn {turn}")
                samples[name].append((time.perf_counter() - began) * 1e3)
    return samples


def _scans(url: str) -> dict[str, int]:
    """Rows that were read in order, of large tables, since they were filled."""
    with psycopg.connect(url) as connection:
        rows = connection.execute(
            "SELECT relname, seq_scan, seq_tup_read FROM pg_stat_user_tables "
            "WHERE seq_tup_read > %s",
            [LARGE],
        ).fetchall()
    return {f"{table} ({scans} scans)": read for table, scans, read in rows}


def _told(figures: dict[str, Any]) -> str:
    lines = [f"{name}: {figure}" for name, figure in figures.items()]
    return "\n".join([*lines, f"wanted: many : empty <= {WANTED}, no scans"])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.postgres.many")
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--answers", type=int, default=ANSWERS)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    return parser


if __name__ == "__main__":
    sys.exit(main())
