"""`ConversationEngine`: a goal is decomposed into tasks, scheduled and executed, event by event.

    engine = ConversationEngine(coordinator=coordinator, llm=llm)
    async for event in engine.run("帮我分析销售数据"):
        print(f"[{event.event_type}] {event.data}")

It is pull-driven: nothing but tasks that have started goes on between two events. Every
event is recorded before it is yielded. By itself an engine keeps its record in memory;
opened on a journal (`await ConversationEngine.open(journal, "sales")`), or given an
application whose tools, agents and plans its tasks may name, it survives its process, and
the same call goes on where it stopped.

`pause`, `resume` and `reset` are plain functions: they take effect at once for whoever
asks the engine, and are recorded when the next event is asked for.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections import deque
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager
from typing import Any, Protocol, Self

from holdfast.app import Holdfast
from holdfast.core.conversation import snapshot as snapshots
from holdfast.core.conversation.decide import blank, decide, replay
from holdfast.core.conversation.state import ConversationState
from holdfast.core.conversation.tables import PAUSABLE, VALID_STATE_TRANSITIONS
from holdfast.core.language.strict import strict_json, strict_text
from holdfast.errors import CallerError, InvalidValue, NotAllowed, NotFound
from holdfast.journal.codec import decode
from holdfast.journal.memory import MemoryJournal
from holdfast.journal.port import Journal
from holdfast.model import commands as c
from holdfast.model import effects as f
from holdfast.model.conversation import (
    ConversationSettings,
    EngineEvent,
    EngineEventType,
    EngineState,
    OnFailure,
    SubTask,
)
from holdfast.model.retry import RetryPolicy
from holdfast.model.values import Json
from holdfast.narration import narrate
from holdfast.plans import LOCAL
from holdfast.runtime.dispatch import Dispatcher
from holdfast.runtime.engine import Engine
from holdfast.runtime.machines import as_conversation, pinned_settings
from holdfast.work.goals import NotDecomposed

__all__ = [
    "VALID_STATE_TRANSITIONS",
    "ConversationEngine",
    "Coordinator",
    "EngineEvent",
    "EngineEventType",
    "EngineState",
    "GoalDecomposer",
    "SubTask",
]

Executor = Callable[..., Awaitable[Any] | Any]

_OVER = (EngineState.COMPLETED, EngineState.ERROR, EngineState.IDLE)


class Coordinator(Protocol):
    """Knows the surroundings: its context has `rules`, `knowledge` and `tools`."""

    async def get_context_async(self, user_input: str) -> Any: ...


class GoalDecomposer(Protocol):
    """Makes tasks of a goal; may also take `context`, `history` and `complaint`, and may
    offer `execute_task` for tasks whose type names nothing."""

    async def decompose_goal(self, text: str) -> Any: ...


class ConversationEngine:
    def __init__(
        self,
        coordinator: Coordinator | None = None,
        llm: GoalDecomposer | None = None,
        *,
        app: Holdfast | None = None,
        executors: Mapping[str, Executor] | None = None,
        once: Sequence[str] = (),
        max_parallel: int = 1,
        retry: RetryPolicy | None = None,
        on_failure: OnFailure | str = OnFailure.ERROR,
        by: str = LOCAL,
    ) -> None:
        """`executors` are callables by task type; those named in `once` are never repeated
        after a crash without asking a person."""
        if max_parallel < 1:
            raise CallerError("max_parallel must be 1 or more")
        settings = ConversationSettings(max_parallel, retry or RetryPolicy(), OnFailure(on_failure))
        self.coordinator = coordinator
        self.llm = llm
        self.id = "conversation"
        self._definition = pinned_settings(settings)
        self._given = app
        self._journal: Journal = MemoryJournal()
        self._executors = dict(executors or {})
        self._once = frozenset(once)
        self._by = by
        self._view = blank(self.id, self._definition)
        self._latest = self._view
        self._wishes: deque[c.Command] = deque()
        self._woken = asyncio.Event()
        self._consumed = False
        self._engine: Engine | None = None

    @classmethod
    async def open(cls, where: Journal | Holdfast, conversation_id: str, **options: Any) -> Self:
        """The conversation of that id, as far as it has come; a new one if there is none.

        `where` is an open application, or a journal that belongs to this conversation alone
        while it runs.
        """
        engine = cls(app=where if isinstance(where, Holdfast) else None, **options)
        engine.id = conversation_id
        if not isinstance(where, Holdfast):
            engine._journal = where
        engine._view = engine._latest = blank(conversation_id, engine._definition)
        async with engine._application() as app:
            engine._see(await engine._loaded(app))
        return engine

    @property
    def state(self) -> EngineState:
        return self._wished().phase

    @property
    def current_progress(self) -> float:
        return self._wished().progress

    @property
    def total_tasks(self) -> int:
        return self._wished().total

    @property
    def completed_tasks(self) -> int:
        return self._wished().completed

    @property
    def tasks(self) -> list[SubTask]:
        state = self._wished()
        return [state.tasks[f"t{number}"] for number in range(1, state.total + 1)]

    def pause(self) -> bool:
        """Start nothing more; True only where there is something to pause."""
        if self.state not in PAUSABLE:
            return False
        return self._wish(c.Hold())

    def resume(self) -> bool:
        """Go on from where it was paused."""
        if self.state is not EngineState.PAUSED:
            return False
        return self._wish(c.Unhold())

    def reset(self) -> None:
        """Back to the beginning, from whatever state; the work under way is broken off."""
        self._wish(c.StartOver(self._by))

    def create_snapshot(self) -> dict[str, Any]:
        """Everything that another engine needs to go on, as plain JSON."""
        settled = not self._wishes and self._latest.completed == self._view.completed
        return snapshots.dump(self._latest if settled else self._wished())

    def restore_from_snapshot(self, snapshot: Mapping[str, Any]) -> bool:
        """Take a snapshot's place; `run()` then goes on with what is left."""
        if self._consumed:
            raise NotAllowed("a conversation that is running cannot be replaced by a snapshot")
        self._wishes.clear()
        if self._view.phase not in _OVER:
            self.reset()
        return self._wish(c.RestoreSnapshot(snapshots.checked(snapshot)))

    async def cancel(self) -> bool:
        """End the turn: whoever consumes it hears ENGINE_ERROR with `error: cancelled`."""
        if self.state in _OVER:
            return False
        return self._wish(c.Abort())

    async def run(self, user_input: str | None = None) -> AsyncGenerator[EngineEvent, None]:
        """The events of one turn, or of what is left of it; one consumer at a time."""
        if self._consumed:
            raise NotAllowed("this engine is being consumed already; reset it or wait for it")
        self._consumed = True
        try:
            async with self._attended() as engine:
                await self._begin(engine, user_input)
                while not self._ended():
                    for event in await self._pull(engine):
                        yield event
        finally:
            self._consumed = False

    def _ended(self) -> bool:
        state = self._latest
        told = self._view.version == state.version and not self._wishes
        return told and state.phase in _OVER and not state.pending

    async def _pull(self, engine: Engine) -> list[EngineEvent]:
        """The next events; waits until there is one, or until somebody wishes something."""
        self._woken.clear()
        await self._grant(engine)
        events = await self._fresh(engine)
        if events or self._ended():
            return events
        before = self._latest.version
        state = await self._submit(engine, c.Advance())
        events = await self._fresh(engine)
        if not events and state.version == before and not self._wishes:
            await self._woken.wait()
        return events

    async def _begin(self, engine: Engine, user_input: str | None) -> None:
        self._see(await self._loaded_or_opened(engine))
        await self._submit(engine, c.Recover())
        await self._grant(engine)
        self._see(self._latest)
        state = self._view
        if state.phase is EngineState.ERROR:
            raise NotAllowed(f"the last turn failed ({state.error}); reset() first")
        if state.phase not in _OVER or state.pending:
            self._refuse_other(state, user_input)
        elif user_input is None:
            raise NotAllowed("there is nothing left to go on with; say what is wanted")
        else:
            text = strict_text(user_input, "user_input", longest=1_000_000)
            await self._submit(engine, c.Converse(text, self._by))

    def _refuse_other(self, state: ConversationState, user_input: str | None) -> None:
        if user_input is not None and user_input != state.text and state.text:
            raise NotAllowed(
                f"{self.id} is still at {state.text!r}; run() goes on, reset() ends it"
            )

    async def _grant(self, engine: Engine) -> None:
        """Carry out what was wished meanwhile, in order; what came too late is no mistake."""
        while self._wishes:
            wish = self._wishes.popleft()
            if isinstance(wish, c.StartOver | c.Abort):
                await engine.abandon(self.id)
            try:
                await self._submit(engine, wish)
            except NotAllowed:
                continue

    async def _submit(self, engine: Engine, command: c.Command) -> ConversationState:
        self._latest = as_conversation(await engine.submit(self.id, command))
        return self._latest

    async def _fresh(self, engine: Engine) -> list[EngineEvent]:
        """What was recorded since the last event, as the consumer sees it."""
        events = []
        for record in await engine.journal.read(self.id, self._view.version):
            event = decode(record)
            self._view = replay(self._view, [(record.at, event)])  # type: ignore[list-item]
            told = narrate(self._view, record.seq, record.at, event)
            if told is not None:
                events.append(told)
        return events

    def _see(self, state: ConversationState) -> None:
        self._view = self._latest = state

    def _wish(self, command: c.Command) -> bool:
        self._wishes.append(command)
        self._woken.set()
        return True

    def _wished(self) -> ConversationState:
        """How it stands with what was wished and is not yet recorded."""
        state = self._view
        if state.version == 0 and self._wishes:
            state = decide(state, c.OpenConversation(by=self._by), c.Moment(0.0)).state
        for wish in self._wishes:
            try:
                state = decide(state, wish, c.Moment(state.updated_at)).state
            except NotAllowed:
                continue
        return state

    @asynccontextmanager
    async def _application(self) -> AsyncIterator[Holdfast]:
        """The application that was given, or one of our own for as long as it is needed."""
        if self._given is not None:
            yield self._given
            return
        async with Holdfast(journal=self._journal) as own:
            yield own

    @asynccontextmanager
    async def _attended(self) -> AsyncIterator[Engine]:
        """While somebody consumes it, its work is done; afterwards nothing of it goes on."""
        async with self._application() as app:
            engine, worker = app.engine, app.engine.worker
            assert isinstance(worker, Dispatcher)
            self._engine = engine
            worker.conversations[self.id] = self
            unwatch = engine.hub.watch(self.id, self._moved)
            try:
                yield engine
            finally:
                unwatch()
                del worker.conversations[self.id]
                if await engine.journal.version(self.id):
                    await engine.abandon(self.id)

    def _moved(self, state: Any) -> None:
        self._latest = as_conversation(state)
        self._woken.set()

    async def _loaded(self, app: Holdfast) -> ConversationState:
        try:
            return as_conversation(await app.engine.state(self.id))
        except NotFound:
            if await app.engine.journal.version(self.id):
                raise
            return blank(self.id, self._definition)

    async def _loaded_or_opened(self, engine: Engine) -> ConversationState:
        if not await engine.journal.version(self.id):
            command = c.OpenConversation(by=self._by)
            await engine.begin(self.id, self._definition, command)
        return as_conversation(await engine.state(self.id))

    async def perform(self, effect: f.FetchContext | f.Decompose | f.RunTask) -> c.Outcome:
        """Our part of the work: the coordinator, the model and callables of one's own."""
        match effect:
            case f.FetchContext(text=text):
                return await self._fetch(text)
            case f.Decompose():
                return await self._decompose(effect)
            case f.RunTask():
                return c.Succeeded(strict_json(await self._execute(effect)))

    async def _fetch(self, text: str) -> c.Outcome:
        if self.coordinator is None:
            return c.Fetched()
        context = await self.coordinator.get_context_async(text)
        rules, knowledge, tools = (
            tuple(strict_json(list(_part(context, name))))
            for name in ("rules", "knowledge", "tools")
        )
        return c.Fetched(rules, knowledge, tools)

    async def _decompose(self, effect: f.Decompose) -> c.Outcome:
        if self.llm is None:
            return c.Decomposed((SubTask("task_1", effect.text),))
        more = {
            "context": dict(effect.context),
            "history": effect.history,
            "complaint": effect.complaint,
        }
        try:
            made = await _call(self.llm.decompose_goal, effect.text, **more)
            return c.Decomposed(tuple(self._task(one) for one in _listed(made)))
        except (NotDecomposed, _NoTask, InvalidValue) as error:
            return c.Undecomposed(str(error))

    def _task(self, made: Any) -> SubTask:
        task = made if isinstance(made, SubTask) else _read_task(made)
        return SubTask(
            id=task.id,
            description=task.description,
            type=task.type,
            priority=task.priority,
            dependencies=task.dependencies,
            args=strict_json(dict(task.args)),
            route=self._route(task.type),
        )

    def _route(self, kind: str) -> str:
        """What a task's type names here."""
        if kind in self._executors:
            return "once" if kind in self._once else "callable"
        app = self._given
        if app is None or not kind:
            return "default"
        if kind in app.tools:
            return "tool"
        if kind in app.engine.library.agent_ids():
            return "agent"
        return "plan" if kind in app.engine.library.plan_ids() else "default"

    async def _execute(self, effect: f.RunTask) -> Any:
        task = effect.task
        executor = self._executors.get(task.type)
        if executor is not None:
            return await _call(executor, task, results=dict(effect.results))
        execute = getattr(self.llm, "execute_task", None)
        if execute is None:
            return {}
        more = {
            "goal": effect.text,
            "context": dict(effect.context),
            "results": dict(effect.results),
        }
        return await _call(execute, task.description or task.id, **more)


