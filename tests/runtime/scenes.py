"""What the runtime's tests share: small plans, and the look at a run that must always hold."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager

from holdfast.app import Holdfast
from holdfast.core.plan.decide import blank, replay
from holdfast.core.plan.state import PlanState
from holdfast.journal.codec import decode
from holdfast.journal.port import Record
from holdfast.model.plan import (
    CodeAction,
    Listener,
    Output,
    Plan,
    Task,
    TaskStatus,
    ToolAction,
)
from holdfast.model.recorded import Event
from holdfast.source.check import Catalog
from holdfast.source.planfile import load_plan
from holdfast.work.tools import CallInfo


async def history(app: Holdfast, run_id: str) -> list[Event]:
    return [decode(record) for record in await app.journal.read(run_id)]


def of_kind(events: Iterable[Event], kind: type) -> list[Event]:
    return [event for event in events if isinstance(event, kind)]


async def assert_sound(app: Holdfast, run_id: str) -> PlanState:
    """The journal is gapless, and its replay is the state."""
    state, records = await _at_rest(app, run_id)
    assert [record.seq for record in records] == list(range(1, state.version + 1))
    told = ((record.at, decode(record)) for record in records)
    assert replay(blank(run_id, state.origin or state.plan), told) == state
    return state


async def _at_rest(app: Holdfast, run_id: str) -> tuple[PlanState, list[Record]]:
    """State and journal of the same moment; a late word may still be on its way."""
    while True:
        state = await app.engine.state(run_id)
        records = await app.journal.read(run_id)
        if len(records) == state.version == (await app.engine.state(run_id)).version:
            return state, records
        await asyncio.sleep(0.01)


async def until(met: Callable[[], bool]) -> None:
    """Let the others go on until something is so; the test's own time-out is the limit."""
    while not met():  # noqa: ASYNC110 - what is awaited has no event of its own
        await asyncio.sleep(0)


@asynccontextmanager
async def no_task_left_behind() -> AsyncIterator[None]:
    before = asyncio.all_tasks()
    yield
    await asyncio.sleep(0)
    left = {task for task in asyncio.all_tasks() - before if not task.done()}
    assert not left, f"still running: {left}"


def _task_id(number: int) -> str:
    return f"{number:04d}"


def chain(plan_id: str, actions: list[ToolAction | CodeAction]) -> Plan:
    """Task 0000 is the goal; each action waits for the one before it."""
    tasks = [Task(_task_id(number), f"step {number}") for number in range(len(actions) + 1)]
    listeners = []
    for number, action in enumerate(actions, 1):
        last = number == len(actions)
        listeners.append(
            Listener(
                listener_id=f"L{number:04d}",
                trigger_task_id=(_task_id(number - 1),),
                trigger_condition="Running" if number == 1 else "Done",
                action=action,
                success_output=Output(_task_id(0 if last else number), TaskStatus.DONE),
            )
        )
    return Plan(plan_id, plan_id, _task_id(0), tuple(tasks), tuple(listeners))


def tools(plan_id: str, *names: str) -> Plan:
    return chain(plan_id, [ToolAction(name, {"note": name}) for name in names])


PURE = CodeAction("result = {'success': True}")


def plan(text: str) -> Plan:
    """A plan from its YAML, unchecked: the tools may come later."""
    return load_plan(text, "<test>", Catalog())


class Desk:
    """A tool that notes its calls, and answers when it is told to."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        self.notes: list[str] = []
        self.open = asyncio.Event()
        self.open.set()
        self.errors: list[Exception] = []

    async def work(self, note: str, call: CallInfo) -> dict[str, str]:
        self.keys.append(call.key)
        self.notes.append(note)
        await self.open.wait()
        if self.errors:
            raise self.errors.pop(0)
        return {"note": note}
