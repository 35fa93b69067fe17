"""A listener carried out by hand: `execute_listener(listener, plan_instance.context)`.

The context is then a plain dict, as in the seeds, and no engine stands behind the call: nothing
is recorded, no task moves, and the result says what would have moved. What a person must consent
to, and what only the engine can do, is refused.
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, Final, TypeAlias

from holdfast.core.approval import mode_of
from holdfast.core.plan.compiled import CompiledListener
from holdfast.core.plan.state import PlanState, TaskState
from holdfast.core.run.state import NEW_STEP, RunState, evolve
from holdfast.core.storing import record_from_json, record_to_json
from holdfast.errors import CallerError, ForbiddenError, NotAllowed
from holdfast.forms.from_tools import form_from_schema
from holdfast.forms.schemas import dump_form
from holdfast.i18n.message import msg
from holdfast.language.templates import render
from holdfast.model import effects as f
from holdfast.model.approval import ApprovalMode
from holdfast.model.plan import CodeAction, Listener, ToolAction
from holdfast.model.values import Json
from holdfast.work.tools import ToolRegistry

States: TypeAlias = Callable[[str], Awaitable[RunState]]


_TYPES: Final = {"tool": "tool", "code_snippet": "code", "agent_id": "agent", "plan_id": "plan"}
_NAMES: Final = ("id", "listener_id")


def as_listener(given: Listener | Mapping[str, Any]) -> Listener:
    """A listener as it is, or the seeds' dict of one; what its outputs do not need may be left
    out."""
    if isinstance(given, Listener):
        return given
    kind = next((kind for name, kind in _TYPES.items() if name in given), "human")
    usual = {"trigger_task_id": (), "trigger_condition": "", "listener_type": kind}
    try:
        return record_from_json(Listener, {**usual, **given, "listener_id": _id_of(given)})
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise CallerError(f"this is no listener: {type(error).__name__} {error}") from None


def _id_of(given: Mapping[str, Any]) -> str:
    named = [given[name] for name in _NAMES if isinstance(given.get(name), str)]
    if not named:
        raise CallerError("a listener is a Listener, or a dict with its listener_id")
    return str(named[-1])


def of_plan(state: PlanState, given: Listener | Mapping[str, Any]) -> CompiledListener:
    """The plan's own listener; a dict may leave out whatever it does not contradict."""
    if isinstance(given, Listener):
        found = state.plan.listener(given.listener_id)
        same = found.listener == given
    else:
        found = state.plan.listener(_id_of(given).removeprefix(f"{state.run_id}_"))
        told = record_to_json(found.listener)
        same = all(told.get(name) == given[name] for name in given if name not in _NAMES)
    if not same:
        raise CallerError(
            msg("{id} is another listener in the plan of {run}", id=found.id, run=state.run_id)
        )
    return found


async def state_of(
    states: States | None, listener: Listener | Mapping[str, Any], context: Mapping[str, Any]
) -> tuple[PlanState, CompiledListener]:
    """The instance that the context is of, with the values that the context has, and its
    listener."""
    run_id = (context.get("metadata") or {}).get("plan_instance_id")
    if states is None or not isinstance(run_id, str):
        raise CallerError(
            msg("pass the context of a plan instance: its metadata names the instance")
        )
    state = await states(run_id)
    if not isinstance(state, PlanState):
        raise CallerError(msg("{id} is no plan instance", id=run_id))
    found = of_plan(state, listener)
    return _with_values(state, found.id, context), found


def _with_values(state: PlanState, listener_id: str, context: Mapping[str, Any]) -> PlanState:
    main = state.main_task
    values = dict(context.get("values") or main.context)
    tasks = state.tasks.set(state.plan.main, TaskState(main.status, values, main.moves))
    step = state.steps.get(listener_id, NEW_STEP)
    provided = {**step.provided, **(context.get("provided_params") or {})}
    steps = state.steps.set(listener_id, evolve(step, provided=provided))
    return replace(state, tasks=tasks, steps=steps)


def effect_of(
    tools: ToolRegistry, listener: CompiledListener, state: PlanState, now: float
) -> f.CallTool | f.RunSnippet | dict[str, Any]:
    """What is to be done, or what is missing for it."""
    provided = state.steps[listener.id].provided
    key = f"{state.run_id}:{listener.id}:by_hand:{uuid.uuid4().hex}"
    work = f.Work(state.run_id, listener.id, 0, 1, 0, key, listener.listener.timeout)
    match listener.action:
        case ToolAction() as action:
            return _call(tools, listener, action, work, state, provided)
        case CodeAction(code_snippet=snippet, functions=()):
            return f.RunSnippet(work, snippet, (), (), provided, now)
        case action:
            raise NotAllowed(
                msg(
                    "{id} ({kind}) is carried out by the engine only",
                    id=listener.id,
                    kind=action.kind,
                )
            )


def _call(
    tools: ToolRegistry,
    listener: CompiledListener,
    action: ToolAction,
    work: f.Work,
    state: PlanState,
    provided: Mapping[str, Json],
) -> f.CallTool | dict[str, Any]:
    spec = tools.get(action.tool).spec
    known = spec.parameters.get("properties", {})
    args = render(listener.args, state)
    args |= {name: value for name, value in provided.items() if name in known}
    if missing := tools.missing_arguments(action.tool, args):
        form = form_from_schema(spec.parameters, missing, action.fields)
        return {"reason": "missing_params", "required_params": dump_form(form)}
    if listener.listener.approval or mode_of(spec.approval, args) is ApprovalMode.REQUIRE_APPROVAL:
        raise ForbiddenError(
            msg("the tool {tool} needs approval: answer its question", tool=action.tool)
        )
    return f.CallTool(work, action.tool, args, spec.idempotent)
