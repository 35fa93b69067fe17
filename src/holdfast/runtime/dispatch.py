"""From effects to outcomes, through the driver and the planner that users may replace."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final, Protocol

from holdfast.core.approval import mode_of
from holdfast.core.conversation.state import ConversationState
from holdfast.core.forms.from_tools import form_from_schema
from holdfast.core.forms.shapes import parse_form
from holdfast.core.language.strict import strict_json
from holdfast.core.plan.outputs import succeeded
from holdfast.core.plan.state import PlanState
from holdfast.core.run.state import RunState
from holdfast.errors import AuthorError
from holdfast.model import commands as c
from holdfast.model import effects as f
from holdfast.model.approval import ApprovalMode
from holdfast.model.form import Form
from holdfast.model.plan import Listener, TaskStatus, TaskUpdate
from holdfast.model.retry import Failure, FailureKind
from holdfast.model.values import Json
from holdfast.runtime.failing import failed, kept_text, settled
from holdfast.runtime.ports import Performed, Words
from holdfast.work.agents import CALL_TIMEOUT, AgentWorker
from holdfast.work.driver import ListenerContext, TaskDriver
from holdfast.work.ending import ends_from_without
from holdfast.work.retry_after import asked_seconds
from holdfast.work.sandbox import CallWanted
from holdfast.work.tools import Tool, ToolRegistry, ToolSpec

MOST_THREADS: Final = 1_000
"""Of so many calls that nobody waits for any more it is known what became of them."""


_NO_WORDS: Final = Words(late=lambda outcome: None, live=lambda text: None)


class ConversationWork(Protocol):
    """What a conversation's own coordinator, model and callables do."""

    async def perform(self, effect: f.ConversationWork) -> c.Outcome: ...


class Driver(Protocol):
    tools: ToolRegistry

    async def execute_listener(
        self, listener: Listener, context: ListenerContext
    ) -> Mapping[str, Any]: ...

    async def call_function(self, effect: f.CallFunction) -> Json: ...


