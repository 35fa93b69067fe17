"""Endpoints: what a route calls, and how what that takes is found in a request.

FastAPI reads an endpoint's signature and describes it. Here it is called: by what that signature
says, worked out once for a route, without a search for dependencies in every request. A dependency
is an async function of the request. What is wrong with a parameter or the body FastAPI's own
functions say, all of it at once.
"""

from __future__ import annotations

from typing import Any

from fastapi import Response
from fastapi.dependencies.utils import request_body_to_args, request_params_to_args
from fastapi.exceptions import RequestValidationError, ResponseValidationError
from fastapi.routing import APIRoute
from starlette.requests import Request

JSON = "application/json"


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
        self._asked = [(str(one.name), one.call) for one in takes.dependencies if one.call]
        self._itself = takes.request_param_name
        self._status = route.status_code or 200
        self._shown = route.response_field

    async def answer(self, request: Request, body: Any) -> Response:
        """Call it; RequestValidationError says all that is wrong with what was sent."""
        values = await self._values(request, body)
        for name, ask in self._asked:
            values[name] = await ask(request)
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
            errors += wrong
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
