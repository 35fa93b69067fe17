"""What exceptions say of a failure beside its words, and what is wrong by that."""

from __future__ import annotations

import json
import socket
import sqlite3
import ssl
from enum import Enum
from typing import Any

import httpx
import pytest
import requests
from lossy_service import (
    CLIENTS,
    answering,
    by_httpx,
    by_openai,
    by_requests,
    call,
    lossy_service,
    refusing_port,
)
from lossy_service import status as answer_of

from holdfast.core.repair.causes import judged
from holdfast.errors import (
    ForbiddenError,
    ModelUnavailable,
    OutcomeUnknown,
    PermanentError,
    SnippetError,
    ToolError,
    TransientError,
)
from holdfast.forms.secrets import reference_of
from holdfast.journal.codec import decode, encode
from holdfast.journal.port import Record
from holdfast.model import commands as c
from holdfast.model.events import ListenerFailed
from holdfast.model.retry import Cause, Failure, FailureKind
from holdfast.work.confidence import in_confidence
from holdfast.work.failed_attempts import failed
from holdfast.work.failure_details import (
    NONE,
    Details,
    argument_named,
    details_of,
    tell,
)
from holdfast.work.failures import classify, kind_of_status
from holdfast.work.tools import CallInfo, PythonTool

CALL = CallInfo(key="inst_000001:L001:1:0", run_id="inst_000001", attempt=1)


def of(error: BaseException) -> Failure:
    """The failure that comes of an exception, judged."""
    outcome = failed(error)
    assert isinstance(outcome, c.Failed), outcome
    return judged(outcome.failure, "pay")


async def raised(client: Any, port: int) -> Exception:
    with pytest.raises(Exception) as caught:
        await call(client, port)
    return caught.value


@pytest.mark.parametrize(
    ("status", "cause"),
    [
        (400, Cause.ARGUMENT),
        (401, Cause.CREDENTIALS),
        (403, Cause.RIGHTS),
        (404, Cause.PRECONDITION),
        (409, Cause.CONFLICT),
        (412, Cause.PRECONDITION),
        (422, Cause.ARGUMENT),
        (423, Cause.CONFLICT),
        (429, Cause.RATE_LIMIT),
        (500, Cause.OUTAGE),
        (503, Cause.OUTAGE),
    ],
)
@pytest.mark.parametrize("client", CLIENTS)
async def test_every_library_tells_the_status(client: str, status: int, cause: Cause) -> None:
    with lossy_service(answer_of(status)) as service:
        failure = of(await raised(CLIENTS[client], service.port))
    assert (failure.status, failure.cause) == (status, cause)


@pytest.mark.parametrize("client", CLIENTS)
async def test_a_refused_connection_is_an_outage(client: str) -> None:
    with refusing_port() as port:
        failure = of(await raised(CLIENTS[client], port))
    assert (failure.status, failure.cause) == (None, Cause.OUTAGE)
    assert failure.code


@pytest.mark.parametrize("status", range(100, 600))
def test_what_is_doubt_by_its_status_has_doubt_for_its_cause(status: int) -> None:
    kind = kind_of_status(status)
    cause = judged(Failure(kind, "", status=status), None).cause
    said = judged(Failure(FailureKind.TRANSIENT, "", status=status), None).cause
    assert (cause is Cause.DOUBT) == (said is Cause.DOUBT) == (kind is FailureKind.UNKNOWN)


@pytest.mark.parametrize("client", [by_httpx, by_requests, by_openai])
async def test_what_the_answer_says_is_read_where_it_is_at_hand(client: Any) -> None:
    said = {"error": {"message": "no", "code": "model_not_found", "param": "model"}}
    with lossy_service(answering(404, said)) as service:
        failure = of(await raised(client, service.port))
    assert (failure.status, failure.code, failure.field) == (404, "model_not_found", "model")


def test_an_answer_that_was_not_read_is_left_alone() -> None:
    """Reading it might wait for the service."""
    with lossy_service(answering(404, {"code": "gone"})) as service:
        url = f"http://127.0.0.1:{service.port}/"
        with httpx.Client(trust_env=False) as client, client.stream("POST", url) as answer:
            with pytest.raises(httpx.HTTPStatusError) as by_httpx:
                answer.raise_for_status()
            failure = of(by_httpx.value)
        with requests.Session() as session:
            session.trust_env = False
            streamed = session.post(url, stream=True)
            with pytest.raises(requests.HTTPError) as by_requests:
                streamed.raise_for_status()
            also = of(by_requests.value)
            assert streamed.raw.tell() == 0
            streamed.close()
    assert (failure.status, failure.code) == (also.status, also.code) == (404, "")


