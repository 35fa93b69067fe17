"""The route that all routers use: what holds for every request stands here, once.

    router = new_router("instances")

Before the handler: the caller is known, no query parameter is unknown, and the body is strict
JSON. What changes something is carried out once (see `idempotency`), in the caller's name.
Whatever a handler raises becomes a problem, and only what is not foreseen is a 500.

FastAPI reads an endpoint's signature and describes it; `Endpoint` calls it by what that signature
says, worked out once for a route, without a search for dependencies in every request. A dependency
is an async function of the request. What is wrong with a parameter or the body FastAPI's own
functions say, all of it at once.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from operator import attrgetter
from typing import Any, Final, NoReturn

from fastapi import APIRouter, Request, Response
from fastapi.dependencies.utils import request_body_to_args, request_params_to_args
from fastapi.exceptions import RequestValidationError, ResponseValidationError
from fastapi.routing import APIRoute
from pydantic_core import PydanticUndefined
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import Match
from starlette.types import Receive, Scope, Send

from holdfast.errors import HoldfastError, InvalidValue, NotFound
from holdfast.i18n.message import msg
from holdfast.language.strict import NO_NUL, NUL, strict_json
from holdfast.runtime.identity import Claim
from holdfast.server.auth.authentication import PROOFS, acting_as, identify
from holdfast.server.middleware.idempotency import HEADER, way_to_answer_again
from holdfast.server.problems import JSON, refusal
from holdfast.server.services import Services, served
from holdfast.server.validation_messages import with_hints

UNSAFE: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})

GONE: Final = 499
"""Counted and never sent: the client left before its turn came."""


def new_router(tag: str, **options: Any) -> APIRouter:
    return APIRouter(
        tags=[tag], route_class=Route, generate_unique_id_function=attrgetter("name"), **options
    )


class Endpoint:
    def __init__(self, route: APIRoute) -> None:
        takes = route.dependant
        parameters = {
            "path_params": takes.path_params,
            "query_params": takes.query_params,
            "headers": takes.header_params,
        }
        self._call = route.endpoint
        self._parameters = [(name, fields) for name, fields in parameters.items() if fields]
        self._body = takes.body_params
        self._keys = [
            name for one in takes.body_params for name in _keys(one.field_info.annotation)
        ]
        self._asked = [(str(one.name), one.call) for one in takes.dependencies if one.call]
        self._itself = takes.request_param_name
        self._status = route.status_code or 200
        self._shown = route.response_field

    async def answer(self, request: Request, body: Any, known: Mapping[Any, Any]) -> Response:
        """Call it; RequestValidationError says all that is wrong with what was sent. `known` are
        dependencies that were found before."""
        values = await self._values(request, body)
        for name, ask in self._asked:
            values[name] = known[ask] if ask in known else await ask(request)
        if self._itself is not None:
            values[self._itself] = request
        told = await self._call(**values)
        if isinstance(told, Response):
            return told
        return Response(self._written(told), self._status, media_type=JSON)

    async def _values(self, request: Request, body: Any) -> dict[str, Any]:
        values: dict[str, Any] = {}
        errors: list[Any] = []
        for place, fields in self._parameters:
            found, wrong = request_params_to_args(fields, getattr(request, place))
            values |= found
            errors += wrong
        if self._body:
            found, wrong = await request_body_to_args(self._body, body, embed_body_fields=False)
            values |= found
            errors += with_hints(wrong, self._keys) if wrong else ()
        if errors:
            raise RequestValidationError(errors)
        return values

    def _written(self, told: Any) -> bytes:
        if self._shown is None:
            return b""
        shown, wrong = self._shown.validate(told, loc=("response",))
        if wrong:
            raise ResponseValidationError(wrong)
        return self._shown.serialize_json(shown)


class StrictRequest(Request):
    """A request whose body has been read strictly before it is asked for."""

    given: Any = PydanticUndefined
    """The body: its value if it is JSON, else its bytes; undefined if there is none."""

    async def read(self, most_bytes: int, most_depth: int) -> None:
        body = await self.body()
        if body and _is_json(self.headers.get("content-type", "")):
            self.given = strict_json(_parsed(body), max_depth=most_depth, max_bytes=2 * most_bytes)
        elif body:
            self.given = body

    async def json(self) -> Any:
        return None if self.given is PydanticUndefined or type(self.given) is bytes else self.given


class Route(APIRoute):
    """FastAPI describes it; requests that it matches are served here."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.app = self._serve
        self._endpoint = Endpoint(self)
        self._again = way_to_answer_again(self.endpoint)
        self._beginning = self.path.partition("{")[0]
        self._known = {param.alias for param in self.dependant.query_params}
        self._guarded = any(one.call is identify for one in self.dependant.dependencies)
        self._changes = bool(UNSAFE.intersection(self.methods or ()))
        if self._guarded:
            proofs: list[dict[str, list[str]]] = [{name: []} for name in PROOFS]
            self.openapi_extra = {"security": proofs, **(self.openapi_extra or {})}

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        if self._beginning not in scope["path"]:
            return Match.NONE, {}
        return super().matches(scope)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = StrictRequest(scope, receive)
        try:
            response = await self._answer(request)
        except (HoldfastError, RequestValidationError, HTTPException):
            raise
        except ClientDisconnect:
            response = Response(status_code=GONE)
        except Exception as error:
            response = refusal(request, error)
        await response(scope, receive, send)

    async def _answer(self, request: StrictRequest) -> Response:
        caller = await identify(request) if self._guarded else None
        _refuse_nul(request)
        _refuse_unknown(request, self._known)
        around: Services = request.app.state.services
        await request.read(around.settings.body_limit, around.settings.json_depth)
        known = {served: around, identify: caller} if caller else {served: around}
        if not self._changes or caller is None:
            return await self._called(request, known)

        async def act(claim: Claim | None) -> Response:
            with acting_as(caller, claim):
                return await self._called(request, known)

        if HEADER not in request.headers:
            return await act(None)
        return await around.requests.once(request, caller.principal, act, self._again, around)

    async def _called(self, request: StrictRequest, known: Mapping[Any, Any]) -> Response:
        """What is not found may be a plan that another server registered a moment ago. What is
        refused has changed nothing, so it may be asked for again."""
        plans = known[served].plans
        seen = plans.changes
        try:
            return await self._endpoint.answer(request, request.given, known)
        except NotFound:
            await plans.refresh()
            if plans.changes == seen:
                raise
        return await self._endpoint.answer(request, request.given, known)


