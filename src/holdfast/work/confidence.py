"""Calls in confidence: secrets are filled in for the length of one call, and reach nothing else.

A call's arguments are recorded with references. Just before the call the values take their place,
if they belong to the same root run; they are taken out again of whatever the call returns, raises
or logs, before it is recorded or shown. So is what the tool itself keeps secret, such as the
headers of an HTTP tool, which a service may echo. An error keeps its kind but not its chain: causes
and notes may quote what was sent.

Records that are logged meanwhile, by the tool or by the libraries under it (httpx writes whole
addresses), are rewritten as they are made. That needs a record factory, which is put in place by
the first call that has a secret; calls without any pay nothing.
"""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeAlias

from holdfast.errors import (
    JournalUnavailable,
    OperatorError,
    PermanentError,
    ToolError,
    TransientError,
)
from holdfast.forms.secrets import Scrubber, fill, references_in
from holdfast.i18n.message import msg
from holdfast.language.strict import copied
from holdfast.model.values import Json
from holdfast.work.failed_attempts import asked_by, ends_from_without
from holdfast.work.failure_details import details_of, tell
from holdfast.work.failures import classify, error_of, words_of
from holdfast.work.tools import SecretSource
from holdfast.work.tracebacks import traceback_of

Hide: TypeAlias = Callable[[str], str]

_hiding: ContextVar[Hide | None] = ContextVar("hiding", default=None)


async def in_confidence(
    secrets: SecretSource | None,
    run_id: str,
    given: Json,
    call: Callable[[Json, Hide], Awaitable[Json]],
    own: Collection[str] = (),
) -> Json:
    """Call with a copy of `given`, values in place of its references; the result without them,
    and without the tool's `own` secrets."""
    references = references_in(given)
    if not references and not own:
        return await call(copied(given), str)
    values = await _opened(secrets, references, run_id)
    _refuse_unknown(given, references.difference(values))
    scrubber = Scrubber(values, own)
    task = asyncio.current_task()
    with _hidden_in_logs(scrubber.text):
        try:
            return scrubber.value(await call(fill(given, values), scrubber.text))
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            if ends_from_without(error, task):
                raise
            failure = _retold(error, scrubber.text)
    # Outside of `except`: an error that is raised there carries the former one along.
    raise failure


async def _opened(
    secrets: SecretSource | None, references: frozenset[str], run_id: str
) -> Mapping[str, str]:
    if secrets is None or not references:
        return {}
    try:
        return await secrets.open_for_run(references, run_id)
    except JournalUnavailable as error:
        # Nothing was sent yet.
        raise TransientError(str(error)) from None
    except OperatorError as error:
        raise PermanentError(str(error)) from None


def _refuse_unknown(given: Json, unknown: frozenset[str]) -> None:
    if not unknown:
        return
    named = given.items() if isinstance(given, Mapping) else ()
    where = ", ".join(name for name, value in named if references_in(value) & unknown)
    if not where:
        raise PermanentError(
            msg(
                "a secret that the call needs is not there: it was entered for another run, or "
                "has been deleted. Have it asked for again in this run."
            )
        )
    raise PermanentError(
        msg(
            "a secret that the call needs for {names} is not there: it was entered for another "
            "run, or has been deleted. Have it asked for again in this run.",
            names=where,
        )
    )


def _retold(error: BaseException, hide: Hide) -> ToolError:
    """An error of the same kind, in words without secrets."""
    words = words_of(error)
    hidden = hide(words)
    told = words if hidden == words else hidden
    kind = classify(error)
    retold = tell(error_of(kind, told, asked_by(error)), details_of(error, kind), hide)
    retold.traceback = hide(traceback_of(error, hide))
    return retold


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
