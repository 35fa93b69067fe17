"""The plans that the console's tests look at, and the tools they call."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from holdfast import Holdfast
from holdfast.core.plan.state import PlanState
from holdfast.model.run import RunStatus

GREET = """
plan_id: greet
name: Greet a colleague
main_task_id: "001"
tasks:
  - {task_id: "001", name: Greet}
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: "001.status == Running"
    listener_type: code
    code_snippet: "result = {'success': True}"
    success_output: {task_id: "001", status: Done}
"""

HOLD = """
plan_id: hold
name: Hold the door
main_task_id: "001"
tasks:
  - {task_id: "001", name: Held}
  - {task_id: "002", name: Opened}
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: "001.status == Running"
    listener_type: tool
    tool: hold_door
    success_output: {task_id: "002", status: Done}
  - {listener_id: L002, trigger_task_id: "002", trigger_condition: Done, listener_type: code,
     code_snippet: "result = {'success': True}", success_output: {task_id: "001", status: Done}}
"""

COMPUTER = """
plan_id: computer
name: Computer for a colleague
main_task_id: "001"
inputs: {name: {type: text, label: 姓名, default: 张三}}
tasks:
  - {task_id: "001", name: Computer for a colleague}
  - {task_id: "002", name: Ordered}
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: "001.status == Running"
    listener_type: tool
    tool: apply_computer
    args: {employee: "{001.context.name}"}
    fields:
      computer_model:
        type: radio
        label: 电脑型号
        options:
          - {value: MacBook Pro, label: MacBook Pro 14寸, price: "¥18,999"}
          - {value: ThinkPad, label: ThinkPad X1, price: "¥12,999"}
    success_output: {task_id: "002", status: Done}
  - {listener_id: L002, trigger_task_id: "002", trigger_condition: Done, listener_type: code,
     code_snippet: "result = {'success': True}", success_output: {task_id: "001", status: Done}}
"""

BREAK = """
plan_id: fragile
name: Grant access
main_task_id: "001"
tasks:
  - {task_id: "001", name: Access}
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: "001.status == Running"
    listener_type: tool
    tool: grant_access
    retry: {attempts: 2, initial: 0.001}
    success_output: {task_id: "001", status: Done}
"""


class Door:
    """A tool that takes as long as the test wants."""

    def __init__(self) -> None:
        self.opened = asyncio.Event()


class Office(Holdfast):
    """An application in memory, with its door and a switch that makes `grant_access` fail."""

    door: Door
    broken: bool


def an_office(**options: Any) -> Office:
    office = Office.in_memory(max_retry_count=0, **options)
    office.door, office.broken = Door(), True

    @office.tool(idempotent=True)
    async def hold_door() -> dict[str, Any]:
        await office.door.opened.wait()
        return {"success": True}

    @office.tool
    async def apply_computer(employee: str, computer_model: str) -> dict[str, Any]:
        return {"success": True, "order_id": "PO-1", "for": employee, "model": computer_model}

    @office.tool(idempotent=True)
    async def grant_access() -> dict[str, Any]:
        if office.broken:
            return {"success": False, "error": "503: the access service is out of order"}
        return {"success": True}

    for text in (GREET, HOLD, COMPUTER, BREAK):
        office.load_plan_text(text)
    return office


async def started(
    app: Holdfast, plan_id: str, *statuses: RunStatus, values: Mapping[str, Any] | None = None
) -> str:
    """A run's id, once it has come to one of these statuses."""
    instance = await app.plans.start_plan_by_prompt(plan_id, plan_id)
    wanted = statuses or (RunStatus.DONE,)

    def came(state: PlanState) -> bool:
        return state.status in wanted

    await app.engine.wait_for(instance.id, came)
    return instance.id
