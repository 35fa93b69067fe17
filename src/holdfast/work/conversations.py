"""What a conversation's own people do: its coordinator, its model and its callables.

They are foreign code. Whatever they take of what is offered, they get; whatever they return
becomes plain JSON here, or is refused with its place. Functions that block get a thread,
which nobody can break off: its result is dropped when nobody waits for it any more.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from holdfast.core.language.strict import strict_json
from holdfast.errors import InvalidValue, PermanentError
from holdfast.model import commands as c
from holdfast.model import effects as f
from holdfast.model.conversation import SubTask
from holdfast.model.values import Json
from holdfast.work.goals import NotDecomposed

Executor: TypeAlias = Callable[..., Awaitable[Any] | Any]


class Coordinator(Protocol):
    """Knows the surroundings: its context has `rules`, `knowledge` and `tools`."""

    async def get_context_async(self, user_input: str) -> Any: ...


class GoalDecomposer(Protocol):
    """Makes tasks of a goal; may also take `context`, `history` and `complaint`, and may
    offer `execute_task` for tasks whose type names nothing."""

    async def decompose_goal(self, text: str) -> Any: ...


@dataclass(frozen=True, slots=True)
class ConversationWorker:
    """`route` says what a task's type names, of those that are no executor's."""

    coordinator: Coordinator | None
    llm: GoalDecomposer | None
    executors: Mapping[str, Executor]
    once: frozenset[str]
    route: Callable[[str], str]

    async def perform(self, effect: f.FetchContext | f.Decompose | f.RunTask) -> c.Outcome:
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
        context = await _call(self.coordinator.get_context_async, text)
        rules, knowledge, tools = (
            tuple(strict_json(_part(context, name))) for name in ("rules", "knowledge", "tools")
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
        except (NotDecomposed, InvalidValue) as error:
            return c.Undecomposed(str(error))

    def _task(self, made: Any) -> SubTask:
        task = made if isinstance(made, SubTask) else _read_task(made)
        texts = strict_json([task.id, task.description, task.type, *task.dependencies])
        return SubTask(
            id=texts[0],
            description=texts[1],
            type=texts[2],
            priority=task.priority,
            dependencies=tuple(texts[3:]),
            args=strict_json(dict(task.args)),
            route=self._route(task.type),
        )

    def _route(self, kind: str) -> str:
        if kind in self.executors:
            return "once" if kind in self.once else "callable"
        return self.route(kind) if kind else "default"

    async def _execute(self, effect: f.RunTask) -> Any:
        task = effect.task
        more = {
            "goal": effect.text,
            "context": dict(effect.context),
            "results": dict(effect.results),
        }
        if task.route != "default":
            return await _call(self._executor(task), task, **more)
        execute = _execute_task_of(self.llm)
        if execute is None:
            return {}
        return await _call(execute, task.description or task.id, **more)

    def _executor(self, task: SubTask) -> Executor:
        try:
            return self.executors[task.type]
        except KeyError:
            raise PermanentError(
                f"no executor for tasks of type {task.type!r} is given any more: "
                "open the conversation with `executors` that has one"
            ) from None


def _execute_task_of(llm: object) -> Executor | None:
    """The model's own, if it has one: a stand-in that answers to any name has not."""
    found: Executor | None = getattr(llm, "execute_task", None)
    declared = inspect.getattr_static(llm, "execute_task", None) is not None
    return found if declared or inspect.isroutine(found) else None


def _part(context: Any, name: str) -> list[Any]:
    found = context.get(name) if isinstance(context, Mapping) else getattr(context, name, None)
    if isinstance(found, str | Mapping):
        raise InvalidValue("a list is needed", f"context.{name}")
    return list(found or ())


def _listed(made: Any) -> Iterator[Any]:
    if isinstance(made, str):
        try:
            made = json.loads(made)
        except ValueError:
            raise NotDecomposed("the decomposition is not JSON") from None
    if isinstance(made, Mapping) and isinstance(made.get("tasks"), list):
        made = made["tasks"]
    if not isinstance(made, list | tuple):
        raise NotDecomposed(f"the decomposition is no list of tasks but {type(made).__name__}")
    return iter(made)


def _read_task(made: Any) -> SubTask:
    if not isinstance(made, Mapping) or made.get("id") in (None, ""):
        raise NotDecomposed(f"a task needs an id: {made!r:.200}")
    dependencies = made.get("dependencies") or ()
    if isinstance(dependencies, str):
        raise NotDecomposed(f"task {made['id']!r}: dependencies must be a list of ids")
    try:
        return SubTask(
            id=str(made["id"]),
            description=str(made.get("description") or ""),
            type=str(made.get("type") or ""),
            priority=int(made.get("priority") or 0),
            dependencies=tuple(str(one) for one in dependencies),
            args=dict(made.get("args") or {}),
        )
    except (TypeError, ValueError, OverflowError) as error:
        raise NotDecomposed(f"task {made['id']!r} is not well formed: {error}") from None


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
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return {}
    if any(one.kind is one.VAR_KEYWORD for one in parameters):
        return offered
    names = {one.name for one in parameters if one.kind is not one.POSITIONAL_ONLY}
    return {name: value for name, value in offered.items() if name in names}
