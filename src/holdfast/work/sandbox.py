"""Runs a plan's code snippets where they can do no harm.

A snippet is Python, interpreted by Monty in a worker process: no files, no network, no
environment, one second, 32 MB, 200 calls deep. It reads `context` and sets `result`. Its clock
stands still at the command's `now`, its sleeps take no time and its random numbers come from the
firing's key, so the same snippet with the same inputs always gives the same output.

That makes a snippet that calls tools durable without keeping it alive: `run` answers `CallWanted`
at the first call that has no recorded result, the caller carries the call out and journals it, and
the snippet runs again from its start, the recorded results standing in for the calls.

Sessions are never reused, only the worker processes are. The pool is the synchronous one, driven
from a few threads, because the asynchronous one can abort the interpreter at exit. Monty turns a
cyclic list or a function into a string when it hands it over, so every result first passes
`json.dumps` inside the sandbox, which refuses them.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from threading import Lock
from typing import NoReturn

from pydantic_monty import (
    FunctionSnapshot,
    Monty,
    MontyComplete,
    MontyError,
    MontySession,
    OSPolicy,
    ResourceLimits,
    SyncSnapshot,
)

from holdfast.errors import InvalidValue, SnippetError
from holdfast.i18n.message import msg
from holdfast.language.strict import canonical_json, strict_json
from holdfast.model.effects import RecordedCall
from holdfast.model.values import Json, JsonObject
from holdfast.source.snippets import SnippetProblem
from holdfast.work.snippet import (
    explain,
    first_problem,
    line_at,
    refused_result,
    sandbox_problem,
)

MAX_RESULT_BYTES = 256 * 1024
MAX_PRINTED = 8 * 1024

LIMITS: ResourceLimits = {
    "max_feed_duration_secs": 1.0,
    "max_turn_duration_secs": 1.0,
    "max_memory": 32 * 1024 * 1024,
    "max_recursion_depth": 200,
    "max_suspensions": 1000,
    "max_total_sleep_secs": 0.0,
}

# What `json.dumps` writes with escapes and spaces is never longer than this if the result is legal.
_MAX_CARRIED = 8 * MAX_RESULT_BYTES

# Starting with a statement, it cannot complete a snippet that ends in the middle of one.
_HAND_OVER = f"""
import json as _json
_size = len(_json.dumps(result))
_carried = result if _size <= {_MAX_CARRIED} else None
{{"holdfast_size": _size, "holdfast_result": _carried}}"""

# Monty parses the whole text before it runs any of it.
_PARSE_ONLY = "return\n"


@dataclass(frozen=True, slots=True)
class SnippetDone:
    result: Json
    printed: str


@dataclass(frozen=True, slots=True)
class CallWanted:
    """The snippet waits for its call number `index` (from 0); record its result and run again."""

    index: int
    function: str
    args: dict[str, Json]


@dataclass(frozen=True, slots=True)
class _Job:
    snippet: str
    context: JsonObject
    policy: OSPolicy
    functions: frozenset[str]
    recorded: Sequence[RecordedCall]


class Sandbox:
    """A few worker processes; they start with the first snippet and end with `close()`."""

    def __init__(self, *, workers: int = 2) -> None:
        self._workers = workers
        self._lock = Lock()
        self._pool: _WorkerPool | None = None
        self._closed = False

    async def run(
        self,
        snippet: str,
        context: JsonObject,
        *,
        now: float,
        key: str,
        functions: Sequence[str] = (),
        recorded: Sequence[RecordedCall] = (),
    ) -> SnippetDone | CallWanted:
        """One pass over the snippet; raises SnippetError for whatever it does wrong.

        Cancelling the caller frees it at once; a pass under way ends by its own time limit.
        """
        pool = self._started()
        job = _Job(snippet, context, _policy(now, key), frozenset(functions), recorded)
        return await asyncio.wrap_future(pool.threads.submit(_run, pool.processes, job))

    def check(self, snippet: str) -> list[SnippetProblem]:
        """What `run` would refuse to start; blocks for about a millisecond."""
        problem = first_problem(snippet)
        if problem is None:
            problem = _parse(self._started().processes, snippet)
        return [] if problem is None else [problem]

    def close(self) -> None:
        """Ends the workers; snippets still running have at most their time limit left."""
        with self._lock:
            self._closed = True
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()

    def _started(self) -> _WorkerPool:
        with self._lock:
            if self._closed:
                raise RuntimeError("this Sandbox is closed; make a new one")
            if self._pool is None:
                self._pool = _WorkerPool(self._workers)
            return self._pool


class _WorkerPool:
    """Worker processes and as many threads to wait for them, ended at the latest at exit."""

    def __init__(self, workers: int) -> None:
        self.processes = Monty(min_processes=1, max_processes=workers, request_timeout=5.0)
        self.processes.__enter__()
        self.threads = ThreadPoolExecutor(workers, thread_name_prefix="holdfast-sandbox")
        self.close = weakref.finalize(self, _close, self.processes, self.threads)


def _close(pool: Monty, threads: ThreadPoolExecutor) -> None:
    threads.shutdown(wait=True, cancel_futures=True)
    pool.__exit__(None, None, None)


@cache
def _checker() -> Sandbox:
    return Sandbox(workers=1)


def check_snippet(text: str) -> list[SnippetProblem]:
    """The snippet's mistakes that show without running it: message, line and column from 1."""
    return _checker().check(text)