def _keys(body: Any) -> Iterator[str]:
    """The names under which a body has its values."""
    for name, field in getattr(body, "model_fields", {}).items():
        yield field.alias or name


def _refuse_nul(request: Request) -> None:
    """The body is read strictly; in headers there is none."""
    if NUL in request.scope["path"]:
        raise InvalidValue(NO_NUL, "path")
    if b"%00" in request.scope["query_string"]:
        named = [name for name, text in request.query_params.multi_items() if NUL in name + text]
        if named:
            raise InvalidValue(NO_NUL, named[0].replace(NUL, ""))


def _refuse_unknown(request: Request, known: set[str]) -> None:
    if not request.scope["query_string"]:
        return
    unknown = sorted(set(request.query_params) - known)
    if unknown:
        missing = {"type": "extra_forbidden", "msg": msg("no such query parameter"), "input": None}
        raise RequestValidationError([{**missing, "loc": ("query", one)} for one in unknown])


def _is_json(content_type: str) -> bool:
    kind = content_type.partition(";")[0].strip().lower()
    main, _, sub = kind.partition("/")
    return main == "application" and "/" not in sub and (sub == "json" or sub.endswith("+json"))


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body, parse_constant=_not_finite, object_pairs_hook=_said_once)
    except RecursionError:
        raise InvalidValue(msg("nested too deeply"), "body") from None
    except json.JSONDecodeError as error:
        told = msg(
            "is not JSON: {reason} at line {line}, column {column}",
            reason=error.msg,
            line=error.lineno,
            column=error.colno,
        )
        raise InvalidValue(told, "body") from None
    except ValueError:
        raise InvalidValue(
            msg("is not JSON in UTF-8, or has a number beyond 64 bits"), "body"
        ) from None


def _said_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Two values under one name: a check of the one says nothing of the other."""
    found = dict(pairs)
    if len(found) < len(pairs):
        times = Counter(name for name, _ in pairs)
        [(twice, _)] = times.most_common(1)
        raise InvalidValue(msg("says {name!r} twice", name=twice[:100]), "body")
    return found


def _not_finite(name: str) -> NoReturn:
    raise InvalidValue(msg("{name} is no number in JSON", name=name), "body")
