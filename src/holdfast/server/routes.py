"""The route that all routers use: what holds for every request stands here, once.

    router = new_router("instances")

Before the handler: who asks is known, no query parameter is unknown, and the body is strict
JSON. What changes something is carried out once (see `idempotency`), in the name of who asked.
Whatever a handler raises becomes a problem, and only what we did not foresee is a 500.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, Final, NoReturn

from fastapi import APIRouter, Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from holdfast.core.language.strict import strict_json
from holdfast.errors import HoldfastError, InvalidValue
from holdfast.runtime.acting import Claim
from holdfast.server.guard import PROOFS, acting_as, identify
from holdfast.server.idempotency import way_to_answer_again
from holdfast.server.problems import refusal
from holdfast.server.services import services

UNSAFE: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})

GONE: Final = 499
"""Counted, and sent to nobody: who asked has left before their turn came."""

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


def new_router(tag: str, **options: Any) -> APIRouter:
    return APIRouter(tags=[tag], route_class=Route, **options)


class StrictRequest(Request):
    """A request whose body has been read strictly before anybody asks for it."""

    _strict: Any = None

    async def read(self, most_bytes: int, most_depth: int) -> None:
        body = await self.body()
        if body and _is_json(self.headers.get("content-type", "")):
            self._strict = strict_json(
                _parsed(body), max_depth=most_depth, max_bytes=2 * most_bytes
            )

    async def json(self) -> Any:
        return self._strict


class Route(APIRoute):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if self._is_guarded():
            proofs: list[dict[str, list[str]]] = [{name: []} for name in PROOFS]
            self.openapi_extra = {"security": proofs, **(self.openapi_extra or {})}

    def _is_guarded(self) -> bool:
        return any(one.call is identify for one in _all_of(self.dependant))

    def get_route_handler(self) -> Handler:
        serve = super().get_route_handler()
        flat = list(_all_of(self.dependant))
        guarded = self._is_guarded()
        known = {param.alias for one in flat for param in one.query_params}
        changes = guarded and bool(UNSAFE & set(self.methods or ()))
        again = way_to_answer_again(self.endpoint)

        async def answer(request: Request) -> Response:
            strict = StrictRequest(request.scope, request.receive)
            caller = await identify(strict) if guarded else None
            _refuse_unknown(strict, known)
            around = services(strict)
            await strict.read(around.settings.body_limit, around.settings.json_depth)
            if not changes or caller is None:
                return await serve(strict)

            async def act(claim: Claim | None) -> Response:
                with acting_as(caller, claim):
                    return await serve(strict)

            return await around.requests.once(strict, caller.principal, act, again, around)

        async def handle(request: Request) -> Response:
            try:
                return await answer(request)
            except (HoldfastError, RequestValidationError, HTTPException):
                raise
            except ClientDisconnect:
                return Response(status_code=GONE)
            except Exception as error:
                return refusal(request, error)

        return handle


def _all_of(dependant: Dependant) -> Iterator[Dependant]:
    yield dependant
    for one in dependant.dependencies:
        yield from _all_of(one)


def _refuse_unknown(request: Request, known: set[str]) -> None:
    unknown = sorted(set(request.query_params) - known)
    if unknown:
        missing = {"type": "extra_forbidden", "msg": "no such query parameter", "input": None}
        raise RequestValidationError([{**missing, "loc": ("query", one)} for one in unknown])


def _is_json(content_type: str) -> bool:
    kind = content_type.partition(";")[0].strip().lower()
    return kind == "application/json" or (
        kind.startswith("application/") and kind.endswith("+json")
    )


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body, parse_constant=_not_finite, object_pairs_hook=_said_once)
    except RecursionError:
        raise InvalidValue("nested too deeply", "body") from None
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise InvalidValue(f"is not JSON: {error.msg} at {place}", "body") from None
    except ValueError:
        raise InvalidValue("is not JSON in UTF-8, or has a number beyond 64 bits", "body") from None


def _said_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Two values under one name: whoever checked the one may not have seen the other."""
    found = dict(pairs)
    if len(found) < len(pairs):
        times = Counter(name for name, _ in pairs)
        [(twice, _)] = times.most_common(1)
        raise InvalidValue(f"says {twice[:100]!r} twice", "body")
    return found


def _not_finite(name: str) -> NoReturn:
    raise InvalidValue(f"{name} is no number in JSON", "body")
