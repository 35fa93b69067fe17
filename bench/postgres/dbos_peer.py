"""DBOS on a PostgreSQL system database, as it is configured unless told otherwise: 20 connections,
messages by LISTEN and NOTIFY. A result is polled for each millisecond."""

from __future__ import annotations

import time

from dbos import DBOS, DBOSConfig, SetWorkflowID

from bench.peers import dbos_peer as sqlite
from bench.postgres import trial


@DBOS.step()
async def first() -> float:
    return time.monotonic()


@DBOS.workflow()
async def one_effect() -> float:
    return await first()


class Dbos(sqlite.Dbos):
    packages = ("dbos", "SQLAlchemy", "psycopg")

    async def open(self, url: str) -> None:
        DBOS(
            config=DBOSConfig(
                name="bench",
                system_database_url=url.replace("postgresql://", "postgresql+psycopg://"),
                log_level="ERROR",
                application_version="bench",
            )
        )
        DBOS.launch()

    async def first(self, run: str) -> float:
        with SetWorkflowID(run):
            return await one_effect()


if __name__ == "__main__":
    trial.main(Dbos())
