"""A run whose computer cannot be ordered, and patches of its plan."""

from __future__ import annotations

from typing import Any

from machine import Machine
from small_plans import PERMANENT, WILL, compiled, on

from holdfast.core.plan.state import PlanState
from holdfast.model import commands as c
from holdfast.model.approval import ApprovalMode, ApprovalRule, ToolFacts
from holdfast.model.form import Field, FieldType, Form
from holdfast.model.interaction import Asking
from holdfast.model.plan import (
    Check,
    CodeAction,
    HumanAction,
    Listener,
    Plan,
    ToolAction,
)
from holdfast.model.repair import PlanPatch, RepairPolicy, Verdict
from holdfast.model.retry import RetryPolicy
from holdfast.model.values import Json, JsonObject
from holdfast.repair.checks import judge
from holdfast.repair.surroundings import Surroundings
from holdfast.source.check import Catalog

SECRET = "secret:" + "0" * 32


def text(**more: Json) -> JsonObject:
    return {"type": "string", **more}


def schema(*required: str, **properties: JsonObject) -> JsonObject:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


LOOKING = schema("name", name=text(), note=text(), tags={"type": "array", "items": text()})
ORDER = schema(
    "employee",
    employee=text(),
    computer_model=text(),
    model=text(),
    size=text(enum=["small", "large"]),
    count={"type": "integer", "default": 1},
    day=text(),
    urgent={"type": "boolean"},
    token=text(format="password"),
    colour=text(const="grey"),
    kind=text(enum=["Laptop"]),
    box={"type": "object", "properties": {"label": text()}},
)
MAIL = schema("to", to=text(), text=text())

ASKS = ApprovalRule(ApprovalMode.REQUIRE_APPROVAL)

TOOLS: dict[str, ToolFacts] = {
    "query_profile": ToolFacts(LOOKING, "q1", read_only=True, idempotent=True),
    "query_badge": ToolFacts(LOOKING, "q2", read_only=True),
    "order": ToolFacts(ORDER, "o1"),
    "order_again": ToolFacts(ORDER, "o2", idempotent=True),
    "send_email": ToolFacts(MAIL, "m1"),
    "grant_access": ToolFacts(schema(employee=text()), "g1", approval=ASKS),
    "grant_freely": ToolFacts(schema(employee=text()), "g2"),
    "wipe_disk": ToolFacts(schema(), "w1"),
}

AUTHOR = RetryPolicy(attempts=3, initial=1.0, maximum=30.0)

WHO = "{001.context.name}"
LISTENERS = (
    on(
        "L1",
        "001 Running",
        ToolAction("query_profile", {"name": WHO}),
        "002",
        context={"employee_id": "{{result.employee_id}}"},
    ),
    on(
        "L2",
        "002 Done",
        ToolAction("order", {"employee": WHO, "model": "{001.context.model}"}),
        "003",
        context={"order": "{{result.order_id}}"},
        retry=AUTHOR,
        timeout=30.0,
    ),
    on(
        "L3",
        "003 Done",
        ToolAction("send_email", {"to": "it@example.com", "text": "Order {003.context.order}"}),
        "004",
    ),
    on(
        "L4",
        "004 Done",
        HumanAction(Form((Field("fine", FieldType.TEXT),)), Asking("Is it fine?", role="it_lead")),
        "005",
        context={"fine": "{{result.fine}}"},
    ),
    on("L5", "005 Done", ToolAction("grant_access", {"employee": WHO}), "006"),
    on("L6", "006 Done", CodeAction("result = {'x': 1}"), "001"),
)
INPUTS = Form(
    (
        *map(Field, ("name", "model", "day", "pieces")),
        Field("pin", FieldType.SECRET, required=False),
    )
)
POLICY = RepairPolicy(tools=("query_badge", "order_again", "grant_freely"), role="hr_lead")
VALUES = {"name": "Will Zhang", "model": " X1 ", "day": "1.3.2026", "pieces": "5"}


def begun(
    *listeners: Listener,
    tools: dict[str, ToolFacts] | None = None,
    values: JsonObject | None = None,
    **plan: Any,
) -> Machine:
    more: dict[str, Any] = {
        "inputs": INPUTS,
        "verify": (Check("query_profile", {"name": WHO}),),
        "repair": POLICY,
        **plan,
    }
    machine = Machine(compiled(*(listeners or LISTENERS), **more), tools=dict(tools or TOOLS))
    machine.submit(c.StartRun("small", "go", by=WILL, values=values or VALUES))
    machine.start_ready()
    return machine


def failed(machine: Machine | None = None, *, given_up: bool = True) -> PlanState:
    """The profile is known; ordering the computer has failed, and the run waits for a person."""
    machine = machine or begun()
    succeed(machine, "L1", {"employee_id": "WZ001"})
    machine.report(work_of(machine, "L2"), PERMANENT)
    if given_up:
        machine.consult(0)
    return machine.state


def work_of(machine: Machine, listener_id: str) -> Any:
    return next(one for one in machine.flying.values() if one.work.step_id == listener_id)


def succeed(machine: Machine, listener_id: str, result: Json) -> None:
    effect = work_of(machine, listener_id)
    machine.report(effect, machine.outcome(effect, result))
    machine.start_ready()


def known(tools: dict[str, ToolFacts] | None = None, **catalog: Any) -> Surroundings:
    tools = dict(tools or TOOLS)
    parameters = {name: facts.parameters for name, facts in tools.items()}
    looking = frozenset(name for name, facts in tools.items() if facts.read_only)
    return Surroundings(Catalog(parameters, looking, **catalog), tools)


def patch_of(state: PlanState, *operations: JsonObject, **more: Any) -> PlanPatch:
    given = {"source": "rule:test", "case_id": "case_1", **more}
    return PlanPatch("p1", given.pop("base", state.plan.digest), operations, **given)


def verdict_on(
    state: PlanState,
    *operations: JsonObject,
    by: str = "rule:test",
    tools: dict[str, ToolFacts] | None = None,
    rehearse: bool = False,
    **options: Any,
) -> Verdict:
    """By a person, a rule, a lesson, or a model; not rehearsed unless that is wanted."""
    patch = patch_of(state, *operations, source=by)
    by_model = by.startswith("model")
    return judge(state, patch, known(tools), by_model=by_model, rehearse=rehearse, **options)


def set_args(listener_id: str = "L2", *, drop: tuple[str, ...] = (), **values: Json) -> JsonObject:
    parts = {"set": values, "drop": list(drop)}
    given = {key: part for key, part in parts.items() if part}
    return {"op": "set_args", "listener_id": listener_id, **given}


def inserted(tool: str, listener_id: str = "L2", *, new: str = "R1", **more: Json) -> JsonObject:
    listener = {"listener_id": new, "listener_type": "tool", "tool": tool, **more}
    task = {"task_id": new, "name": "First"}
    return {"op": "insert_before", "listener_id": listener_id, "task": task, "listener": listener}


def brought(listener: JsonObject, *, new: str = "R1", to: str | None = None) -> JsonObject:
    """A listener of its own beside the others, with its task."""
    whole = {
        "listener_id": new,
        "trigger_task_id": "002",
        "trigger_condition": "Done",
        "success_output": {"task_id": to or new, "status": "Done"},
        **listener,
    }
    tasks = [] if to else [{"task_id": new, "name": "Beside"}]
    parts = {"tasks": tasks, "listeners": [whole]}
    return {"op": "add", **{key: part for key, part in parts.items() if part}}


def plan_of(state: PlanState) -> Plan:
    return state.plan.plan
