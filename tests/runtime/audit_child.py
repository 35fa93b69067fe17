"""Processes made to be killed while somebody acts: each line on stdin is where to die.

Every order forks a process of its own, which starts a plan and answers its question on
behalf of somebody, each under a claim, until the named fault point kills it.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from scenes import plan

from holdfast.app import Holdfast
from holdfast.journal.port import Attached, ExpiringValue
from holdfast.model import commands as c
from holdfast.runtime.executor import FaultPoints
from holdfast.runtime.identity import Claim, Identity, acting
from holdfast.testing.faults import CountFaults, KillAt

REPORT = "report.json"
SECRET = ExpiringValue("secret", "s", "ciphertext")

ASKS = """
plan_id: asks
name: Asks
main_task_id: "001"
tasks: [{task_id: "001"}]
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: human
    title: Which one?
    form: {model: {type: text, label: Model}}
    success_output: {task_id: "001", status: Done}
"""


def furnished(home: Path, faults: FaultPoints | None = None) -> Holdfast:
    app = Holdfast(home, faults=faults)
    app.add_plan(plan(ASKS))
    return app


async def live(order: dict[str, Any]) -> None:
    counting = CountFaults()
    faults = KillAt(order["point"], order["nth"]) if "point" in order else counting
    home = Path(order["home"])
    async with furnished(home, faults) as app:
        with acting(Identity("will.zhang", claim=Claim("start", "print"))):
            instance = await app.plans.start_plan_by_prompt("", "asks")
        await instance.wait_until_settled(20)
        [question] = await app.inbox()
        with acting(Identity("will.zhang", claim=Claim("answer", "print"))):
            command = c.Answer(question.question_id, "will.zhang", data={"model": "X1"})
            await app.engine.submit(instance.id, command, attached=Attached(kept=[SECRET]))
        await instance.wait_for_completion(20)
    (home / REPORT).write_text(json.dumps(counting.reached))


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
