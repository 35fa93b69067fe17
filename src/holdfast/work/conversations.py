"""A conversation's work, done by its coordinator, its model and its callables.

They are the user's own code. Each is passed what its signature takes of what is offered; what it
returns becomes plain JSON here, or is refused with its place. Functions that block run in a thread.
A thread cannot be stopped: when its conversation is left or reset it goes on, and its result is
dropped. The same task never runs in two threads of this process at once: the next attempt waits
until the former thread has ended.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial, wraps
from typing import Any, Protocol, TypeAlias

from holdfast.errors import InvalidValue, PermanentError
from holdfast.i18n.message import msg
from holdfast.language.strict import copied, strict_json
from holdfast.model import commands as c
from holdfast.model import effects as f
from holdfast.model.conversation import SubTask
from holdfast.model.values import Json
from holdfast.work.confidence import in_confidence
from holdfast.work.coordinator import Context
from holdfast.work.goals import NotDecomposed, as_name, written_tasks
from holdfast.work.threads import in_own_thread
from holdfast.work.tools import SecretSource, called, contained, is_asynchronous

_KINDS: Mapping[str, tuple[Any, str]] = {
    "id": (str, "text"),
    "description": (str, "text"),
    "type": (str, "text"),
    "priority": (int, msg("a whole number")),
    "dependencies": (list | tuple, msg("a list of ids")),
    "args": (Mapping, msg("an object")),
}

TaskExecutor: TypeAlias = Callable[..., Awaitable[Any] | Any]

LONGEST_WORDS = 2_000


class Coordinator(Protocol):
    """Knows the surroundings: its context has `rules`, `knowledge` and `tools`."""

    async def get_context_async(self, user_input: str) -> Any: ...


class GoalDecomposer(Protocol):
    """Makes tasks of a goal; may also take `context`, `history` and `complaint`, and may
    offer `execute_task` for tasks whose type names nothing, `fill_arguments` for what a call
    lacks, and `write_answer` for the last word."""

    async def decompose_goal(self, text: str) -> Any: ...


@dataclass(frozen=True, slots=True)
class ConversationWorker:
    """Does a conversation's work. `route` says what a task's type names, of those that are no
    executor's; `secrets` has what the arguments of an executor's tasks refer to; `offers` are the
    executors, as the model that decomposes a goal is told of them."""

    coordinator: Coordinator | None
    llm: GoalDecomposer | None
    executors: Mapping[str, TaskExecutor]
    once: frozenset[str]
    route: Callable[[str], str]
    secrets: SecretSource | None = None
    offers: Sequence[Json] = ()

    async def perform(self, effect: f.ConversationWork) -> c.Outcome:
        match effect:
            case f.FillArguments():
                return await self._fill(effect)
            case f.WriteAnswer():
                return await self._write(effect)
            case f.FetchContext(text=text):
                return await self._fetch(text)
            case f.Decompose():
                return await self._decompose(effect)
            case f.RunTask():
                return c.Succeeded(strict_json(await self._execute(effect)))

    async def _fetch(self, text: str) -> c.Outcome:
        if self.coordinator is None:
            return c.Fetched()
        found = Context.of(await _call(self.coordinator.get_context_async, text))
        return c.Fetched(
            _kept(found.rules, "rules"),
            _kept(found.knowledge, "knowledge"),
            _kept(found.tools, "tools"),
        )

    async def _decompose(self, effect: f.Decompose) -> c.Outcome:
        if self.llm is None:
            return c.Decomposed((SubTask("task_1", effect.text),))
        more = {
            "context": self._with_offers(effect.context),
            "history": effect.history,
            "complaint": effect.complaint,
        }
        try:
            made = await _call(self.llm.decompose_goal, effect.text, **more)
            tasks = tuple(self._task(one) for one in _listed(made))
            helps = any(_own(self.llm, one) for one in ("fill_arguments", "write_answer"))
            return c.Decomposed(tasks, helps)
        except (NotDecomposed, InvalidValue) as error:
            return c.Undecomposed(str(error))

    def _with_offers(self, context: Mapping[str, Json]) -> dict[str, Json]:
        known = context.get("tools") or ()
        tools = [*known, *self.offers] if isinstance(known, Sequence) else [*self.offers]
        return {**context, "tools": tools} if self.offers else {**context}

    async def _fill(self, effect: f.FillArguments) -> c.Outcome:
        fill = _own(self.llm, "fill_arguments")
        if fill is None:
            return c.Filled({})
        task = effect.task
        offered = {
            "goal": effect.text,
            "parameters": dict(effect.parameters),
            "results": dict(effect.results),
        }
        made = strict_json(await _call(fill, task.description or task.id, **offered))
        return c.Filled(made if isinstance(made, dict) else {})

    async def _write(self, effect: f.WriteAnswer) -> c.Outcome:
        write = _own(self.llm, "write_answer")
        if write is None:
            return c.Written()
        offered = {"context": dict(effect.context), "tasks": [dict(one) for one in effect.tasks]}
        made = strict_json(await _call(write, effect.text, **offered))
        return c.Written(made if isinstance(made, str) else "")

    def _task(self, made: Any) -> SubTask:
        task = _read_task(made)
        return replace(task, route=self._route(task.type))

    def _route(self, kind: str) -> str:
        if kind in self.executors:
            return "once" if kind in self.once else "callable"
        return self.route(kind) if kind else "default"

    async def _execute(self, effect: f.RunTask) -> Any:
        task = effect.task
        if task.route != "default":
            given = {"args": dict(task.args), "results": dict(effect.results)}
            work = partial(self._in_confidence, effect)
            return await in_confidence(self.secrets, effect.work.run_id, given, work)
        execute = _own(self.llm, "execute_task")
        if execute is None:
            return {}
        return await _call(execute, task.description or task.id, **_offered(effect))

    async def _in_confidence(self, effect: f.RunTask, given: Json, hide: object) -> Json:
        task = replace(effect.task, args=given["args"])
        offered = {**_offered(effect), "results": given["results"]}
        return strict_json(await _call(self._executor(task), task, **offered))

    def _executor(self, task: SubTask) -> TaskExecutor:
        try:
            return self.executors[task.type]
        except KeyError:
            raise PermanentError(
                msg(
                    "no executor for tasks of type {type!r} is given any more: open the "
                    "conversation with `executors` that has one",
                    type=task.type,
                )
            ) from None


def _offered(effect: f.RunTask) -> dict[str, Json]:
    return {
        "goal": effect.text,
        "context": dict(effect.context),
        "results": dict(effect.results),
    }


def _own(llm: object, name: str) -> TaskExecutor | None:
    """The model's own method, if it has one: a stand-in that answers to any name has not."""
    found: TaskExecutor | None = getattr(llm, name, None)
    declared = inspect.getattr_static(llm, name, None) is not None
    return found if declared or inspect.isroutine(found) else None