class Dispatcher:
    """Carries out effects; reports what came of them and never raises for it."""

    def __init__(self, driver: Driver, agents: AgentWorker) -> None:
        self.driver = driver
        self.agents = agents
        self.conversations: dict[str, ConversationWork] = {}
        self._facts: dict[str, tuple[ToolSpec, c.ToolFacts]] = {}
        self._outlasting: set[asyncio.Future[c.Outcome]] = set()
        self._threads: OrderedDict[str, tuple[f.CallTool, asyncio.Future[c.Outcome]]]
        self._threads = OrderedDict()
        self._closed = False

    async def close(self) -> None:
        """Stop waiting for calls that have outlasted their time-outs."""
        self._closed = True
        left = tuple(self._outlasting)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    def tool_facts(self, name: str) -> c.ToolFacts | None:
        tool = self.driver.tools.find(name)
        if tool is None:
            return None
        spec, known = tool.spec, self._facts.get(name)
        if known is None or known[0] is not spec:
            self._facts[name] = known = (spec, _facts_of(spec))
        return known[1]

    def attends(self, state: RunState) -> bool:
        """A conversation's work is done by the engine that its consumer holds."""
        return not isinstance(state, ConversationState) or state.run_id in self.conversations

    async def perform(
        self,
        effect: Performed,
        state: RunState,
        now: float,
        words: Words,
    ) -> c.Outcome:
        """One attempt; a result that comes after the time-out goes to `words.late`."""
        match effect:
            case f.CallTool(work=work, tool=name) | f.CallFunction(work=work, function=name):
                tool, timeout = self.driver.tools.find(name), work.timeout
                if timeout is None and tool is not None:
                    timeout = tool.spec.timeout
                if timeout is None and not isinstance(state, PlanState):
                    timeout = CALL_TIMEOUT
            case _:
                tool = timeout = None
        if timeout is None:
            return await self._work(effect, state, now, words)
        if isinstance(effect, f.CallTool) and not effect.idempotent and _blocks(tool):
            alone = self._after_former(effect, partial(self._work, effect, state, now, words))
            return await self._within(timeout, alone, words.late, effect)
        return await self._within(timeout, self._work(effect, state, now, words), words.late)

    def conclude(self, effect: f.Conclude, state: RunState, now: float) -> c.Outcome | None:
        """What a result that is at hand comes to; None where a driver of the user's own may take
        its time over it. Ours never waits then, so one step of its coroutine is all."""
        execute = getattr(self.driver.execute_listener, "__func__", None)
        if execute is not TaskDriver.execute_listener:
            return None
        try:
            self._work(effect, state, now, _NO_WORDS).send(None)
        except StopIteration as done:
            outcome: c.Outcome = done.value
            return outcome
        except BaseException as error:
            if ends_from_without(error, None):
                raise
            return failed(error)
        raise AssertionError("a conclusion waited for something")

    async def _after_former(
        self, call: f.CallTool, work: Callable[[], Awaitable[c.Outcome]]
    ) -> c.Outcome:
        """Where the former thread of the same firing still runs, it is waited for: if that call
        went well, even while this one was on its way, it is not made again."""
        if (known := self._threads.pop(_firing(call), None)) is not None:
            former, thread = known
            await asyncio.wait((thread,))
            ended = None if thread.cancelled() else thread.result()
            if isinstance(ended, c.Succeeded) and former.args == call.args:
                return ended
        return await work()

    async def _work(
        self, effect: Performed, state: RunState, now: float, words: Words
    ) -> c.Outcome:
        try:
            match effect:
                case f.CallTool() | f.RunSnippet() | f.Conclude() if isinstance(state, PlanState):
                    listener = state.plan.listeners[effect.work.step_id]
                    context = ListenerContext(effect, listener, state, now)
                    execution = await self.driver.execute_listener(listener.listener, context)
                    return self._outcome(execution, effect)
                case f.CallTool():
                    return self._answered(effect, strict_json(await self.agents.call(effect)))
                case f.CallFunction():
                    result = strict_json(await self.driver.call_function(effect))
                    return c.CallReturned(effect.index, result)
                case f.AskModel():
                    asked = self.agents.ask(effect, words.live, partial(words.live, None))
                    return c.Replied(await asked)
                case f.RunSnippet() | f.Conclude():
                    raise AssertionError("only the listener of a plan runs code, or concludes")
                case _:
                    work = self.conversations.get(effect.work.run_id)
                    return c.NotSent() if work is None else await work.perform(effect)
        except Exception as error:
            return failed(error)

    async def _within(
        self,
        timeout: float,
        work: Awaitable[c.Outcome],
        late: Callable[[c.Outcome], None],
        thread: f.CallTool | None = None,
    ) -> c.Outcome:
        """Wait for the work, but not for ever: a call once sent cannot be called back. A `thread`
        goes on even where nobody waits any more, and then its result is late as well."""
        task = asyncio.ensure_future(settled(work))
        try:
            done, _ = await asyncio.wait((task,), timeout=timeout)
        except asyncio.CancelledError:
            if thread is None or self._closed:
                task.cancel()
            else:
                self._outlast(task, late, thread)
            raise
        if done:
            return task.result()
        self._outlast(task, late, thread)
        return c.Lost(f"no answer within {timeout:g} s")

    def _outlast(
        self,
        task: asyncio.Future[c.Outcome],
        late: Callable[[c.Outcome], None],
        thread: f.CallTool | None,
    ) -> None:
        self._outlasting.add(task)
        if thread is not None:
            self._threads[_firing(thread)] = (thread, task)
            if len(self._threads) > MOST_THREADS:
                self._threads.popitem(last=False)
        task.add_done_callback(self._outlasting.discard)
        task.add_done_callback(lambda one: None if one.cancelled() else late(one.result()))

    def _answered(self, effect: f.CallTool, result: Json) -> c.Outcome:
        """An agent's call: what the tool says of itself decides, as it does in a plan."""
        if isinstance(result, Mapping) and result.get("reason") == "missing_params":
            return self._lacking(effect.tool, result.get("required_params") or {})
        if succeeded(result):
            return c.Succeeded(result)
        return c.Failed(_failure(result, result), result=result)

    def _lacking(self, tool: str, wanted: Json) -> c.Outcome:
        """A result may carry a model's words, so a person is shown those of the tool's schema."""
        facts = self.tool_facts(tool)
        known = facts.parameters.get("properties", {}) if facts else {}
        try:
            names = [one.name for one in parse_form(wanted).fields]
        except AuthorError as error:
            return c.Failed(Failure(FailureKind.PERMANENT, kept_text(error)))
        asked = [name for name in names if name in known]
        if facts is None or not asked:
            listed, own = ", ".join(names) or "nothing by name", ", ".join(known) or "none"
            why = f"{tool} asks for {listed}, but none of it is among its parameters: {own}"
            return c.Failed(Failure(FailureKind.PERMANENT, kept_text(why)))
        form = form_from_schema(facts.parameters, asked, facts.fields)
        required = Form(tuple(replace(one, required=True) for one in form.fields))
        return c.Missing(required, facts.version)

    def _outcome(
        self, execution: Mapping[str, Any], effect: f.CallTool | f.RunSnippet | f.Conclude
    ) -> c.Outcome:
        reason = execution.get("reason")
        if reason == "missing_params":
            facts = self.tool_facts(effect.tool) if isinstance(effect, f.CallTool) else None
            form = parse_form(execution.get("required_params") or {})
            return c.Missing(form, facts.version if facts else "")
        if reason == "call_wanted":
            return self._call_wanted(execution["call"])
        result = strict_json(execution.get("result"))
        if execution.get("output_error"):
            return c.OutputBroken(result, str(execution["output_error"]))
        try:
            updates = tuple(map(_update, execution.get("task_updates") or ()))
        except Exception as error:
            return c.OutputBroken(result, f"task_updates: {kept_text(error)}")
        if execution.get("success"):
            return c.Succeeded(result, updates)
        return c.Failed(_failure(execution, result), updates, result)

    def _call_wanted(self, call: CallWanted) -> c.Outcome:
        """Nobody can be asked in the middle of a snippet, so what needs consent is refused."""
        facts = self.tool_facts(call.function)
        if facts is None:
            return c.Failed(Failure(FailureKind.PERMANENT, f"there is no tool {call.function}"))
        mode = mode_of(facts.approval, call.args)
        if mode is not ApprovalMode.AUTO:
            disabled = mode is ApprovalMode.DISABLED
            why = "is disabled" if disabled else "needs approval: call it in a tool listener"
            return c.Failed(Failure(FailureKind.FORBIDDEN, f"the tool {call.function} {why}"))
        return c.CallWanted(call.index, call.function, call.args, facts.idempotent)


