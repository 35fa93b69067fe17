"""A server's problem+json, turned back into the error that it was."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

import httpx

from holdfast import errors

_PREFIX: Final = "urn:holdfast:"

_BY_STATUS: Final[Mapping[int, type[errors.HoldfastError]]] = {
    401: errors.Unauthenticated,
    403: errors.NotPermitted,
    404: errors.NotFound,
    409: errors.NotAllowed,
    410: errors.TooLate,
    503: errors.JournalUnavailable,
}
_BY_NAME: Final[Mapping[str, type[errors.HoldfastError]]] = {
    "not-found": errors.NotFound,
    "not-allowed": errors.NotAllowed,
    "too-late": errors.TooLate,
    "unauthenticated": errors.Unauthenticated,
    "not-permitted": errors.NotPermitted,
}

_NO_OPERATION: Final = frozenset(
    (status, "about:blank", status.phrase)
    for status in (HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED)
)
"""A server that knows the operation says in its own words what there is not."""


def refusal_of(response: httpx.Response) -> errors.HoldfastError:
    """The error that a response with a status of 400 or above stands for; its body is read."""
    problem = {**_members(response), "status": response.status_code}
    if (problem["status"], str(problem.get("type")), str(problem.get("detail"))) in _NO_OPERATION:
        asked = f"{response.request.method} {response.request.url.path}"
        return errors.ServerTooOld(f"the server has no {asked}: it is older than this client")
    return refusal_in(problem, seconds_to_wait(response))


def refusal_in(problem: Mapping[str, Any], wait: float | None = None) -> errors.HoldfastError:
    """The error that a problem stands for; `wait` is when to try again, if that was told."""
    status, told = int(problem["status"]), problem.get("detail")
    detail = told if isinstance(told, str) and told else f"the server answered {status}"
    if status == 429:
        return errors.TooMany(detail, wait or 1.0)
    kind = str(problem.get("type", "")).removeprefix(_PREFIX)
    try:
        return _particular(kind, detail, problem) or _plain(kind, detail, status)
    except (KeyError, TypeError, ValueError):  # another server's members, under our names
        return _plain(kind, detail, status)


def _members(response: httpx.Response) -> Mapping[str, Any]:
    try:
        found = response.json()
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _particular(kind: str, detail: str, members: Mapping[str, Any]) -> errors.HoldfastError | None:
    match kind:
        case "already-answered":
            return errors.AlreadyAnswered(
                detail,
                by=str(members.get("answered_by", "")),
                at=float(members.get("answered_at", 0.0)),
                option_id=members.get("answered_option_id"),
            )
        case "invalid-value":
            [path] = members.get("fields") or ["$"]
            return errors.InvalidValue(detail.removeprefix(f"{path}: "), path)
        case "plan-rejected":
            return errors.PlanRejected([errors.Problem(**one) for one in members["problems"]])
        case "patch-rejected":
            return errors.PatchRejected([str(one["message"]) for one in members["problems"]])
        case "form-rejected":
            problems = [((one["place"],), one["message"]) for one in members["problems"]]
            return errors.FormRejected([errors.FormProblem(*one) for one in problems])
        case _ if members["status"] == 422 and "fields" in members:
            return errors.InvalidAnswer(detail, members["fields"])
        case _:
            return None


def _plain(kind: str, detail: str, status: int) -> errors.HoldfastError:
    known = _BY_NAME.get(kind) or _BY_STATUS.get(status)
    if known is not None:
        return known(detail)
    return errors.InternalError(detail) if status >= 500 else errors.CallerError(detail)


def seconds_to_wait(response: httpx.Response) -> float | None:
    """What the server says in `Retry-After`."""
    told = response.headers.get("retry-after", "")
    return float(told) if told.isascii() and told.isdigit() else None
