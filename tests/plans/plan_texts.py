"""Small plans written as Python and loaded as text, and tools that do as they are told."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from holdfast import CallInfo, Holdfast, PlanInstance


def step(
    listener_id: str,
    trigger: str,
    target: str,
    *,
    when: str | None = None,
    status: str = "Done",
    context: dict[str, Any] | None = None,
    **keys: Any,
) -> dict[str, Any]:
    """A listener; its type follows from its keys, and it has one attempt unless said otherwise."""
    kinds = {"tool": "tool", "code_snippet": "code", "plan_id": "plan"}
    return {
        "listener_id": listener_id,
        "trigger_task_id": trigger,
        "trigger_condition": when or ("Running" if trigger == "001" else "Done"),
        "listener_type": next((kind for key, kind in kinds.items() if key in keys), "human"),
        "retry": {"attempts": 1},
        "success_output": {"task_id": target, "status": status, "context": context or {}},
        **keys,
    }


def end(trigger: str, *, when: str | None = None) -> dict[str, Any]:
    """The listener that sets the main task Done."""
    return step("END", trigger, "001", when=when, code_snippet="result = {}")


def load(app: Holdfast, *listeners: dict[str, Any], plan_id: str = "p", **keys: Any) -> None:
    tasks = dict.fromkeys(["001", *(one["success_output"]["task_id"] for one in listeners)])
    failures = (one.get("failure_output", {}).get("task_id", "001") for one in listeners)
    tasks |= dict.fromkeys(failures)
    plan = {
        "plan_id": plan_id,
        "main_task_id": "001",
        "tasks": [{"task_id": task} for task in tasks],
        "listeners": list(listeners),
        **keys,
    }
    app.load_plan_text(json.dumps(plan, ensure_ascii=False))


async def start(app: Holdfast, plan_id: str = "p", **values: Any) -> PlanInstance:
    return await app.plans.start_plan_by_prompt("", plan_id, values=values)


class Tool:
    """Gives its outcomes one after the other, the last one for ever; raises those that are errors.

    `hold()` makes it wait inside the call until `let_go()`; `entered` tells that it is there.
    """

    def __init__(self, *outcomes: Any) -> None:
        self.outcomes = list(outcomes) or [{}]
        self.calls: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.entered = asyncio.Event()
        self._gate = asyncio.Event()
        self._gate.set()

    def hold(self) -> Tool:
        self._gate.clear()
        return self

    def let_go(self) -> None:
        self._gate.set()

    async def __call__(self, call: CallInfo, x: Any = None, y: Any = None) -> Any:
        given = {"x": x, "y": y}
        self.calls.append({name: value for name, value in given.items() if value is not None})
        self.keys.append(call.key)
        self.entered.set()
        outcome = self.outcomes.pop(0) if len(self.outcomes) > 1 else self.outcomes[0]
        await self._gate.wait()
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    @property
    def count(self) -> int:
        return len(self.calls)


def add(app: Holdfast, **tools: Tool) -> None:
    for name, tool in tools.items():
        app.tool(tool, name=name)