def _kept(items: tuple[Json, ...], part: str) -> tuple[Json, ...]:
    """As the journal can keep it; an error says which part it is."""
    try:
        return tuple(strict_json(items))
    except InvalidValue as error:
        message = error.reason
        raise InvalidValue(message, f"context.{part}{error.path[1:]}") from None


def _listed(made: Any) -> Iterator[Any]:
    if isinstance(made, str):
        made = written_tasks(made)
        if made is None:
            raise NotDecomposed(
                msg("the decomposition is text, but has no JSON list of tasks in it")
            )
    if isinstance(made, Mapping) and isinstance(made.get("tasks"), list):
        made = made["tasks"]
    if not isinstance(made, list | tuple):
        raise NotDecomposed(
            msg("the decomposition is no list of tasks but {kind}", kind=type(made).__name__)
        )
    return iter(made)


def _read_task(made: Any) -> SubTask:
    """The same of an object and of a dict; only in JSON ids may be numbers."""
    if isinstance(made, SubTask):
        raw = {name: getattr(made, name) for name in _KINDS}
    elif isinstance(made, Mapping):
        raw = {name: made[name] for name in _KINDS if name in made}
        raw = {**raw, "id": as_name(raw.get("id")), **_named(raw.get("dependencies"))}
    else:
        raise NotDecomposed(
            msg("a task is an object with an id, not {kind}", kind=type(made).__name__)
        )
    if not isinstance(raw["id"], str) or not raw["id"]:
        raise NotDecomposed(msg("a task needs an id: {text}", text=f"{made!r:.200}"))
    return _checked_task(raw["id"], raw)


