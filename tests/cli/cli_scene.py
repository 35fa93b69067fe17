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


@dataclass(frozen=True, slots=True)
class Ending:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Command = Callable[..., Ending]


def command_line(*arguments: str) -> list[str]:
    return [sys.executable, "-c", "from holdfast.cli import main; main()", *arguments]


def environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "CI"}
