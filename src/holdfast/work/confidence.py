"""Calls in confidence: secrets are filled in for the length of one call, and told to nobody else.

A call's arguments are recorded with references. Just before the call the values take their place,
if they belong to the same root run; whatever the call returns, raises or logs is rid of them again
before anybody hears of it. An error keeps its kind but not its chain: causes and notes may quote
what was sent.

Records that are logged meanwhile, by the tool or by the libraries under it (httpx writes whole
addresses), are rewritten as they are made. That needs a record factory, which is put in place by
the first call that has a secret; calls without any pay nothing.
"""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from holdfast.core.secrets import Scrubber, fill, references_in
from holdfast.errors import (
    AuthorError,
    ForbiddenError,
    JournalUnavailable,
    OperatorError,
    OutcomeUnknown,
    PermanentError,
    ToolError,
    TransientError,
)
from holdfast.model.retry import FailureKind
from holdfast.model.values import Json
from holdfast.work.retry_after import asked_by
from holdfast.work.tools import SecretSource, classify

Hide: TypeAlias = Callable[[str], str]

_PASSING: Final = (asyncio.CancelledError, KeyboardInterrupt, SystemExit, GeneratorExit)
_ERRORS: Final[Mapping[FailureKind, type[ToolError]]] = {
    FailureKind.PERMANENT: PermanentError,
    FailureKind.FORBIDDEN: ForbiddenError,
    FailureKind.UNKNOWN: OutcomeUnknown,
}
_hiding: ContextVar[Hide | None] = ContextVar("hiding", default=None)


async def in_confidence(
    secrets: SecretSource | None,
    run_id: str,
    given: Json,
    call: Callable[[Json, Hide], Awaitable[Json]],
) -> Json:
    """Call with values in place of the references in `given`; the result without them."""
    references = references_in(given)
    if not references:
        return await call(given, str)
    values = {} if secrets is None else await _opened(secrets, references, run_id)
    _refuse_unknown(given, references - values.keys())
    scrubber = Scrubber(values)
    with _hidden_in_logs(scrubber.text):
        try:
            return scrubber.value(await call(fill(given, values), scrubber.text))
        except _PASSING:
            raise
        except BaseException as error:
            failure = _retold(error, scrubber.text)
    # Outside of `except`: an error that is raised there carries the former one along.
    raise failure


async def _opened(
    secrets: SecretSource, references: frozenset[str], run_id: str
) -> Mapping[str, str]:
    try:
        return await secrets.open_for_run(references, run_id)
    except JournalUnavailable:
        raise
    except OperatorError as error:
        raise PermanentError(str(error)) from None


def _refuse_unknown(given: Json, unknown: frozenset[str]) -> None:
    if not unknown:
        return
    named = given.items() if isinstance(given, Mapping) else ()
    where = ", ".join(name for name, value in named if references_in(value) & unknown)
    raise PermanentError(
        f"a secret that the call needs{f' for {where}' if where else ''} is not there: it was "
        "entered for another run, or has been deleted. Have it asked for again in this run."
    )


def _retold(error: BaseException, hide: Hide) -> ToolError:
    """The same failure to whoever classifies it, in words without secrets."""
    words, name = str(error), type(error).__name__
    if not isinstance(error, Exception):
        return PermanentError(hide(f"the work raised {name}: {words}"))
    bare = isinstance(error, LookupError) and [words] == [repr(one) for one in error.args]
    told = hide(f"{name}: {words}" if bare else words or name)
    kind = FailureKind.PERMANENT if isinstance(error, AuthorError) else classify(error)
    if kind is FailureKind.TRANSIENT:
        return TransientError(told, retry_after=asked_by(error))
    return _ERRORS[kind](told)


@contextmanager
def _hidden_in_logs(hide: Hide) -> Iterator[None]:
    factory = logging.getLogRecordFactory()
    if not isinstance(factory, _HidingFactory):
        logging.setLogRecordFactory(_HidingFactory(factory))
    token = _hiding.set(hide)
    try:
        yield
    finally:
        _hiding.reset(token)


@dataclass(frozen=True, slots=True)
class _HidingFactory:
    """Makes log records as before; in a call with secrets, without them."""

    before: Callable[..., logging.LogRecord]

    def __call__(self, *args: Any, **more: Any) -> logging.LogRecord:
        record = self.before(*args, **more)
        hide = _hiding.get()
        if hide is not None:
            _rewrite(record, hide)
        return record


def _rewrite(record: logging.LogRecord, hide: Hide) -> None:
    try:
        message = record.getMessage()
    except Exception:
        message = str(record.msg)
    record.msg, record.args = hide(message), ()
    if record.exc_info:
        record.exc_text = hide("".join(traceback.format_exception(*record.exc_info)).rstrip())
        record.exc_info = None
