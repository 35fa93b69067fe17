"""Plans as JSON: how a plan is stored, sent and named by its content.

The keys are those of the YAML file and what has its usual value is left out, so a plan in
JSON is also a plan file. Lists stand wherever order means something; a form is therefore a
list of fields with their names, and the canonical spelling, which sorts keys, loses nothing.

`plan_from_json` trusts its input and checks nothing: what was accepted once must load for
ever, whatever later versions think of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, assert_never

from holdfast.forms.rules import make_validation
from holdfast.forms.shapes import dump_form
from holdfast.language.strict import digest
from holdfast.model.form import Field, FieldType, Form, Option, Validation
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
    WaitAction,
    WhilePaused,
)
from holdfast.model.values import JsonObject
from holdfast.source.asking import asking_from_json, asking_to_json
from holdfast.source.retry import retry_from_json, retry_to_json

_USUAL_PRIORITY: Final = 100
_USUAL_FIRINGS: Final = 1_000
_WAIT_TEXTS: Final = ("until", "after", "clock", "timezone")
_GO_ON: Final = WhilePaused.GO_ON


def plan_digest(plan: Plan) -> str:
    """The plan's name by content: SHA-256 of its canonical JSON, in hex."""
    return digest(plan_to_json(plan))


def plan_to_json(plan: Plan) -> dict[str, Any]:
    return {
        "plan_id": plan.plan_id,
        "name": plan.name,
        "main_task_id": plan.main_task_id,
        "tasks": [_task_to_json(task) for task in plan.tasks],
        "listeners": [listener_to_json(listener) for listener in plan.listeners],
    } | _present(
        description=plan.description,
        inputs=_form_to_json(plan.inputs),
        verify=[_check_to_json(check) for check in plan.verify],
        while_paused=plan.while_paused.value if plan.while_paused is not _GO_ON else None,
    )


def plan_from_json(raw: JsonObject) -> Plan:
    """The plan behind `plan_to_json`'s answer."""
    return Plan(
        plan_id=raw["plan_id"],
        name=raw["name"],
        main_task_id=raw["main_task_id"],
        tasks=tuple(Task(**task) for task in raw["tasks"]),
        listeners=tuple(listener_from_json(listener) for listener in raw["listeners"]),
        description=raw.get("description", ""),
        inputs=_form_from_json(raw.get("inputs", ())),
        verify=tuple(Check(**check) for check in raw.get("verify", ())),
        while_paused=WhilePaused(raw.get("while_paused", _GO_ON)),
    )


def _present(**entries: Any) -> dict[str, Any]:
    """The entries that say something: None, and what is empty or false, go without saying."""
    return {key: value for key, value in entries.items() if value}


def _task_to_json(task: Task) -> dict[str, Any]:
    return {"task_id": task.task_id} | _present(name=task.name, prompt=task.prompt)


def _check_to_json(check: Check) -> dict[str, Any]:
    shape = {"tool": check.tool} | _present(args=dict(check.args))
    return shape if check.expect is None else shape | {"expect": check.expect}


def listener_to_json(listener: Listener) -> dict[str, Any]:
    triggers = listener.trigger_task_id
    shape: dict[str, Any] = {
        "listener_id": listener.listener_id,
        "trigger_task_id": triggers[0] if len(triggers) == 1 else list(triggers),
        "trigger_condition": listener.trigger_condition,
        "listener_type": listener.listener_type,
    }
    shape |= _action_to_json(listener.action)
    shape |= _present(
        success_output=_output_to_json(listener.success_output),
        failure_output=_output_to_json(listener.failure_output),
        retry=retry_to_json(listener.retry),
        approval=listener.approval,
        repeat=listener.repeat,
    )
    if listener.timeout is not None:
        # 1 and 1.0 are equal plans and must have one spelling.
        shape["timeout"] = float(listener.timeout)
    if listener.priority != _USUAL_PRIORITY:
        shape["priority"] = listener.priority
    if listener.max_firings != _USUAL_FIRINGS:
        shape["max_firings"] = listener.max_firings
    return shape