def _policy(now: float, key: str) -> OSPolicy:
    return {
        "datetime": datetime.fromtimestamp(now, UTC),
        "timezone": "utc",
        "sleep": "zero",
        "process_time": "zero",
        "random_start": {"seed": key},
    }


def _parse(pool: Monty, snippet: str) -> SnippetProblem | None:
    with pool.checkout(limits=LIMITS, os_policy=_policy(0.0, "")) as session:
        try:
            session.feed_run(_PARSE_ONLY + snippet, print_callback=_Printed())
        except MontyError as error:
            return sandbox_problem(error, lines_before=1)
    return None


def _run(pool: Monty, job: _Job) -> SnippetDone | CallWanted:
    printed = _Printed()
    with pool.checkout(limits=LIMITS, os_policy=job.policy) as session:
        try:
            outcome = _drive(session, job, printed)
        except MontyError as error:
            raise explain(job.snippet, error) from None
    if isinstance(outcome, CallWanted):
        return outcome
    return SnippetDone(_accept(job.snippet, outcome.output), printed.text())


def _drive(session: MontySession, job: _Job, printed: _Printed) -> MontyComplete | CallWanted:
    """Runs to the end, or to the first call that has no recorded result."""
    step: SyncSnapshot = session.feed_start(
        job.snippet + _HAND_OVER,
        inputs={"context": dict(job.context)},
        external_lookup=dict.fromkeys(job.functions, _unreachable),
        print_callback=printed,
    )
    made = 0
    while not isinstance(step, MontyComplete):
        if not (isinstance(step, FunctionSnapshot) and step.function_name in job.functions):
            step = step.resume_auto()
            continue
        call = _call_made(step, made, job.snippet)
        if made == len(job.recorded):
            return call
        step = step.resume({"return_value": _replayed(call, job.recorded[made])})
        made += 1
    if made < len(job.recorded):
        raise SnippetError(
            _changed(
                msg("it made {made} of {total} recorded calls", made=made, total=len(job.recorded))
            )
        )
    return step


def _call_made(step: FunctionSnapshot, index: int, snippet: str) -> CallWanted:
    name, line = step.function_name, line_at(snippet, step.position.start)
    if step.args:
        raise SnippetError(
            msg(
                "line {line}: {name}() takes its arguments by name; write {example}",
                line=line,
                name=name,
                example=f"{name}(argument=value)",
            )
        )
    try:
        args = strict_json(step.kwargs, max_bytes=MAX_RESULT_BYTES)
    except InvalidValue as error:
        raise SnippetError(
            msg(
                "line {line}: {name}() was given more than JSON: {reason}",
                line=line,
                name=name,
                reason=str(error),
            )
        ) from None
    return CallWanted(index, name, args)


def _replayed(call: CallWanted, recorded: RecordedCall) -> Json:
    now = f"{call.function}({canonical_json(call.args)})"
    before = f"{recorded.function}({canonical_json(dict(recorded.args))})"
    if now != before:
        raise SnippetError(
            _changed(
                msg(
                    "call {n} was {before}, is {now}",
                    n=call.index + 1,
                    before=before[:200],
                    now=now[:200],
                )
            )
        )
    return recorded.result


def _changed(what: str) -> str:
    return msg(
        "the snippet is not deterministic: {what}; its calls may depend only on "
        "`context` and on earlier results",
        what=what,
    )


def _accept(snippet: str, output: Json) -> Json:
    match output:
        case {"holdfast_size": int(size), "holdfast_result": result}:
            pass
        case _:
            raise SnippetError(msg("a snippet cannot `return`; set `result` instead"))
    if size > _MAX_CARRIED:
        raise refused_result(snippet, msg("`result` is larger than {n} bytes", n=MAX_RESULT_BYTES))
    try:
        return strict_json(result, max_bytes=MAX_RESULT_BYTES)
    except InvalidValue as error:
        raise refused_result(
            snippet, msg("`result` cannot be kept as JSON: {reason}", reason=str(error))
        ) from None


def _unreachable(**_: Json) -> NoReturn:
    raise AssertionError("calls to named functions are answered before this is asked")


class _Printed:
    """Keeps the first MAX_PRINTED characters of what a snippet prints, and lets the rest go."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._room = MAX_PRINTED
        self._cut = False

    def __call__(self, stream: str, text: str) -> None:
        kept = text[: self._room]
        self._cut = self._cut or len(kept) < len(text)
        self._room -= len(kept)
        if kept:
            self._parts.append(kept)

    def text(self) -> str:
        return "".join(self._parts) + ("\n… cut here" if self._cut else "")