def library(module: str, name: str, *above: type, **has: Any) -> BaseException:
    """An exception as a library that is not installed here declares it."""
    kind = type(name, above or (Exception,), {"__module__": module, **has})
    error: BaseException = kind("x")
    return error


def because(error: Exception, cause: BaseException) -> Exception:
    error.__cause__ = cause
    return error


class Code(Enum):
    NOT_FOUND = 5
    RESOURCE_EXHAUSTED = 8


class OutOfStock(PermanentError):
    code = "out_of_stock"


class Quiet(PermanentError):
    pass


def answered(status: int, body: object = b"") -> Exception:
    request = httpx.Request("POST", "http://127.0.0.1/")
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    answer = httpx.Response(status, request=request, content=content)
    return httpx.HTTPStatusError("x", request=request, response=answer)


def locked() -> BaseException:
    with pytest.raises(sqlite3.IntegrityError) as caught:
        sqlite3.connect(":memory:").executescript(
            "create table a (b unique); insert into a values (1), (1)"
        )
    return caught.value


def told(error: PermanentError | TransientError, **details: Any) -> Exception:
    return tell(error, Details(**details))


GRPC = type("RpcError", (Exception,), {"__module__": "grpc"})
FORBIDDEN_AND_BUSY = ExceptionGroup("", [answered(503), answered(403, {"code": "locked_out"})])

Found = tuple[BaseException, int | None, str, str]

