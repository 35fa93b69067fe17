"""LangGraph with AsyncPostgresSaver and `durability="sync"`: a checkpoint precedes the next step.

The saver has a pool of connections as its documentation makes them, one node per effect as in
`bench.peers.langgraph_peer`.
"""

from __future__ import annotations

import time

from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool

from bench.peers import langgraph_peer as sqlite
from bench.postgres import trial

CONNECTIONS = 10


async def first(state: sqlite.Count) -> sqlite.Count:
    return {"n": time.monotonic()}


class LangGraph(sqlite.LangGraph):
    packages = ("langgraph", "langgraph-checkpoint-postgres", "psycopg")

    async def open(self, url: str) -> None:
        options = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
        self.pool = AsyncConnectionPool(
            url, min_size=CONNECTIONS, max_size=CONNECTIONS, kwargs=options, open=False
        )
        await self.pool.open(wait=True)
        self.saver = AsyncPostgresSaver(self.pool)
        await self.saver.setup()
        self.firsts = sqlite.sequence(first).compile(checkpointer=self.saver)
        self.paused = sqlite.sequence(sqlite.effect, sqlite.ask, sqlite.effect).compile(
            checkpointer=self.saver
        )

    async def close(self) -> None:
        await self.pool.close()

    async def first(self, run: str) -> float:
        state = await self.firsts.ainvoke({"n": 0}, sqlite.config(run), durability="sync")
        return float(state["n"])


if __name__ == "__main__":
    trial.main(LangGraph())
