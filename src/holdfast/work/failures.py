"""What an exception that left a tool says of the call: never sent, answered, or in doubt.

    explicit   one of our own errors was raised: it says which kind it is, whatever caused it;
               a journal that did not acknowledge is doubt
    in doubt   408, 502, 504, 52x, 598, 599 and what is no status, every OSError, time-out,
               transport or protocol error that does not prove that nothing was sent, and every
               `OutcomeUnknown`
    unsent     name resolution, a refused connection, a connect or pool time-out: worth another try
    answered   an HTTP status, by its kind; any other exception is the tool's own answer

Doubt is looked for in the whole graph of an exception: causes, contexts (also those that `from
None` hides), members of groups, and exceptions kept in `args`, `reason` and the like. One doubtful
exception makes the whole doubt. What was raised decides about everything else.

Libraries are recognised by the names of their classes (`failure_names`), so none of them need be
installed. A status is believed of what may carry one: a time-out and an error of the socket were
never answered, whatever `status` they have. Two things are more than a look at one class:

* A library says `ConnectError` and keeps the bare OSError or TimeoutError of the socket as what it
  wraps. The outer one knows that it was connecting; the inner one is not judged.
* A library says `ConnectionError` for anything and wraps what tells more. Then that decides.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from re import Pattern
from typing import Any, Final, TypeVar

from holdfast.errors import (
    AuthorError,
    ForbiddenError,
    HoldfastError,
    InvalidValue,
    JournalUnavailable,
    OperatorError,
    OutcomeUnknown,
    PermanentError,
    ToolError,
    TransientError,
)
from holdfast.i18n.message import joined, msg
from holdfast.model.retry import FailureKind
from holdfast.work.failure_names import (
    ABOUT_HTTP,
    ANSWERED_BY_DATABASE,
    ANSWERS,
    CONNECTING,
    CURL,
    DATABASE,
    LOST,
    SOCKETS,
    SQLSTATES_IN_DOUBT,
    SQLSTATES_OF_ANYTHING,
    TIME_OUT,
    TRANSPORT,
    UNSENT,
    UNSENT_BY_CURL,
    WRAPPERS,
)

T = TypeVar("T")

_MOST_LOOKED_AT: Final = 1_000
_MOST_TOLD: Final = 3
_WORST_FIRST: Final = (FailureKind.FORBIDDEN, FailureKind.PERMANENT)

_KEPT_IN: Final = ("reason", "os_error", "original_error", "orig", "cause", "_cause")
_STATUSES: Final = (
    *("status_code", "status", "http_status", "http_code", "httpcode", "response_code"),
)
_ANSWER: Final = ("response", "resp")
_STATUSES_IN_DOUBT: Final = {408, 502, 504, *range(520, 528), 598, 599}
_STATUS_TEXT: Final = re.compile(r"[1-5][0-9]{2}(?: |$)")
_GRPC_DOUBT: Final = {
    *("CANCELLED", "UNKNOWN", "DEADLINE_EXCEEDED", "UNAVAILABLE", "INTERNAL", "DATA_LOSS"),
}
_GRPC: Final = {
    **dict.fromkeys(_GRPC_DOUBT, FailureKind.UNKNOWN),
    **dict.fromkeys(("UNAUTHENTICATED", "PERMISSION_DENIED"), FailureKind.FORBIDDEN),
    **dict.fromkeys(("RESOURCE_EXHAUSTED", "ABORTED"), FailureKind.TRANSIENT),
}


def classify(error: BaseException) -> FailureKind:
    """An exception that cannot be read is doubt: it may have been a lost call's."""
    return read(lambda: _kind(error), FailureKind.UNKNOWN)


def read(look: Callable[[], T], otherwise: T) -> T:
    """What `look` finds in an exception, or `otherwise` where looking at it raises, whatever that
    may be: its properties and words are foreign code."""
    try:
        return look()
    except KeyboardInterrupt:
        raise
    except BaseException:
        return otherwise


def _kind(error: BaseException) -> FailureKind:
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
    return read(
        lambda: _told(error),
        msg("{error}, which cannot be put into words", error=type(error).__name__),
    )


def _told(error: BaseException) -> str:
    if isinstance(error, BaseExceptionGroup):
        return joined("; ", dict.fromkeys(words_of(one) for one in _leaves(error)[:_MOST_TOLD]))
    words, name = str(error), type(error).__name__
    if not isinstance(error, Exception):
        return msg("the work raised {error}: {text}", error=name, text=words)
    bare = isinstance(error, LookupError) and [words] == [repr(one) for one in error.args]
    return f"{name}: {words}" if bare else words or name


def kind_of_status(status: int) -> FailureKind:
    """Of an answer that is an error; what a gateway says for a service that it could not hear (408,
    502, 504, 52x, 598, 599), or what is no status, does not tell whether the call arrived."""
    if status in _STATUSES_IN_DOUBT or not 100 <= status < 600:
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
    found = [_number(one) for one in _statuses(error)]
    return next((one for one in found if one is not None and 100 <= one < 600), None)


def _statuses(error: BaseException) -> Iterator[object]:
    response, resp = (attribute_of(error, name) for name in _ANSWER)
    yield from (attribute_of(one, name) for one in (error, response, resp) for name in _STATUSES)
    if _called(error, ABOUT_HTTP):
        yield attribute_of(error, "code")
    if _named(error, {"xmlrpc": {"ProtocolError"}}):
        yield attribute_of(error, "errcode")
    if isinstance(response, Mapping):
        told = response.get("ResponseMetadata")
        yield told.get("HTTPStatusCode") if isinstance(told, Mapping) else None


