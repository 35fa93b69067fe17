"""LangGraph with AsyncSqliteSaver and `durability="sync"`: each checkpoint precedes the next step.

Two forms are measured. `chain` is one node per effect, the counterpart of a plan of distinct tasks:
its checkpoints carry a channel and a version per node, which costs nothing noticeable at 100 and
about half of the speed at 1,000. `loop` runs one node again and again: its checkpoints do not grow,
but it keeps no result per step either. The functional API is left out because
it does not wait for a task's record before it starts the next task (seen: ten tasks ahead of the
disk), and the synchronous saver, which was faster in a single look, because it cannot run
asynchronous effects.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypedDict

import aiosqlite
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from bench import trial


class Count(TypedDict):
    n: int


async def effect(state: Count) -> Count:
    return {"n": state["n"] + 1}


async def ask(state: Count) -> Count:
    interrupt("continue?")
    return {"n": state["n"]}


def looped(length: int) -> StateGraph:
    graph = StateGraph(Count)
    graph.add_node("effect", effect)
    graph.add_edge(START, "effect")
    graph.add_conditional_edges("effect", lambda state: END if state["n"] >= length else "effect")
    return graph


def sequence(*nodes: Callable[[Count], Any]) -> StateGraph:
    graph = StateGraph(Count)
    names = [f"t{number:05}" for number in range(len(nodes))]
    for name, node in zip(names, nodes, strict=True):
        graph.add_node(name, node)
    for before, after in zip([START, *names], [*names, END], strict=True):
        graph.add_edge(before, after)
    return graph


def config(run: str, length: int = 10) -> dict[str, Any]:
    return {"configurable": {"thread_id": run}, "recursion_limit": length + 5}


class LangGraph:
    packages = ("langgraph", "langgraph-checkpoint-sqlite", "aiosqlite")

    async def open(self, home: Path) -> None:
        self.connection = await aiosqlite.connect(home / "checkpoints.db")
        await self.connection.execute("PRAGMA synchronous=FULL")
        self.saver = AsyncSqliteSaver(self.connection)
        await self.saver.setup()
        self.paused = sequence(effect, ask, effect).compile(checkpointer=self.saver)

    async def close(self) -> None:
        await self.connection.close()

    async def chain(self, length: int) -> trial.Run:
        return self._runner(sequence(*[effect] * length), length)

    async def loop(self, length: int) -> trial.Run:
        return self._runner(looped(length), length)

    def _runner(self, graph: StateGraph, length: int) -> trial.Run:
        compiled = graph.compile(checkpointer=self.saver)

        async def run(name: str) -> int:
            state = await compiled.ainvoke({"n": 0}, config(name, length), durability="sync")
            return int(state["n"])

        return run

    async def pause(self, run: str) -> None:
        await self.paused.ainvoke({"n": 0}, config(run), durability="sync")

    async def answer(self, run: str) -> int:
        answer = Command(resume="yes")
        state = await self.paused.ainvoke(answer, config(run), durability="sync")
        return int(state["n"])

    async def stall(self, run: str, in_flight: Callable[[], None]) -> None:
        async def hang(state: Count) -> Count:
            in_flight()
            await asyncio.Event().wait()
            return state

        graph = sequence(effect, hang, effect).compile(checkpointer=self.saver)
        await graph.ainvoke({"n": 0}, config(run), durability="sync")

    async def recover(self, runs: list[str]) -> int:
        """LangGraph does not look for unfinished runs: whoever recovers must name them."""
        graph = sequence(effect, effect, effect).compile(checkpointer=self.saver)
        work = (graph.ainvoke(None, config(run), durability="sync") for run in runs)
        return sum(state["n"] == 3 for state in await asyncio.gather(*work))

    async def durability(self) -> dict[str, Any]:
        async with self.connection.execute("PRAGMA journal_mode") as cursor:
            [mode] = await cursor.fetchone() or ("?",)
        async with self.connection.execute("PRAGMA synchronous") as cursor:
            [level] = await cursor.fetchone() or ("?",)
        return {"journal_mode": mode, "synchronous": level}


if __name__ == "__main__":
    trial.main(LangGraph())