FOUND: dict[str, Found] = {
    "any": (ValueError("x"), None, "ValueError", Cause.UNKNOWN),
    "its author's, by its words": (PermanentError("order 7 not found"), None, "", "precondition"),
    "its author's": (ForbiddenError("x"), None, "", Cause.RIGHTS),
    "worth another try": (TransientError("x"), None, "TransientError", Cause.OUTAGE),
    "the model": (ModelUnavailable("x"), None, "ModelUnavailable", Cause.OUTAGE),
    "asked to wait": (TransientError("x", retry_after=3), None, "TransientError", "rate_limit"),
    "a class with a code": (OutOfStock("x"), None, "out_of_stock", Cause.PRECONDITION),
    "a class without": (Quiet("x"), None, "Quiet", Cause.UNKNOWN),
    "an author's for another": (
        because(PermanentError("x"), KeyError("x")),
        None,
        "KeyError",
        Cause.UNKNOWN,
    ),
    "an author's for an answer": (
        because(PermanentError("x"), answered(409, {"code": "taken"})),
        409,
        "taken",
        Cause.CONFLICT,
    ),
    "an author's for what was in doubt": (
        because(PermanentError("x"), answered(504)),
        None,
        "HTTPStatusError",
        Cause.UNKNOWN,
    ),
    "a snippet": (SnippetError("x"), None, "SnippetError", Cause.PLAN),
    "of several the one that decided": (FORBIDDEN_AND_BUSY, 403, "locked_out", Cause.RIGHTS),
    "of several without a status": (
        ExceptionGroup("", [KeyError("x"), ValueError("x")]),
        None,
        "KeyError",
        Cause.UNKNOWN,
    ),
    "no answer to a time-out": (
        library("x", "SlowError", status=409),
        409,
        "",
        Cause.CONFLICT,
    ),
    "gRPC": (
        library("grpc", "AioRpcError", GRPC, code=lambda self: Code.NOT_FOUND),
        None,
        "NOT_FOUND",
        Cause.PRECONDITION,
    ),
    "Google": (
        library(
            "google.api_core",
            "GoogleAPICallError",
            code=429,
            grpc_status_code=Code.RESOURCE_EXHAUSTED,
        ),
        429,
        "RESOURCE_EXHAUSTED",
        Cause.RATE_LIMIT,
    ),
    "psycopg": (library("psycopg", "UniqueViolation", sqlstate="23505"), None, "23505", "conflict"),
    "SQLAlchemy": (
        library(
            "sqlalchemy.exc",
            "IntegrityError",
            code="gkpj",
            orig=library("psycopg2", "ForeignKeyViolation", pgcode="23503"),
        ),
        None,
        "23503",
        Cause.PRECONDITION,
    ),
    "SQLite": (locked(), None, "SQLITE_CONSTRAINT_UNIQUE", Cause.CONFLICT),
    "botocore": (
        library(
            "botocore.exceptions",
            "ClientError",
            response={
                "Error": {"Code": "ThrottlingException"},
                "ResponseMetadata": {"HTTPStatusCode": 400},
            },
        ),
        400,
        "ThrottlingException",
        Cause.RATE_LIMIT,
    ),
    "Kubernetes": (
        library(
            "kubernetes.client", "ApiException", status=409, body='{"reason": "AlreadyExists"}'
        ),
        409,
        "",
        Cause.CONFLICT,
    ),
    "Stripe": (
        library("stripe", "CardError", http_status=402, code="card_declined"),
        402,
        "card_declined",
        Cause.RIGHTS,
    ),
    "a code by its name": (
        library("x", "Error", code=Code.NOT_FOUND),
        None,
        "NOT_FOUND",
        "precondition",
    ),
    "a body that is none": (
        library("x", "ApiError", status=400, body="<html>"),
        400,
        "",
        Cause.ARGUMENT,
    ),
    "a body too deep": (
        library("x", "ApiError", status=400, body="[" * 60_000),
        400,
        "",
        "argument",
    ),
    "a body too large": (
        library("x", "ApiError", status=400, body='{"code": "x"}' + " " * 70_000),
        400,
        "",
        Cause.ARGUMENT,
    ),
    "a refused connection": (ConnectionRefusedError(111, "x"), None, "ECONNREFUSED", Cause.OUTAGE),
    "no such host": (socket.gaierror(-2, "x"), None, "gaierror", Cause.OUTAGE),
    "a bad certificate": (
        ssl.SSLCertVerificationError(1, "x"),
        None,
        "SSLCertVerificationError",
        Cause.CREDENTIALS,
    ),
    "a bad certificate, below a library": (
        because(
            httpx.ConnectError("certificate verify failed"), ssl.SSLCertVerificationError(1, "x")
        ),
        None,
        "ConnectError",
        Cause.CREDENTIALS,
    ),
    "answered, but no JSON": (
        json.JSONDecodeError("x", "", 0),
        None,
        "JSONDecodeError",
        "result_shape",
    ),
    "an exit": (SystemExit(3), None, "SystemExit", Cause.UNKNOWN),
    "told": (
        told(PermanentError("x"), status=422, code="bad", field="model"),
        422,
        "bad",
        "argument",
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_an_exception_says_what_is_wrong(name: str) -> None:
    error, status, code, cause = FOUND[name]
    failure = of(error)
    assert (failure.status, failure.code, failure.cause) == (status, code, cause)
    assert failure.kind is classify(error)


FIELDS: dict[str, tuple[BaseException, str]] = {
    "a parameter": (library("stripe", "CardError", http_status=400, param="number"), "number"),
    "an answer": (answered(422, {"detail": [{"loc": ["body", "model"]}]}), "model"),
    "a field": (library("x", "Invalid", field="model"), "model"),
    "a field that is none": (library("x", "Invalid", field=7, param="the model"), ""),
    "a phrase": (TypeError("pay() got an unexpected keyword argument 'model'"), "model"),
    "the first of several": (
        because(RuntimeError("x"), library("x", "Invalid", field="model")),
        "model",
    ),
    "a class's own": (type("Wrong", (PermanentError,), {"field": "model"})("x"), "model"),
}


@pytest.mark.parametrize("name", FIELDS)
def test_an_exception_names_the_argument(name: str) -> None:
    error, field = FIELDS[name]
    assert of(error).field == field


async def test_wrong_arguments_of_a_python_tool_name_it() -> None:
    async def apply(computer_model: str) -> None: ...

    tool = PythonTool.from_function(apply)
    with pytest.raises(PermanentError) as caught:
        await tool.call({"model": "MacBook"}, CALL)
    failure = of(caught.value)
    assert (failure.field, failure.code, failure.cause) == ("computer_model", "", Cause.ARGUMENT)


def test_what_raises_when_it_is_read_says_nothing() -> None:
    def foul(self: object) -> Any:
        raise SystemExit("out of reach")

    has = dict.fromkeys(("code", "status", "response", "body", "param", "errno"), property(foul))
    failure = of(library("x", "Foul", **has))
    assert (failure.status, failure.code, failure.field) == (None, "Foul", "")
    assert details_of(library("x", "Foul", args=property(foul)), FailureKind.TRANSIENT) == NONE


class Vault:
    async def open_for_run(self, references: Any, run_id: str) -> dict[str, str]:
        return dict.fromkeys(references, CANARY)


CANARY = "Kanari7f3c9Q"


@pytest.mark.parametrize(
    ("error", "details"),
    [
        (answered(401, {"code": CANARY, "field": f"args.{CANARY}"}), (401, "", "")),
        (answered(401, {"code": "expired", "field": "token"}), (401, "expired", "token")),
        (TypeError(f"unknown argument '{CANARY}'"), (None, "TypeError", "")),
        (ValueError(CANARY), (None, "ValueError", "")),
        (library("x", CANARY), (None, "TransientError", "")),
    ],
)
async def test_secrets_stand_in_no_detail(
    error: Exception, details: tuple[int | None, str, str]
) -> None:
    async def pay(args: Any, hide: Any) -> Any:
        assert args == {"token": CANARY}
        raise error

    given = {"token": reference_of(bytes(16))}
    with pytest.raises(ToolError) as caught:
        await in_confidence(Vault(), "inst_000001", given, pay)
    failure = of(caught.value)
    assert (failure.status, failure.code, failure.field) == details
    assert failure.kind is classify(error)
    assert CANARY not in repr(failure)


def test_journals_keep_it_and_say_nothing_of_what_is_not_there() -> None:
    for failure in (
        of(answered(409, {"code": "taken", "field": "model"})),
        Failure(FailureKind.PERMANENT, "x"),
    ):
        event = ListenerFailed("L001", 1, failure)
        kind, payload = encode(event)
        assert decode(Record(1, 0.0, kind, payload)) == event
    assert json.loads(payload)["failure"] == {"kind": "permanent", "message": "x"}


def test_an_outcome_in_doubt_is_lost_as_before() -> None:
    assert failed(OutcomeUnknown("x")) == c.Lost("x")
    assert isinstance(failed(answered(504, {"code": "x"})), c.Lost)


NAMED = {
    "grant_access: unknown argument 'x'": "x",
    "missing 2 required positional arguments: 'a' and 'b'": "a",
    "unexpected keyword argument `model`": "model",
    "Unrecognized parameter: user.name": "user.name",
    "unknown parameter: x. It takes y": "x",
    'the field "model" is required': "model",
    "Parameter 'model' must not be empty": "model",
    "pay: model is not an argument of this tool": "model",
    "'model' is not a valid parameter": "model",
    "pay was given wrong arguments: level: Input should be a number; x: no": "level",
    "缺少必填参数：model": "model",
    "未知字段「model」": "model",
    "参数 model 不能为空": "model",
    "参数'model'格式不正确": "model",
    "unknown argument (secret)": "",
    "unknown argument: secret:00112233445566778899aabbccddeeff": "",
    "missing field in the body": "",
    "x is missing": "",
    "the argument was settled": "",
    "": "",
}
OF_INPUT = {
    "apply_computer: computer_model is missing; model is not an argument of this tool": (
        "computer_model"
    ),
    "pay_expense: amount must be a number above 0, at most 50000": "amount",
    "send_email: 127.0.0.1 answered 400: send_email: to must be a mail address": "to",
    "'until' cannot be in the past": "until",
    "until is required, purpose is invalid": "until",
    "you must be kidding me": "",
}


@pytest.mark.parametrize("text", NAMED)
def test_a_clear_phrase_names_the_argument(text: str) -> None:
    assert argument_named(text) == NAMED[text]


@pytest.mark.parametrize("text", OF_INPUT)
def test_what_is_missing_is_an_argument_where_the_answer_is_about_them(text: str) -> None:
    assert argument_named(text, 400) == argument_named(text, 422) == OF_INPUT[text]


def test_other_answers_are_about_no_argument() -> None:
    assert argument_named("unknown argument 'x'", 409) == ""
