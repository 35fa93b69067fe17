"""A listener carried out by hand: `execute_listener(listener, plan_instance.context)`.

The context is then a plain dict, as in the seeds, and no engine stands behind the call: nothing
is recorded, no task moves, and the result says what would have moved. What a person must consent
to, and what only the engine can do, is refused.
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from holdfast.core.approval import mode_of
from holdfast.core.forms.from_tools import form_from_schema
from holdfast.core.forms.shapes import dump_form
from holdfast.core.language.templates import render
from holdfast.core.plan.compiled import CompiledListener
from holdfast.core.plan.state import PlanState, TaskFacts, TaskState
from holdfast.core.run.state import NEW_STEP, RunState, evolve
from holdfast.errors import CallerError, ForbiddenError, NotAllowed
from holdfast.model import effects as f
from holdfast.model.approval import ApprovalMode
from holdfast.model.plan import CodeAction, Listener, ToolAction
from holdfast.model.values import Json
from holdfast.work.tools import ToolRegistry

States: TypeAlias = Callable[[str], Awaitable[RunState]]


async def state_of(
    states: States | None, listener: Listener, context: Mapping[str, Any]
) -> PlanState:
    """The instance that the context is of, with the values that the context has."""
    run_id = (context.get("metadata") or {}).get("plan_instance_id")
    if states is None or not isinstance(run_id, str):
        raise CallerError("pass the context of a plan instance: its metadata names the instance")
    state = await states(run_id)
    if not isinstance(state, PlanState):
        raise CallerError(f"{run_id} is no plan instance")
    if state.plan.listener(listener.listener_id).listener != listener:
        raise CallerError(f"{listener.listener_id} is another listener in the plan of {run_id}")
    return _with_values(state, listener.listener_id, context)


def _with_values(state: PlanState, listener_id: str, context: Mapping[str, Any]) -> PlanState:
    main = state.main_task
    values = dict(context.get("values") or main.context)
    tasks = state.tasks.insert(state.plan.main, TaskState(main.status, values, main.trace))
    step = state.steps.get(listener_id, NEW_STEP)
    provided = {**step.provided, **(context.get("provided_params") or {})}
    steps = state.steps.insert(listener_id, evolve(step, provided=provided))
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
            raise NotAllowed(f"{listener.id} ({action.kind}) is carried out by the engine only")


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
    args = render(listener.args, TaskFacts(state.tasks))
    args |= {name: value for name, value in provided.items() if name in known}
    if missing := tools.missing_arguments(action.tool, args):
        form = form_from_schema(spec.parameters, missing, action.fields)
        return {"reason": "missing_params", "required_params": dump_form(form)}
    if listener.listener.approval or mode_of(spec.approval, args) is ApprovalMode.REQUIRE_APPROVAL:
        raise ForbiddenError(f"the tool {action.tool} needs approval: answer its question")
    return f.CallTool(work, action.tool, args, spec.idempotent)
