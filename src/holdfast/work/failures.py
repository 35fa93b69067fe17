"""What an exception that left a tool says of the call: never sent, answered, or in doubt.

    explicit   one of our own errors was raised: it says which kind it is, whatever caused it
    in doubt   408, 502, 504, every OSError, time-out, transport or protocol error that does not
               prove that nothing was sent, and every `OutcomeUnknown`
    unsent     name resolution, a refused connection, a connect or pool time-out: worth another try
    answered   an HTTP status, by its kind; any other exception is the tool's own answer

Doubt is looked for in the whole graph of an exception: causes, contexts (also those that `from
None` hides), members of groups, and exceptions kept in `args`, `reason` and the like. One doubtful
exception makes the whole doubt. What was raised decides about everything else.

HTTP libraries are recognised by the names of their classes, so none of them need be installed. Two
things are more than a look at one class:

* A library says `ConnectError` and keeps the bare OSError or TimeoutError of the socket as what it
  wraps. The outer one knows that it was connecting; the inner one is not judged.
* A library says `ConnectionError` for anything and wraps what tells more. Then that decides.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from http.client import HTTPException
from typing import Any, Final

from holdfast.errors import (
    AuthorError,
    ForbiddenError,
    HoldfastError,
    InvalidValue,
    OutcomeUnknown,
    PermanentError,
    ToolError,
    TransientError,
)
from holdfast.model.retry import FailureKind

_MOST_LOOKED_AT: Final = 1_000
_MOST_TOLD: Final = 3
_WORST_FIRST: Final = (FailureKind.FORBIDDEN, FailureKind.PERMANENT)

_UNSENT: Final = {
    "builtins": {"ConnectionRefusedError"},
    "socket": {"gaierror", "herror"},
    "ssl": {"SSLCertVerificationError"},
    "httpx": {"ConnectError", "ConnectTimeout", "PoolTimeout"},
    "httpx2": {"ConnectError", "ConnectTimeout", "PoolTimeout"},
    "httpcore": {"ConnectError", "ConnectTimeout", "PoolTimeout"},
    "httpcore2": {"ConnectError", "ConnectTimeout", "PoolTimeout"},
    "urllib3": {"NewConnectionError", "ConnectTimeoutError", "EmptyPoolError"},
    "requests": {"ConnectTimeout"},
    "aiohttp": {"ClientConnectorError", "ConnectionTimeoutError"},
    "botocore": {"EndpointConnectionError", "ConnectTimeoutError"},
}
_FAMILIES: Final = {
    "httpx": {"RequestError"},
    "httpx2": {"RequestError"},
    "urllib3": {"HTTPError"},
    "aiohttp": {"ClientError", "HttpProcessingError"},
}
"""Everything below these is about a request that was being made."""

_SOCKETS: Final = {"builtins", "socket", "ssl", "asyncio", "anyio", "trio"}
_WRAPPERS: Final = {
    *("ConnectionError", "APIConnectionError", "APITimeoutError", "TransportError"),
    *("MaxRetryError", "ProxyError", "SSLError", "URLError"),
}
_KEPT_IN: Final = ("reason", "os_error", "original_error", "orig")
_TIME_OUT: Final = re.compile("time_?d?_?out", re.IGNORECASE)
_TRANSPORT: Final = re.compile(
    "time_?d?_?out|connection|disconnect|transport|network|protocolerror|incompleteread|"
    "(?:read|write|socket)error|brokenresource|closedresource|endofstream|autoreconnect",
    re.IGNORECASE,
)
_DATABASE: Final = {"OperationalError", "InterfaceError"}
_ABOUT_HTTP: Final = re.compile("http|api", re.IGNORECASE)
_CONNECTING: Final = re.compile(
    "Connect call failed|^Multiple exceptions: |^All connection attempts failed|"
    "^all attempts to connect to "
)
"""How asyncio, anyio and trio word what `connect` raised, of one address and of several."""

_GRPC_DOUBT: Final = {
    *("CANCELLED", "UNKNOWN", "DEADLINE_EXCEEDED", "UNAVAILABLE", "INTERNAL", "DATA_LOSS"),
}
_GRPC: Final = {
    **dict.fromkeys(_GRPC_DOUBT, FailureKind.UNKNOWN),
    **dict.fromkeys(("UNAUTHENTICATED", "PERMISSION_DENIED"), FailureKind.FORBIDDEN),
    **dict.fromkeys(("RESOURCE_EXHAUSTED", "ABORTED"), FailureKind.TRANSIENT),
}


def classify(error: BaseException) -> FailureKind:
    explicit = _explicit(error)
    if explicit is not None:
        return explicit
    if _in_doubt(error):
        return FailureKind.UNKNOWN
    if not isinstance(error, Exception):
        return FailureKind.PERMANENT
    found = {_answer(one) for one in _leaves(error)}
    return next((kind for kind in _WORST_FIRST if kind in found), FailureKind.TRANSIENT)


def error_of(kind: FailureKind, text: str, retry_after: float | None = None) -> ToolError:
    """What says the kind explicitly."""
    match kind:
        case FailureKind.PERMANENT:
            return PermanentError(text)
        case FailureKind.FORBIDDEN:
            return ForbiddenError(text)
        case FailureKind.UNKNOWN:
            return OutcomeUnknown(text, retry_after=retry_after)
        case _:
            return TransientError(text, retry_after=retry_after)


def words_of(error: BaseException) -> str:
    """Its words; of an error that only names a key, or nothing at all, also what it is."""
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(dict.fromkeys(words_of(one) for one in _leaves(error)[:_MOST_TOLD]))
    words, name = _words(error), type(error).__name__
    if not isinstance(error, Exception):
        return f"the work raised {name}: {words}"
    bare = isinstance(error, LookupError) and [words] == [repr(one) for one in error.args]
    return f"{name}: {words}" if bare else words or name


def _words(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as worse:
        return f"it cannot be put into words ({type(worse).__name__})"


def kind_of_status(status: int) -> FailureKind:
    """Of an answer that is an error: 408, 502 and 504 do not tell whether the call arrived."""
    if status in (408, 502, 504):
        return FailureKind.UNKNOWN
    if status in (401, 403):
        return FailureKind.FORBIDDEN
    if status in (425, 429) or status >= 500:
        return FailureKind.TRANSIENT
    return FailureKind.PERMANENT


def status_of(error: BaseException) -> int | None:
    """The HTTP status that an exception of any library carries."""
    if "http_exceptions" in type(error).__module__:  # aiohttp's parser, which has a code too
        return None
    response = attribute_of(error, "response")
    names = ("status_code", "status", "http_status")
    found = [attribute_of(one, name) for one in (error, response) for name in names]
    if any(_ABOUT_HTTP.search(kind.__name__) for kind in type(error).__mro__):
        found.append(attribute_of(error, "code"))
    if isinstance(response, Mapping):
        told = response.get("ResponseMetadata")
        found.append(told.get("HTTPStatusCode") if isinstance(told, Mapping) else None)
    return next((int(one) for one in found if isinstance(one, int) and 100 <= one < 600), None)


def _leaves(error: BaseException) -> list[BaseException]:
    """The exceptions in a group, as far as they are looked at; any other is its own leaf."""
    found = _reached(error, _members)
    return [one for one in found if not isinstance(one, BaseExceptionGroup)]


def _explicit(error: BaseException) -> FailureKind | None:
    match error:
        case PermanentError() | InvalidValue() | AuthorError():
            return FailureKind.PERMANENT
        case ForbiddenError():
            return FailureKind.FORBIDDEN
        case OutcomeUnknown():
            return FailureKind.UNKNOWN
        case HoldfastError():
            return FailureKind.TRANSIENT
    return None


def _answer(error: BaseException) -> FailureKind | None:
    explicit, status = _explicit(error), status_of(error)
    if explicit is None and status is not None:
        return kind_of_status(status)
    return explicit or _grpc(error)


def _in_doubt(error: BaseException) -> bool:
    every = _reached(error, _linked)
    if len(every) > _MOST_LOOKED_AT:
        return True
    wrapped = {id(one) for outer in every if _knows(outer) for one in _below(outer)}
    return any(_doubtful(one) for one in every if id(one) not in wrapped or not _of_socket(one))


def _doubtful(error: BaseException) -> bool:
    kind = _answer(error)
    if kind is not None or _unsent(error):
        return kind is FailureKind.UNKNOWN
    if _wraps_anything(error) and any(map(_unsent, _below(error))):
        return False
    return _of_transport(error)


def _unsent(error: BaseException) -> bool:
    connecting = isinstance(error, OSError) and _CONNECTING.search(str(error)) is not None
    return connecting or _named(error, _UNSENT)


def _knows(error: BaseException) -> bool:
    """A library's own word that it was connecting, which covers what the socket raised."""
    return not _of_socket(error) and _unsent(error)


