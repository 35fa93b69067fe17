"""Errors as problem+json: one table says which error is which status.

A problem also carries `success`, `error` and `message`, as the seeds' refusals do. What a
caller may know of an error stands here; whatever is not in the table is ours, and its message
stays in the log. Who asks for another language by `Accept-Language` is told in that one.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import islice
from math import ceil
from typing import Any, Final

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from holdfast import errors
from holdfast.i18n.catalogue import preferred, said
from holdfast.i18n.message import joined, msg
from holdfast.server.validation_messages import validation_message

log = logging.getLogger("holdfast")

JSON: Final = "application/json"
MEDIA_TYPE: Final = "application/problem+json"
RETRY_AFTER: Final = 1
"""Seconds after which a journal that could not acknowledge may be asked again."""

NOT_ACKNOWLEDGED: Final = msg(
    "the journal could not acknowledge: this may or may not have happened; try "
    "again, with the same Idempotency-Key"
)
NOT_OURS_TO_TELL: Final = msg(
    "something went wrong here; the server's log has it under this request id"
)

MOST_SPOKEN: Final = 100
"""How many mistakes of one request are put into the reader's language."""

MOST_IN_MESSAGE: Final = 5

TABLE: Final[Mapping[type[Exception], tuple[int, str]]] = {
    errors.Unauthenticated: (401, msg("Who are you?")),
    errors.NotPermitted: (403, msg("Not permitted")),
    errors.NotFound: (404, msg("Not found")),
    errors.NotAllowed: (409, msg("Not possible now")),
    errors.AlreadyAnswered: (409, msg("Already answered")),
    errors.TooLate: (410, msg("Too late")),
    errors.InvalidAnswer: (422, msg("The answer does not fit")),
    errors.InvalidValue: (422, msg("A value cannot be taken")),
    errors.PlanRejected: (422, msg("The plan has mistakes")),
    errors.PatchRejected: (422, msg("The patch cannot be made")),
    errors.FormRejected: (422, msg("The form has mistakes")),
    errors.AuthorError: (422, msg("A definition has a mistake")),
    errors.TooMany: (429, msg("Too many refusals")),
    errors.Busy: (503, msg("Busy")),
    errors.CallerError: (409, msg("Refused")),
    errors.OperatorError: (503, msg("Not acknowledged")),
    errors.ToolError: (503, msg("Another system did not answer")),
}

TITLES: Final[Mapping[int, str]] = {
    400: msg("Bad request"),
    401: msg("Who are you?"),
    403: msg("Not permitted"),
    404: msg("Not found"),
    405: msg("Method not allowed"),
    408: msg("The request took too long"),
    409: msg("Not possible now"),
    410: msg("Too late"),
    413: msg("Too large"),
    414: msg("The address is too long"),
    422: msg("Not valid"),
    429: msg("Too many refusals"),
    431: msg("The headers are too large"),
    500: msg("Our mistake"),
    503: msg("Not acknowledged"),
}


class Refusal(errors.NotAllowed):
    """A refusal that says more: the problem carries these members too."""

    def __init__(self, message: str, **members: Any) -> None:
        super().__init__(message)
        self.members = members


