"""Runs whose repair waits for consent: access is granted to Will Zhang, whom HR does not know.

HR, access and mail are in this process; `Staff` notes what they are told to do.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence

from holdfast.app import Holdfast
from holdfast.errors import PermanentError
from holdfast.journal.port import QuestionQuery, QuestionRow
from holdfast.model.rows import request_of
from holdfast.runs.handles import PlanInstance

WHO = "Will Zhang"
RULE = "rule:made_first"
"""Where the proposal comes from that is made of this failure."""

ACCESS = """
plan_id: access
name: Access
main_task_id: "001"
inputs: {id: {}, name: {}}
repair: {tools: [create_employee_profile]}
tasks: [{task_id: "001"}, {task_id: "002"}, {task_id: "003"}]
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: tool
    tool: grant_access
    args: {employee_id: "{001.context.id}"}
    success_output: {task_id: "002", status: Done, context: {badge: "{{result.badge}}"}}
  - listener_id: L002
    trigger_task_id: "002"
    trigger_condition: Done
    listener_type: tool
    tool: send_email
    args: {to: "{001.context.name}", content: "{002.context.badge}"}
    success_output: {task_id: "003", status: Done}
  - listener_id: L003
    trigger_task_id: "003"
    trigger_condition: Done
    listener_type: code
    code_snippet: "result = {'success': True}"
    success_output: {task_id: "001", status: Done}
"""


class Staff:
    """`known` are the employees that HR has; `done` counts calls by tool and what they are about,
    also those that were refused."""

    def __init__(self) -> None:
        self.known: set[str] = set()
        self.done: Counter[tuple[str, str]] = Counter()

    def counts(self, employee: str) -> dict[str, int]:
        return {tool: n for (tool, about), n in self.done.items() if about == employee}

    def furnish(self, app: Holdfast, version: str = "") -> Holdfast:
        """With the tools, HR's in this version, and the plan."""
        self.employ(app, version)

        @app.tool
        async def grant_access(employee_id: str) -> dict[str, str]:
            self.done["grant_access", employee_id] += 1
            if employee_id not in self.known:
                raise PermanentError(f"HR has no employee {employee_id}: create the profile first")
            return {"badge": f"badge of {employee_id}"}

        @app.tool
        async def send_email(to: str, content: str) -> dict[str, str]:
            self.done["send_email", content.removeprefix("badge of ")] += 1
            return {"to": to}

        app.load_plan_text(ACCESS)
        return app

    def employ(self, app: Holdfast, version: str = "") -> None:
        """HR's tool, in the place of any that is there."""

        async def create_employee_profile(id: str, name: str) -> dict[str, str]:  # noqa: A002
            self.done["create_employee_profile", id] += 1
            self.known.add(id)
            return {"employee_id": id}

        app.tool(create_employee_profile, idempotent=True, version=version, replace=True)


REPAIRED = {"grant_access": 2, "create_employee_profile": 1, "send_email": 1}
UNREPAIRED = {"grant_access": 1}


async def given_up(app: Holdfast, employees: Sequence[str]) -> list[tuple[PlanInstance, str]]:
    """For each employee a run that has failed, and the question about its repair."""

    async def one(employee: str) -> tuple[PlanInstance, str]:
        values = {"id": employee, "name": WHO}
        instance = await app.plans.start_plan_by_prompt("", "access", values=values)
        assert await instance.wait_for_completion(120) == "error"
        return instance, (await proposal(app, instance.id)).question_id

    return await asyncio.gather(*map(one, employees))


async def proposal(app: Holdfast, run_id: str, besides: str = "") -> QuestionRow:
    """The open question about the repair of a run, once there is one; not the one `besides`."""
    query = QuestionQuery(status=frozenset({"open"}), run_id=run_id)
    async with asyncio.timeout(60):
        while True:
            found = [one for one in await app.inbox(query) if one.question_id != besides]
            if found and "case_id" in request_of(found[0]).context:
                return found[0]
            await asyncio.sleep(0.005)