def _facts_of(spec: ToolSpec) -> c.ToolFacts:
    return c.ToolFacts(
        spec.parameters,
        spec.version,
        spec.idempotent or spec.read_only,
        spec.approval,
        spec.fields,
    )


def _failure(result: Mapping[str, Any], value: Json) -> Failure:
    named = value.get("error_class") if isinstance(value, Mapping) else None
    kind = FailureKind(named) if named in set(FailureKind) else FailureKind.TRANSIENT
    asked = asked_seconds(value.get("retry_after")) if isinstance(value, Mapping) else None
    said = kept_text(result.get("error") or "the work failed without saying why")
    return Failure(kind, said, asked)


def _blocks(tool: Tool | None) -> bool:
    """Whether it is a thread that nobody can break off, and that must not run twice at once."""
    return getattr(tool, "blocks", False)


def _update(raw: Mapping[str, Any]) -> TaskUpdate:
    task_id, status = str(raw["task_id"]), raw["status"]
    return TaskUpdate(
        task_id,
        status if type(status) is TaskStatus else TaskStatus(status),
        strict_json(dict(raw.get("context") or {})),
        str(raw.get("reason", "")),
    )


def _firing(call: f.CallTool) -> str:
    """The key without its last part, which a person who has it run again makes another."""
    return call.work.key.rpartition(":")[0]
