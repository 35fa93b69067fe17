"""An application whose run needs a repair, for processes that share a database: as `workshop`, with
HR, access and mail that leave traces in files.

HR's tool goes on once the file `go` is there. With MODEL set a model is asked, which notes each
request before it answers, and answers once the file `thought` is there.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Final

from holdfast import Holdfast
from holdfast.errors import PermanentError
from holdfast.model.message import ModelReply
from holdfast.testing.repair_models import diagnosing_model
from holdfast.work.models import ModelClient
from workshop import DIRECTORY, HASTY, Workshop, hasten

MODEL: Final = "REPAIR_WORKSHOP_MODEL"
HR: Final = "create_employee_profile"
ACCESS: Final = "grant_access"
MAIL: Final = "send_email"
REQUEST: Final = "a model was asked"

PLAN = """
plan_id: access
name: Access
main_task_id: "001"
inputs: {id: {}}
repair: {tools: [create_employee_profile], most: {requests: 2}}
tasks: [{task_id: "001"}, {task_id: "002"}]
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: tool
    tool: grant_access
    args: {employee_id: "{001.context.id}"}
    success_output: {task_id: "002", status: Done}
  - listener_id: L002
    trigger_task_id: "002"
    trigger_condition: Done
    listener_type: tool
    tool: send_email
    args: {to: "{001.context.id}"}
    success_output: {task_id: "001", status: Done}
"""

ABOVE = """
plan_id: above
name: The first day
main_task_id: "001"
inputs: {id: {}}
tasks: [{task_id: "001"}]
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: plan
    plan_id: access
    values: {id: "{001.context.id}"}
    success_output: {task_id: "001", status: Done}
"""


class NotedModel(ModelClient):
    """Notes each request in the workshop before it is made."""

    def __init__(self, workshop: Workshop) -> None:
        super().__init__(default_model=diagnosing_model())
        self._workshop = workshop

    async def request(self, *asked: object, **more: object) -> ModelReply:
        self._workshop.note(REQUEST, "")
        await gate(self._workshop, "thought")
        return await super().request(*asked, **more)  # type: ignore[arg-type]


async def gate(workshop: Workshop, name: str) -> None:
    while not (workshop.directory / name).exists():  # noqa: ASYNC110
        await asyncio.sleep(0.02)


def furnish(app: Holdfast, workshop: Workshop) -> Holdfast:
    async def create_employee_profile(id: str) -> dict[str, str]:  # noqa: A002
        workshop.note(HR, id)
        await workshop.gate()
        (workshop.directory / f"known {id}").touch()
        return {"employee_id": id}

    async def grant_access(employee_id: str) -> dict[str, str]:
        workshop.note(ACCESS, employee_id)
        if not (workshop.directory / f"known {employee_id}").exists():
            raise PermanentError(f"HR has no employee {employee_id}: create the profile first")
        return {"badge": employee_id}

    async def send_email(to: str) -> dict[str, str]:
        workshop.note(MAIL, to)
        return {"to": to}

    app.tool(create_employee_profile, idempotent=True)
    app.tool(grant_access, idempotent=True)
    app.tool(send_email)
    app.load_plan_text(PLAN)
    app.load_plan_text(ABOVE)
    return app


def app() -> Holdfast:
    """What `--app runtime.repair_workshop:app` names: the database is the environment's."""
    workshop = Workshop(Path(os.environ[DIRECTORY]))
    if os.environ.get(HASTY):
        hasten(float(os.environ[HASTY]))
    model = NotedModel(workshop) if os.environ.get(MODEL) else None
    return furnish(Holdfast(max_retry_count=0, model=model), workshop)
