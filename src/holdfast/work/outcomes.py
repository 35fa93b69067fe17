"""What an attempt came to, from what a tool or a driver said of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final, TypeAlias

from holdfast.core.approval import mode_of
from holdfast.core.plan.outputs import succeeded
from holdfast.errors import AuthorError
from holdfast.forms.from_tools import form_from_schema
from holdfast.forms.shapes import parse_form
from holdfast.i18n.message import msg
from holdfast.language.strict import strict_json
from holdfast.model import commands as c
from holdfast.model import effects as f
from holdfast.model.approval import ApprovalMode
from holdfast.model.form import Form
from holdfast.model.plan import TaskStatus, TaskUpdate
from holdfast.model.record import constructor
from holdfast.model.retry import Failure, FailureKind
from holdfast.model.values import Json
from holdfast.work.driver import ListenerWork
from holdfast.work.failing import kept_text
from holdfast.work.retry_after import asked_seconds
from holdfast.work.sandbox import CallWanted

FactsOf: TypeAlias = Callable[[str], c.ToolFacts | None]
_succeeded: Final = constructor(c.Succeeded)
_update: Final = constructor(TaskUpdate)


def of_call(effect: f.CallTool, result: Json, facts_of: FactsOf) -> c.Outcome:
    """An agent's call: what the tool says of itself decides, as it does in a plan."""
    if isinstance(result, Mapping) and result.get("reason") == "missing_params":
        return _lacking(effect.tool, result.get("required_params") or {}, facts_of(effect.tool))
    if succeeded(result):
        return c.Succeeded(result)
    return c.Failed(_failure(result, result), result=result)


def _lacking(tool: str, wanted: Json, facts: c.ToolFacts | None) -> c.Outcome:
    """A result may carry a model's words, so a person is shown those of the tool's schema."""
    known = facts.parameters.get("properties", {}) if facts else {}
    try:
        names = [one.name for one in parse_form(wanted).fields]
    except AuthorError as error:
        return c.Failed(Failure(FailureKind.PERMANENT, kept_text(error)))
    asked = [name for name in names if name in known]
    if facts is None or not asked:
        listed, own = ", ".join(names) or msg("nothing by name"), ", ".join(known) or "none"
        why = msg(
            "{tool} asks for {names}, but none of it is among its parameters: {own}",
            tool=tool,
            names=listed,
            own=own,
        )
        return c.Failed(Failure(FailureKind.PERMANENT, kept_text(why)))
    form = form_from_schema(facts.parameters, asked, facts.fields)
    required = Form(tuple(replace(one, required=True) for one in form.fields))
    return c.Missing(required, facts.version)


def of_listener(
    execution: Mapping[str, Any],
    effect: ListenerWork,
    facts_of: FactsOf,
    strict: bool,
    bounded: bool,
) -> c.Outcome:
    """In the words of a driver, whose result may be strict already, and its updates bounded."""
    reason = execution.get("reason")
    if reason is not None:
        if reason == "missing_params":
            facts = facts_of(effect.tool) if isinstance(effect, f.CallTool) else None
            form = parse_form(execution.get("required_params") or {})
            return c.Missing(form, facts.version if facts else "")
        if reason == "call_wanted":
            call: CallWanted = execution["call"]
            return _call_wanted(call, facts_of(call.function))
    result = execution.get("result")
    if not strict:
        result = strict_json(result)
    if execution.get("output_error"):
        return c.OutputBroken(result, str(execution["output_error"]))
    try:
        updates = _updates(execution.get("task_updates") or (), bounded)
    except Exception as error:
        return c.OutputBroken(
            result, msg("{place}: {problem}", place="task_updates", problem=kept_text(error))
        )
    if execution.get("success"):
        return _succeeded(result, updates)
    return c.Failed(_failure(execution, result), updates, result)


def _call_wanted(call: CallWanted, facts: c.ToolFacts | None) -> c.Outcome:
    """Nobody can be asked in the middle of a snippet, so what needs consent is refused."""
    if facts is None:
        return c.Failed(
            Failure(FailureKind.PERMANENT, msg("there is no tool {tool}", tool=call.function))
        )
    mode = mode_of(facts.approval, call.args)
    if mode is not ApprovalMode.AUTO:
        if mode is ApprovalMode.DISABLED:
            why = msg("the tool {tool} is disabled", tool=call.function)
        else:
            why = msg(
                "the tool {tool} needs approval: call it in a tool listener", tool=call.function
            )
        return c.Failed(Failure(FailureKind.FORBIDDEN, why))
    return c.CallWanted(call.index, call.function, call.args, facts.idempotent)


def _failure(result: Mapping[str, Any], value: Json) -> Failure:
    named = value.get("error_class") if isinstance(value, Mapping) else None
    kind = FailureKind(named) if named in set(FailureKind) else FailureKind.TRANSIENT
    asked = asked_seconds(value.get("retry_after")) if isinstance(value, Mapping) else None
    said = kept_text(result.get("error") or msg("the work failed without saying why"))
    return Failure(kind, said, asked)


def _updates(told: Iterable[Mapping[str, Any]], bounded: bool) -> tuple[TaskUpdate, ...]:
    updates = []
    for raw in told:
        status, context = raw["status"], raw.get("context") or {}
        status = status if type(status) is TaskStatus else TaskStatus(status)
        if not bounded:
            context = strict_json(context if type(context) is dict else dict(context))
        updates.append(_update(str(raw["task_id"]), status, context, str(raw.get("reason", ""))))
    return tuple(updates)
