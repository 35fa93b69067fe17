"""A run that fails for somebody HR does not know, in a real office: what its repair is asked about.

Access is granted, and a mail tells of the badge; HR must have made a profile first.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast import Holdfast
from holdfast.core.plan.state import PlanState
from holdfast.core.run.state import EMPTY, RunState
from holdfast.demo import onboarding
from holdfast.demo.office import Office
from holdfast.demo.onboarding import WILL_ZHANG
from holdfast.journal.port import QuestionRow
from holdfast.model.run import RunStatus
from holdfast.model.values import JsonObject

ACCESS = """
plan_id: access
name: Access for Will Zhang
main_task_id: "001"
inputs: {id: {type: text}, name: {type: text}, email: {type: text}, department: {type: text}}
repair: {tools: [create_employee_profile, query_profile]}
tasks:
  - {task_id: "001", name: Access for Will Zhang}
  - {task_id: "002", name: Badge}
  - {task_id: "003", name: Mail}
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: tool
    tool: grant_access
    args: {employee_id: "{001.context.id}"}
    retry: 1
    success_output: {task_id: "002", status: Done, context: {badge: "{{result.badge}}"}}
  - listener_id: L002
    trigger_task_id: "002"
    trigger_condition: Done
    listener_type: tool
    tool: send_email
    args:
      to: "{001.context.email}"
      subject: Your badge
      content: "Welcome, your badge is {002.context.badge}."
    retry: 1
    success_output: {task_id: "003", status: Done}
  - {listener_id: L003, trigger_task_id: "003", trigger_condition: Done, listener_type: code,
     code_snippet: "result = {}", success_output: {task_id: "001", status: Done}}
"""

ODD = """
plan_id: odd
name: An odd door
main_task_id: "001"
tasks: [{task_id: "001", name: An odd door}]
listeners:
  - {listener_id: L001, trigger_task_id: "001", trigger_condition: Running, listener_type: tool,
     tool: odd_door, retry: 1, success_output: {task_id: "001", status: Done}}
"""

ZHANG_SAN = {
    "id": "ZS001",
    "name": "张三",
    "email": "zhang.san@example.com",
    "department": "Engineering",
}
MADE_FIRST = {
    "op": "insert_before",
    "listener_id": "L001",
    "task": {"task_id": "R1", "name": "Profile created"},
    "listener": {
        "listener_id": "R1",
        "listener_type": "tool",
        "tool": "create_employee_profile",
        "args": {name: f"{{001.context.{name}}}" for name in ("id", "name", "email", "department")},
    },
}

OUTER = """
plan_id: outer
name: Everything for Will Zhang
main_task_id: "001"
tasks: [{task_id: "001", name: Everything}]
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: plan
    plan_id: access
    values: {id: WZ001, name: Will Zhang, email: will.zhang@example.com, department: Engineering}
    success_output: {task_id: "001", status: Done}
"""


@dataclass(frozen=True, slots=True)
class RepairScene:
    app: Holdfast
    office: Office

    async def failed(
        self, plan_id: str = "access", values: Mapping[str, Any] = WILL_ZHANG
    ) -> QuestionRow:
        """A run that failed, and the question about its repair."""
        return await self.asked(await self.stuck(plan_id, values))

    async def stuck(self, plan_id: str, values: Mapping[str, Any] = EMPTY) -> str:
        """A run that failed, once nobody looks at its failure any more."""
        instance = await self.app.plans.start_plan_by_prompt(plan_id, plan_id, values=values)
        await self.app.engine.wait_for(instance.id, _rests)
        return instance.id

    async def asked(self, run_id: str) -> QuestionRow:
        return next(one for one in await self.app.inbox() if one.root_id == run_id)

    async def mended(self) -> QuestionRow:
        """A run that was repaired and is done, and the question that was answered."""
        row = await self.failed(values=ZHANG_SAN)
        await self.app.answer(row.question_id, option_id="apply", by="Will Zhang")
        await self.came_to(row.root_id, RunStatus.DONE)
        return row

    async def proposed(
        self, run_id: str, operation: JsonObject = MADE_FIRST, *, by: str, reason: str
    ) -> QuestionRow:
        """A person's own repair of a run that failed, as it is asked about."""
        repairer = self.app.planner_agent.repairer
        assert repairer is not None
        await repairer.propose(run_id, [operation], by=by, reason=reason, listener_id="L001")
        return await self.asked(run_id)

    async def counts(self) -> Mapping[str, int]:
        """How often the office's tools were called."""
        return await self.office.counts()

    async def came_to(self, run_id: str, status: RunStatus) -> RunState:
        return await self.app.engine.wait_for(run_id, lambda state: state.status is status)


def _rests(state: RunState) -> bool:
    busy = isinstance(state, PlanState) and any(state.repair.busy())
    return state.status is RunStatus.ERROR and not busy


@asynccontextmanager
async def a_repair_scene(**options: Any) -> AsyncIterator[RepairScene]:
    """Not open yet; the office is."""
    async with Office.start() as office:
        app = Holdfast.in_memory(max_retry_count=0, **options)
        place = Path(onboarding.__file__).parent / "tools.yaml"
        app.load_tools(place, {**os.environ, "OFFICE_URL": office.url})
        app.load_plan_text(ACCESS)
        app.load_plan_text(OUTER)
        yield RepairScene(app, office)
