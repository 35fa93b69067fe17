"""An application whose tools leave traces in files, for processes that are killed and stopped.

Its directory, `$WORKSHOP`, says what has happened, whoever did it and however that one ended:
`calls` has a line for each call that began. A tool that waits goes on once the file `go` is there.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from holdfast import Holdfast
from holdfast.journal import postgres_slots
from holdfast.runs import driving
from holdfast.runtime import dispatch

DIRECTORY = "WORKSHOP"
LACKING = "WORKSHOP_LACKS"
HASTY = "WORKSHOP_HASTY"
LIMIT = "WORKSHOP_LIMIT"

HEAD = """
plan_id: {name}
name: Made by {name}
main_task_id: "000"
inputs: {{part: {{type: text, default: part}}}}
tasks:
  - {{task_id: "000", name: The whole}}
"""
TASK = '  - {{task_id: "{0:03}", name: Step {0}}}\n'
LISTENER = """
  - listener_id: L{before:03}
    trigger_task_id: "{before:03}"
    trigger_condition: {when}
    listener_type: tool
    tool: {tool}
    args: {{part: "{{000.context.part}}"}}
    success_output: {{task_id: "{after:03}", status: Done}}
"""

PLANS = {
    "weld": ["weld"],
    "paint": ["paint"],
    "blast": ["blast"],
    "choose": ["choose"],
    "turn": ["turn", "turn", "turn"],
    "line": ["cut", "cut", "cut", "cut", "cut", "cut"],
}
"""By plan: the tools that it calls, one after another."""

BOTH = """
plan_id: both
name: Two things at once
main_task_id: "000"
inputs: {part: {type: text, default: part}}
tasks:
  - {task_id: "000", name: The whole}
  - {task_id: "001", name: Welded}
  - {task_id: "002", name: Chosen}
listeners:
  - listener_id: L001
    trigger_task_id: "000"
    trigger_condition: Running
    listener_type: tool
    tool: weld
    args: {part: "{000.context.part}"}
    success_output: {task_id: "001", status: Done}
  - listener_id: L002
    trigger_task_id: "000"
    trigger_condition: Running
    listener_type: tool
    tool: choose
    args: {part: "{000.context.part}"}
    success_output: {task_id: "002", status: Done}
  - listener_id: L003
    trigger_task_id: ["001", "002"]
    trigger_condition: "001.status == Done and 002.status == Done"
    listener_type: code
    code_snippet: "result = {'success': True}"
    success_output: {task_id: "000", status: Done}
"""


@dataclass(frozen=True, slots=True)
class Workshop:
    directory: Path

    def note(self, tool: str, part: str) -> None:
        """Whole or not at all, whatever happens to the process."""
        line = json.dumps([tool, part, os.getpid()]) + "\n"
        with (self.directory / "calls").open("ab", buffering=0) as calls:
            calls.write(line.encode())

    def calls(self) -> list[tuple[str, str, int]]:
        """Tool, part and process of each call that has begun."""
        file = self.directory / "calls"
        lines = file.read_text().splitlines() if file.exists() else []
        return [tuple(json.loads(line)) for line in lines]

    def let_go(self) -> None:
        (self.directory / "go").touch()

    @property
    def is_open(self) -> bool:
        return (self.directory / "go").exists()

    @contextmanager
    def lathe(self, part: str) -> Iterator[None]:
        """Free again when a process that is at it has gone; whoever finds it taken notes that."""
        with (self.directory / "lathe").open("ab") as lathe:
            try:
                fcntl.flock(lathe, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self.note("found the lathe taken", part)
            yield

    async def gate(self) -> None:
        while not self.is_open:  # noqa: ASYNC110
            await asyncio.sleep(0.02)


def plan(name: str, tools: list[str]) -> str:
    after = [*range(1, len(tools)), 0]
    return (
        HEAD.format(name=name)
        + "".join(TASK.format(number) for number in after[:-1])
        + "listeners:"
        + "".join(
            LISTENER.format(
                before=number,
                when="Done" if number else "Running",
                tool=tool,
                after=after[number],
            )
            for number, tool in enumerate(tools)
        )
    )


def furnish(app: Holdfast, workshop: Workshop, lacking: str = "") -> Holdfast:
    """The workshop's tools but `lacking`, and the plans that need no other."""

    async def weld(part: str) -> dict[str, str]:
        workshop.note("weld", part)
        await workshop.gate()
        return {"made": part}

    async def paint(part: str) -> dict[str, str]:
        workshop.note("paint", part)
        await workshop.gate()
        return {"made": part}

    async def cut(part: str) -> dict[str, str]:
        workshop.note("cut", part)
        await asyncio.sleep(0.01)
        return {"made": part}

    async def turn(part: str) -> dict[str, str]:
        with workshop.lathe(part):
            workshop.note("turn", part)
            await asyncio.sleep(0.05)
        return {"made": part}

    async def choose(part: str, colour: str) -> dict[str, str]:
        workshop.note("choose", part)
        return {"made": f"{part} in {colour}"}

    async def blast(part: str) -> dict[str, str]:
        workshop.note("blast", part)
        if not workshop.is_open:
            os.kill(os.getpid(), signal.SIGKILL)
        return {"made": part}

    for tool in (weld, paint, cut, turn, choose, blast):
        if tool.__name__ != lacking:
            app.tool(tool, idempotent=tool in (paint, turn, blast))
    for name, tools in PLANS.items():
        if lacking not in tools:
            app.load_plan_text(plan(name, tools))
    if lacking not in ("weld", "choose"):
        app.load_plan_text(BOTH)
    return app


def app() -> Holdfast:
    """What `--app workshop` names: the database is the environment's."""
    if os.environ.get(HASTY):
        hasten(float(os.environ[HASTY]))
    made = Holdfast(max_retry_count=0, max_effects=int(os.environ.get(LIMIT, "64")))
    return furnish(made, Workshop(Path(os.environ[DIRECTORY])), os.environ.get(LACKING, ""))


def hasten(seconds: float) -> None:
    """Take a driver for gone after so long, and retry as often."""
    dispatch.STALLED_SECONDS = postgres_slots.GONE_SECONDS = seconds  # type: ignore[misc]
    dispatch.HEARTBEAT_SECONDS = seconds / 5  # type: ignore[misc]
    dispatch.FORGOTTEN_SECONDS = seconds  # type: ignore[misc]
    driving.TRY_SECONDS = seconds / 50  # type: ignore[misc]
