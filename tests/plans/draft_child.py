"""Processes made to be killed while a plan is drawn up, approved and run.

Each line on stdin is an order: a home, and the place to die in. A process of its own is forked for
it, which opens the home, goes on with the run there or begins it, and answers everything that is
asked. One line per order tells how that process ended.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from drafting_office import REQUESTS, Office, Person, see_through

from holdfast import Holdfast
from holdfast.model.retry import RetryPolicy
from holdfast.repair.sketch import SKETCH_PLAN
from holdfast.runtime.executor import FaultPoints
from holdfast.testing.faults import CountFaults, KillAt
from holdfast.testing.model_script import Entry, Seen, call
from holdfast.testing.scripted_model import ScriptedModel
from holdfast.work.models import ModelClient

REQUEST = REQUESTS["onboarding"]
REPORT = "report.json"
USELESS = call(SKETCH_PLAN, goal="x", steps=[{"id": "s1", "tool": "no_such_tool"}])


def model(home: Path, *, fatal: bool = False) -> ScriptedModel:
    """Sketches well when it is asked again; each request is a line in a file."""

    def reply(seen: Seen) -> Entry:
        with (home / "requests").open("a", encoding="utf-8") as log:
            log.write("asked\n")
        if fatal:
            os.kill(os.getpid(), signal.SIGKILL)
        again = "What was wrong with your last sketch" in seen.asked
        return call(SKETCH_PLAN, **REQUEST.sketch) if again else USELESS

    return ScriptedModel(reply)


def application(home: Path, faults: FaultPoints | None = None, *, fatal: bool = False) -> Holdfast:
    home.mkdir(parents=True, exist_ok=True)
    client = ModelClient(default_model=model(home, fatal=fatal), retry=RetryPolicy(attempts=1))
    app = Holdfast(home, model=client, faults=faults, max_retry_count=0)
    return Office(home / "calls").furnish(app)


async def live(order: dict[str, Any]) -> None:
    home, counting = Path(order["home"]), CountFaults()
    faults = KillAt(order["point"], order["nth"]) if "point" in order else counting
    async with application(home, faults, fatal=bool(order.get("fatal"))) as app:
        runs = [row for row in await app.runs() if row.parent_id is None]
        if runs:
            instance = await app.instance(runs[0].run_id)
        else:
            instance = await app.plans.start_plan_by_prompt(REQUEST.text)
        status = await see_through(app, instance, Person())
    report = {"status": status, "reached": dict(counting.reached)}
    (home / REPORT).write_text(json.dumps(report))


def carry_out(order: dict[str, Any]) -> int:
    """The exit status of the process that carried it out, negative for the signal it died of."""
    child = os.fork()
    if child == 0:
        asyncio.run(live(order))
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def main() -> None:
    for line in sys.stdin:
        print(carry_out(json.loads(line)), flush=True)


if __name__ == "__main__":
    main()