def _of_socket(error: BaseException) -> bool:
    return _root(type(error)) in _SOCKETS


def _wraps_anything(error: BaseException) -> bool:
    return type(error).__name__ in _WRAPPERS and not _of_socket(error)


def _of_transport(error: BaseException) -> bool:
    if isinstance(error, OSError | EOFError | HTTPException) or _named(error, _FAMILIES):
        return True
    return any(_named_like_transport(kind, error) for kind in type(error).__mro__)


def _named_like_transport(kind: type, error: BaseException) -> bool:
    """By the words that libraries use; much in the standard library only sounds like it."""
    if _root(kind) in sys.stdlib_module_names:
        return _TIME_OUT.search(kind.__name__) is not None
    if kind.__name__ in _DATABASE:
        told = (attribute_of(error, name) for name in ("sqlstate", "pgcode", "orig"))
        return all(one is None for one in told)
    return _TRANSPORT.search(kind.__name__) is not None


def _grpc(error: BaseException) -> FailureKind | None:
    if not any(kind.__name__ == "RpcError" for kind in type(error).__mro__):
        return None
    code = attribute_of(error, "code")
    name = getattr(code(), "name", "UNKNOWN") if callable(code) else "UNKNOWN"
    return _GRPC.get(name, FailureKind.PERMANENT)


