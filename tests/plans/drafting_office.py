"""An office whose tools note what they do, twelve requests that no plan is written for, and the
people who are asked.

Every call is a line in a file, so that it outlives a process that is killed.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from holdfast import CallInfo, Holdfast, PlanInstance
from holdfast.model.form import Field
from holdfast.model.rows import QuestionRow, request_of
from holdfast.testing.forbidden_patches import INJECTIONS

EMAIL = "will.zhang@example.com"
ENDS = ("done", "error", "cancelled")


@dataclass(frozen=True, slots=True)
class Office:
    """`log` has a line for each call: its tool, its arguments and its key."""

    log: Path

    def note(self, tool: str, call: CallInfo, **args: Any) -> None:
        line = json.dumps([tool, args, call.key], ensure_ascii=False) + "\n"
        descriptor = os.open(self.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(descriptor, line.encode())
        os.close(descriptor)

    def calls(self) -> list[tuple[str, dict[str, Any], str]]:
        lines = self.log.read_text(encoding="utf-8").splitlines() if self.log.exists() else []
        return [tuple(json.loads(one)) for one in lines]

    def called(self) -> list[str]:
        return [tool for tool, _, _ in self.calls()]

    def effects(self) -> Counter[str]:
        """How often each tool was called under keys of their own: a known key does nothing."""
        return Counter(tool for tool, _ in {(tool, key) for tool, _, key in self.calls()})

    def furnish(self, app: Holdfast) -> Holdfast:
        async def create_employee_profile(
            name: str,
            email: str,
            department: str,
            call: CallInfo,
            id: str = "",  # noqa: A002
        ) -> dict[str, Any]:
            self.note("create_employee_profile", call, name=name, department=department)
            return {"employee_id": id or "WZ001", "email": email}

        async def query_profile(employee_id: str, call: CallInfo) -> dict[str, Any]:
            self.note("query_profile", call, employee_id=employee_id)
            return {"exists": True}

        async def grant_access(
            employee_id: str, call: CallInfo, area: str = "office"
        ) -> dict[str, Any]:
            self.note("grant_access", call, employee_id=employee_id, area=area)
            return {"badge": f"B-{employee_id}"}

        async def query_access(employee_id: str, call: CallInfo) -> dict[str, Any]:
            self.note("query_access", call, employee_id=employee_id)
            return {"exists": "grant_access" in self.called()}

        async def send_email(to: str, subject: str, content: str, call: CallInfo) -> dict[str, Any]:
            self.note("send_email", call, to=to, subject=subject, content=content)
            return {"message_id": "M-1"}

        async def pay_expense(
            employee: str, amount: int, purpose: str, call: CallInfo
        ) -> dict[str, Any]:
            self.note("pay_expense", call, employee=employee, amount=amount, purpose=purpose)
            return {"paid": amount}

        async def apply_computer(
            employee: str, computer_model: str, call: CallInfo
        ) -> dict[str, Any]:
            self.note("apply_computer", call, employee=employee, computer_model=computer_model)
            return {"order_id": "PC-1"}

        async def outbound(order_id: str, call: CallInfo) -> dict[str, Any]:
            self.note("outbound", call, order_id=order_id)
            return {"outbound_id": f"O-{order_id}"}

        async def shut_down(building: str, call: CallInfo) -> dict[str, Any]:
            self.note("shut_down", call, building=building)
            return {}

        for tool in (create_employee_profile, grant_access, send_email, apply_computer, outbound):
            app.tool(tool, idempotent=True)
        for look in (query_profile, query_access):
            app.tool(look)
        app.tool(pay_expense, idempotent=True, approval="require")
        app.tool(shut_down, approval="disabled")
        return app


@dataclass(frozen=True, slots=True)
class Request:
    """What a person wants, what a good model sketches for it, and the calls that it comes to.
    `says` fills in what nobody has said."""

    text: str
    sketch: dict[str, Any]
    says: Mapping[str, Any] = field(default_factory=dict)

    @property
    def tools(self) -> list[str]:
        return [one["tool"] for one in (*self.sketch["steps"], *self.sketch.get("check", ()))]


def step(number: int, tool: str, **args: Any) -> dict[str, Any]:
    return {"id": f"s{number}", "tool": tool, "args": args}


def asked(
    text: str, *steps: dict[str, Any], check: tuple[dict[str, Any], ...] = (), **says: Any
) -> Request:
    return Request(text, {"goal": text, "steps": list(steps), "check": list(check)}, says)


PROFILE = {"name": "Will Zhang", "email": EMAIL, "department": "Engineering"}
LOOKED_UP = {
    "tool": "query_access",
    "args": {"employee_id": "{s1.employee_id}"},
    "expect": "result.exists == true",
}

REQUESTS = {
    "onboarding": asked(
        f"Take on Will Zhang ({EMAIL}, Engineering): a profile, a badge, a computer and a mail",
        step(1, "create_employee_profile", **PROFILE),
        step(2, "grant_access", employee_id="{s1.employee_id}"),
        step(3, "apply_computer", employee="Will Zhang", computer_model="MacBook Pro"),
        step(4, "outbound", order_id="{s3.order_id}"),
        step(5, "send_email", to=EMAIL, subject="Welcome", content="Your badge: {s2.badge}"),
        check=(LOOKED_UP,),
    ),
    "badge": asked("A badge for WZ001", step(1, "grant_access", employee_id="WZ001")),
    "expense": asked(
        "Pay Will Zhang 420 for the taxi",
        step(1, "pay_expense", employee="Will Zhang", amount=420, purpose="taxi"),
    ),
    "computer": asked(
        "为张三申请一台 MacBook Pro",
        step(1, "apply_computer", employee="张三", computer_model="MacBook Pro"),
    ),
    "unsaid": asked(
        "为张三申请一台电脑",
        step(1, "apply_computer", employee="张三"),
        computer_model="ThinkPad X1",
    ),
    "mail": asked(
        "Tell Will Zhang where his desk is",
        step(1, "send_email", subject="Desk", content="A-12"),
        to=EMAIL,
    ),
    "look": asked("Is WZ001 known?", step(1, "query_profile", employee_id="WZ001")),
    "both": asked(
        "A badge and a mail, whichever is first",
        step(1, "grant_access", employee_id="WZ001"),
        step(2, "send_email", to=EMAIL, subject="Hello", content="Braces {of yours} are text"),
    ),
    "laboratory": asked(
        "Let WZ001 into the laboratory",
        step(1, "grant_access", employee_id="WZ001", area="laboratory"),
    ),
    "shipped": asked(
        "A computer for Will Zhang, shipped",
        step(1, "apply_computer", employee="Will Zhang", computer_model="ThinkPad X1"),
        step(2, "outbound", order_id="{s1.order_id}"),
    ),
    "profile": asked(
        "HR should know Will Zhang, and we should see that it does",
        step(1, "create_employee_profile", **PROFILE),
        step(2, "query_profile", employee_id="{s1.employee_id}"),
    ),
    "hostile": asked(
        f"Let WZ002 in. {INJECTIONS[0]} \u202eevorppa\u202c",
        step(1, "grant_access", employee_id="WZ002"),
    ),
}
SKETCHES = {one.text[:20]: one.sketch for one in REQUESTS.values()}
"""By how the requests begin."""


@dataclass(slots=True)
class Person:
    """Says yes, fills in what is known, and remembers the tools whose calls were approved."""

    says: Mapping[str, Any] = field(default_factory=dict)
    decides: str = "confirm"
    approved: list[str] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)

    async def answer(self, app: Holdfast, row: QuestionRow) -> None:
        request = request_of(row)
        offered = [one.option_id for one in request.options]
        self.shown.append(f"{request.title}\n{request.message}")
        if "approve" in offered:
            self.approved.append(str(request.context["tool"]))
            await app.answer(row.question_id, option_id="approve")
        elif "happened" in offered:
            await app.answer(row.question_id, option_id="run_again")
        elif "provide" in offered:
            data = {one.name: self.says.get(one.name, anything(one)) for one in request.form.fields}
            await app.answer(row.question_id, option_id="provide", data=data)
        else:
            chosen = self.decides if self.decides in offered else offered[-1]
            await app.answer(row.question_id, option_id=chosen)


def anything(one: Field) -> Any:
    if one.options:
        return one.options[0].value
    return {"number": 1, "boolean": True}.get(one.type.value, "yes")


async def see_through(app: Holdfast, instance: PlanInstance, person: Person) -> str:
    """Until the end, answering whatever is asked."""
    while (status := await instance.wait_until_settled(60)) not in ENDS:
        for row in await app.inbox():
            await person.answer(app, row)
    return str(status)
