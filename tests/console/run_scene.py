"""Runs that the run page's tests look at: one with everything in it, long ones, chats."""

from __future__ import annotations

import json
from typing import Any

from console_plans import Office
from console_scene import Backend, Window

from holdfast.core.run.state import RunState
from holdfast.model.run import RunStatus
from holdfast.testing.model_script import Entry, Seen, call
from holdfast.testing.scripted_model import ScriptedModel

TRIP = """
plan_id: trip
name: Trip to Tokyo
main_task_id: "001"
tasks:
  - {task_id: "001", name: Trip}
  - {task_id: "002", name: Flights}
  - {task_id: "003", name: Weather}
  - {task_id: "004", name: Computer}
listeners:
  - {listener_id: L001, trigger_task_id: "001", trigger_condition: Running, listener_type: code,
     code_snippet: "result = {'success': True, 'flight': 'NH968'}",
     success_output: {task_id: "002", status: Done, context: {flight: "{{result.flight}}"}}}
  - {listener_id: L002, trigger_task_id: "002", trigger_condition: Done, listener_type: tool,
     tool: grant_access, retry: {attempts: 2, initial: 0.001},
     success_output: {task_id: "003", status: Done, context: {sky: "{{result.sky}}"}}}
  - listener_id: L003
    trigger_task_id: "002"
    trigger_condition: Done
    listener_type: tool
    tool: apply_computer
    args: {employee: Will Zhang}
    fields: {computer_model: {type: radio, label: 电脑型号, options: [MacBook Pro, ThinkPad]}}
    success_output: {task_id: "004", status: Done}
  - {listener_id: L004, trigger_task_id: ["003", "004"], listener_type: code,
     trigger_condition: "(003.status == Done or 003.status == Skipped) and 004.status == Done",
     code_snippet: "result = {'success': True}", success_output: {task_id: "001", status: Done}}
"""
"""One step that fails, one that asks, one that waits for both."""

OUTER = """
plan_id: outer
name: Everything for a colleague
main_task_id: "001"
tasks: [{task_id: "001", name: Everything}]
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: plan
    plan_id: computer
    success_output: {task_id: "001", status: Done}
"""

LATER = """
plan_id: later
name: Computer, once the door is open
main_task_id: "001"
tasks:
  - {task_id: "001", name: Computer}
  - {task_id: "002", name: Inside}
listeners:
  - {listener_id: L001, trigger_task_id: "001", trigger_condition: Running, listener_type: tool,
     tool: hold_door, success_output: {task_id: "002", status: Done}}
  - listener_id: L002
    trigger_task_id: "002"
    trigger_condition: Done
    listener_type: tool
    tool: apply_computer
    args: {employee: Will Zhang}
    fields: {computer_model: {type: radio, label: 电脑型号, options: [MacBook Pro, ThinkPad]}}
    success_output: {task_id: "001", status: Done}
"""

TASKS = [
    {"id": "load", "description": "Load the figures", "type": "hold_door", "priority": 1},
    {"id": "sum", "description": "Sum them up", "type": "hold_door", "dependencies": ["load"]},
]


def chain(tasks: int, plan_id: str = "chain") -> str:
    """A plan of so many tasks, each with the listener that leads to it."""
    ids = [f"{one:03}" for one in range(1, tasks + 1)]
    listeners = [
        f'  - {{listener_id: L{to}, trigger_task_id: "{of}", listener_type: code,\n'
        f"     trigger_condition: {'Running' if of == '001' else 'Done'},\n"
        f"     code_snippet: \"result = {{'success': True}}\",\n"
        f'     success_output: {{task_id: "{to}", status: Done}}}}'
        for of, to in zip(ids, [*ids[1:], ids[0]], strict=True)
    ]
    named = [f'  - {{task_id: "{one}", name: Step {one} 审核}}' for one in ids]
    head = f'plan_id: {plan_id}\nname: A chain\nmain_task_id: "001"\n'
    return "\n".join([head + "tasks:", *named, "listeners:", *listeners, ""])


async def trip(office: Office) -> str:
    """A trip that has failed in one step and waits for an answer in another."""
    office.load_plan_text(TRIP)
    instance = await office.plans.start_plan_by_prompt("for Will Zhang", "trip")

    def stuck(state: RunState) -> bool:
        return state.status is RunStatus.ERROR and len(state.open_questions) == 1

    await office.engine.wait_for(instance.id, stuck)
    return instance.id


def _clerk(seen: Seen) -> Entry:
    if seen.results:
        return f"Done: {json.dumps(seen.results[-1].content)}"
    return call("apply_computer", employee=seen.asked, computer_model="ThinkPad")


async def chat(backend: Backend) -> str:
    """A chat with one turn, in which a tool was called."""
    backend.app.models.default_model = ScriptedModel(_clerk)
    backend.app.agent("clerk", name="Clerk", model=None, tools=["apply_computer"])
    session = await backend.app.sessions.open("clerk", by="Will Zhang")
    await backend.app.sessions.say(session.id, "张三", by="Will Zhang")
    await session.wait_until_settled(30)
    return session.id


async def conversation(backend: Backend, window: Window) -> str:
    """A conversation whose first task is under way until the door opens."""
    backend.app.models.default_model = ScriptedModel(lambda seen: call("plan_tasks", tasks=TASKS))
    answer = await window.context.request.post(
        f"{backend.url}/conversations",
        data={"input": "How were the sales?"},
        headers={"Origin": backend.url},
    )
    shown: dict[str, Any] = await answer.json()
    return str(shown["id"])
