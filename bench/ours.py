"""Holdfast itself, answering the same requests as the peers.

A chain is a plan of distinct tasks, each reached by a tool listener whose tool is an asynchronous,
idempotent function; a loop is measured as the same chain. The peers do not limit how many effects
are in flight; here the limit is raised above what any work asks for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench import trial
from holdfast.app import Holdfast
from holdfast.journal.database import Connection, connect
from holdfast.journal.home import DATABASE
from holdfast.journal.port import QuestionQuery
from holdfast.journal.sqlite import SqliteJournal
from holdfast.model.interaction import Asking
from holdfast.model.plan import (
    Action,
    HumanAction,
    Listener,
    Output,
    Plan,
    Task,
    TaskStatus,
    ToolAction,
)
from holdfast.runtime.clock import Clock

GOAL = "goal"
MAX_EFFECTS = 2000

in_flight_hooks: list[Callable[[], None]] = []


async def effect(n: int) -> dict[str, int]:
    return {"n": n + 1}


async def slow_effect(n: int) -> dict[str, int]:
    """Hangs only in the process that is going to be killed."""
    if in_flight_hooks:
        in_flight_hooks.pop()()
        await asyncio.Event().wait()
    return {"n": n + 1}


def sequence(plan_id: str, *kinds: str) -> Plan:
    """A plan that does one thing after another; the last one reaches the goal."""
    ids = [f"t{number:05}" for number in range(1, len(kinds))]
    before, after = [GOAL, *ids], [*ids, GOAL]
    steps = enumerate(zip(kinds, before, after, strict=True))
    listeners = tuple(_listener(place, *step) for place, step in steps)
    return Plan(plan_id, plan_id, GOAL, (Task(GOAL), *map(Task, ids)), listeners)


def _listener(place: int, kind: str, before: str, after: str) -> Listener:
    seen = f"{{{before}.context.n}}" if place else 0
    action: Action = ToolAction(kind, {"n": seen})
    made = "{{result.n}}"
    if kind == "ask":
        action, made = HumanAction(asking=Asking(title="continue?")), f"{{{before}.context.n}}"
    condition = "Done" if place else f"{GOAL}.status == Running"
    output = Output(after, TaskStatus.DONE, {"n": made})
    return Listener(f"L{place:05}", (before,), condition, action, output)


class Ours:
    packages = ("holdfast",)

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock

    async def open(self, home: Path) -> None:
        self.connections: list[Connection] = []
        journal = SqliteJournal(home / DATABASE, connect=self._connect)
        self.app = Holdfast(home, journal=journal, clock=self._clock, max_effects=MAX_EFFECTS)
        self.app.tool(effect, idempotent=True)
        self.app.tool(slow_effect, idempotent=True)
        self.app.add_plan(sequence("paused", "effect", "ask", "effect"))
        self.app.add_plan(sequence("stalled", "effect", "slow_effect", "effect"))
        self.questions: dict[str, str] = {}
        await self.app.__aenter__()

    def _connect(self, path: Path) -> Connection:
        self.connections.append(connect(path))
        return self.connections[-1]

    async def close(self) -> None:
        await self.app.__aexit__(None, None, None)

    async def chain(self, length: int) -> trial.Run:
        plan_id = f"chain_{length}"
        self.app.add_plan(sequence(plan_id, *["effect"] * length))

        async def run(name: str) -> int:
            instance = await self.app.plans.start_plan_by_prompt(name, plan_id)
            return await _finished(instance)

        return run

    async def loop(self, length: int) -> trial.Run:
        return await self.chain(length)

    async def pause(self, run: str) -> None:
        instance = await self.app.plans.start_plan_by_prompt(run, "paused")
        await instance.wait_until_settled()
        self.questions[run] = await self._question(instance.id)

    async def _question(self, instance_id: str) -> str:
        [row] = await self.app.inbox(QuestionQuery(frozenset({"open"}), run_id=instance_id))
        return row.question_id

    async def answer(self, run: str) -> int:
        """A new process finds the question in the inbox first; that is part of its time."""
        question = self.questions.get(run) or await self._question(_instance_id(run))
        return await _finished(await self.app.answer(question, option_id="confirm"))

    async def stall(self, run: str, in_flight: Callable[[], None]) -> None:
        in_flight_hooks.append(in_flight)
        await _finished(await self.app.plans.start_plan_by_prompt(run, "stalled"))

    async def recover(self, runs: list[str]) -> int:
        """Opening recovers by itself; wait until every run has ended."""
        instances = [await self.app.instance(_instance_id(run)) for run in runs]
        return sum([await _finished(instance) == 3 for instance in instances])

    async def durability(self) -> dict[str, Any]:
        """The journal opens its writer first."""
        writer = self.connections[0]
        [[mode]] = writer.execute("PRAGMA journal_mode").fetchall()
        [[level]] = writer.execute("PRAGMA synchronous").fetchall()
        return {"journal_mode": mode, "synchronous": level}


async def _finished(instance: Any) -> int:
    await instance.wait_for_completion()
    return int(instance.get_main_task_instance().context["n"])


def _instance_id(run: str) -> str:
    """Runs are numbered from 1 in the order of their start; names of the bench count from 0."""
    return f"inst_{int(run.removeprefix('run-')) + 1:06}"


if __name__ == "__main__":
    trial.main(Ours())
