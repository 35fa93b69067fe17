"""One attempt: a listener or a call is carried out, and what came of it becomes an outcome.

The engine goes through `TaskDriver` for every listener, so a subclass that overrides
`execute_listener` or `determine_task_updates` is honoured. A result has the shape of the seeds:
`{success, task_updates, result, error}`, or `{success: False, reason: "missing_params",
required_params: {...}}`. Application code may call it too, with a plan instance's context
(`by_hand`).

`call_tool` runs the arguments that were consented to, or nothing.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, TypeAlias

from immutables import Map

from holdfast.core.approval import mode_of
from holdfast.core.interactions.calls import absent, bind_consent, call_name
from holdfast.core.plan.builder import told_updates
from holdfast.core.plan.compiled import CompiledListener
from holdfast.core.plan.state import PlanState, TaskFacts
from holdfast.core.run.state import EMPTY
from holdfast.core.run.steps import succeeded
from holdfast.errors import AuthorError, ForbiddenError, InvalidValue
from holdfast.forms.from_tools import form_from_schema
from holdfast.forms.secrets import PREFIX
from holdfast.forms.shapes import parse_form
from holdfast.i18n.message import msg
from holdfast.language.strict import copied, strict_json
from holdfast.model import commands as c
from holdfast.model import effects as f
from holdfast.model.approval import ApprovalMode
from holdfast.model.events import TaskUpdate
from holdfast.model.form import Form
from holdfast.model.plan import Listener, TaskStatus
from holdfast.model.record import constructor
from holdfast.model.retry import Failure, FailureKind
from holdfast.model.values import Json
from holdfast.work import by_hand
from holdfast.work.confidence import Hide, in_confidence
from holdfast.work.failed_attempts import asked_seconds, kept_text
from holdfast.work.failure_details import details_in
from holdfast.work.sandbox import CallWanted, Sandbox
from holdfast.work.tools import CallInfo, PythonTool, Tool, ToolRegistry, ToolSpec, kept, not_kept

ListenerWork: TypeAlias = f.CallTool | f.RunSnippet | f.Conclude
FactsOf: TypeAlias = Callable[[str], c.ToolFacts | None]

_AUTO: Final = ApprovalMode.AUTO
_WITHOUT_TEXT: Final = frozenset({int, float, bool, type(None)})
_call_info: Final = constructor(CallInfo)
_succeeded: Final = constructor(c.Succeeded)
_update: Final = constructor(TaskUpdate)


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
            problem = str(error) or msg("no output")
            return {**execution, "task_updates": [], "output_error": problem}
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


def call_tool(tools: ToolRegistry, effect: f.CallTool) -> Awaitable[Any]:
    """What the tool returns, which the caller has yet to make strict."""
    find, name = tools.find, effect.tool
    tool = find(name) or tools.get(name)
    rule, work = tool.spec.approval, effect.work
    if rule.mode is not _AUTO or rule.when is not None:
        _check_mode(tool.spec, effect)
    if effect.consent is not None:
        _check_consent(tool.spec, effect)
    args = effect.args
    if is_plain(args):
        call = _call_info(work.key, work.run_id, work.attempt)
        if type(tool) is PythonTool:  # it has no secrets, and leaves the dict as it is
            return tool.call(args, call)
        if not getattr(tool, "secrets", None):
            return tool.call({**args}, call)
    return call_with_secrets(tools, tool, args, work, work.key)


def is_plain(args: Mapping[str, Json]) -> bool:
    """Whether there is no reference to a secret in it, and nothing that could be changed but
    itself. It looks at exact types: the arguments of every call pass here."""
    for one in [*args, *args.values()]:
        kind = type(one)
        if kind is int or (kind is str and PREFIX not in one) or kind in _WITHOUT_TEXT:
            continue
        return False
    return True


def call_with_secrets(
    tools: ToolRegistry, tool: Tool, args: Mapping[str, Json], work: f.Work, key: str
) -> Awaitable[Json]:
    """Call a tool with what its arguments refer to; what comes back has none of it."""

    async def call(filled: Json, hide: Hide) -> Json:
        called = CallInfo(key, work.run_id, work.attempt, hide)
        return kept(tool.spec.name, await tool.call(filled, called))

    own = getattr(tool, "secrets", ())
    return in_confidence(tools.secrets, work.run_id, args, call, own)


def _check_mode(spec: ToolSpec, effect: f.CallTool) -> None:
    """What its author has disabled does not run, whatever was decided before that."""
    if mode_of(spec.approval, effect.args) is ApprovalMode.DISABLED:
        raise ForbiddenError(msg("the tool {tool} is disabled", tool=effect.tool))


def _check_consent(spec: ToolSpec, effect: f.CallTool) -> None:
    """The executor's own look at what a person agreed to, just before the call."""
    work = effect.work
    call = call_name(work.run_id, work.step_id, work.firing)
    if bind_consent(call, effect.tool, spec.version, effect.args) != effect.consent:
        raise ForbiddenError(msg("consent to {tool} does not fit what would run", tool=effect.tool))


def outcome_of_call(effect: f.CallTool, result: Json, facts_of: FactsOf) -> c.Outcome:
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


def outcome_of_listener(
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
    """No person can be asked in the middle of a snippet, so what needs consent is refused."""
    if facts is None:
        return c.Failed(absent(call.function))
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
    told = _said_by(value)
    named = told.get("error_class")
    kind = FailureKind.TRANSIENT
    if isinstance(named, str) and named in set(FailureKind):
        kind = FailureKind(named)
    asked = asked_seconds(told.get("retry_after"))
    said = kept_text(result.get("error") or msg("the work failed without saying why"))
    of = details_in(told, kind, said)
    return Failure(kind, said, asked, of.cause, of.status, of.code, of.field)


def _updates(told: Iterable[Mapping[str, Any]], bounded: bool) -> tuple[TaskUpdate, ...]:
    updates = []
    for raw in told:
        status, context = raw["status"], raw.get("context") or {}
        status = status if type(status) is TaskStatus else TaskStatus(status)
        if not bounded:
            context = strict_json(context if type(context) is dict else dict(context))
        updates.append(_update(str(raw["task_id"]), status, context, str(raw.get("reason", ""))))
    return tuple(updates)
