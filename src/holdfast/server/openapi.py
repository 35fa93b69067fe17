"""The server's description of itself: OpenAPI, with what holds for every operation added once.

An operation says what it takes and what it answers. Which problems it may answer with follows
from what it is: whether its caller must be authenticated, whether it names something that may
not be there, whether it changes anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from holdfast.server.auth.authentication import PROOFS
from holdfast.server.middleware.idempotency import HEADER, REPLAYED
from holdfast.server.problems import MEDIA_TYPE, TITLES, problem

TITLE: Final = "Holdfast"
DESCRIPTION: Final = """\
Plans, agents and conversations that stop for people and go on afterwards.

Errors are `application/problem+json` and say what to do. Whatever changes something takes an
`Idempotency-Key`: the same request under the same key is carried out once and answered the same.
Times are seconds since 1970; an answer that carries a deadline also has the server's time.
"""

TAGS: Final[Mapping[str, str]] = {
    "plans": "Plans: register, check, read, draw.",
    "instances": "Running plans: start, continue, resume, mend, cancel.",
    "runs": "Runs of every kind: lists, histories, live events; cancel, resume.",
    "interactions": "What people are asked, and their answers.",
    "chats": "Sessions with agents.",
    "conversations": "Conversations: goals that become tasks.",
    "catalogue": "Agents and tools.",
    "experience": "What was learned of failures: how calls recover, lessons.",
    "access": "Who may do what: tokens, sessions, the audit.",
    "operation": "Health, readiness, metrics.",
}

EXAMPLES: Final[Mapping[int, str]] = {
    400: "the request cannot be read",
    401: "send a token: Authorization: Bearer hf_…",
    403: "operator is needed for apply_computer",
    404: "there is no run inst_000009",
    405: "Method Not Allowed",
    408: "the body did not arrive in time",
    409: "Plan instance is not in PAUSE status, current: done",
    410: "the question's deadline has passed",
    413: "the body is larger than 1 MiB",
    422: "computer_model: choose one of MacBook Pro, ThinkPad X1",
    429: "refused too often: wait a minute",
    503: "the journal could not acknowledge: this may or may not have happened",
}

_METHODS: Final = ("get", "post", "put", "patch", "delete")
_PROBLEM: Final = "Problem"


def describe(server: FastAPI) -> None:
    """Have the server answer with the whole description, made once."""
    made: list[dict[str, Any]] = []

    def openapi() -> dict[str, Any]:
        if not made:
            made.append(_completed(_described(server)))
        return made[0]

    server.openapi = openapi  # type: ignore[method-assign]


def _described(server: FastAPI) -> dict[str, Any]:
    return get_openapi(
        title=TITLE,
        version=server.version,
        description=DESCRIPTION,
        routes=server.routes,
        tags=[{"name": name, "description": text} for name, text in TAGS.items()],
    )


def _completed(document: dict[str, Any]) -> dict[str, Any]:
    components = document.setdefault("components", {})
    components["securitySchemes"] = PROOFS
    schemas = components.setdefault("schemas", {})
    schemas.pop("HTTPValidationError", None)
    schemas.pop("ValidationError", None)
    schemas[_PROBLEM] = PROBLEM_SCHEMA
    for method, path, operation in _operations(document):
        _complete(method, path, operation)
    return document


def _operations(document: Mapping[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, item in document["paths"].items():
        for method in _METHODS:
            if method in item:
                yield method, path, item[method]


def _complete(method: str, path: str, operation: dict[str, Any]) -> None:
    guarded = bool(operation.get("security"))
    changes = guarded and method != "get"
    if changes:
        operation.setdefault("parameters", []).append(IDEMPOTENCY_KEY)
        for status, response in operation["responses"].items():
            if status.startswith("2"):
                response.setdefault("headers", {})[REPLAYED] = REPLAYED_HEADER
    for status in sorted(_problems(method, path, guarded)):
        operation["responses"][str(status)] = problem_answer(status)


def _problems(method: str, path: str, guarded: bool) -> set[int]:
    found = {400, 422, 503}
    if guarded:
        found |= {401, 403, 429}
    if "{" in path:
        found |= {404}
    if method != "get":
        found |= {408, 413}
        found |= {404, 409, 410} if guarded else set()
    return found


def problem_answer(status: int) -> dict[str, Any]:
    title = TITLES[status]
    example = problem(status, EXAMPLES[status], instance="/path", request_id="4f1c")
    content = {"schema": {"$ref": f"#/components/schemas/{_PROBLEM}"}, "example": example}
    return {"description": title, "content": {MEDIA_TYPE: content}}


NOT_FOUND: Final[dict[int | str, dict[str, Any]]] = {404: problem_answer(404)}
"""For lists that begin at, or are about, something that may not be there."""

SIGNING_IN: Final[dict[int | str, dict[str, Any]]] = {
    status: problem_answer(status) for status in (401, 403, 429)
}
"""For callers that are not authenticated, and need not be."""

IDEMPOTENCY_KEY: Final[dict[str, Any]] = {
    "name": HEADER,
    "in": "header",
    "required": False,
    "description": "Names this request: sent again under the same name it is not carried out again",
    "schema": {"type": "string", "pattern": "^[!-~]{1,200}$", "minLength": 1, "maxLength": 200},
    "example": "8e03978e-40d5-43e8-bc93-6894a57f9324",
}

REPLAYED_HEADER: Final[dict[str, Any]] = {
    "description": "`true` when the request had been carried out before",
    "schema": {"type": "string"},
}

PROBLEM_SCHEMA: Final[dict[str, Any]] = {
    "title": _PROBLEM,
    "type": "object",
    "description": "What is wrong and what to do about it (RFC 9457, and the seeds' refusals)",
    "required": ["type", "title", "status", "detail", "success", "error"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "instance": {"type": "string"},
        "request_id": {"type": "string"},
        "success": {"type": "boolean", "const": False},
        "error": {"type": "string"},
        "fields": {"type": "object", "additionalProperties": {"type": "string"}},
        "problems": {"type": "array", "items": {"type": "object"}},
        "answered_by": {"type": "string"},
        "answered_at": {"type": "number"},
    },
    "additionalProperties": True,
}
