"""An office to serve: a plan that asks, a plan that fails, a clerk who asks before paying, and a
goal of three tasks.

    cd examples
    holdfast serve office:app

It needs no key: without HOLDFAST_MODEL a scripted model plays the clerk. The badge office is
closed until there is a file `badge-office-is-open` where the server runs.
"""

from __future__ import annotations

import os
from pathlib import Path

from pydantic import SecretStr

from holdfast import Holdfast
from holdfast.errors import ToolError
from holdfast.testing.model_script import Entry, Seen, call
from holdfast.testing.scripted_model import ScriptedModel

APPLY_COMPUTER = """\
plan_id: apply_computer
name: Computer for a colleague
main_task_id: "001"
inputs:
  name: {type: text, label: 姓名, default: 张三}
tasks:
  - {task_id: "001", name: Computer for a colleague}
  - {task_id: "002", name: Ordered}
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: 001.status == Running
    listener_type: tool
    tool: apply_computer
    args: {employee: "{001.context.name}"}
    fields:
      computer_model:
        type: radio
        label: 电脑型号
        options: [MacBook Pro, ThinkPad X1]
    success_output: {task_id: "002", status: Done, context: {order: "{{result.order_id}}"}}
  - listener_id: L002
    trigger_task_id: "002"
    trigger_condition: Done
    listener_type: code
    code_snippet: "result = {'success': True}"
    success_output: {task_id: "001", status: Done}
"""

ONE_CALL = """\
plan_id: {tool}
name: {name}
main_task_id: "001"
tasks:
  - {{task_id: "001", name: {name}}}
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: tool
    tool: {tool}
    args: {{employee: Will Zhang}}
    retry: {{attempts: 1}}
    success_output: {{task_id: "001", status: Done}}
"""


WELCOME = [
    {
        "id": "computer",
        "description": "Order a computer",
        "type": "apply_computer",
        "args": {"employee": "Will Zhang", "computer_model": "ThinkPad X1"},
    },
    {
        "id": "badge",
        "description": "Print a badge",
        "type": "print_badge",
        "args": {"employee": "Will Zhang"},
        "dependencies": ["computer"],
    },
    {"id": "letter", "description": "Write a welcome letter", "dependencies": ["badge"]},
]


def clerk(seen: Seen) -> Entry:
    if any(one.name == "plan_tasks" for one in seen.tools):
        return call("plan_tasks", tasks=WELCOME)
    if not seen.tools:
        return "The computer is ordered."
    if not seen.results:
        return call("pay", to="Will Zhang", amount=42)
    return "Then I pay nothing." if seen.results[-1].failed else "Paid 42 to Will Zhang."


app = Holdfast(model=os.environ.get("HOLDFAST_MODEL") or ScriptedModel(clerk))
app.planner_agent.max_retry_count = 0


@app.tool
async def apply_computer(employee: str, computer_model: str) -> dict[str, str]:
    """Order a computer."""
    return {"order_id": f"{computer_model} for {employee}"}


@app.tool
def print_badge(employee: str) -> dict[str, str]:
    """Print somebody's badge."""
    if not Path("badge-office-is-open").exists():
        raise ToolError("the badge office is closed")
    return {"badge": employee}


@app.tool
async def unlock_safe(employee: str, pin: SecretStr) -> dict[str, int]:
    """Open the safe for somebody."""
    return {"digits": len(pin.get_secret_value())}


@app.tool(approval="require")
async def pay(to: str, amount: int) -> dict[str, int]:
    """Pay an amount to somebody."""
    return {"paid": amount}


app.load_plan_text(APPLY_COMPUTER)
app.load_plan_text(ONE_CALL.format(tool="print_badge", name="Badge for a colleague"))
app.load_plan_text(ONE_CALL.format(tool="unlock_safe", name="Something from the safe"))
app.agent("clerk", name="Clerk", system_context="You pay invoices.", tools=["pay"])
