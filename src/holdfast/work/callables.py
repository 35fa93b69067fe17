"""A conversation's own callables: what they are offered as, and the threads they block.

Nobody can break a thread off. When its conversation is left or reset it goes on, and its
result is dropped; but the same task never runs in two threads of this process at once: the
next attempt waits until the former thread has ended.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any

from holdfast.model import commands as c
from holdfast.model import effects as f
from holdfast.model.conversation import SubTask
from holdfast.model.values import Json
from holdfast.work.conversations import ConversationWorker, TaskExecutor
from holdfast.work.threads import in_own_thread
from holdfast.work.tools import contained

LONGEST_WORDS = 2_000


@dataclass(frozen=True, slots=True)
class Attendant:
    """Does a conversation's work; whoever decomposes its goal is offered its callables."""

    worker: ConversationWorker
    offers: Sequence[Json]

    async def perform(self, effect: f.ConversationWork) -> c.Outcome:
        if isinstance(effect, f.Decompose) and self.offers:
            known = effect.context.get("tools") or ()
            tools = [*known, *self.offers] if isinstance(known, Sequence) else [*self.offers]
            effect = replace(effect, context={**effect.context, "tools": tools})
        return await self.worker.perform(effect)


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
        kind: executor if _is_asynchronous(executor) else _threaded(executor, running)
        for kind, executor in executors.items()
    }


def _is_asynchronous(executor: TaskExecutor) -> bool:
    called = getattr(executor, "__call__", None)  # noqa: B004
    return inspect.iscoroutinefunction(executor) or inspect.iscoroutinefunction(called)


def _threaded(executor: TaskExecutor, running: dict[tuple[str, str], _Thread]) -> TaskExecutor:
    @functools.wraps(executor)
    async def in_a_thread(task: SubTask, **more: Any) -> Any:
        place = (task.type, task.id)
        while (former := running.get(place)) is not None:
            await asyncio.wait([asyncio.wrap_future(former.ended)])
        thread = running[place] = _Thread(functools.partial(contained, executor, task, **more))
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
    """Kept for the caller, who may no longer wait for it."""
    try:
        returned = call()
    except BaseException as error:
        return functools.partial(_raise, error)
    return lambda: returned


def _raise(error: BaseException) -> None:
    raise error
