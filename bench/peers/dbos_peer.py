"""DBOS on a SQLite system database: each step's output is committed before the workflow goes on.

DBOS itself sets neither journal mode nor synchronous level, so the file is put into WAL mode
beforehand, which is faster than its default, and every connection is told FULL and asked what it
has. On SQLite DBOS learns of messages by polling, once a second unless told otherwise: here every
millisecond, its minimum. It declares no graph, so
a loop is its only form.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from dbos import DBOS, DBOSConfig, SetWorkflowID
from sqlalchemy import Engine, event

from bench import trial

POLL_SECONDS = 0.001

observed: dict[str, Any] = {}
in_flight_hooks: dict[str, Callable[[], None]] = {}


@DBOS.step()
async def effect(n: int) -> dict[str, int]:
    return {"n": n + 1}


@DBOS.step()
async def slow_effect(n: int, run: str) -> dict[str, int]:
    """Hangs only in the process that is going to be killed."""
    if hook := in_flight_hooks.get(run):
        hook()
        await asyncio.Event().wait()
    return {"n": n + 1}


@DBOS.workflow()
async def chained(length: int) -> int:
    n = 0
    while n < length:
        n = (await effect(n))["n"]
    return n


@DBOS.workflow()
async def paused() -> int:
    n = (await effect(0))["n"]
    await DBOS.recv_async(timeout_seconds=86_400)
    return (await effect(n))["n"]


@DBOS.workflow()
async def stalled(run: str) -> int:
    n = (await effect(0))["n"]
    n = (await slow_effect(n, run))["n"]
    return (await effect(n))["n"]


def listens(steps: list[Any]) -> bool:
    """recv records the deadline of its wait as a sleep once it is listening."""
    return any(step["function_name"] == "DBOS.sleep" for step in steps)


def insist_on_full(connection: Any, _: Any) -> None:
    connection.execute("PRAGMA synchronous=FULL")
    [observed["journal_mode"]] = connection.execute("PRAGMA journal_mode").fetchone()
    [observed["synchronous"]] = connection.execute("PRAGMA synchronous").fetchone()


class Dbos:
    packages = ("dbos", "SQLAlchemy")

    async def open(self, home: Path) -> None:
        path = home / "dbos.db"
        if not event.contains(Engine, "connect", insist_on_full):
            event.listen(Engine, "connect", insist_on_full)
        trial.create_wal_database(path)
        DBOS(
            config=DBOSConfig(
                name="bench",
                system_database_url=f"sqlite:///{path}",
                log_level="ERROR",
                notification_listener_polling_interval_sec=POLL_SECONDS,
                application_version="bench",
            )
        )
        DBOS.launch()

    async def close(self) -> None:
        """DBOS shuts down the thread pool it made the loop's default: give the loop another."""
        DBOS.destroy()
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor())

    async def chain(self, length: int) -> trial.Run:
        async def run(name: str) -> int:
            with SetWorkflowID(name):
                return await chained(length)

        return run

    async def loop(self, length: int) -> trial.Run:
        return await self.chain(length)

    async def pause(self, run: str) -> None:
        with SetWorkflowID(run):
            await DBOS.start_workflow_async(paused)
        steps = await DBOS.list_workflow_steps_async(run)
        while not listens(steps):
            await asyncio.sleep(0.005)
            steps = await DBOS.list_workflow_steps_async(run)

    async def answer(self, run: str) -> int:
        await DBOS.send_async(run, "yes")
        return await self._result(run)

    async def _result(self, run: str) -> int:
        handle: Any = await DBOS.retrieve_workflow_async(run)
        return int(await handle.get_result(polling_interval_sec=POLL_SECONDS))

    async def stall(self, run: str, in_flight: Callable[[], None]) -> None:
        in_flight_hooks[run] = in_flight
        with SetWorkflowID(run):
            await stalled(run)

    async def recover(self, runs: list[str]) -> int:
        """Launching recovers by itself; look at one run after the other until all have ended."""
        return sum([await self._result(run) == 3 for run in runs])

    async def durability(self) -> dict[str, Any]:
        return {**observed, "poll_ms": POLL_SECONDS * 1e3}


if __name__ == "__main__":
    trial.main(Dbos())