def _named(dependencies: Any) -> dict[str, Any]:
    if not isinstance(dependencies, list | tuple):
        return {"dependencies": dependencies}
    return {"dependencies": [as_name(one) for one in dependencies]}


def _checked_task(task_id: str, raw: Mapping[str, Any]) -> SubTask:
    given = {name: value for name, value in raw.items() if value is not None}
    for name, value in given.items():
        kind, needed = _KINDS[name]
        if not isinstance(value, kind) or isinstance(value, bool):
            said = type(value).__name__
            raise NotDecomposed(
                msg(
                    "task {id}: {name} must be {needed}, not {value}",
                    id=f"{task_id!r:.200}",
                    name=name,
                    needed=needed,
                    value=said,
                )
            )
    depends = given.pop("dependencies", ())
    if not all(isinstance(one, str) for one in depends):
        raise NotDecomposed(
            msg("task {id}: dependencies must be ids of tasks", id=f"{task_id!r:.200}")
        )
    plain = strict_json({**given, "args": dict(given.get("args", {})), "dependencies": depends})
    return SubTask(**{**plain, "dependencies": tuple(plain["dependencies"])})


async def _call(function: Callable[..., Any], *given: Any, **offered: Any) -> Any:
    """Call with what it takes of what is offered."""
    return await called(function, *given, **copied(_taken(function, offered)))


def _taken(function: Callable[..., Any], offered: Mapping[str, Json]) -> Mapping[str, Json]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return {}
    if any(one.kind is one.VAR_KEYWORD for one in parameters):
        return offered
    names = {one.name for one in parameters if one.kind is not one.POSITIONAL_ONLY}
    return {name: value for name, value in offered.items() if name in names}


def offers_of(executors: Mapping[str, TaskExecutor]) -> list[Json]:
    """What a task's type may name, as a coordinator lists tools."""
    return [
        {"kind": "callable", "name": kind, "description": _words(executor)}
        for kind, executor in executors.items()
    ]


def _words(executor: TaskExecutor) -> str:
    own = inspect.isroutine(executor) or isinstance(executor, type)
    return (inspect.getdoc(executor if own else type(executor)) or "")[:LONGEST_WORDS]


def one_thread_each(executors: Mapping[str, TaskExecutor]) -> dict[str, TaskExecutor]:
    """The same callables; those that block wait for the former thread of the same task."""
    running: dict[tuple[str, str], _Thread] = {}
    return {
        kind: executor if is_asynchronous(executor) else _threaded(executor, running)
        for kind, executor in executors.items()
    }


def _threaded(executor: TaskExecutor, running: dict[tuple[str, str], _Thread]) -> TaskExecutor:
    @wraps(executor)
    async def in_a_thread(task: SubTask, **more: Any) -> Any:
        place = (task.type, task.id)
        while (former := running.get(place)) is not None:
            await asyncio.wait([asyncio.wrap_future(former.ended)])
        thread = running[place] = _Thread(partial(contained, executor, task, **more))
        thread.ended.add_done_callback(lambda _: running.pop(place, None))
        try:
            await in_own_thread(thread.work)
        except asyncio.CancelledError:
            thread.call_off()
            raise
        returned = thread.ended.result()()
        return await returned if inspect.isawaitable(returned) else returned

    return in_a_thread


class _Thread:
    """One call in a thread; `ended` has a function that returns or raises what came of it."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self.ended: Future[Callable[[], Any]] = Future()
        self._call = call
        self._lock = threading.Lock()
        self._begun = False

    def work(self) -> None:
        if self._begins():
            self.ended.set_result(_what_came_of(self._call))

    def call_off(self) -> None:
        """One that has not begun never will; one that has goes on."""
        if self._begins():
            self.ended.set_result(lambda: None)

    def _begins(self) -> bool:
        with self._lock:
            first, self._begun = not self._begun, True
            return first


def _what_came_of(call: Callable[[], Any]) -> Callable[[], Any]:
    """Kept for the caller, which may no longer wait for it."""
    try:
        returned = call()
    except BaseException as error:
        return partial(_raise, error)
    return lambda: returned


def _raise(error: BaseException) -> None:
    raise error