def _named(error: BaseException, names: Mapping[str, set[str]]) -> bool:
    """Vendored copies (`pip._vendor.urllib3`) go by the library's name as well."""
    return any(
        kind.__name__ in names.get(part, ())
        for kind in type(error).__mro__
        for part in kind.__module__.split(".")
    )


def _root(kind: type) -> str:
    return kind.__module__.partition(".")[0]


def attribute_of(holder: object, name: str) -> Any:
    """Some have properties that raise."""
    try:
        return getattr(holder, name, None)
    except Exception:
        return None


def _below(error: BaseException) -> list[BaseException]:
    return _reached(error, _wrapped)[1:]


def _linked(error: BaseException) -> Iterator[object]:
    yield from _wrapped(error)
    yield error.__context__


def _wrapped(error: BaseException) -> Iterator[object]:
    yield error.__cause__
    yield from _members(error)
    yield from error.args
    yield from (attribute_of(error, name) for name in _KEPT_IN)


def _members(error: BaseException) -> Iterator[object]:
    if isinstance(error, BaseExceptionGroup):
        yield from error.exceptions


def _reached(error: BaseException, onward: Any) -> list[BaseException]:
    """The exception and all that it leads to, once each; one more than the most when cut short."""
    found, seen = [error], {id(error)}
    for one in found:
        for other in onward(one):
            if isinstance(other, BaseException) and id(other) not in seen:
                seen.add(id(other))
                found.append(other)
        if len(found) > _MOST_LOOKED_AT:
            break
    return found
