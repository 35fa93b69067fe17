"""`python -m bench.housekeeping`: what retention over many finished runs frees, and who waits.

A store is filled with copies of one finished run, and with a hundred that wait for a person. A
server has it, a client starts runs and answers them, one after another, before, while and after
`holdfast retention` removes what is finished. Told are the bytes of the store, and how long answers
take. `--postgresql` does it on a server of its own; else it is a home.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx

from bench.postgres.server import migrated_database, private_server
from holdfast import Holdfast
from holdfast.journal.port import Append, Journal, QuestionQuery, QuestionRow, Record, RunRow
from holdfast.model.run import RunStatus

WAITING = 100
AT_ONCE = 200
HOLDFAST = [sys.executable, "-c", "from holdfast.cli import main; main()"]
PLAN = """
plan_id: ask
name: Ask
main_task_id: "001"
tasks:
  - {task_id: "001", name: Ask}
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: human
    title: Well?
    form: {word: {type: text}}
    success_output: {task_id: "001", status: Done}
"""


def application(place: Path, url: str | None) -> Holdfast:
    app = Holdfast(database=url) if url else Holdfast(place / ".holdfast")
    app.load_plan_text(PLAN)
    return app


@dataclass(frozen=True, slots=True)
class Finished:
    """A run that asked a person and is done."""

    row: RunRow
    records: list[Record]
    question: QuestionRow

    @classmethod
    async def of(cls, app: Holdfast) -> Finished:
        run_id = (await app.plans.start_plan_by_prompt("to be copied", "ask")).id
        [asked] = await _asked(app.journal, run_id)
        await app.answer(asked.question_id, data={"word": "yes"})
        await app.engine.wait_for_status(run_id, {RunStatus.DONE})
        row = await app.journal.run(run_id)
        assert row is not None
        [question] = await app.journal.questions(QuestionQuery(run_id=run_id))
        return cls(row, await app.journal.read(run_id), question)

    def again(self, number: int) -> Append:
        """The same under another id."""
        run_id, question_id = f"inst_{1_000_000 + number}", f"q{number:08}"
        old = self.row.run_id, self.question.question_id

        def renamed(text: str) -> str:
            return text.replace(old[0], run_id).replace(old[1], question_id)

        records = [one._replace(payload=renamed(one.payload)) for one in self.records]
        ids = {"run_id": run_id, "root_id": run_id}
        row = replace(self.row, **ids)
        body = renamed(self.question.body)
        question = replace(self.question, **ids, question_id=question_id, body=body)
        return Append(run_id, 0, records, row, [question])


async def fill(place: Path, url: str | None, runs: int) -> list[str]:
    """The questions of the runs that wait."""
    async with application(place, url) as app:
        finished = await Finished.of(app)
        for start in range(0, runs, AT_ONCE):
            numbers = range(start, min(start + AT_ONCE, runs))
            appends = [finished.again(number) for number in numbers]
            await asyncio.gather(*map(app.journal.append, appends))
        waiting = [
            (await app.plans.start_plan_by_prompt("waits", "ask")).id for _ in range(WAITING)
        ]
        return [one.question_id for run_id in waiting for one in await _asked(app.journal, run_id)]


async def _asked(journal: Journal, run_id: str) -> list[QuestionRow]:
    while True:
        rows = await journal.questions(QuestionQuery(run_id=run_id, status=frozenset({"open"})))
        if rows:
            return rows
        await asyncio.sleep(0.01)


def size(place: Path, url: str | None) -> int:
    if url is None:
        return sum(one.stat().st_size for one in (place / ".holdfast").glob("holdfast.db*"))
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        found = connection.execute("SELECT pg_database_size(current_database())").fetchall()
        return int(found[0][0])


def vacuumed(url: str, command: bytes) -> int:
    """How large a database is after that; what VACUUM alone frees is used again and stays there."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(command)
    return size(Path(), url)


