"""The task driver: carries out one attempt of a listener and says what came of it.

The engine goes through `TaskDriver` for every listener, so a subclass that
overrides `execute_listener` or `determine_task_updates` is honoured. The result
has the shape of the seeds: `{success, task_updates, result, error}`, or
`{success: False, reason: "missing_params", required_params: {...}}`. Code of your own may call it
too, with a plan instance's context (see `by_hand`).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from immutables import Map

from holdfast.core.plan.compiled import CompiledListener
from holdfast.core.plan.outputs import told_updates
from holdfast.core.plan.state import PlanState, TaskFacts
from holdfast.core.run.state import EMPTY
from holdfast.errors import InvalidValue
from holdfast.i18n.message import msg
from holdfast.language.strict import copied, strict_json
from holdfast.model import effects as f
from holdfast.model.plan import Listener
from holdfast.model.values import Json
from holdfast.work import by_hand
from holdfast.work.calling import call_tool, call_with_secrets
from holdfast.work.sandbox import CallWanted, Sandbox
from holdfast.work.tools import ToolRegistry, not_kept

ListenerWork: TypeAlias = f.CallTool | f.RunSnippet | f.Conclude


class ListenerContext(Mapping[str, Any]):
    """What a listener may know of its run: copies from the state, made on demand."""

    __slots__ = ("effect", "listener", "state")

    _KEYS = ("plan_instance_id", "plan_id", "values", "metadata", "tasks", "provided_params")

    def __init__(self, effect: ListenerWork, listener: CompiledListener, state: PlanState) -> None:
        self.effect = effect
        self.listener = listener
        self.state = state

    def __getitem__(self, key: str) -> Any:
        match key:
            case "plan_instance_id":
                return self.state.run_id
            case "plan_id":
                return self.state.plan_id
            case "values":
                return copied(self.state.main_task.context)
            case "metadata":
                return {"prompt": self.state.prompt, "started_by": self.state.started_by}
            case "tasks":
                return {one: copied(task.context) for one, task in self.state.tasks.items()}
            case "provided_params":
                return copied(self.state.steps[self.listener.id].provided)
            case _:
                raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        return iter(self._KEYS)

    def __len__(self) -> int:
        return len(self._KEYS)


class TaskDriver:
    __slots__ = ("__dict__", "sandbox", "states", "tools")

    def __init__(self, tools: ToolRegistry, sandbox: Sandbox) -> None:
        self.tools = tools
        self.sandbox = sandbox
        self.states: by_hand.States | None = None

    async def execute_listener(
        self, listener: Listener | Mapping[str, Any], context: Mapping[str, Any]
    ) -> dict[str, Any]:
        """One attempt; the listener may be a dict, as a plan's JSON has it. What the work raises is
        classified by the engine, whose context is a
        `ListenerContext`; with the dict of a plan instance it is an error in the result."""
        if not isinstance(context, ListenerContext):
            return await self._execute_by_hand(listener, context)
        effect = context.effect
        if isinstance(effect, f.CallTool):
            result = await call_tool(self.tools, effect)
            try:
                result = strict_json(result)
            except InvalidValue as error:
                raise not_kept(effect.tool, error) from None
        elif isinstance(effect, f.RunSnippet):
            result = await self._run_snippet(effect, context)
            if isinstance(result, CallWanted):
                wanted = {"success": False, "reason": "call_wanted", "call": result}
                return {**wanted, "task_updates": []}
        else:
            result = copied(effect.result)
        said = result if type(result) is dict else _said_by(result)
        reason = said.get("reason")
        if reason is not None and reason == "missing_params":
            return {**said, "task_updates": []}
        success = said.get("success") is not False
        execution: dict[str, Any] = {"success": success, "result": result}
        if not success:
            execution["error"] = _reason(said)
        try:
            execution["task_updates"] = self.determine_task_updates(listener, execution, context)
        except Exception as error:
            # The work is done: whatever went wrong here must not make it run again.
            return {**execution, "task_updates": [], "output_error": f"{error}" or "no output"}
        return execution

    async def _execute_by_hand(
        self, listener: Listener | Mapping[str, Any], context: Mapping[str, Any]
    ) -> dict[str, Any]:
        try:
            state, compiled = await by_hand.state_of(self.states, listener, context)
            effect = by_hand.effect_of(self.tools, compiled, state, time.time())
            if isinstance(effect, dict):
                return {"success": False, **effect, "task_updates": []}
            made = ListenerContext(effect, compiled, state)
            return await TaskDriver.execute_listener(self, compiled.listener, made)
        except Exception as error:
            return {"success": False, "error": str(error), "task_updates": []}

    def determine_task_updates(
        self,
        listener: Listener | Mapping[str, Any],
        execution_result: Mapping[str, Any],
        context: ListenerContext | None = None,
    ) -> list[dict[str, Any]]:
        """What the result means for the tasks; the inner `success` decides which output. Without
        a context, outputs can read the result only."""
        result = execution_result.get("result")
        said = result if type(result) is dict else _said_by(result)
        success = bool(execution_result.get("success")) and said.get("success") is not False
        if type(context) is ListenerContext or context:
            compiled, tasks = context.listener, context.state.tasks
        else:
            compiled, tasks = CompiledListener(by_hand.as_listener(listener)), Map()
        return told_updates(compiled, success, result, TaskFacts(tasks, {"result": result}))

    async def call_function(self, effect: f.CallFunction) -> Json:
        """A snippet's external function: a tool that the plan allows it."""
        tool, work = self.tools.get(effect.function), effect.work
        key = f"{work.key}.{effect.index}"
        return await call_with_secrets(self.tools, tool, effect.args, work, key)

    async def _run_snippet(
        self, effect: f.RunSnippet, context: ListenerContext
    ) -> Json | CallWanted:
        outcome = await self.sandbox.run(
            effect.code_snippet,
            snippet_context(context),
            now=effect.now,
            key=f"{effect.work.run_id}:{effect.work.step_id}:{effect.now}",
            functions=effect.functions,
            recorded=effect.recorded,
        )
        return outcome if isinstance(outcome, CallWanted) else outcome.result


def _reason(result: Mapping[str, Json]) -> str:
    """What failed, in the work's own words: in `error`, or in the context that it sets."""
    context = result.get("context")
    told = context.get("error") if isinstance(context, Mapping) else None
    return str(result.get("error") or told or msg("the work reported success: false"))


def _said_by(result: Json) -> Mapping[str, Json]:
    """What a result that is no plain dict says by names."""
    return result if isinstance(result, Mapping) else EMPTY


def snippet_context(context: ListenerContext) -> dict[str, Json]:
    """A snippet's `context`: each task's context by id, and what people have provided.

    Only what the snippet reads by a literal name is handed over, unless it may read all.
    """
    state = context.state
    reads = context.listener.code_reads
    named: Mapping[str, Json] = {
        "values": state.main_task.context,
        "provided_params": dict(state.steps[context.listener.id].provided),
        "plan_instance_id": state.run_id,
    }
    if reads is None:
        return {**{one: task.context for one, task in state.tasks.items()}, **named}
    known = state.plan.task_ids
    found = {one: state.task(one).context or EMPTY for one in reads if one in known}
    return {**found, **{one: named[one] for one in reads if one in named}}