class _NoTask(ValueError):
    """What the model gave is no task, or no list of them."""


def _part(context: Any, name: str) -> Any:
    found = context.get(name) if isinstance(context, Mapping) else getattr(context, name, None)
    return found or ()


def _listed(made: Any) -> Iterator[Any]:
    if isinstance(made, str):
        try:
            made = json.loads(made)
        except ValueError:
            raise _NoTask("the decomposition is not JSON") from None
    if isinstance(made, Mapping) and isinstance(made.get("tasks"), list):
        made = made["tasks"]
    if not isinstance(made, list | tuple):
        raise _NoTask(f"the decomposition is no list of tasks but {type(made).__name__}")
    return iter(made)


def _read_task(made: Any) -> SubTask:
    if not isinstance(made, Mapping) or made.get("id") in (None, ""):
        raise _NoTask(f"a task needs an id: {made!r}")
    try:
        return SubTask(
            id=str(made["id"]),
            description=str(made.get("description") or ""),
            type=str(made.get("type") or ""),
            priority=int(made.get("priority") or 0),
            dependencies=tuple(str(one) for one in made.get("dependencies") or ()),
            args=dict(made.get("args") or {}),
        )
    except (TypeError, ValueError) as error:
        raise _NoTask(f"task {made['id']!r} is not well formed: {error}") from None


async def _call(function: Callable[..., Any], *given: Any, **offered: Any) -> Any:
    """Call with what it takes of what is offered; functions that block get a thread."""
    taken = _taken(function, offered)
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004
    ):
        return await function(*given, **taken)
    returned = await asyncio.to_thread(function, *given, **taken)
    return await returned if inspect.isawaitable(returned) else returned


def _taken(function: Callable[..., Any], offered: Mapping[str, Json]) -> Mapping[str, Json]:
    parameters = inspect.signature(function).parameters.values()
    if any(one.kind is one.VAR_KEYWORD for one in parameters):
        return offered
    names = {one.name for one in parameters}
    return {name: value for name, value in offered.items() if name in names}
