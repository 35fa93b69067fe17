"""Processes made to be killed while a run is repaired: an order a line, as for `kill_child`.

Each carries one run from its failure to its end: it starts the plan, consents to the repair if that
is asked, and waits until the run is done. A model may be asked on the way; every request is
noted in the home before it is made, where no kill can undo it.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from kill_child import DEMO, REPORT, die

from holdfast.app import Holdfast
from holdfast.demo.onboarding import WILL_ZHANG
from holdfast.journal.port import QuestionRow
from holdfast.model.message import ModelReply
from holdfast.model.values import JsonObject
from holdfast.runs.handles import PlanInstance
from holdfast.runtime.executor import FaultPoints
from holdfast.source.check import syntax_problems
from holdfast.source.planfile import load_plan
from holdfast.testing.faults import CountFaults, KillAt
from holdfast.testing.repair_models import diagnosing_model
from holdfast.work.models import ModelClient

RUN: Final = "inst_000001"
REQUESTS: Final = "requests"
WHO: Final = "Will Zhang"

ACCESS: Final = """
plan_id: {plan_id}
name: Access for Will Zhang
main_task_id: "001"
inputs: {{id: {{}}, name: {{}}, email: {{}}, department: {{}}}}
repair:
  mode: {mode}
  tools: [create_employee_profile, query_profile]
  write: {write}
  most: {{requests: {most}}}
tasks: [{{task_id: "001"}}, {{task_id: "002"}}, {{task_id: "003"}}]
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: tool
    tool: grant_access
    args: {{employee_id: "{{001.context.id}}"}}
    success_output: {{task_id: "002", status: Done, context: {{badge: "{{{{result.badge}}}}"}}}}
  - listener_id: L002
    trigger_task_id: "002"
    trigger_condition: Done
    listener_type: tool
    tool: send_email
    args: {{to: "{{001.context.email}}", subject: Welcome, content: "Badge {{002.context.badge}}"}}
    success_output: {{task_id: "003", status: Done}}
  - listener_id: L003
    trigger_task_id: "003"
    trigger_condition: Done
    listener_type: code
    code_snippet: "result = {{'success': True}}"
    success_output: {{task_id: "001", status: Done}}
"""

ABOVE: Final = """
plan_id: above
name: The first day of Will Zhang
main_task_id: "001"
inputs: {id: {}, name: {}, email: {}, department: {}}
tasks: [{task_id: "001"}]
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: plan
    plan_id: by_rules
    values:
      id: "{001.context.id}"
      name: "{001.context.name}"
      email: "{001.context.email}"
      department: "{001.context.department}"
    success_output: {task_id: "001", status: Done}
"""

MOST: Final = {"by_rules": 0, "chosen": 1, "written": 2, "above": 0, "by_itself": 0}
"""By plan how often a model may be asked. `chosen`: it chooses among what rules have found;
`written`: none of that fits, and it writes the repair itself. `above` has `by_rules` below it;
`by_itself` lets rules read a result under another name, and asks nobody."""

PROFILE: Final[JsonObject] = {
    "op": "insert_before",
    "listener_id": "L001",
    "task": {"task_id": "R1", "name": "Profile"},
    "listener": {
        "listener_id": "R1",
        "listener_type": "tool",
        "tool": "create_employee_profile",
        "args": {key: f"{{001.context.{key}}}" for key in WILL_ZHANG},
    },
}


class CountedModel(ModelClient):
    """Notes each request in the home before it is made."""

    def __init__(self, plan: str, home: Path, faults: FaultPoints | None) -> None:
        patches = {"no employee": [PROFILE]} if plan == "written" else None
        super().__init__(default_model=diagnosing_model(patches=patches))
        self._home, self._faults = home, faults

    async def request(self, *asked: Any, **more: Any) -> ModelReply:
        with (self._home / REQUESTS).open("ab", buffering=0) as noted:
            noted.write(b".")
        self._reach("request.before")
        reply = await super().request(*asked, **more)
        self._reach("request.after")
        return reply

    def _reach(self, point: str) -> None:
        if self._faults is not None:
            self._faults.reach(point)


def requests(home: Path) -> int:
    """How often a model was asked, by whichever process."""
    noted = home / REQUESTS
    return len(noted.read_bytes()) if noted.exists() else 0


class Furniture:
    """The office's tools and the plans that need a repair, read once for any number of apps."""

    def __init__(self, url: str) -> None:
        self._model = Holdfast.in_memory()
        self._model.load_tools(DEMO / "tools.yaml", {"OFFICE_URL": url})
        # Without the sandbox's own look at snippets: it starts threads, and we fork.
        known = self._model.catalog(also=["by_rules"])
        catalog = replace(known, snippet_checker=syntax_problems)
        self._plans = [load_plan(text, "<test>", catalog) for text in _texts()]

    def app(self, home: Path, plan: str, faults: FaultPoints | None = None) -> Holdfast:
        asks = MOST[plan] > 0
        model = CountedModel(plan, home, faults) if asks else None
        app = Holdfast(home, faults=faults, model=model, max_retry_count=0)
        for name in self._model.tools:
            app.tools.add(self._model.tools.get(name))
        for one in self._plans:
            app.add_plan(one)
        return app

    async def close(self) -> None:
        """Close the connections that the tools have opened on this loop."""
        async with self._model:
            pass


def _texts() -> list[str]:
    access = [name for name in MOST if name != "above"]
    return [*(_access(name) for name in access), ABOVE]


def _access(name: str) -> str:
    mode = "auto\n  auto: [rename]" if name == "by_itself" else "propose"
    write = str(name == "written").lower()
    return ACCESS.format(plan_id=name, mode=mode, write=write, most=MOST[name])


async def begun(app: Holdfast, plan: str) -> PlanInstance:
    """The run, which may have been begun by a process that is gone."""
    if await app.runs():
        return await app.instance(RUN)
    return await app.plans.start_plan_by_prompt("门禁", plan, values=WILL_ZHANG)


async def finished(
    app: Holdfast, instance: PlanInstance, answer: Callable[[QuestionRow], Awaitable[object]]
) -> None:
    """Returns when the run is done; what is asked on the way is answered."""
    while await instance.wait_for_completion(0.02) != "done":
        await asyncio.sleep(0.005)
        for question in await app.inbox():
            await answer(question)


async def consent(app: Holdfast, order: dict[str, Any], question: QuestionRow) -> None:
    if order.get("die") == "proposed":
        die()
    await app.answer(question.question_id, option_id="apply", by=WHO)
    if order.get("die") == "answered":
        die()


async def live(furniture: Furniture, order: dict[str, Any]) -> None:
    counting, home = CountFaults(), Path(order["home"])
    faults = KillAt(order["point"], order["nth"]) if "point" in order else counting
    async with asyncio.timeout(60), furniture.app(home, order["plan"], faults) as app:
        instance = await begun(app, order["plan"])
        await finished(app, instance, partial(consent, app, order))
    report = {"status": instance.status, "reached": dict(counting.reached)}
    (home / REPORT).write_text(json.dumps(report))


def carry_out(furniture: Furniture, order: dict[str, Any]) -> int:
    """The exit status of the process that carried it out, negative for the signal it died of."""
    child = os.fork()
    if child == 0:
        asyncio.run(live(furniture, order))
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def main() -> None:
    furniture = Furniture(sys.argv[1])
    for line in sys.stdin:
        print(carry_out(furniture, json.loads(line)), flush=True)


if __name__ == "__main__":
    main()
