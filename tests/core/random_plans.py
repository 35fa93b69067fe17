"""Random plans: every listener type, condition shape and output that the machine knows.

Listeners lead from earlier tasks to later ones or to the main task, so that no plan
can go round for ever; everything else is left to chance.
"""

from __future__ import annotations

from typing import Any

from dice import Dice

from holdfast.core.plan.compiled import CompiledPlan
from holdfast.core.storing import plan_digest
from holdfast.model.approval import ApprovalMode, ApprovalRule
from holdfast.model.commands import ToolFacts
from holdfast.model.form import Field, FieldType, Form
from holdfast.model.interaction import Asking
from holdfast.model.plan import (
    Action,
    AgentAction,
    Check,
    CodeAction,
    HumanAction,
    Listener,
    Output,
    Plan,
    PlanAction,
    Task,
    TaskStatus,
    ToolAction,
    WhilePaused,
)
from holdfast.model.retry import RetryPolicy

MAIN = "001"

TOOLS: dict[str, ToolFacts] = {
    "plain": ToolFacts({}, "1"),
    "keyed": ToolFacts({}, "1", idempotent=True),
    "guarded": ToolFacts({}, "1", approval=ApprovalRule(ApprovalMode.REQUIRE_APPROVAL)),
    "picky": ToolFacts(
        {"type": "object", "properties": {"size": {"type": "string"}}, "required": ["size"]}, "1"
    ),
    "disabled": ToolFacts({}, "1", approval=ApprovalRule(ApprovalMode.DISABLED)),
}

_TOOL_NAMES = (*("plain", "keyed", "guarded", "picky") * 3, "disabled", "absent")
_ARGUMENTS: tuple[dict[str, Any], ...] = (
    *({}, {"who": "{001.status}"}, {"n": 1, "list": [1, 2.5, None]}) * 3,
    {"gone": "{001.context.nowhere}"},
)
_CONTEXTS: tuple[dict[str, Any], ...] = ({}, {"x": "{{result.x}}"}, {"fixed": 1})
_FORM = Form((Field("colour", FieldType.TEXT), Field("note", FieldType.TEXT, required=False)))
_ENDS = (
    TaskStatus.DONE,
    TaskStatus.DONE,
    TaskStatus.DONE,
    TaskStatus.RUNNING,
    TaskStatus.PENDING,
    TaskStatus.ERROR,
)


def random_plan(dice: Dice) -> CompiledPlan:
    ids = tuple(f"{number:03d}" for number in range(1, 3 + dice.number(4)))
    listeners = [_first(dice, ids)]
    listeners += [_middle(dice, ids, number) for number in range(2, 2 + dice.number(6))]
    listeners.append(_last(dice, ids))
    plan = Plan(
        plan_id="random",
        name="Random",
        main_task_id=MAIN,
        tasks=tuple(Task(one, f"task {one}") for one in ids),
        listeners=tuple(listeners),
        inputs=_FORM if dice.chance(4) else Form(),
        verify=tuple(_check(dice) for _ in range(dice.pick((0, 0, 1, 2)))),
        while_paused=WhilePaused.HOLD if dice.chance(4) else WhilePaused.GO_ON,
    )
    return CompiledPlan(plan, plan_digest(plan))


def _first(dice: Dice, ids: tuple[str, ...]) -> Listener:
    conditions = ("Running", "001.status == Running", "Running or Retrying")
    return _listener(dice, "L001", (MAIN,), dice.pick(conditions), ids[1])


def _middle(dice: Dice, ids: tuple[str, ...], number: int) -> Listener:
    place = dice.number(len(ids) - 1)
    other = dice.number(place + 1)
    triggers = tuple(dict.fromkeys((ids[place], ids[other])))
    later = ids[place + 1 + dice.number(len(ids) - place - 1)]
    return _listener(dice, f"L{number:03d}", triggers, _condition(dice, triggers), later)


def _last(dice: Dice, ids: tuple[str, ...]) -> Listener:
    triggers = dice.pick(((ids[-1],), (ids[1],), (ids[1], ids[-1])))
    triggers = tuple(dict.fromkeys(triggers))
    return _listener(dice, "L999", triggers, _condition(dice, triggers), MAIN)


def _condition(dice: Dice, triggers: tuple[str, ...]) -> str:
    first, last = triggers[0], triggers[-1]
    return dice.pick(
        (
            "Done",
            f"{first}.status == Done && {last}.status == Done",
            f"{first}.status in [Done, Skipped] or {last}.status == Error",
            "Running or Done",
            f"{first}.context.x == 1",
            "Error",
            f"not ({last}.status == NotStarted)",
        )
    )


def _listener(
    dice: Dice, listener_id: str, triggers: tuple[str, ...], condition: str, target: str
) -> Listener:
    return Listener(
        listener_id=listener_id,
        trigger_task_id=triggers,
        trigger_condition=condition,
        action=_action(dice),
        success_output=_success(dice, target),
        failure_output=_failure(dice, target),
        retry=RetryPolicy(attempts=1 + dice.number(3), initial=1.0),
        timeout=dice.pick((None, 5.0)),
        approval=dice.chance(5),
        repeat=MAIN not in triggers and dice.chance(4),
        priority=dice.pick((100, 1, 7)),
    )


def _action(dice: Dice) -> Action:
    match dice.number(8):
        case 0 | 1 | 2:
            return ToolAction(dice.pick(_TOOL_NAMES), dice.pick(_ARGUMENTS))
        case 3:
            return CodeAction("result = {'x': 1}")
        case 4:
            return CodeAction("result = {'x': plain(n=1)}", ("plain", "keyed"))
        case 5:
            form = dice.pick((Form(), _FORM))
            asking = Asking("Ask", "?", timeout_seconds=dice.pick((None, 30.0)))
            return HumanAction(form, asking)
        case 6:
            return PlanAction("child", dice.pick(_ARGUMENTS))
        case _:
            return AgentAction("nobody") if dice.chance(3) else ToolAction("plain")


def _success(dice: Dice, target: str) -> Output | None:
    if dice.chance(12):
        return None
    status = TaskStatus.DONE if target == MAIN else dice.pick(_ENDS)
    return Output(target, status, dice.pick(_CONTEXTS))


def _failure(dice: Dice, target: str) -> Output | None:
    statuses = (TaskStatus.DONE, TaskStatus.ERROR, TaskStatus.SKIPPED, TaskStatus.NOT_STARTED)
    return Output(target, dice.pick(statuses)) if dice.chance(3) else None


def _check(dice: Dice) -> Check:
    expect = dice.pick((None, "result.x == 1", "result.x == 2"))
    return Check(dice.pick(("keyed", "plain", "absent", "picky")), {}, expect)
