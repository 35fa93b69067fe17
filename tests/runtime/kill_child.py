"""Processes made to be killed: each line on stdin is a run to begin and the place to die in.

Everything is imported and every plan read once; then each order forks a process of its own,
which opens the real journal, starts the plan and goes on until the named fault point kills
it. One line per order tells how that process ended.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import holdfast.demo
from holdfast.app import Holdfast
from holdfast.runs.handles import PlanInstance
from holdfast.runtime.executor import FaultPoints
from holdfast.source.check import syntax_problems
from holdfast.source.planfile import load_plan
from holdfast.testing.faults import CountFaults, KillAt

DEMO = Path(holdfast.demo.__file__).parent
REPORT = "report.json"

WITH_SUB_PLAN = """
plan_id: welcome
name: Welcome
main_task_id: "001"
tasks: [{task_id: "001"}, {task_id: "002"}, {task_id: "003"}]
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: plan
    plan_id: desk
    values: {name: Will Zhang}
    success_output: {task_id: "002", status: Done, context: {order: "{{result.order}}"}}
  - listener_id: L002
    trigger_task_id: "002"
    trigger_condition: Done
    listener_type: tool
    tool: send_email
    args: {to: will.zhang@example.com, subject: Welcome, content: "Your order: {002.context.order}"}
    success_output: {task_id: "003", status: Done}
  - listener_id: L003
    trigger_task_id: "003"
    trigger_condition: Done
    listener_type: code
    code_snippet: "result = {'success': True}"
    success_output: {task_id: "001", status: Done}
"""

SUB_PLAN = """
plan_id: desk
name: A desk
main_task_id: "001"
tasks: [{task_id: "001"}, {task_id: "002"}]
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: tool
    tool: apply_computer
    args: {employee: "{001.context.name}", computer_model: MacBook Pro}
    success_output: {task_id: "002", status: Done, context: {order: "{{result.order_id}}"}}
  - listener_id: L002
    trigger_task_id: "002"
    trigger_condition: Done
    listener_type: code
    code_snippet: "result = {'success': True, 'context': {'order': context['002']['order']}}"
    success_output: {task_id: "001", status: Done}
"""


class Furniture:
    """The tools and plans of the office at `url`, read once and put into any number of apps."""

    def __init__(self, url: str) -> None:
        self._model = Holdfast.in_memory()
        self._model.load_tools(DEMO / "tools.yaml", {"OFFICE_URL": url})
        texts = [file.read_text(encoding="utf-8") for file in (DEMO / "plans").glob("*.yaml")]
        # Without the sandbox's own look at snippets: it starts threads, and we fork.
        catalog = replace(self._model.catalog(also=["desk"]), snippet_checker=syntax_problems)
        plans = (*texts, SUB_PLAN, WITH_SUB_PLAN)
        self._plans = [load_plan(text, "<test>", catalog) for text in plans]

    def app(self, home: str | Path, faults: FaultPoints | None = None) -> Holdfast:
        app = Holdfast(home, faults=faults)
        for name in self._model.tools:
            app.tools.add(self._model.tools.get(name))
        for plan in self._plans:
            app.add_plan(plan)
        return app

    async def close(self) -> None:
        """Close the connections that the tools have opened on this loop."""
        async with self._model:
            pass


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


async def live(furniture: Furniture, order: dict[str, Any]) -> None:
    counting = CountFaults()
    faults = KillAt(order["point"], order["nth"]) if "point" in order else counting
    async with furniture.app(order["home"], faults) as app:
        instance = await app.plans.start_plan_by_prompt("入职", order["plan"])
        status = await instance.wait_until_settled(20)
        if order.get("die") == "paused":
            die()
        if order.get("die") == "answered":
            await answer(app, instance)
            die()
    report = {"status": status, "reached": dict(counting.reached)}
    (Path(order["home"]) / REPORT).write_text(json.dumps(report))


async def answer(app: Holdfast, instance: PlanInstance) -> None:
    [question] = await app.inbox()
    data = {"computer_model": "ThinkPad X1"}
    await app.answer(question.question_id, data=data, by="will.zhang")


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