def _number(status: object) -> int | None:
    """Some libraries keep it as text (`504 Gateway Timeout`), or have a method for it."""
    if callable(status):
        status = read(status, None)
    if isinstance(status, bytes):
        status = status.decode("latin-1")
    if isinstance(status, str) and _STATUS_TEXT.match(status):
        return int(status[:3])
    return int(status) if isinstance(status, int) and not isinstance(status, bool) else None


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
        case OutcomeUnknown() | JournalUnavailable():
            return FailureKind.UNKNOWN
        case HoldfastError() if not isinstance(error, OperatorError):
            return FailureKind.TRANSIENT
    return None


def _answer(error: BaseException) -> FailureKind | None:
    told = _explicit(error) or _grpc(error)
    status = None if told else status_given(error)
    return told if status is None else kind_of_status(status)


def status_given(error: BaseException) -> int | None:
    """Its status, of an exception that can have been answered at all."""
    if _called(error, TIME_OUT):
        return None
    if isinstance(error, OSError) and not _called(error, ANSWERS):
        return status_of(error) if attribute_of(error, "response") is not None else None
    return status_of(error)


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
    if _named(error, CURL):
        told = (*error.args[:1], attribute_of(error, "code"))
        return any(one in UNSENT_BY_CURL for one in told)
    by_socket = isinstance(error, OSError) and _of_socket(error)
    connecting = by_socket and CONNECTING.match(str(error)) is not None
    return connecting or _named(error, UNSENT)


def _knows(error: BaseException) -> bool:
    """A library's own word that it was connecting, which covers what the socket raised."""
    return not _of_socket(error) and _unsent(error)


def _of_socket(error: BaseException) -> bool:
    return _root(type(error)) in SOCKETS


def _wraps_anything(error: BaseException) -> bool:
    return type(error).__name__ in WRAPPERS and not _of_socket(error)


def _of_transport(error: BaseException) -> bool:
    from http.client import HTTPException

    if isinstance(error, OSError | EOFError | HTTPException) or _named(error, LOST):
        return True
    if _called(error, ABOUT_HTTP) and any(map(_is_no_status, _statuses_of_its_own(error))):
        return True
    return any(_named_like_transport(kind, error) for kind in type(error).__mro__)


def _named_like_transport(kind: type, error: BaseException) -> bool:
    """By the words that libraries use; much in the standard library only sounds like it."""
    if _root(kind) in sys.stdlib_module_names:
        return TIME_OUT.search(kind.__name__) is not None
    if kind.__name__ in DATABASE:
        return _lost_by_database(error)
    return TRANSPORT.search(kind.__name__) is not None


def _lost_by_database(error: BaseException) -> bool:
    """A database's error that neither its class nor its SQLSTATE calls an answer."""
    if any(kind.__name__ in ANSWERED_BY_DATABASE for kind in type(error).__mro__):
        return False
    told = [attribute_of(error, name) for name in ("sqlstate", "pgcode", "orig")]
    known = [str(one) for one in told if one and one not in SQLSTATES_OF_ANYTHING]
    return not known or any(one.startswith(SQLSTATES_IN_DOUBT) for one in known)


def _statuses_of_its_own(error: BaseException) -> Iterator[object]:
    return (attribute_of(error, name) for name in _STATUSES)


def _is_no_status(value: object) -> bool:
    """What stands where a status would, and says that there was none (0, -1, 600)."""
    number = _number(value)
    return number is not None and not 100 <= number < 600


def _grpc(error: BaseException) -> FailureKind | None:
    names = grpc_names(error)
    return _GRPC.get(names[0], FailureKind.PERMANENT) if names else None


def grpc_names(error: BaseException) -> tuple[Any, ...]:
    """What gRPC calls the status of a call; nothing for any other exception."""
    if (told := attribute_of(error, "grpc_status_code")) is not None:
        pass
    elif _named(error, {"grpclib": {"GRPCError"}}):
        told = attribute_of(error, "status")
    elif any(kind.__name__ == "RpcError" for kind in type(error).__mro__):
        code = attribute_of(error, "code")
        told = read(code, None) if callable(code) else None
    else:
        return ()
    return (getattr(told, "name", "UNKNOWN"),)


def _named(error: BaseException, names: Mapping[str, set[str]]) -> bool:
    """Vendored copies (`pip._vendor.urllib3`) go by the library's name as well."""
    return any(
        kind.__name__ in names.get(part, ())
        for kind in type(error).__mro__
        for part in kind.__module__.split(".")
    )


def _called(error: BaseException, words: Pattern[str]) -> bool:
    return any(words.search(kind.__name__) for kind in type(error).__mro__)


def _root(kind: type) -> str:
    return kind.__module__.partition(".")[0]


def attribute_of(holder: object, name: str) -> Any:
    """Some have properties that raise."""
    return read(lambda: getattr(holder, name, None), None)


def _below(error: BaseException) -> list[BaseException]:
    return wrapped_by(error)[1:]


def wrapped_by(error: BaseException) -> list[BaseException]:
    """The exception and all that it holds or was raised from; not what was handled meanwhile."""
    return _reached(error, _wrapped)


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
