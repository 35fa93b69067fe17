"""What libraries really raise when a call is lost, answered or never sent, and what that means."""

from __future__ import annotations

import asyncio
import builtins
import concurrent.futures
import contextlib
import ftplib
import http.client
import imaplib
import multiprocessing
import poplib
import smtplib
import socket
import ssl
import subprocess
import urllib.error
import xmlrpc.client
from collections.abc import Callable
from enum import Enum
from types import SimpleNamespace
from typing import Any

import aiohttp
import anyio
import httpx
import httpx2
import pytest
import requests
import urllib3
from lossy_service import (
    CLIENTS,
    CLOSE,
    GARBAGE,
    HALF,
    HURRIED,
    RESET,
    by_asyncio,
    call,
    full_port,
    lossy_service,
    refusing_port,
    status,
)

from holdfast.errors import (
    ForbiddenError,
    InvalidValue,
    JournalUnavailable,
    NotFound,
    OutcomeUnknown,
    PermanentError,
    SnippetError,
    TransientError,
)
from holdfast.model.retry import FailureKind
from holdfast.work.failed_attempts import asked_by
from holdfast.work.failures import classify, status_of, words_of
from holdfast.work.tracebacks import traceback_of

DOUBT = FailureKind.UNKNOWN
UNSENT = FailureKind.TRANSIENT


async def raised(client: Any, port: int, timeout: float = 30.0) -> Exception:
    with pytest.raises(Exception) as caught:
        await call(client, port, timeout)
    return caught.value


LOST = {
    "reset": RESET,
    "closed": CLOSE,
    "never answered": None,
    "garbage": GARBAGE,
    "half an answer": HALF,
    "408": status(408),
    "502": status(502),
    "504": status(504),
}


@pytest.mark.parametrize("manner", LOST)
@pytest.mark.parametrize("client", CLIENTS)
async def test_a_call_lost_after_sending_is_in_doubt(client: str, manner: str) -> None:
    with lossy_service(LOST[manner]) as service:
        patience = HURRIED if LOST[manner] is None else 30.0
        error = await raised(CLIENTS[client], service.port, patience)
    assert (classify(error), service.calls) == (DOUBT, 1)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (400, FailureKind.PERMANENT),
        (401, FailureKind.FORBIDDEN),
        (403, FailureKind.FORBIDDEN),
        (404, FailureKind.PERMANENT),
        (409, FailureKind.PERMANENT),
        (425, FailureKind.TRANSIENT),
        (429, FailureKind.TRANSIENT),
        (500, FailureKind.TRANSIENT),
        (503, FailureKind.TRANSIENT),
    ],
)
@pytest.mark.parametrize("client", CLIENTS)
async def test_an_answer_counts_by_its_status(client: str, code: int, kind: FailureKind) -> None:
    with lossy_service(status(code)) as service:
        error = await raised(CLIENTS[client], service.port)
    assert (classify(error), status_of(error)) == (kind, code)


@pytest.mark.parametrize("client", CLIENTS)
async def test_a_refused_connection_proves_that_nothing_was_sent(client: str) -> None:
    with refusing_port() as port:
        assert classify(await raised(CLIENTS[client], port)) is UNSENT


SILENT_ABOUT_CONNECTING = ("http.client", "urllib")
"""These say `timed out` of a connection as of an answer, so nothing is proven."""


@pytest.mark.parametrize("client", sorted(CLIENTS.keys() - SILENT_ABOUT_CONNECTING))
async def test_a_connection_that_takes_too_long_proves_it_too(client: str) -> None:
    with full_port() as port:
        assert classify(await raised(CLIENTS[client], port, HURRIED)) is UNSENT


@pytest.mark.parametrize("client", SILENT_ABOUT_CONNECTING)
async def test_a_time_out_that_does_not_say_of_what_is_in_doubt(client: str) -> None:
    with full_port() as port:
        assert classify(await raised(CLIENTS[client], port, HURRIED)) is DOUBT


