"""What the command line's tests work with: plans, an application, and how commands end."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

ASK = """
plan_id: ask
name: 询问 (ask)
main_task_id: "001"
tasks:
  - {task_id: "001", name: 主任务}
  - {task_id: "002", name: 填表 (form)}
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: "001.status == Running"
    listener_type: human
    title: 张三的信息
    form:
      count: {type: number, label: 数量, integer: true, validation: {min: 1, max: 5}}
      agreed: {type: boolean, label: 同意}
      kinds: {type: multiselect, label: 种类, options: [{value: a, label: A}, {value: b, label: B}]}
      word: {type: text, label: 口令, required: false}
    success_output: {task_id: "002", status: Done, context: {count: "{{result.count}}"}}
  - listener_id: L002
    trigger_task_id: "002"
    trigger_condition: Done
    listener_type: code
    code_snippet: "result = {'success': True}"
    success_output: {task_id: "001", status: Done}
"""

GREET = """
plan_id: greet
name: Greet
main_task_id: "001"
inputs:
  name: {type: text, label: 姓名}
  times: {type: number, label: 次数, default: 1, validation: {min: 1, max: 9}}
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

OUTER = """
plan_id: outer
name: Outer
main_task_id: "001"
tasks:
  - {task_id: "001", name: Outer}
  - {task_id: "002", name: Asked}
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: "001.status == Running"
    listener_type: plan
    plan_id: ask
    success_output: {task_id: "002", status: Done}
  - listener_id: L002
    trigger_task_id: "002"
    trigger_condition: Done
    listener_type: code
    code_snippet: "result = {'success': True}"
    success_output: {task_id: "001", status: Done}
"""

CALL = """
plan_id: call_{tool}
name: Call {tool}
main_task_id: "001"
tasks:
  - {{task_id: "001", name: Call {tool}}}
  - {{task_id: "002", name: Called}}
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: "001.status == Running"
    listener_type: tool
    tool: {tool}
    args: {{who: 张三}}
    retry: {{attempts: 1}}
    success_output: {{task_id: "002", status: Done}}
  - listener_id: L002
    trigger_task_id: "002"
    trigger_condition: Done
    listener_type: code
    code_snippet: "result = {{'success': True}}"
    success_output: {{task_id: "001", status: Done}}
"""

APPLICATION = """
import asyncio
from pathlib import Path

from holdfast import Holdfast

HERE = Path(__file__).parent
app = Holdfast(HERE / "kept", max_retry_count=0)


@app.tool(approval="require")
async def pay(who: str) -> dict:
    return {"paid": who}


@app.tool
async def shaky(who: str) -> dict:
    if not (HERE / "mended").exists():
        raise RuntimeError("out of order")
    return {"who": who}


@app.tool
async def slow(who: str) -> dict:
    (HERE / "slow.begun").touch()
    while not (HERE / "go").exists():
        await asyncio.sleep(0.02)
    return {"who": who}


app.load_plans(HERE / "calls")
"""

DESK = """
import asyncio
from pathlib import Path

from holdfast import Holdfast
from holdfast.model.interaction import Asking
from holdfast.testing.model_script import call, say
from holdfast.testing.scripted_model import ScriptedModel

HERE = Path(__file__).parent


def reply(seen):
    said = seen.asked
    if seen.results:
        return "Done: " + "; ".join(f"{one.tool} {one.content}" for one in seen.results)
    if "delegate" in said:
        return call("ask_clerk", task="pay")
    if "pay twice" in said:
        return say("Two payments.", call("pay", amount=5), call("pay", amount=7))
    if "pay" in said:
        return say("Let me pay.", call("pay", amount=5, to="张三"))
    if "order" in said:
        return call("order")
    if "which" in said:
        return call("ask_person", question="Which?\\nRun pay?", options=["red", "blue"])
    if "slow" in said:
        return call("slow")
    return f"You said: {said}"


async def pay(amount: int, to: str = "nobody") -> dict:
    with (HERE / "paid").open("a", encoding="utf-8") as log:
        log.write(f"{amount} {to}\\n")
    return {"paid": amount}


async def order(item: str, count: int) -> dict:
    return {"ordered": [item] * count}


async def slow() -> dict:
    (HERE / "slow.begun").touch()
    while not (HERE / "go").exists():
        await asyncio.sleep(0.02)
    return {}


HURRIED = Asking(
    role="cashier", timeout_seconds=7200, reminders=(60,), escalate_after=3600, escalate_to="boss"
)


def app():
    made = Holdfast(HERE / "kept", model=ScriptedModel(reply))
    made.tool(pay, approval="require")
    made.tool(order)
    made.tool(slow)
    made.agent("clerk", name="Clerk", tools=["pay", "order", "slow"], asks_people=True)
    made.agent("chief", agents=["clerk"])
    made.agent("teller", tools=["pay"], asking=HURRIED)
    return made
"""