def problem(
    status: int,
    detail: str,
    *,
    title: str | None = None,
    kind: str = "about:blank",
    instance: str = "",
    request_id: str = "",
    extra: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """A problem's members; `extra` has what is particular to this one."""
    named = title or TITLES.get(status, msg("Refused"))
    found = {"type": kind, "title": named, "status": status, "detail": detail}
    if instance:
        found["instance"] = instance
    if request_id:
        found["request_id"] = request_id
    told = {"success": False, "error": detail, "message": detail}
    return {**found, **told, **(extra or {})}


def problem_bytes(members: Mapping[str, Any]) -> bytes:
    """Half a character that a caller sent is spelled out and does not break the answer."""
    return json.dumps(members, ensure_ascii=False).encode("utf-8", "backslashreplace")


def problem_response(
    members: Mapping[str, Any], language: str, headers: Mapping[str, str] | None = None
) -> Response:
    told = {**(headers or {}), "Content-Language": language, "Vary": "Accept-Language"}
    body = problem_bytes(in_language(members, language))
    return Response(body, members["status"], told, media_type=MEDIA_TYPE)


def in_language(members: Mapping[str, Any], language: str) -> dict[str, Any]:
    """A problem in the reader's words; what their programs go by stays as it is."""
    told = dict(members)
    told["title"] = said(told["title"], language)
    for name in ("detail", "error", "message"):
        told[name] = said(told[name], language)
    if "fields" in told:
        fields = dict(told["fields"])
        spoken = {name: said(fields[name], language) for name in islice(fields, MOST_SPOKEN)}
        told["fields"] = fields | spoken
        told["message"] = _with_fields(told["message"], spoken)
    if "problems" in told:
        found = told["problems"]
        first = [{**one, "message": said(one["message"], language)} for one in found[:MOST_SPOKEN]]
        told["problems"] = [*first, *found[MOST_SPOKEN:]]
    return told


def _with_fields(message: str, fields: Mapping[str, str]) -> str:
    """What a page shows that looks at nothing else: which fields are wrong, and how."""
    said_already = [f"{name}: {why}" for name, why in fields.items() if why not in message]
    return "; ".join([message, *said_already[:MOST_IN_MESSAGE]])


def language_of(request: Request) -> str:
    """What the reader wants to be answered in."""
    return preferred(request.headers.get("accept-language", ""))


def status_of(error: Exception) -> tuple[int, str]:
    known = (TABLE[kind] for kind in type(error).__mro__ if kind in TABLE)
    return next(known, (500, TITLES[500]))


def refusal(request: Request, error: Exception) -> Response:
    """The answer to a request that ended in `error`."""
    members = problem_of(error, instance=request.url.path, request_id=request_id(request))
    if members["status"] >= 500:
        _log(request, error)
    return problem_response(members, language_of(request), _headers(members["status"], error))


def problem_of(error: Exception, *, instance: str = "", request_id: str = "") -> dict[str, Any]:
    """An error as the problem that its receiver is told."""
    status, title = status_of(error)
    return problem(
        status,
        _detail(status, error),
        title=title,
        kind=_kind(status, error),
        instance=instance,
        request_id=request_id,
        extra=_extra(error),
    )


def request_id(request: Request) -> str:
    """As the middleware has named this request."""
    return str(getattr(request.state, "request_id", ""))


def _log(request: Request, error: Exception) -> None:
    """What a caller sent may be a secret, and a message may quote it: the place is enough."""
    ours = not isinstance(error, errors.HoldfastError)
    place = _place(error) if ours else str(error)
    log.error(
        "%s %s %s: %s: %s",
        request_id(request),
        request.method,
        request.scope.get("path", ""),
        type(error).__name__,
        place,
    )


def _place(error: BaseException) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return "nowhere"
    return f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"


def _detail(status: int, error: Exception) -> str:
    if isinstance(error, errors.JournalUnavailable):
        return NOT_ACKNOWLEDGED
    if isinstance(error, errors.Busy):
        return str(error)
    if isinstance(error, errors.OperatorError):
        return msg("the operator of this installation must act; its log says why")
    return NOT_OURS_TO_TELL if status >= 500 else str(error)


def _extra(error: Exception) -> dict[str, Any]:
    match error:
        case Refusal():
            return error.members
        case errors.InvalidAnswer():
            return {"fields": error.fields}
        case errors.InvalidValue():
            return {"fields": {error.path: error.reason}}
        case errors.AlreadyAnswered():
            return {
                "answered_by": error.by,
                "answered_at": error.at,
                "answered_option_id": error.option_id,
            }
        case errors.PlanRejected():
            return {"problems": [asdict(one) for one in error.problems]}
        case errors.PatchRejected():
            return {"problems": [{"message": one} for one in error.problems]}
        case errors.FormRejected():
            found = [{"place": one.place, "message": one.message} for one in error.problems]
            return {"problems": found}
        case _:
            return {}


def _headers(status: int, error: Exception) -> dict[str, str]:
    if isinstance(error, errors.TooMany):
        return {"Retry-After": str(max(1, ceil(error.retry_after)))}
    if status == 503:
        return {"Retry-After": str(RETRY_AFTER)}
    return {"WWW-Authenticate": "Bearer"} if status == 401 else {}


def _kind(status: int, error: Exception) -> str:
    known = next((one for one in type(error).__mro__ if one in TABLE), None)
    return f"urn:holdfast:{_kebab(known.__name__)}" if known and status < 500 else "about:blank"


def _kebab(name: str) -> str:
    return "".join(f"-{one.lower()}" if one.isupper() else one for one in name).removeprefix("-")


def _misread(request: Request, found: Sequence[Mapping[str, Any]]) -> Response:
    """What pydantic found, without the values: they may be secrets."""
    fields = {_where(one["loc"]): validation_message(one) for one in found}
    told = joined("; ", (msg("{place}: {problem}", place=k, problem=v) for k, v in fields.items()))
    members = problem(
        422,
        told,
        kind="urn:holdfast:invalid-request",
        instance=request.url.path,
        request_id=request_id(request),
        extra={"fields": fields},
    )
    return problem_response(members, language_of(request))


def _where(loc: Sequence[str | int]) -> str:
    """The body's own names are the caller's; where else a value stood is said."""
    parts = loc[1:] if loc and loc[0] in ("body", "query", "path") and len(loc) > 1 else loc
    return ".".join(str(part) for part in parts)


async def _refused(request: Request, error: Exception) -> Response:
    return refusal(request, error)


async def _not_valid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return _misread(request, error.errors())


async def _not_served(request: Request, error: Exception) -> Response:
    """What the framework refuses: no such path, no such method."""
    assert isinstance(error, HTTPException)
    members = problem(
        error.status_code,
        str(error.detail),
        instance=request.url.path,
        request_id=request_id(request),
    )
    return problem_response(members, language_of(request), error.headers)


def answer_with_problems(server: FastAPI) -> None:
    server.add_exception_handler(errors.HoldfastError, _refused)
    server.add_exception_handler(RequestValidationError, _not_valid)
    server.add_exception_handler(HTTPException, _not_served)
    server.add_exception_handler(Exception, _refused)
