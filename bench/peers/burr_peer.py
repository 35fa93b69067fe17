"""Burr with AsyncSQLitePersister: the state is saved after every action, before the next one.

The persister leaves SQLite as it finds it, so the file is put into WAL mode beforehand. `chain` is
one action per effect, `loop` one action again and again. A pause is a halt before an action; to
continue means to load the application from the persister and run on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

from burr.core import ApplicationBuilder, Condition, State, action
from burr.core.graph import Graph, GraphBuilder
from burr.integrations.persisters.b_aiosqlite import AsyncSQLitePersister

from bench import trial


@action(reads=["n"], writes=["n"])
async def effect(state: State) -> State:
    return state.update(n=state["n"] + 1)


@action(reads=["n"], writes=["n"])
async def answered(state: State, answer: str) -> State:
    return state.update(n=state["n"])


@action(reads=["n"], writes=["n"])
async def end(state: State) -> State:
    return state.update(n=state["n"] + 1)


def looped(length: int) -> Graph:
    """`end` is the last effect, so a chain of `length` saves exactly `length` states."""
    more = Condition.lmda(lambda state: state["n"] < length - 1, ["n"])
    graph = GraphBuilder().with_actions(effect=effect, end=end)
    return graph.with_transitions(("effect", "effect", more), ("effect", "end")).build()


def sequence(**actions: Any) -> Graph:
    names = list(actions)
    return GraphBuilder().with_actions(**actions).with_transitions(*pairwise(names)).build()


def distinct(length: int) -> Graph:
    actions = {f"t{number:05}": effect for number in range(length - 1)}
    return sequence(**actions, end=end)


PAUSED = sequence(effect=effect, answered=answered, end=end)
RECOVERED = sequence(first=effect, second=effect, end=end)


class Burr:
    packages = ("burr", "aiosqlite")

    async def open(self, home: Path) -> None:
        path = home / "burr.db"
        trial.create_wal_database(path)
        self.persister = await AsyncSQLitePersister.from_values(db_path=str(path))
        await self.persister.connection.execute("PRAGMA synchronous=FULL")
        await self.persister.initialize()

    async def close(self) -> None:
        await self.persister.cleanup()

    def _builder(self, graph: Graph, run: str) -> ApplicationBuilder[Any]:
        builder = ApplicationBuilder().with_graph(graph).with_identifiers(app_id=run)
        return builder.with_state_persister(self.persister)

    async def _start(self, graph: Graph, run: str) -> Any:
        entry = graph.actions[0].name
        return await self._builder(graph, run).with_state(n=0).with_entrypoint(entry).abuild()

    async def _load(self, graph: Graph, run: str) -> Any:
        builder = self._builder(graph, run).initialize_from(
            self.persister,
            resume_at_next_action=True,
            default_state={"n": 0},
            default_entrypoint=graph.actions[0].name,
        )
        return await builder.abuild()

    async def chain(self, length: int) -> trial.Run:
        return self._runner(distinct(length))

    async def loop(self, length: int) -> trial.Run:
        return self._runner(looped(length))

    def _runner(self, graph: Graph) -> trial.Run:
        async def run(name: str) -> int:
            return await _finish(await self._start(graph, name))

        return run

    async def pause(self, run: str) -> None:
        app = await self._start(PAUSED, run)
        await app.arun(halt_before=["answered"])

    async def answer(self, run: str) -> int:
        return await _finish(await self._load(PAUSED, run), answer="yes")

    async def stall(self, run: str, in_flight: Callable[[], None]) -> None:
        @action(reads=["n"], writes=["n"])
        async def hang(state: State) -> State:
            in_flight()
            await asyncio.Event().wait()
            return state

        app = await self._start(sequence(first=effect, second=hang, end=end), run)
        await app.arun(halt_after=["end"])

    async def recover(self, runs: list[str]) -> int:
        """Burr does not look for unfinished applications: whoever recovers must name them."""
        counts = await asyncio.gather(*(self._resume(run) for run in runs))
        return sum(count == 3 for count in counts)

    async def _resume(self, run: str) -> int:
        return await _finish(await self._load(RECOVERED, run))

    async def durability(self) -> dict[str, Any]:
        async with self.persister.connection.execute("PRAGMA journal_mode") as cursor:
            [mode] = await cursor.fetchone()
        async with self.persister.connection.execute("PRAGMA synchronous") as cursor:
            [level] = await cursor.fetchone()
        return {"journal_mode": mode, "synchronous": level}


async def _finish(app: Any, **inputs: Any) -> int:
    _, _, state = await app.arun(halt_after=["end"], inputs=inputs)
    return int(state["n"])


if __name__ == "__main__":
    trial.main(Burr())