def _action_to_json(action: Action) -> dict[str, Any]:
    match action:
        case ToolAction():
            return {"tool": action.tool} | _present(
                args=dict(action.args),
                fields=_form_to_json(action.fields),
                missing=asking_to_json(action.missing),
                consent=asking_to_json(action.consent),
            )
        case CodeAction():
            extra = _present(functions=list(action.functions))
            return {"code_snippet": action.code_snippet} | extra
        case HumanAction():
            return asking_to_json(action.asking) | _present(form=_form_to_json(action.form))
        case PlanAction():
            return {"plan_id": action.plan_id} | _present(values=dict(action.values))
        case AgentAction():
            return {"agent_id": action.agent_id} | _present(action_prompt=action.action_prompt)
        case WaitAction():
            texts = {key: getattr(action, key) for key in _WAIT_TEXTS}
            return _present(**texts, weekdays=list(action.weekdays))
        case _:
            assert_never(action)


def _output_to_json(output: Output | None) -> dict[str, Any] | None:
    if output is None:
        return None
    shape = {"task_id": output.task_id, "status": output.status.value}
    return shape | _present(context=dict(output.context))


def _form_to_json(form: Form) -> list[dict[str, Any]]:
    return [{"name": field.name, **dump_form(Form((field,)))[field.name]} for field in form.fields]


def listener_from_json(raw: JsonObject) -> Listener:
    triggers = raw["trigger_task_id"]
    return Listener(
        listener_id=raw["listener_id"],
        trigger_task_id=(triggers,) if isinstance(triggers, str) else tuple(triggers),
        trigger_condition=raw["trigger_condition"],
        action=_action_from_json(raw),
        success_output=_output_from_json(raw.get("success_output")),
        failure_output=_output_from_json(raw.get("failure_output")),
        retry=retry_from_json(raw.get("retry")),
        timeout=raw.get("timeout"),
        approval=raw.get("approval", False),
        repeat=raw.get("repeat", False),
        priority=raw.get("priority", _USUAL_PRIORITY),
        max_firings=raw.get("max_firings", _USUAL_FIRINGS),
    )


def _action_from_json(raw: JsonObject) -> Action:
    match raw["listener_type"]:
        case "tool":
            return ToolAction(
                raw["tool"],
                raw.get("args", {}),
                _form_from_json(raw.get("fields", ())),
                asking_from_json(raw.get("missing", {})),
                asking_from_json(raw.get("consent", {})),
            )
        case "code":
            return CodeAction(raw["code_snippet"], tuple(raw.get("functions", ())))
        case "plan":
            return PlanAction(raw["plan_id"], raw.get("values", {}))
        case "agent":
            return AgentAction(raw["agent_id"], raw.get("action_prompt", ""))
        case "wait_until":
            texts = {key: raw.get(key, "") for key in _WAIT_TEXTS}
            return WaitAction(**texts, weekdays=tuple(raw.get("weekdays", ())))
        case _:
            return HumanAction(_form_from_json(raw.get("form", ())), asking_from_json(raw))


def _output_from_json(raw: JsonObject | None) -> Output | None:
    if raw is None:
        return None
    return Output(raw["task_id"], TaskStatus(raw["status"]), raw.get("context", {}))


def _form_from_json(raw: Any) -> Form:
    return Form(tuple(_field_from_json(field) for field in raw))


def _field_from_json(raw: JsonObject) -> Field:
    shape = dict(raw)
    shape["type"] = FieldType(shape["type"])
    shape["options"] = tuple(_option_from_json(one) for one in shape.get("options", ()))
    shape["validation"] = _validation_from_json(shape.get("validation", {}))
    return Field(**shape)


def _option_from_json(raw: JsonObject) -> Option:
    extras = dict(raw)
    value, label = extras.pop("value"), extras.pop("label")
    return Option(value, label, extras.pop("requires_input", False), extras)


def _validation_from_json(raw: Mapping[str, Any]) -> Validation:
    rules = {key: rule for key, rule in raw.items() if key != "type"}
    if "values" in rules:
        rules["values"] = tuple(rules["values"])
    return make_validation(rules)
