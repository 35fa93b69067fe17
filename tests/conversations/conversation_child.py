"""Processes made to be killed, or to begin where another one stopped: one order per line of stdin.

Everything is imported once; then each order forks a process of its own. `snapshot` restores an
engine from a file and runs it to its end; `pays` dies in the middle of a task; `mends` goes on
after a task that failed; `hears` makes the same call again and again, and writes down what it
hears; every other order opens the conversation on the real journal and consumes it until the
named fault point kills the process.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from contextlib import aclosing
from pathlib import Path
from typing import Any

from conversation_scenes import (
    GOAL,
    Coordinator,
    Ledger,
    Llm,
    diamond,
    heard,
    kinds,
    named,
    results_of,
)

from holdfast import Holdfast
from holdfast.conversations.engine import ConversationEngine, EngineEventType, EngineState, SubTask
from holdfast.errors import PermanentError
from holdfast.testing.faults import CountFaults, KillAt

REPORT = "report.json"
LEDGER = "ledger.txt"
HEARD = "heard.txt"


async def opened(app: Holdfast, home: Path) -> ConversationEngine:
    work = Ledger(home / LEDGER).work
    options: dict[str, Any] = {"coordinator": Coordinator(), "llm": Llm()}
    return await ConversationEngine.open(app, "sales", executors={"work": work}, **options)


async def converse(order: dict[str, Any]) -> dict[str, Any]:
    home = Path(order["home"])
    counting = CountFaults()
    faults = KillAt(order["point"], order["nth"]) if "point" in order else counting
    async with Holdfast(home, faults=faults) as app:
        engine = await opened(app, home)
        await heard(engine.run(GOAL))
    return {"state": engine.state, "reached": dict(counting.reached)}


async def paying(app: Holdfast, pay: Any) -> ConversationEngine:
    options: dict[str, Any] = {"llm": Llm([{"id": "p", "type": "pay"}]), "once": ["pay"]}
    return await ConversationEngine.open(app, "pay", executors={"pay": pay}, **options)


async def pay_and_die(order: dict[str, Any]) -> dict[str, Any]:
    home = Path(order["home"])

    async def pay(task: SubTask) -> None:
        Ledger(home / LEDGER).note(task.id)
        os.kill(os.getpid(), signal.SIGKILL)

    async with Holdfast(home) as app:
        await heard((await paying(app, pay)).run(GOAL))
    return {}


class Foresight(Llm):
    """Plans what the ledger does not have: a new turn is for what is left."""

    def __init__(self, ledger: Ledger) -> None:
        super().__init__(
            [
                {"id": "pay", "type": "pay"},
                {"id": "mail", "type": "mail", "dependencies": ["pay"]},
                {"id": "report", "type": "report", "dependencies": ["mail"]},
            ]
        )
        self.ledger = ledger

    async def decompose_goal(self, text: str, **known: Any) -> Any:
        tasks = await super().decompose_goal(text, **known)
        if not self.ledger.counts["pay"]:
            return tasks
        return [{"id": "mail", "type": "mail"}, tasks[2]]


async def mending(app: Holdfast, home: Path) -> ConversationEngine:
    """`pay` must never be repeated, `mail` fails the first time, and `report` depends on it."""
    ledger = Ledger(home / LEDGER)

    async def mail(task: SubTask) -> str:
        ledger.note(task.id)
        if ledger.counts["mail"] == 1:
            raise PermanentError("the mail server is down")
        return "sent"

    executors: dict[str, Any] = {"pay": ledger.work, "mail": mail, "report": ledger.work}
    options: dict[str, Any] = {"llm": Foresight(ledger), "executors": executors, "once": ["pay"]}
    return await ConversationEngine.open(app, "mend", **options)


async def mend(engine: ConversationEngine, home: Path, failed: str) -> None:
    """To the end, as `failed` says after a failure; what is in doubt is looked up in the ledger."""
    while engine.state is not EngineState.COMPLETED:
        if engine.state is EngineState.ERROR:
            engine.resume(failed=failed)
        async with aclosing(engine.run(GOAL)) as events:
            async for event in events:
                if event.event_type is EngineEventType.INTERACTION:
                    happened = Ledger(home / LEDGER).counts["pay"] > 0
                    option = "happened" if happened else "run_again"
                    await engine.answer(str(event.data["requestId"]), option_id=option)


async def mend_and_die(order: dict[str, Any]) -> dict[str, Any]:
    home = Path(order["home"])
    counting = CountFaults()
    faults = KillAt(order["point"], order["nth"]) if "point" in order else counting
    async with Holdfast(home, faults=faults) as app:
        engine = await mending(app, home)
        await mend(engine, home, order["mends"])
    return {"state": engine.state, "reached": dict(counting.reached)}


async def hear(order: dict[str, Any]) -> dict[str, Any]:
    """What any consumer does, whatever happened before; it may die `at` an event, or at the end."""
    home = Path(order["home"])
    counting = CountFaults()
    faults = KillAt(order["point"], order["nth"]) if "point" in order else counting
    async with Holdfast(home, faults=faults) as app:
        engine = await (failing(app, home) if order.get("fails") else opened(app, home))
        before, at = engine.state, order.get("at")
        run = engine.run(order.get("goal", GOAL))
        with (home / HEARD).open("a") as book:
            async for event in run:
                told = [event.event_type.value, dict(event.data)]
                print(json.dumps(told), file=book, flush=True)
                at = None if at is None else at - 1
                if at == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                if event.event_type == order.get("leaves"):
                    await run.aclose()
        if order.get("dies"):
            os.kill(os.getpid(), signal.SIGKILL)
    return {"before": before, "state": engine.state, "reached": dict(counting.reached)}


async def failing(app: Holdfast, home: Path) -> ConversationEngine:
    async def fail(task: SubTask) -> None:
        Ledger(home / LEDGER).note(task.id)
        raise PermanentError("no paper")

    options: dict[str, Any] = {"llm": Llm([{"id": "print", "type": "print"}])}
    return await ConversationEngine.open(app, "fails", executors={"print": fail}, **options)


async def restore(order: dict[str, Any]) -> dict[str, Any]:
    home = Path(order["home"])
    engine = diamond(Ledger(home / LEDGER).work)
    engine.restore_from_snapshot(json.loads(order["snapshot"]))
    state = engine.state
    if order.get("resume"):
        engine.resume()
    events = await heard(engine.run())
    return {
        "before": state,
        "state": engine.state,
        "kinds": kinds(events),
        "started": [one["task_id"] for one in named(events, EngineEventType.TASK_STARTED)],
        "progress": [one["progress"] for one in named(events, EngineEventType.TASK_COMPLETED)],
        "results": results_of(engine),
    }


_LIVES = {"snapshot": restore, "pays": pay_and_die, "mends": mend_and_die, "hears": hear}


def carry_out(order: dict[str, Any]) -> int:
    """The exit status of the process that carried it out, negative for the signal it died of."""
    child = os.fork()
    if child == 0:
        live = next((_LIVES[one] for one in order if one in _LIVES), converse)
        report = asyncio.run(live(order))
        (Path(order["home"]) / REPORT).write_text(json.dumps(report))
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def main() -> None:
    for line in sys.stdin:
        print(carry_out(json.loads(line)), flush=True)


if __name__ == "__main__":
    main()
