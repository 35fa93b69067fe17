"""From effects to outcomes, through the driver and the planner that users may replace."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from holdfast.core.forms.shapes import parse_form
from holdfast.core.language.strict import strict_json
from holdfast.core.plan.compiled import CompiledListener
from holdfast.core.plan.state import PlanState
from holdfast.errors import AuthorError, InvalidValue
from holdfast.model import commands as c
from holdfast.model import effects as f
from holdfast.model.plan import Listener, TaskStatus, TaskUpdate
from holdfast.model.retry import Failure, FailureKind
from holdfast.model.values import Json
from holdfast.work.driver import ListenerContext
from holdfast.work.sandbox import CallWanted
from holdfast.work.tools import ToolRegistry, ToolSpec, classify

log = logging.getLogger("holdfast")

LONGEST_MESSAGE = 2_000

Late = Callable[[c.Outcome], None]


class Driver(Protocol):
    tools: ToolRegistry

    async def execute_listener(
        self, listener: Listener, context: ListenerContext
    ) -> Mapping[str, Any]: ...

    async def call_function(self, effect: f.CallFunction) -> Json: ...


class Dispatcher:
    """Carries out effects; reports what came of them and never raises for it."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self._facts: dict[str, tuple[ToolSpec, c.ToolFacts]] = {}
        self._outlasting: set[asyncio.Future[c.Outcome]] = set()

    async def close(self) -> None:
        """Stop waiting for calls that have outlasted their time-outs."""
        left = tuple(self._outlasting)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    def tool_facts(self, name: str) -> c.ToolFacts | None:
        if name not in self.driver.tools:
            return None
        spec = self.driver.tools.get(name).spec
        known = self._facts.get(name)
        if known is None or known[0] is not spec:
            self._facts[name] = known = (spec, _facts_of(spec))
        return known[1]

    async def perform(
        self,
        effect: f.CallTool | f.RunSnippet | f.CallFunction | f.Conclude,
        listener: CompiledListener,
        state: PlanState,
        now: float,
        late: Late,
    ) -> c.Outcome:
        """One attempt; a result that comes after the time-out goes to `late`."""
        if isinstance(effect, f.CallFunction):
            work: Awaitable[c.Outcome] = self._call_function(effect)
        else:
            work = self._execute(effect, listener, state, now)
        timeout = self._timeout(effect)
        if timeout is None:
            return await work
        return await self._within(timeout, work, late)

    def _timeout(self, effect: f.Effect) -> float | None:
        match effect:
            case f.CallTool(work=work, tool=tool) | f.CallFunction(work=work, function=tool):
                known = tool in self.driver.tools
                own = self.driver.tools.get(tool).spec.timeout if known else None
                return work.timeout if work.timeout is not None else own
            case _:
                return None

    async def _within(self, timeout: float, work: Awaitable[c.Outcome], late: Late) -> c.Outcome:
        """Wait for the work, but not for ever: a call once sent cannot be called back."""
        task = asyncio.ensure_future(work)
        try:
            done, _ = await asyncio.wait((task,), timeout=timeout)
        except asyncio.CancelledError:
            task.cancel()
            raise
        if done:
            return task.result()
        self._outlasting.add(task)
        task.add_done_callback(self._outlasting.discard)
        task.add_done_callback(lambda one: None if one.cancelled() else late(one.result()))
        return c.Lost(f"no answer within {timeout:g} s")

    async def _execute(
        self,
        effect: f.CallTool | f.RunSnippet | f.Conclude,
        listener: CompiledListener,
        state: PlanState,
        now: float,
    ) -> c.Outcome:
        context = ListenerContext(effect, listener, state, now)
        try:
            result = await self.driver.execute_listener(listener.listener, context)
            return self._outcome(result)
        except Exception as error:
            return _failed(error)

    async def _call_function(self, effect: f.CallFunction) -> c.Outcome:
        try:
            result = strict_json(await self.driver.call_function(effect))
            return c.CallReturned(effect.index, result)
        except Exception as error:
            return _failed(error)

    def _outcome(self, result: Mapping[str, Any]) -> c.Outcome:
        if result.get("reason") == "missing_params":
            return c.Missing(parse_form(result.get("required_params") or {}))
        if result.get("reason") == "call_wanted":
            return self._call_wanted(result["call"])
        value = strict_json(result.get("result"))
        if result.get("output_error"):
            return c.OutputBroken(value, str(result["output_error"]))
        try:
            updates = tuple(_update(one) for one in result.get("task_updates") or ())
        except Exception as error:
            return c.OutputBroken(value, f"task_updates: {_text(error)}")
        if result.get("success"):
            return c.Succeeded(value, updates)
        return c.Failed(_failure(result, value), updates, value)

    def _call_wanted(self, call: CallWanted) -> c.Outcome:
        """Nobody can be asked in the middle of a snippet, so what needs consent is refused."""
        facts = self.tool_facts(call.function)
        if facts is None:
            return c.Failed(Failure(FailureKind.PERMANENT, f"there is no tool {call.function}"))
        if facts.disabled or facts.approval:
            why = "is disabled" if facts.disabled else "needs approval: call it in a tool listener"
            return c.Failed(Failure(FailureKind.FORBIDDEN, f"the tool {call.function} {why}"))
        return c.CallWanted(call.index, call.function, call.args, facts.idempotent)


def _facts_of(spec: ToolSpec) -> c.ToolFacts:
    return c.ToolFacts(
        spec.parameters,
        spec.version,
        spec.idempotent or spec.read_only,
        spec.approval == "require",
        spec.approval == "disabled",
    )


def _failure(result: Mapping[str, Any], value: Json) -> Failure:
    named = value.get("error_class") if isinstance(value, Mapping) else None
    kind = FailureKind(named) if named in set(FailureKind) else FailureKind.TRANSIENT
    return Failure(kind, _text(result.get("error") or "the work failed without saying why"))


def _text(said: object) -> str:
    """Foreign words as the journal can keep them: real Unicode, and not without end."""
    sound = str(said).encode("utf-8", "backslashreplace").decode()
    return sound if len(sound) <= LONGEST_MESSAGE else f"{sound[:LONGEST_MESSAGE]}…"


def _update(raw: Mapping[str, Any]) -> TaskUpdate:
    return TaskUpdate(
        str(raw["task_id"]),
        TaskStatus(raw["status"]),
        strict_json(dict(raw.get("context") or {})),
        str(raw.get("reason", "")),
    )


def _failed(error: Exception) -> c.Outcome:
    """What the work raised, by who can do something about it."""
    message = _text(error) or type(error).__name__
    if isinstance(error, AuthorError | InvalidValue):
        return c.Failed(Failure(FailureKind.PERMANENT, message))
    kind = classify(error)
    if kind is FailureKind.UNKNOWN:
        return c.Lost(message)
    log.debug("a listener's work failed", exc_info=error)
    return c.Failed(Failure(kind, message))