@pytest.mark.parametrize("client", CLIENTS)
async def test_an_unknown_host_proves_it_too(client: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*given: Any, **more: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    assert classify(await raised(CLIENTS[client], 80)) is UNSENT


@pytest.mark.parametrize("manner", [RESET, CLOSE, None])
async def test_bare_streams_are_judged_alike(manner: bytes | None) -> None:
    with lossy_service(manner) as service:
        patience = HURRIED if manner is None else 30.0
        assert classify(await raised(by_asyncio, service.port, patience)) is DOUBT


async def test_a_refusal_by_every_address_of_a_host_is_unsent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ask = socket.getaddrinfo

    def two(host: Any, port: Any, *more: Any, **named: Any) -> Any:
        return [*ask("127.0.0.1", port, *more, **named), *ask("127.0.0.2", port, *more, **named)]

    monkeypatch.setattr(socket, "getaddrinfo", two)
    with refusing_port() as port:
        with pytest.raises(OSError) as by_loop:
            await asyncio.open_connection("both.invalid", port)
        with pytest.raises(OSError) as by_anyio:
            await anyio.connect_tcp("127.0.0.1", port)
    assert (type(by_loop.value), type(by_anyio.value)) == (OSError, OSError)
    assert classify(by_loop.value) is classify(by_anyio.value) is UNSENT


async def test_waiting_for_a_free_connection_sends_nothing() -> None:
    with lossy_service(None) as service:
        url = f"http://127.0.0.1:{service.port}/"
        limits = httpx.Timeout(30.0, pool=HURRIED)
        async with httpx.AsyncClient(
            timeout=limits, limits=httpx.Limits(max_connections=1), trust_env=False
        ) as client:
            first = asyncio.create_task(client.post(url))
            while not service.calls:  # noqa: ASYNC110 - it counts in its own thread
                await asyncio.sleep(0.01)
            with pytest.raises(httpx.PoolTimeout) as caught:
                await client.post(url)
            first.cancel()
            await asyncio.gather(first, return_exceptions=True)
        pool = urllib3.HTTPConnectionPool("127.0.0.1", service.port, maxsize=1, block=True)
        pool.pool.get_nowait()  # type: ignore[union-attr]
        with pytest.raises(urllib3.exceptions.EmptyPoolError) as empty:
            pool.request("POST", "/", pool_timeout=HURRIED)
    assert classify(caught.value) is classify(empty.value) is UNSENT
    assert service.calls == 1


def chained(error: BaseException, cause: BaseException) -> BaseException:
    error.__cause__ = cause
    return error


def after(error: BaseException, context: BaseException, *, hidden: bool = False) -> BaseException:
    """Raised while the other was handled; `from None` hides it."""
    try:
        try:
            raise context
        except BaseException:
            if hidden:
                raise error from None
            raise error  # noqa: B904 - without `from` is what is meant
    except BaseException as made:
        return made


def grouped(*errors: Exception) -> BaseException:
    return ExceptionGroup("unhandled errors in a TaskGroup", errors)


LOSSES: dict[str, Callable[[], Exception]] = {
    "httpx": lambda: httpx.ReadTimeout("x"),
    "httpx2": lambda: httpx2.ReadError("x"),
    "requests": lambda: requests.ReadTimeout("x"),
    "urllib3": lambda: urllib3.exceptions.ProtocolError("x", ConnectionResetError()),
    "aiohttp": lambda: aiohttp.ServerDisconnectedError(),
    "time-out": lambda: TimeoutError(),
    "reset": lambda: ConnectionResetError(),
    "said so": lambda: OutcomeUnknown("x"),
    "502": lambda: urllib.error.HTTPError("", 502, "", http.client.HTTPMessage(), None),
}

WRAPPINGS: dict[str, Callable[[Exception], BaseException]] = {
    "as it is": lambda lost: lost,
    "cause": lambda lost: chained(RuntimeError("no"), lost),
    "context": lambda lost: after(ValueError("no"), lost),
    "hidden context": lambda lost: after(ValueError("no"), lost, hidden=True),
    "argument": lambda lost: RuntimeError("no", lost),
    "group": lambda lost: grouped(lost),
    "group of several": lambda lost: grouped(ValueError("no"), ConnectionRefusedError(), lost),
    "group in a group": lambda lost: grouped(ValueError("no"), grouped(lost)),  # type: ignore[arg-type]
    "cause in a group": lambda lost: grouped(chained(KeyError("no"), lost)),  # type: ignore[arg-type]
    "group as cause": lambda lost: chained(RuntimeError("no"), grouped(lost)),
    "group with a cancellation": lambda lost: BaseExceptionGroup(
        "", [asyncio.CancelledError(), lost]
    ),
    "below an unsent one": lambda lost: chained(ConnectionRefusedError(), lost),
    "second try refused": lambda lost: after(httpx.ConnectError("no"), lost),
    "second try refused, by a library": lambda lost: after(
        chained(httpx.ConnectError("no"), after(OSError("All connection attempts failed"), lost)),
        lost,
    ),
    "below an explicit one": lambda lost: chained(RuntimeError(), chained(TransientError(), lost)),
    "explicit one in a group": lambda lost: grouped(chained(TransientError(), lost)),  # type: ignore[arg-type]
    "below an answer": lambda lost: after(answered(404), lost),
}


@pytest.mark.parametrize("wrapping", WRAPPINGS)
@pytest.mark.parametrize("loss", LOSSES)
def test_one_doubtful_exception_makes_the_whole_doubt(loss: str, wrapping: str) -> None:
    assert classify(WRAPPINGS[wrapping](LOSSES[loss]())) is DOUBT


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(
    ("explicit", "kind"),
    [
        (TransientError("x"), FailureKind.TRANSIENT),
        (PermanentError("x"), FailureKind.PERMANENT),
        (ForbiddenError("x"), FailureKind.FORBIDDEN),
        (SnippetError("x"), FailureKind.PERMANENT),
        (InvalidValue("x"), FailureKind.PERMANENT),
        (NotFound("x"), FailureKind.TRANSIENT),
        (JournalUnavailable("x"), DOUBT),
    ],
    ids=lambda one: type(one).__name__,
)
def test_an_explicit_error_at_the_top_wins_over_its_cause(
    loss: str, explicit: Exception, kind: FailureKind
) -> None:
    assert classify(chained(explicit, LOSSES[loss]())) is kind


def answered(code: int) -> Exception:
    request = httpx2.Request("POST", "http://127.0.0.1/")
    answer = httpx2.Response(code, request=request)
    return httpx2.HTTPStatusError("x", request=request, response=answer)


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


class Booby(Exception):
    @property
    def response(self) -> object:
        raise RuntimeError("the .response property has not been set")

    status = response


OWN_ANSWERS = {
    "any": (ValueError("x"), FailureKind.TRANSIENT),
    "caused by any": (chained(RuntimeError(), KeyError("x")), FailureKind.TRANSIENT),
    "with a number that is no status": (subprocess.CalledProcessError(7, "x"), UNSENT),
    "properties that raise": (Booby(), FailureKind.TRANSIENT),
    "unspeakable": (Unspeakable(), FailureKind.TRANSIENT),
    "group": (grouped(ValueError(), KeyError()), FailureKind.TRANSIENT),
    "group of unsent ones": (grouped(ConnectionRefusedError(), socket.gaierror()), UNSENT),
    "group with a permanent one": (grouped(ValueError(), PermanentError()), FailureKind.PERMANENT),
    "group with a forbidden one": (
        grouped(PermanentError(), answered(403)),
        FailureKind.FORBIDDEN,
    ),
    "caused by an answer": (chained(RuntimeError(), answered(404)), FailureKind.TRANSIENT),
    "not even an Exception": (BaseException("x"), FailureKind.PERMANENT),
    "bad certificate": (ssl.SSLCertVerificationError(1, "x"), FailureKind.TRANSIENT),
    "answered, but no JSON": (
        aiohttp.ContentTypeError(SimpleNamespace(real_url=""), (), status=200),  # type: ignore[arg-type]
        FailureKind.PERMANENT,
    ),
}


def library(module: str, name: str, base: type = Exception, **has: Any) -> BaseException:
    """An exception as a library that is not installed here declares it."""
    kind = builtins.type(name, (base,), {"__module__": module, **has})
    error: BaseException = kind("x")
    return error


def raising(worse: type[BaseException]) -> Any:
    def get(self: object) -> Any:
        raise worse("out of reach")

    return get


WORSE = (RuntimeError, RecursionError, SystemExit, GeneratorExit, asyncio.CancelledError)


@pytest.mark.parametrize("worse", WORSE)
@pytest.mark.parametrize("name", ["__str__", "args", "status", "response", "retry_after", "code"])
@pytest.mark.parametrize("base", ["OSError", "RpcError", "HTTPError"])
def test_no_exception_hinders_its_own_reading(
    base: str, name: str, worse: type[BaseException]
) -> None:
    get = raising(worse)
    has = {name: get if name in ("__str__", "code") else property(get)}
    above = type(base, (OSError if base == "OSError" else Exception,), {"__module__": "grpc"})
    error = type("Foul", (above,), {"__module__": "x", **has})("x")
    assert classify(error) in FailureKind
    assert asked_by(error) is None
    for tell in (words_of, traceback_of):
        assert isinstance(tell(raised_once(error)), str)


def raised_once(error: BaseException) -> BaseException:
    try:
        raise error
    except BaseException as raised:
        return raised


UNREADABLE = {
    "words of an OSError": urllib.error.URLError(("timed out", "after 30 s")),  # type: ignore[arg-type]
    "words that are none": library("x", "LineError", OSError, __str__=lambda self: None),
    "no module": library("x", "LineError", OSError, __module__=None),
    "its own links": library("x", "Foul", args=property(raising(RuntimeError))),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_cannot_be_read_is_doubt(name: str) -> None:
    assert classify(UNREADABLE[name]) is DOUBT
    assert words_of(UNREADABLE[name])


@pytest.mark.parametrize("name", OWN_ANSWERS)
def test_any_other_exception_is_the_tools_own_answer(name: str) -> None:
    error, kind = OWN_ANSWERS[name]
    assert classify(error) is kind


class Code(Enum):
    UNAVAILABLE = 14
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8


def grpc(code: Code) -> BaseException:
    above = type("RpcError", (Exception,), {"__module__": "grpc"})
    return library("grpc.aio._call", "AioRpcError", above, code=lambda self: code)


def botocore(code: int) -> BaseException:
    told = {"ResponseMetadata": {"HTTPStatusCode": code}}
    return library("botocore.exceptions", "ClientError", response=told)


def curl(*told: Any) -> BaseException:
    kind = type("error", (Exception,), {"__module__": "pycurl"})
    error: BaseException = kind(*told)
    return error


def autoreconnect() -> type:
    return type("AutoReconnect", (Exception,), {"__module__": "pymongo.errors"})


CALLED_LOST = (
    *("ReadTimeout", "RequestTimedOut", "DeadlineExceeded", "PeerDisconnected", "ConnectionLost"),
    *("BankTransportError", "NetworkError", "ProtocolException", "UnexpectedEOF", "StreamReset"),
    *("RequestAborted", "ModbusIOException", "NoResponseError", "BadGateway", "ChannelClosed"),
    *("TooSlowError", "SoftTimeLimitExceeded", "IncompleteBody", "ServerClosed", "TargetClosed"),
    *("UnexpectedEof", "RequestInterrupted", "GatewayError", "PeerReset", "TransferTruncated"),
)
CALLED_OTHERWISE = (
    *("CardDeclined", "OutOfStock", "PasswordResetError", "QuotaExceeded", "NotFound"),
    *("AccountClosed", "PaymentGatewayDeclined", "IncompleteForm", "OrderInterrupted"),
)

UNINSTALLED = {
    "redis time-out": (library("redis.exceptions", "TimeoutError"), DOUBT),
    "redis lost": (library("redis.exceptions", "ConnectionError"), DOUBT),
    "redis refused": (
        chained(library("redis.exceptions", "ConnectionError"), ConnectionRefusedError()),
        UNSENT,
    ),
    "websocket": (library("websockets.exceptions", "ConnectionClosedError", code=1006), DOUBT),
    "anyio": (anyio.EndOfStream(), DOUBT),
    "database gone": (library("psycopg", "OperationalError", sqlstate=None), DOUBT),
    "database answers": (library("psycopg", "OperationalError", sqlstate="55P03"), UNSENT),
    "database gone, by its plain class": (library("psycopg2", "DatabaseError", pgcode=None), DOUBT),
    "database gone, below a wrapper": (
        library("sqlalchemy.exc", "DBAPIError", orig=library("psycopg2", "DatabaseError")),
        DOUBT,
    ),
    "database gone, by a state that says nothing": (
        library("mysql.connector.errors", "OperationalError", sqlstate="HY000", errno=2013),
        DOUBT,
    ),
    "database refuses": (
        library("psycopg2", "IntegrityError", type(library("psycopg2", "DatabaseError"))),
        UNSENT,
    ),
    "SQLite locked": (library("sqlite3", "OperationalError"), UNSENT),
    "archive": (library("tarfile", "ReadError"), UNSENT),
    "subprocess": (subprocess.TimeoutExpired("x", 1), DOUBT),
    "end of file": (EOFError(), DOUBT),
    "file": (FileNotFoundError(2, "x"), DOUBT),
    "vendored": (library("pip._vendor.urllib3.exceptions", "NewConnectionError", OSError), UNSENT),
    "AWS unsent": (library("botocore.exceptions", "EndpointConnectionError"), UNSENT),
    "AWS lost": (library("botocore.exceptions", "ReadTimeoutError"), DOUBT),
    "AWS 504": (botocore(504), DOUBT),
    "AWS 400": (botocore(400), FailureKind.PERMANENT),
    "Google 502": (library("google.api_core", "GoogleAPICallError", code=502), DOUBT),
    "Google 404": (library("google.api_core", "GoogleAPICallError", code=404), "permanent"),
    "Kubernetes 409": (library("kubernetes.client", "ApiException", status=409), "permanent"),
    "Kubernetes, no answer": (library("kubernetes.client", "ApiException", status=0), DOUBT),
    "Stripe 402": (library("stripe", "CardError", http_status=402), "permanent"),
    "gRPC unavailable": (grpc(Code.UNAVAILABLE), DOUBT),
    "gRPC too late": (grpc(Code.DEADLINE_EXCEEDED), DOUBT),
    "gRPC not found": (grpc(Code.NOT_FOUND), FailureKind.PERMANENT),
    "gRPC forbidden": (grpc(Code.PERMISSION_DENIED), FailureKind.FORBIDDEN),
    "gRPC busy": (grpc(Code.RESOURCE_EXHAUSTED), FailureKind.TRANSIENT),
    "gRPC without a code": (library("grpc", "RpcError"), DOUBT),
    "grpclib unavailable": (
        library("grpclib.exceptions", "GRPCError", status=Code.UNAVAILABLE),
        DOUBT,
    ),
    "grpclib not found": (
        library("grpclib.exceptions", "GRPCError", status=Code.NOT_FOUND),
        FailureKind.PERMANENT,
    ),
    "tornado too late": (library("tornado.simple_httpclient", "HTTPTimeoutError", code=599), DOUBT),
    "tornado, by its code alone": (library("x", "HTTPClientError", code=599), DOUBT),
    "tornado 503": (library("tornado.httpclient", "HTTPClientError", code=503), UNSENT),
    "status as text": (library("x", "ApiError", status_code="504"), DOUBT),
    "status with its words": (library("x", "HTTPError", status="504 Gateway Timeout"), DOUBT),
    "status as bytes": (library("twisted.web.error", "Error", status=b"502"), DOUBT),
    "status by a method": (library("x", "RequestError", http_status=lambda self: 504), DOUBT),
    "status of the response's code": (library("gitlab", "GitlabError", response_code=502), DOUBT),
    "status of a resp": (library("x", "HttpError", resp=SimpleNamespace(status=504)), DOUBT),
    "words that only begin like a status": (library("x", "ApiError", status="5040"), UNSENT),
    "kept as the cause": (library("google.api_core", "RetryError", _cause=TimeoutError()), DOUBT),
    "gRPC below HTTP": (
        library("google.api_core", "ApiError", code=503, grpc_status_code=Code.UNAVAILABLE),
        DOUBT,
    ),
    "more than a reader takes": (asyncio.LimitOverrunError("x", 3), DOUBT),
    "curl_cffi cut off": (library("curl_cffi.curl", "CurlError", code=56), DOUBT),
    "curl_cffi could not connect": (library("curl_cffi.curl", "CurlError", code=7), UNSENT),
    "words of connecting in another error": (
        library("x", "UploadAborted", OSError, __str__=lambda self: "Connect call failed: lost"),
        DOUBT,
    ),
    "words of connecting without a number": (OSError("Connect call failed"), DOUBT),
    "no status": (library("x", "HttpFailure", status_code=600), DOUBT),
    "a flag is no status": (library("x", "ApiFailure", status=False), UNSENT),
    "Cloudflare 524": (library("x", "ApiFailure", status_code=524), DOUBT),
    "time-out with a status": (library("x", "SlowError", TimeoutError, status=503), DOUBT),
    "socket with a status": (library("x", "BankError", OSError, status_code=429), DOUBT),
    "named time-out with a status": (library("x", "ApiTimeout", status_code=503), DOUBT),
    "curl too late": (curl(28), DOUBT),
    "curl could not connect": (curl(7), UNSENT),
    "curl says nothing": (curl(), DOUBT),
    "SSH": (library("paramiko.ssh_exception", "SSHException"), DOUBT),
    "SSH refused who calls": (
        library("paramiko.ssh_exception", "AuthenticationException", Exception),
        UNSENT,
    ),
    "AWS broke off": (library("botocore.exceptions", "HTTPClientError"), DOUBT),
    "Azure": (library("azure.core.exceptions", "ServiceResponseError"), DOUBT),
    "RabbitMQ": (library("pika.exceptions", "AMQPChannelError"), DOUBT),
    "Kafka": (library("kafka.errors", "KafkaTimeoutError"), DOUBT),
    "MongoDB": (library("pymongo.errors", "NotPrimaryError", autoreconnect()), DOUBT),
    "database connection lost": (library("psycopg", "OperationalError", sqlstate="08006"), DOUBT),
    "Thrift": (library("thrift.protocol", "TProtocolException"), DOUBT),
    **{f"called {name}": (library("x", name), DOUBT) for name in CALLED_LOST},
    **{f"called {name}": (library("x", name), UNSENT) for name in CALLED_OTHERWISE},
}


@pytest.mark.parametrize("name", UNINSTALLED)
def test_libraries_that_are_not_installed_are_known_by_their_names(name: str) -> None:
    error, kind = UNINSTALLED[name]
    assert classify(error) == kind


def protocol_error(code: int) -> Exception:
    return xmlrpc.client.ProtocolError("127.0.0.1/", code, "x", {})


STANDARD = {
    "IMAP": (imaplib.IMAP4.abort("socket error: EOF"), DOUBT),
    "IMAP answers": (imaplib.IMAP4.error("NO such mailbox"), UNSENT),
    "POP": (poplib.error_proto("-ERR EOF"), DOUBT),
    "FTP": (ftplib.error_proto("?"), DOUBT),
    "FTP breaks off": (ftplib.error_temp("426 transfer aborted"), DOUBT),
    "FTP answers": (ftplib.error_perm("550 no such file"), UNSENT),
    "SMTP": (smtplib.SMTPServerDisconnected("x"), DOUBT),
    "NNTP": (library("nntplib", "NNTPProtocolError"), DOUBT),
    "stream": (asyncio.IncompleteReadError(b"", 3), DOUBT),
    "XML-RPC 502": (protocol_error(502), DOUBT),
    "XML-RPC 503": (protocol_error(503), UNSENT),
    "XML-RPC 404": (protocol_error(404), FailureKind.PERMANENT),
    "XML-RPC without a status": (protocol_error(-1), DOUBT),
    "XML-RPC half": (xmlrpc.client.ResponseError(), DOUBT),
    "XML-RPC answers": (xmlrpc.client.Fault(1, "x"), UNSENT),
    "pool": (concurrent.futures.BrokenExecutor(), DOUBT),
    "future": (concurrent.futures.CancelledError(), DOUBT),
    "process": (multiprocessing.ProcessError(), DOUBT),
}


@pytest.mark.parametrize("name", STANDARD)
def test_the_standard_library_is_known_by_its_names_too(name: str) -> None:
    error, kind = STANDARD[name]
    assert classify(error) is kind


@pytest.mark.parametrize("code", [502, 504])
def test_a_gateway_before_xml_rpc_leaves_doubt(code: int) -> None:
    with lossy_service(status(code)) as service:
        proxy = xmlrpc.client.ServerProxy(f"http://127.0.0.1:{service.port}/")
        with pytest.raises(xmlrpc.client.ProtocolError) as caught:
            proxy.pay(7)
    assert (classify(caught.value), status_of(caught.value), service.calls) == (DOUBT, code, 1)


def test_exceptions_that_lead_in_circles_come_to_an_end() -> None:
    first, second = RuntimeError("a"), RuntimeError("b")
    first.__cause__, second.__cause__ = second, first
    first.__context__ = first
    assert classify(first) is FailureKind.TRANSIENT


def test_what_is_too_large_to_look_through_is_in_doubt() -> None:
    assert classify(grouped(*(ValueError() for _ in range(900)))) is FailureKind.TRANSIENT
    assert classify(grouped(*(ValueError() for _ in range(2_000)))) is DOUBT
    deep: BaseException = TimeoutError()
    for _ in range(5_000):
        deep = chained(ValueError(), deep)
    assert classify(deep) is DOUBT


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ValueError("no"), "no"),
        (KeyError("id"), "KeyError: 'id'"),
        (TimeoutError(), "TimeoutError"),
        (grouped(ValueError("one"), grouped(KeyError("id"))), "one; KeyError: 'id'"),  # type: ignore[arg-type]
        (BaseException("odd"), "the work raised BaseException: odd"),
        (Unspeakable(), "Unspeakable, which cannot be put into words"),
    ],
)
def test_a_failure_is_told_in_its_own_words(error: BaseException, words: str) -> None:
    assert words_of(error) == words


async def test_a_task_group_in_a_tool_hides_nothing() -> None:
    async def lost() -> None:
        raise httpx2.ReadTimeout("no answer")

    async def other() -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(60)

    async def tool() -> None:
        async with asyncio.TaskGroup() as both:
            both.create_task(lost())
            both.create_task(other())

    with pytest.raises(ExceptionGroup) as caught:
        await tool()
    assert classify(caught.value) is DOUBT
    assert words_of(caught.value) == "no answer"
