"""Trees of runs that have failed alike: access at several doors for an employee whom HR does not
know, each door opened by a child run whose repair would have HR told."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any

from repair_scenes import WHO, proposal

from holdfast.app import Holdfast
from holdfast.errors import PermanentError
from holdfast.journal.port import QuestionRow
from holdfast.model.rows import request_of
from holdfast.runs.handles import PlanInstance

HR = "create_employee_profile"
WARNING = f"R1 would call {HR} again: another run of this tree"
REFUSED = f"{HR} was called since the repair was proposed: nothing was changed"

DOOR = """
plan_id: door
name: A door
main_task_id: "001"
inputs: {id: {}, name: {}}
repair: {tools: [create_employee_profile, print_badge]}
tasks: [{task_id: "001"}]
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: tool
    tool: grant_access
    args: {employee_id: "{001.context.id}"}
    success_output: {task_id: "001", status: Done}
"""


def building(doors: int) -> str:
    """A plan that has so many doors opened at once."""
    tasks = ", ".join(f'{{task_id: "1{number}"}}' for number in range(doors))
    done = " && ".join(f"1{number}.status == Done" for number in range(doors))
    opened = "".join(
        f"""
  - listener_id: P{number}
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: plan
    plan_id: door
    values: {{id: "{{001.context.id}}", name: "{{001.context.name}}"}}
    success_output: {{task_id: "1{number}", status: Done}}"""
        for number in range(doors)
    )
    return f"""
plan_id: building
name: A building
main_task_id: "001"
inputs: {{id: {{}}, name: {{}}}}
tasks: [{{task_id: "001"}}, {tasks}]
listeners:{opened}
  - listener_id: L009
    trigger_task_id: "{",".join(f"1{number}" for number in range(doors))}"
    trigger_condition: "{done}"
    listener_type: code
    code_snippet: "result = {{'success': True}}"
    success_output: {{task_id: "001", status: Done}}
"""


class Offices:
    """HR, doors and badges of all processes: `done` counts calls by tool and employee. HR knows
    nobody of `unknown`, and refuses to."""

    def __init__(self) -> None:
        self.known: set[str] = set()
        self.unknown: set[str] = set()
        self.done: Counter[tuple[str, str]] = Counter()

    def furnish(self, app: Holdfast, doors: int = 2, *, approval: str = "auto") -> Holdfast:
        async def create_employee_profile(id: str, name: str) -> dict[str, str]:  # noqa: A002
            self.done[HR, id] += 1
            if id in self.unknown:
                raise PermanentError("HR is closed for them")
            self.known.add(id)
            return {"employee_id": id}

        @app.tool
        async def print_badge(id: str) -> dict[str, str]:  # noqa: A002
            self.done["print_badge", id] += 1
            return {"badge": id}

        @app.tool(idempotent=True)
        async def grant_access(employee_id: str) -> dict[str, str]:
            if employee_id not in self.known:
                raise PermanentError(f"HR has no employee {employee_id}: create the profile first")
            return {"badge": f"badge of {employee_id}"}

        app.tool(create_employee_profile, approval=approval)
        app.load_plan_text(DOOR)
        app.load_plan_text(building(doors))
        return app


async def failed_trees(
    app: Holdfast, employees: Sequence[str], doors: int = 2
) -> list[tuple[PlanInstance, list[QuestionRow]]]:
    """For each employee a building, and the questions about the repairs of its doors."""

    async def one(employee: str) -> tuple[PlanInstance, list[QuestionRow]]:
        values = {"id": employee, "name": WHO}
        instance = await app.plans.start_plan_by_prompt("", "building", values=values)
        doors_of = [f"{instance.id}.P{number}.1" for number in range(doors)]
        return instance, list(await asyncio.gather(*(proposal(app, one) for one in doors_of)))

    return await asyncio.gather(*map(one, employees))


def warnings(question: QuestionRow) -> str:
    told: Any = request_of(question).context["warnings"]
    return " ".join(told)
