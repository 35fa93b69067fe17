"""What the tests of conversations share: tasks in a diamond, and a shop that counts its work.

The ledger is a file, so it remembers what a killed process did. Work can be held open: a `Gate`
lets a test decide when a task ends, so that nothing depends on speed.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections import Counter
from collections.abc import AsyncIterable, Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from holdfast.conversations.engine import ConversationEngine, EngineEvent, EngineEventType, SubTask
from holdfast.model.retry import RetryPolicy

GOAL = "帮我分析销售数据"
PATIENCE = 30.0
ONCE = RetryPolicy(attempts=1)

DIAMOND = [
    {"id": "load", "description": "load", "type": "work", "priority": 5},
    {"id": "sum", "description": "sum", "type": "work", "priority": 2, "dependencies": ["load"]},
    {"id": "draw", "description": "draw", "type": "work", "priority": 1, "dependencies": ["load"]},
    {
        "id": "report",
        "description": "report",
        "type": "work",
        "priority": 0,
        "dependencies": ["sum", "draw"],
    },
]
ORDER = ["load", "draw", "sum", "report"]
RESULTS = {
    "load": {"did": "load", "with": []},
    "draw": {"did": "draw", "with": ["load"]},
    "sum": {"did": "sum", "with": ["load"]},
    "report": {"did": "report", "with": ["draw", "sum"]},
}


class Coordinator:
    async def get_context_async(self, user_input: str) -> Any:
        return SimpleNamespace(rules=["be exact"], knowledge=["sales.csv"], tools=["work"])


class Llm:
    """Knows its tasks by heart, and keeps what it was told."""

    def __init__(self, tasks: Any = DIAMOND) -> None:
        self.tasks = tasks
        self.heard: list[dict[str, Any]] = []

    async def decompose_goal(self, text: str, **known: Any) -> Any:
        self.heard.append({"text": text, **known})
        return self.tasks


class Ledger:
    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self.done: list[str] = []

    async def work(self, task: SubTask, results: Mapping[str, Any]) -> Any:
        self.note(task.id)
        return {"did": task.id, "with": sorted(results)}

    def note(self, task_id: str) -> None:
        self.done.append(task_id)
        if self.path is not None:
            file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            os.write(file, f"{task_id}\n".encode())
            os.close(file)

    @property
    def counts(self) -> Counter[str]:
        if self.path is None:
            return Counter(self.done)
        return Counter(self.path.read_text().split() if self.path.exists() else [])


class Gate:
    """Work that begins, says so, and ends only when it is let through or broken off."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.through = asyncio.Event()
        self.running = 0
        self.started: list[str] = []

    async def work(self, task: SubTask) -> Any:
        self.running += 1
        self.started.append(task.id)
        self.begun.set()
        try:
            await self.through.wait()
        finally:
            self.running -= 1
        return task.id


def diamond(work: Any = None, **options: Any) -> ConversationEngine:
    executor = work or Ledger().work
    options = {"coordinator": Coordinator(), "llm": Llm(), "retry": ONCE, **options}
    return ConversationEngine(executors={"work": executor}, **options)


async def heard(events: AsyncIterable[EngineEvent]) -> list[EngineEvent]:
    async with asyncio.timeout(PATIENCE):
        return [event async for event in events]


def named(events: list[EngineEvent], kind: EngineEventType) -> list[dict[str, Any]]:
    return [dict(one.data) for one in events if one.event_type is kind]


def kinds(events: list[EngineEvent]) -> list[str]:
    return [one.event_type.value for one in events]


def results_of(engine: ConversationEngine) -> dict[str, Any]:
    return {task.id: task.result for task in engine.tasks}


def through_json(value: Any) -> Any:
    return json.loads(json.dumps(value))


async def until(holds: Callable[[], bool]) -> None:
    """Let the others have their turns until it holds."""
    for _ in range(100_000):
        if holds():
            return
        await asyncio.sleep(0)
    raise AssertionError("it never came to hold")


async def no_task_but_mine() -> None:
    """Nothing that the engine has begun goes on."""
    await until(lambda: asyncio.all_tasks() == {asyncio.current_task()})
