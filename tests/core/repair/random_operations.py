"""Random patches of random plans, as JSON: sensible ones, and what became of them on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from dice import Dice
from random_plans import random_plan

import holdfast.demo
from holdfast.core.repair.operations import patched, read_operations
from holdfast.model.plan import Listener, Plan, PlanAction, ToolAction, WaitAction
from holdfast.model.values import JsonObject
from holdfast.source.check import Catalog, find_problems
from holdfast.source.planfile import load_plan

NOWHERE = Catalog()
DEMO = Path(holdfast.demo.__file__).parent / "plans"
DEMO_PLANS = tuple(
    load_plan(path.read_text("utf-8"), path.name, NOWHERE) for path in sorted(DEMO.glob("*.yaml"))
)


def sound_plan(dice: Dice) -> Plan:
    """One of the demo's, or a random one that the checker has nothing against."""
    if dice.chance(2):
        return dice.pick(DEMO_PLANS)
    for _ in range(20):
        plan = random_plan(dice).plan
        listeners = tuple(
            replace(one, approval=one.approval and isinstance(one.action, ToolAction))
            for one in plan.listeners
        )
        plan = replace(plan, listeners=listeners)
        if not any(find_problems(plan, NOWHERE)):
            return plan
    return DEMO_PLANS[0]


_FORM = [
    {"name": "size", "type": "radio", "options": [{"value": "s", "label": "S"}]},
    {"name": "note", "type": "text", "label": "备注", "validation": {"max_length": 9}},
]
_ACTIONS: tuple[dict[str, Any], ...] = (
    {"listener_type": "tool", "tool": "keyed", "args": {"n": 1}, "approval": True},
    {"listener_type": "code", "code_snippet": "result = {'x': 1}"},
    {"listener_type": "human", "form": _FORM, "title": "Which?", "timeout_seconds": 30},
    {
        "listener_type": "human",
        "title": "Really?",
        "options": [
            {"option_id": "yes", "action": "APPROVE_AND_EXECUTE"},
            {"option_id": "no", "action": "REJECT_WITH_REASON", "label": "No"},
        ],
    },
    {"listener_type": "plan", "plan_id": "child", "values": {"x": None}},
    {"listener_type": "agent", "agent_id": "hr", "action_prompt": "Look"},
    {"listener_type": "wait_until", "after": "1h"},
)
_MORE: tuple[dict[str, Any], ...] = (
    {},
    {"retry": {"attempts": 5, "initial": 2}, "priority": 7},
    {"repeat": True, "max_firings": 9},
)


class PatchMaker:
    """Draws operations that the checker has nothing against, each for what the last one left."""

    def __init__(self, dice: Dice, plan: Plan, *, skips: bool = False) -> None:
        self.dice = dice
        self.plan = plan
        self.skips = skips
        self.brought = 0

    def operations(self, most: int = 6) -> list[dict[str, Any]]:
        return [self._operation() for _ in range(1 + self.dice.number(most))]

    def _operation(self) -> dict[str, Any]:
        one = self.dice.pick(self.plan.listeners)
        made = self.dice.pick([*self._fitting(one)])()
        if made["op"] != "add":
            made = {"listener_id": one.listener_id, **made}
        self.plan = patched(self.plan, read_operations([made]))
        return made

    def _fitting(self, one: Listener) -> Iterator[Callable[[], dict[str, Any]]]:
        yield lambda: self._retry(one)
        yield self._inserted
        yield self._asked_whether
        yield self._added
        if self.skips and not one.listener_id.startswith("R"):
            yield lambda: {"op": "skip"}
        if one.success_output is not None:
            yield self._output
        match one.action:
            case ToolAction(args=args):
                yield lambda: {"op": "use_tool", "tool": "other", "args": {"a": self._value()}}
                yield self._asked_for
                yield lambda: self._args(args)
            case PlanAction(values=values):
                yield lambda: self._args(values)

    def _output(self) -> dict[str, Any]:
        return {"op": "set_output", "context": self.dice.pick(({}, {"x": self._value()}))}

    def _asked_whether(self) -> dict[str, Any]:
        return {"op": "ask_first", "task_id": self._new_id(), "choice": {"title": "Go on?"}}

    def _retry(self, one: Listener) -> dict[str, Any]:
        retry = {"attempts": 1 + self.dice.number(9), "maximum": 90}
        may_end = not isinstance(one.action, WaitAction)
        timeout = {"timeout": self.dice.pick((None, 30, 0.5))} if may_end else {}
        return {
            "op": "set_retry",
            **self.dice.pick(({"retry": retry}, {"retry": retry, **timeout})),
        }

    def _args(self, args: JsonObject) -> dict[str, Any]:
        dropped = [name for name in args if self.dice.chance(2)]
        given = {self.dice.pick(sorted({"b", *args}.difference(dropped)) or ["c"]): self._value()}
        if dropped and self.dice.chance(2):
            return {"op": "set_args", "drop": dropped}
        return {"op": "set_args", "set": given, "drop": dropped}

    def _inserted(self) -> dict[str, Any]:
        new = self._new_id()
        output = {"context": {"x": self._value()}}
        said = {"success_output": output} if self.dice.chance(2) else {}
        listener = {"listener_id": new, **self._action(), **said}
        return {"op": "insert_before", "task": {"task_id": new, "name": "新"}, "listener": listener}

    def _asked_for(self) -> dict[str, Any]:
        asked = {"op": "ask_first", "fields": _FORM, "task_id": self._new_id()}
        return asked | self.dice.pick(({}, {"title": "For whom?", "role": "hr"}))

    def _added(self) -> dict[str, Any]:
        ids = [self._new_id() for _ in range(1 + self.dice.number(2))]
        main = self.plan.main_task_id
        listeners = [
            {
                "listener_id": new,
                "trigger_task_id": main,
                "trigger_condition": "Running",
                "success_output": {"task_id": new, "status": "Done"},
                **self._action(),
            }
            for new in ids
        ]
        tasks = [{"task_id": new, "prompt": "new"} for new in ids]
        return {"op": "add", "tasks": tasks, "listeners": listeners}

    def _action(self) -> dict[str, Any]:
        return {**self.dice.pick(_ACTIONS), **self.dice.pick(_MORE)}

    def _value(self) -> Any:
        main = self.plan.main_task_id
        return self.dice.pick((1, True, 1.0, None, "x", f"{{{main}.status}}", [{"deep": "张三"}]))

    def _new_id(self) -> str:
        self.brought += 1
        return f"R{self.brought}"
