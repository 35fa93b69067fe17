"""What a failure says of itself beside its words: a status, a code, the argument that it names.

    status   of an HTTP answer, wherever the exception or what it wraps has one; none of those in
             doubt, which an answer that is believed cannot have had
    code     gRPC's name, SQLSTATE, what the JSON of the answer says (`error_bodies`), an attribute
             `code` or the like, what the system calls the error (`ECONNREFUSED`); else the class
    field    as the JSON of the answer has it, an attribute `param` or `field`, a clear phrase

Of an answer only what has been read is looked at: nothing here waits for a service. What says
nothing but the kind of a failure (`PermanentError`) is no code.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from itertools import chain
from typing import Any, Final

from holdfast.errors import ForbiddenError, InvalidValue, OutcomeUnknown, PermanentError, ToolError
from holdfast.language.strict import load_json
from holdfast.model.record import record
from holdfast.model.retry import Cause, FailureKind
from holdfast.model.values import Json
from holdfast.work.error_bodies import argument_in, argument_name, code_in, code_word
from holdfast.work.failure_names import NAMES_AN_ARGUMENT, NAMES_AN_INPUT
from holdfast.work.failures import (
    attribute_of,
    grpc_names,
    kind_of_status,
    read,
    status_given,
    words_of,
    wrapped_by,
)

_MOST_READ: Final = 65_536
_MOST_ANSWERS: Final = 8
_LONGEST_TEXT: Final = 2_000
_ABOUT_INPUT: Final = (None, 400, 422)
_STATES: Final = ("sqlstate", "pgcode", "sqlite_errorname")
_CODES: Final = ("code", "error_code", "errorcode", "faultCode", "type")
_ARGUMENTS: Final = ("param", "field", "parameter")
_BODIES: Final = ("body", "json_body", "response")
_ITS_KIND: Final = frozenset({ToolError, PermanentError, ForbiddenError, OutcomeUnknown})
_SAYABLE: Final = frozenset(Cause) - {Cause.DOUBT, Cause.REFUSED}
"""Doubt follows from the kind, and only a person refuses."""
_STATUSES: Final = ("status", "status_code", "http_status")


@record
class Details:
    status: int | None = None
    code: str = ""
    field: str = ""
    cause: Cause | None = None


NONE: Final = Details()


def details_of(error: BaseException, kind: FailureKind) -> Details:
    """Of an exception that counts as a failure of that kind."""
    return read(lambda: _details(error, kind), NONE)


def _details(error: BaseException, kind: FailureKind) -> Details:
    every = wrapped_by(error)
    answered = {id(one): status for one in every if (status := _status(one)) is not None}
    # The answer that made the failure what it is, before any other.
    every.sort(key=lambda one: _distance(answered.get(id(one)), kind))
    status = next(iter(answered[id(one)] for one in every if id(one) in answered), None)
    bodies = [body for one in every[:_MOST_ANSWERS] for body in _bodies(one)]
    codes = chain(
        *map(_names, every),
        (code_in(one, status) for one in bodies),
        *(_codes(one, status) for one in every),
    )
    fields = chain((argument_in(one, status) for one in bodies), *map(_fields, every))
    code = next(filter(None, codes), "")
    field = next(filter(None, fields), "") or argument_named(words_of(error), status)
    return Details(status, code or ("" if status else _class_name(every)), field)


def _status(error: BaseException) -> int | None:
    status = status_given(error)
    in_doubt = status is not None and kind_of_status(status) is FailureKind.UNKNOWN
    return None if in_doubt else status


def _distance(status: int | None, kind: FailureKind) -> int:
    if status is None:
        return 2
    return 0 if kind_of_status(status) is kind else 1


def _names(error: BaseException) -> Iterator[str]:
    states = (attribute_of(error, one) for one in _STATES)
    return map(code_word, chain(grpc_names(error), states))


def _codes(error: BaseException, status: int | None) -> Iterator[str]:
    if not isinstance(error, Exception) or type(error).__module__.startswith("sqlalchemy"):
        return  # an exit code, a page of its manual
    for one in _CODES:
        told = attribute_of(error, one)
        yield code_word(
            told.name if isinstance(told, Enum) and told.value != status else told, status
        )
    number = attribute_of(error, "errno")
    if type(error).__module__ == "builtins" and isinstance(number, int):
        yield errno.errorcode.get(number, "")


def _fields(error: BaseException) -> Iterator[str]:
    return (argument_name(attribute_of(error, one)) for one in _ARGUMENTS)


def _class_name(every: list[BaseException]) -> str:
    kinds = (type(one) for one in every if not isinstance(one, BaseExceptionGroup))
    return next((code_word(one.__name__) for one in kinds if one not in _ITS_KIND), "")


def _bodies(error: BaseException) -> Iterator[Mapping[str, Any]]:
    """JSON objects of the answer that an exception carries, as far as they have been read."""
    for one in _BODIES:
        told = attribute_of(error, one)
        body = _object(told if isinstance(told, Mapping | str | bytes) else _read_already(told))
        if body is not None:
            yield body


def _read_already(answer: object) -> object:
    """Of httpx and requests, whose `content` might read from the service."""
    return attribute_of(answer, "_content")


def _object(told: object) -> Mapping[str, Any] | None:
    if isinstance(told, str | bytes) and len(told) <= _MOST_READ:
        try:
            told = load_json(told)
        except (ValueError, RecursionError, InvalidValue):
            return None
    return told if isinstance(told, Mapping) else None


def details_in(result: Mapping[str, Json], kind: FailureKind, text: str) -> Details:
    """Of a result that says in these words that it failed, and perhaps of which kind."""
    told = (result.get(one) for one in _STATUSES)
    status = next((one for one in told if type(one) is int and 400 <= one < 600), None)
    code = code_in(result, status)
    if not code and kind is FailureKind.TRANSIENT and result.get("error_class") == kind:
        code = kind.value  # which any failure is taken for: said of itself it tells more
    field = argument_in(result, status) or argument_named(text, status)
    cause = result.get("cause")
    said = Cause(cause) if isinstance(cause, str) and cause in _SAYABLE else None
    return Details(status, code, field, None if kind is FailureKind.UNKNOWN else said)


def argument_named(text: str, status: int | None = None) -> str:
    """The first argument that a text clearly names as missing, unknown or wrong."""
    if status not in _ABOUT_INPUT:
        return ""
    text = text[:_LONGEST_TEXT]
    found = re.search(NAMES_AN_ARGUMENT, text, re.IGNORECASE)
    if status is not None:
        named = re.search(NAMES_AN_INPUT, text, re.IGNORECASE)
        found = min(filter(None, (found, named)), key=re.Match.start, default=None)
    return "" if found is None else next(filter(None, found.groups())).rstrip(".-")


def tell(error: ToolError, details: Details, hide: Callable[[str], str] = str) -> ToolError:
    """The error with what is known of it, except what holds a secret."""
    error.status = details.status
    error.code = details.code if hide(details.code) == details.code else ""
    error.field = details.field if hide(details.field) == details.field else ""
    return error
