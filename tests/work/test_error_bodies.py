"""What services put into the JSON of an error, each in its own way."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from immutables import Map

from holdfast.work.error_bodies import argument_in, code_in

Told = tuple[int | None, Any, str, str]

BODIES: dict[str, Told] = {
    "OpenAI": (
        404,
        {"error": {"type": "invalid_request_error", "code": "model_not_found", "param": "model"}},
        "model_not_found",
        "model",
    ),
    "Stripe": (402, {"error": {"type": "card_error", "param": "number"}}, "card_error", "number"),
    "OAuth": (400, {"error": "invalid_grant", "error_description": "no"}, "invalid_grant", ""),
    "Google": (
        400,
        {
            "error": {
                "code": 400,
                "status": "INVALID_ARGUMENT",
                "details": [
                    {"reason": "API_KEY_INVALID"},
                    {"fieldViolations": [{"field": "employee.name", "description": "no"}]},
                ],
            }
        },
        "API_KEY_INVALID",
        "employee.name",
    ),
    "gRPC over HTTP": (404, {"error": {"code": 404, "status": "NOT_FOUND"}}, "NOT_FOUND", ""),
    "AWS": (400, {"__type": "ThrottlingException"}, "ThrottlingException", ""),
    "botocore": (404, {"Error": {"Code": "NoSuchKey", "Message": "no"}}, "NoSuchKey", ""),
    "Azure": (401, {"error": {"code": "ExpiredToken"}}, "ExpiredToken", ""),
    "problem+json": (
        403,
        {"type": "https://example.com/out-of-credit", "title": "no", "status": 403},
        "https://example.com/out-of-credit",
        "",
    ),
    "problem+json without a type": (404, {"type": "about:blank", "title": "no"}, "", ""),
    "problem+json with parameters": (
        400,
        {"type": "urn:bad", "invalid-params": [{"name": "age", "reason": "must be positive"}]},
        "urn:bad",
        "age",
    ),
    "FastAPI": (
        422,
        {"detail": [{"loc": ["body", "model"], "msg": "Field required", "type": "missing"}]},
        "missing",
        "model",
    ),
    "FastAPI, deep": (
        422,
        {"detail": [{"loc": ["body", "items", 3, "name"], "type": "string_type"}]},
        "string_type",
        "items.3.name",
    ),
    "Rails": (422, {"errors": {"user_name": ["is taken"]}}, "", "user_name"),
    "Laravel": (422, {"message": "no", "errors": {"email": ["no"]}}, "", "email"),
    "Django": (400, {"model": ["This field is required."]}, "", "model"),
    "Django, of no field": (400, {"non_field_errors": ["no"]}, "", ""),
    "JSON:API": (
        422,
        {
            "errors": [
                {"status": "422", "code": "x1", "source": {"pointer": "/data/attributes/title"}}
            ]
        },
        "x1",
        "title",
    ),
    "GraphQL": (
        200,
        {"errors": [{"message": "no", "extensions": {"code": "UNAUTHENTICATED"}}]},
        "UNAUTHENTICATED",
        "",
    ),
    "JSON-RPC": (None, {"error": {"code": -32602, "message": "no"}}, "-32602", ""),
    "zod": (
        400,
        {"issues": [{"code": "invalid_type", "path": ["user", "name"]}]},
        "invalid_type",
        "user.name",
    ),
    "WeChat": (None, {"errcode": 40001, "errmsg": "invalid credential"}, "40001", ""),
    "Spring": (400, {"status": 400, "error": "Bad Request", "path": "/tool"}, "", ""),
    "a list of fields": (422, {"fields": ["model"]}, "", "model"),
    "the mock office": (
        422,
        {"success": False, "error": "model is missing", "field": "model", "code": "missing"},
        "missing",
        "model",
    ),
    "the status over again": (404, {"code": 404, "error": {"code": "404"}}, "", ""),
    "in capitals": (409, {"error": "CONFLICT"}, "CONFLICT", ""),
    "one word of a sentence": (500, {"error": "busy"}, "", ""),
    "no code": (None, {"code": True, "error_code": 0, "errcode": "ok"}, "", ""),
    "a sentence": (None, {"code": "out of stock", "field": "the model"}, "", ""),
    "too long": (None, {"code": "x" * 101, "field": "y" * 101}, "", ""),
    "unprintable": (None, {"code": "a\x00b", "field": "a\ud800"}, "", ""),
    "a type of another kind": (None, {"type": "laptop"}, "", ""),
    "nothing": (None, {}, "", ""),
    "of other shapes": (
        400,
        {"error": None, "errors": ["a b", 7], "detail": [[]], "field": 7, "loc": "x", "fields": []},
        "",
        "",
    ),
    "too many members": (None, {str(one): one for one in range(101)} | {"code": "X"}, "", ""),
    "a map": (None, Map({"error": Map({"code": "X", "field": "y"})}), "X", "y"),
}


@pytest.mark.parametrize("name", BODIES)
def test_an_error_is_read_as_its_service_writes_it(name: str) -> None:
    status, body, code, argument = BODIES[name]
    assert (code_in(body, status), argument_in(body, status)) == (code, argument)


json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["error", "errors", "detail", "code", "field", "loc", "fields"])
            | st.text(max_size=4),
            inner,
            max_size=4,
        )
    ),
)


@given(st.dictionaries(st.sampled_from(["error", "errors", "detail", "code"]), json), st.none())
def test_whatever_it_holds_is_read(body: dict[str, Any], status: int | None) -> None:
    for told in (code_in(body, status), argument_in(body, status)):
        assert len(told) <= 100
        assert told.isprintable()
        assert not set(told) & set(" \"'<>")


def test_an_error_within_errors_has_an_end() -> None:
    body: dict[str, Any] = {"code": "deep"}
    for _ in range(500):
        body = {"error": body, "errors": [body, body, body]}
    assert code_in(body) == ""