@contextmanager
def served(place: Path) -> Iterator[str]:
    command = [*HOLDFAST, "serve", "--port", "0", "--json"]
    if "HOLDFAST_DATABASE" in os.environ:
        command.append("--work")
    process = subprocess.Popen(command, cwd=place, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield str(json.loads(process.stdout.readline())["url"])
    finally:
        process.terminate()
        process.communicate(timeout=60)


class Person:
    """Starts a run, answers it, and so on."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client
        self.times: list[float] = []

    async def go_on(self, until: asyncio.Future[Any]) -> list[float]:
        self.times = []
        while not until.done():
            begun = await self._client.post("/instances", json={"plan_id": "ask"})
            begun.raise_for_status()
            asked = begun.json()["interactions"]
            while not asked:
                listed = await self._client.get(f"/instances/{begun.json()['id']}")
                asked = listed.json()["interactions"]
                await asyncio.sleep(0.01)
            await self.answer(asked[0])
            await asyncio.sleep(0.02)
        return self.times

    async def answer(self, question_id: str) -> None:
        start = time.perf_counter()
        answered = await self._client.post(
            f"/interactions/{question_id}/answer", json={"data": {"word": "yes"}}
        )
        self.times.append(time.perf_counter() - start)
        answered.raise_for_status()


def told(times: list[float]) -> str:
    parts = statistics.quantiles(times, n=100)
    return (
        f"{len(times)} answers, p50 {parts[49] * 1e3:.1f} ms, p99 {parts[98] * 1e3:.1f} ms, "
        f"longest {max(times) * 1e3:.1f} ms"
    )


@asynccontextmanager
async def store(postgresql: bool) -> AsyncIterator[tuple[Path, str | None]]:
    async with AsyncExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="holdfast-bench-")))
        (place / "plans").mkdir()
        (place / "plans" / "ask.yaml").write_text(PLAN, encoding="utf-8")
        url = None
        if postgresql:
            url = migrated_database(stack.enter_context(private_server()))
            os.environ["HOLDFAST_DATABASE"] = url
            os.environ["HOLDFAST_SECRET_KEY"] = b64encode(bytes(32)).decode()
        yield place, url


async def trial(runs: int, seconds: float, postgresql: bool) -> None:
    async with store(postgresql) as (place, url):
        empty = size(place, url) if url else 0
        start = time.perf_counter()
        waiting = await fill(place, url, runs)
        print(f"filled with {runs:,} runs in {time.perf_counter() - start:.0f} s", flush=True)
        made = await _done(place, "token", "create", "will", "--role", "admin", "--json")
        token = json.loads(made)["token"]
        with served(place) as address:
            await _measured(place, url, address, token, waiting, seconds, empty)


async def _measured(
    place: Path,
    url: str | None,
    address: str,
    token: str,
    waiting: list[str],
    seconds: float,
    empty: int,
) -> None:
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(base_url=address, headers=headers, timeout=60) as client:
        person = Person(client)
        pause = asyncio.ensure_future(asyncio.sleep(seconds))
        print(f"before: {told(await person.go_on(pause))}", flush=True)
        before = size(place, url)
        retention = ["retention", "--older-than", "0m", "--yes", "--json"]
        if url is None:
            retention += ["--url", address]
        start = time.perf_counter()
        removing = await asyncio.create_subprocess_exec(
            *HOLDFAST,
            *retention,
            cwd=place,
            stdout=subprocess.PIPE,
            env={**os.environ, "HOLDFAST_TOKEN": token},
        )
        ended = asyncio.ensure_future(removing.communicate())
        print(f"while: {told(await person.go_on(ended))}", flush=True)
        swept = json.loads((await ended)[0])
        print(f"removed {swept['runs']:,} runs in {time.perf_counter() - start:.0f} s")
        print(f"bytes: {empty:,} empty, {before:,} before, {size(place, url):,} after", flush=True)
        pause = asyncio.ensure_future(asyncio.sleep(seconds))
        print(f"after: {told(await person.go_on(pause))}")
        person.times = []
        for question_id in waiting:
            await person.answer(question_id)
        print(f"waiting ones: {told(person.times)}")
        print(f"bytes in the end: {size(place, url):,}", flush=True)
        if url is not None:
            for command in (b"VACUUM", b"VACUUM FULL"):
                print(f"bytes after {command.decode()}: {vacuumed(url, command):,}", flush=True)
    for command in (("audit", "verify"), ("doctor",)):
        print(f"{' '.join(command)}: {(await _done(place, *command)).splitlines()[0]}")


async def _done(place: Path, *arguments: str) -> str:
    process = await asyncio.create_subprocess_exec(
        *HOLDFAST, *arguments, cwd=place, stdout=subprocess.PIPE
    )
    return (await process.communicate())[0].decode()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--postgresql", action="store_true")
    given = parser.parse_args()
    asyncio.run(trial(given.runs, given.seconds, given.postgresql))