GOALS = """
import asyncio
from pathlib import Path

from holdfast import Holdfast
from holdfast.testing.model_script import call
from holdfast.testing.scripted_model import ScriptedModel

HERE = Path(__file__).parent
TASKS = {
    "pay": [{"id": "pay", "description": "Pay", "type": "pay", "args": {"amount": 5}}],
    "order": [
        {"id": "order", "description": "Order tea", "type": "order", "args": {"item": "tea"}},
        {"id": "thanks", "description": "Say thanks", "priority": 5},
        {"id": "bill", "description": "Write a bill", "dependencies": ["order"]},
    ],
    "break": [{"id": "mend", "description": "Mend it", "type": "shaky"}],
    "delegate": [{"id": "hand over", "description": "please pay", "type": "clerk"}],
    "slow": [
        {"id": "wait", "description": "Wait", "type": "slow"},
        {"id": "write", "description": "Write it up", "dependencies": ["wait"]},
    ],
    "careful": [{"id": "wait", "description": "Wait", "type": "careful"}],
    "circle": [{"id": "a", "description": "a", "dependencies": ["a"]}],
}
SALES = [
    {"id": "collect", "description": "收集销售数据", "type": "fetch_sales",
     "args": {"month": "2025-10"}},
    {"id": "trend", "description": "分析趋势", "dependencies": ["collect"]},
    {"id": "report", "description": "写报告", "dependencies": ["trend"]},
]


def reply(seen):
    with (HERE / "prompts").open("a", encoding="utf-8") as log:
        log.write(seen.system + "\\n")
    if seen.results:
        return f"Done: {seen.results[-1].content}"
    if any(tool.name == "plan_tasks" for tool in seen.tools):
        tasks = next((some for word, some in TASKS.items() if word in seen.asked), SALES)
        return call("plan_tasks", tasks=tasks)
    if seen.tools:
        return call("pay", amount=7)
    return f"{seen.asked}: 完成\\n(whole)"


async def fetch_sales(month: str) -> dict:
    return {"month": month, "total": 4200}


async def pay(amount: int) -> dict:
    with (HERE / "paid").open("a", encoding="utf-8") as log:
        log.write(f"{amount}\\n")
    return {"paid": amount}


async def order(item: str, count: int) -> dict:
    return {"ordered": [item] * count}


async def shaky() -> dict:
    if not (HERE / "mended").exists():
        raise RuntimeError("out of order")
    return {"mended": True}


async def slow() -> dict:
    with (HERE / "slow.begun").open("a", encoding="utf-8") as log:
        log.write("x")
    while not (HERE / "go").exists():
        await asyncio.sleep(0.02)
    return {"waited": True}


def app():
    made = Holdfast(HERE / "kept", model=ScriptedModel(reply))
    made.tool(fetch_sales, idempotent=True)
    made.tool(pay, approval="require")
    made.tool(order)
    made.tool(shaky)
    made.tool(slow, idempotent=True)
    made.tool(slow, name="careful")
    made.agent("clerk", name="Clerk", tools=["pay"])
    return made
"""


@dataclass(frozen=True, slots=True)
class Ending:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def events(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


Command = Callable[..., Ending]


def command_line(*arguments: str) -> list[str]:
    return [sys.executable, "-c", "from holdfast.cli import main; main()", *arguments]


LOCALE = ("LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG")
"""What names the reader's language: without them it is English."""


def environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in ("CI", *LOCALE)}
