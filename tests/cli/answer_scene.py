"""A question of each type with an option of each action, and a count of what follows.

In a plan, `order` is called with what the answer comes to: 5 is attached to the options, 7 is
what a person provides, and the handler of the custom option halves whatever it is given.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from holdfast.model.interaction import InteractionAction, InteractionType

APPROVE = InteractionAction.APPROVE_AND_EXECUTE
RETRY = InteractionAction.RETRY_WITH_FEEDBACK
REJECT = InteractionAction.REJECT_WITH_REASON
TERMINATE = InteractionAction.TERMINATE
PROVIDE = InteractionAction.PROVIDE_INFO
SKIP = InteractionAction.SKIP
CUSTOM = InteractionAction.CUSTOM

TOOL_APPROVAL = InteractionType.TOOL_APPROVAL
MISSING_INFO = InteractionType.MISSING_INFO

APPLICATION = """
from pathlib import Path

from holdfast import Holdfast, InteractionAction, Resolution

HERE = Path(__file__).parent


async def order(x: int) -> dict:
    with (HERE / "ordered").open("a", encoding="utf-8") as log:
        log.write(f"{x}\\n")
    return {"ordered": x}


def halve(request, response):
    return Resolution(InteractionAction.PROVIDE_INFO, {"x": response.data["x"] // 2})


def app():
    made = Holdfast(HERE / "kept", max_retry_count=0)
    made.tool(order)
    made.interactions.action("halve")(halve)
    made.interactions.type("decision")(halve)
    made.load_plans(HERE / "questions")
    return made
"""

PROMPTS = {RETRY: "What should be different?", REJECT: "Why not?"}
"""What the options that need words ask."""

SETTLED = "003.status == Done or 003.status == Skipped"


def _option(action: InteractionAction) -> dict[str, Any]:
    needs_words = action in PROMPTS
    return {
        "option_id": action.lower(),
        "label": f"<{action.lower()}>",
        "action": action.value,
        "metadata": {"x": 5} | ({"handler": "halve"} if action is CUSTOM else {}),
    } | ({"requires_input": True, "input_prompt": PROMPTS[action]} if needs_words else {})


OPTIONS = [_option(action) for action in InteractionAction]


def _step(name: str, after: str, target: str, **keys: Any) -> dict[str, Any]:
    return {
        "listener_id": name,
        "trigger_task_id": after,
        "trigger_condition": "Running" if after == "001" else "Done",
        "retry": {"attempts": 1},
        "success_output": {"task_id": target, "status": "Done"},
        **keys,
    }


def _order(after: str, **keys: Any) -> dict[str, Any]:
    return _step("ORDER", after, "003", listener_type="tool", tool="order", **keys)


def asking(kind: InteractionType, options: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The listeners that ask, and that order what the answer comes to."""
    if kind is TOOL_APPROVAL:
        return [_order("001", args={"x": 5}, approval={"options": options})]
    if kind is MISSING_INFO:
        return [_order("001", missing={"options": options})]
    question: dict[str, Any] = {"type": kind.value, "title": "Order?", "options": options}
    if kind is InteractionType.CUSTOM:
        question["custom_type"] = "decision"
    form = {"x": {"type": "number", "integer": True, "label": "How many"}}
    output = {"task_id": "002", "status": "Done", "context": {"x": "{{result.x}}"}}
    human = _step("ASK", "001", "002", listener_type="human", form=form, **question)
    return [{**human, "success_output": output}, _order("002", args={"x": "{002.context.x}"})]


def write_plan(
    place: Path, plan_id: str, kind: InteractionType, options: list[dict[str, Any]] | None = None
) -> None:
    asked = kind not in (TOOL_APPROVAL, MISSING_INFO)
    over = SETTLED + (" or 002.status == Skipped" if asked else "")
    end = _step("END", "003", "001", listener_type="code", code_snippet="result = {}")
    triggers = {"trigger_task_id": "002,003" if asked else "003", "trigger_condition": over}
    plan = {
        "plan_id": plan_id,
        "main_task_id": "001",
        "tasks": [{"task_id": task} for task in ("001", *(["002"] if asked else []), "003")],
        "listeners": [*asking(kind, OPTIONS if options is None else options), {**end, **triggers}],
    }
    text = json.dumps(plan, ensure_ascii=False)
    (place / "questions" / f"{plan_id}.yaml").write_text(text, encoding="utf-8")


def ordered(place: Path) -> list[int]:
    file = place / "ordered"
    return [int(line) for line in file.read_text().splitlines()] if file.exists() else []
