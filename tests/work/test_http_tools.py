from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from holdfast.cli.opening import AnyEnvironment
from holdfast.errors import (
    AuthorError,
    ForbiddenError,
    OutcomeUnknown,
    PermanentError,
    ToolError,
    TransientError,
)
from holdfast.model.approval import ApprovalMode
from holdfast.work.http_tools import HttpClients, HttpTool, load_http_tools
from holdfast.work.tools import CallInfo

CALL = CallInfo(key="inst_000001:L001:1:0", run_id="inst_000001", attempt=1)
SCHEMA = {"type": "object", "properties": {"employee": {"type": "string"}, "level": {}}}


@dataclass
class Request:
    method: str
    path: str
    headers: dict[str, str]
    body: Any


@dataclass
class Service:
    """A service of one connection per request that answers with whatever `answer` writes."""

    port: int = 0
    seen: list[Request] = field(default_factory=list)
    answer: bytes | Callable[[asyncio.StreamWriter], Awaitable[None]] = b""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            self.seen.append(await read_request(reader))
            if callable(self.answer):
                await self.answer(writer)
            else:
                writer.write(self.answer)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    def answers(
        self, status: int, body: object, *, raw: bytes | None = None, head: str = ""
    ) -> None:
        content = json.dumps(body).encode() if raw is None else raw
        head += f"Content-Length: {len(content)}\r\nConnection: close\r\n\r\n"
        self.answer = f"HTTP/1.1 {status} X\r\n{head}".encode() + content


async def read_request(reader: asyncio.StreamReader) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().splitlines()
    method, path, _ = head[0].split(" ")
    headers = {k.lower(): v for k, v in (line.split(": ", 1) for line in head[1:] if line)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Request(method, path, headers, json.loads(body) if body else None)


@pytest.fixture
async def service() -> AsyncIterator[Service]:
    service = Service()
    server = await asyncio.start_server(service.serve, "127.0.0.1", 0)
    service.port = server.sockets[0].getsockname()[1]
    service.answers(200, {"success": True})
    async with server:
        yield service


@pytest.fixture
async def clients() -> AsyncIterator[HttpClients]:
    clients = HttpClients()
    yield clients
    await clients.aclose()


@pytest.fixture
def declare(service: Service, clients: HttpClients) -> Callable[..., HttpTool]:
    def make(**more: Any) -> HttpTool:
        entry = {
            "name": "grant_access",
            "endpoint": "${OFFICE}/tool?token=${TOKEN}",
            "parameters": SCHEMA,
            **more,
        }
        env = {"OFFICE": f"http://127.0.0.1:{service.port}", "TOKEN": "s3cret"}
        return load_http_tools([entry], env, clients)[0]

    return make


Declare = Callable[..., HttpTool]


async def test_the_arguments_are_the_body_and_the_key_is_a_header(
    service: Service, declare: Declare
) -> None:
    service.answers(200, {"success": True, "card": "A7"})
    tool = declare(headers={"Authorization": "Bearer ${TOKEN}"})
    assert await tool.call({"employee": "张三"}, CALL) == {"success": True, "card": "A7"}
    [request] = service.seen
    assert (request.method, request.path) == ("POST", "/tool?token=s3cret")
    assert request.body == {"employee": "张三"}
    assert request.headers["idempotency-key"] == CALL.key
    assert request.headers["authorization"] == "Bearer s3cret"
    assert request.headers["content-type"] == "application/json"


async def test_the_tool_envelope_is_what_the_office_expects(
    service: Service, declare: Declare
) -> None:
    await declare(envelope="tool").call({"employee": "张三"}, CALL)
    assert service.seen[0].body == {"tool": "grant_access", "args": {"employee": "张三"}}


async def test_a_body_template_is_filled_with_types_kept(
    service: Service, declare: Declare
) -> None:
    body = {"who": "{employee}", "how": ["{level}", "as is {level}"], "all": "{args}"}
    tool = declare(method="put", body=body)
    await tool.call({"employee": "Will", "level": 3}, CALL)
    await tool.call({"employee": "Will"}, CALL)
    both = {"employee": "Will", "level": 3}
    assert service.seen[0].method == "PUT"
    assert service.seen[0].body == {"who": "Will", "how": [3, "as is {level}"], "all": both}
    assert service.seen[1].body == {
        "who": "Will",
        "how": ["as is {level}"],
        "all": {"employee": "Will"},
    }


async def test_a_get_sends_its_arguments_as_the_query(service: Service, declare: Declare) -> None:
    tool = declare(method="GET", endpoint="${OFFICE}/access?v=2")
    await tool.call({"employee": "a b", "level": 3}, CALL)
    assert service.seen[0].path == "/access?v=2&employee=a+b&level=3"
    assert service.seen[0].body is None


async def test_a_key_beyond_ascii_travels_encoded(service: Service, declare: Declare) -> None:
    await declare().call({}, CallInfo("入职:L1:1:0", "r", 1))
    assert service.seen[0].headers["idempotency-key"] == "%E5%85%A5%E8%81%8C:L1:1:0"


async def test_a_service_that_says_no_in_its_answer_is_quoted_as_it_is(
    service: Service, declare: Declare
) -> None:
    service.answers(200, {"success": False, "error": "门禁系统故障"})
    assert await declare().call({}, CALL) == {"success": False, "error": "门禁系统故障"}


async def test_an_empty_answer_is_an_empty_result(service: Service, declare: Declare) -> None:
    service.answers(204, None, raw=b"")
    assert await declare().call({}, CALL) == {}


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (401, ForbiddenError),
        (403, ForbiddenError),
        (408, OutcomeUnknown),
        (425, TransientError),
        (429, TransientError),
        (500, TransientError),
        (502, OutcomeUnknown),
        (600, OutcomeUnknown),
        (999, OutcomeUnknown),
        (503, TransientError),
        (504, OutcomeUnknown),
        (302, PermanentError),
        (400, PermanentError),
        (404, PermanentError),
        (422, PermanentError),
    ],
)
async def test_the_status_decides_how_the_call_failed(
    service: Service, declare: Declare, status: int, kind: type[ToolError]
) -> None:
    service.answers(status, {"error": "door system down"})
    with pytest.raises(kind) as caught:
        await declare().call({}, CALL)
    assert str(caught.value) == f"grant_access: 127.0.0.1 answered {status}: door system down"


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b'{"detail": {"field": "x"}}', '{"field": "x"}'),
        (b"<h1>broken</h1>", "<h1>broken</h1>"),
        (b"", "no reason"),
        (b"y" * 5000, "y" * 300 + "…"),
        (b"\xff\xfe", "\ufffd\ufffd"),
    ],
)
async def test_the_reason_is_the_services_own_and_short(
    service: Service, declare: Declare, raw: bytes, reason: str
) -> None:
    service.answers(500, None, raw=raw)
    with pytest.raises(TransientError) as caught:
        await declare().call({}, CALL)
    assert str(caught.value) == f"grant_access: 127.0.0.1 answered 500: {reason}"


@pytest.mark.parametrize(
    "raw",
    [b"<html>", b'{"a": NaN}', b"\xff", b"[" * 5000, b'{"n": 123456789012345678901234567890}'],
)
async def test_a_good_status_with_an_unusable_body_is_permanent(
    service: Service, declare: Declare, raw: bytes
) -> None:
    service.answers(200, None, raw=raw)
    with pytest.raises(PermanentError, match=r"grant_access: 127\.0\.0\.1 answered "):
        await declare().call({}, CALL)


async def test_an_endless_answer_is_cut_off(service: Service, declare: Declare) -> None:
    written = 0

    async def endless(writer: asyncio.StreamWriter) -> None:
        nonlocal written
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
        while written < 200_000_000:
            writer.write(b"x" * 65536)
            await writer.drain()
            written += 65536

    service.answer = endless
    with pytest.raises(PermanentError, match="answered 200 with more than 1 MB"):
        await declare().call({}, CALL)
    assert written < 100_000_000


@pytest.mark.parametrize(
    ("status", "kind"), [(504, OutcomeUnknown), (503, TransientError), (404, PermanentError)]
)
async def test_an_error_page_without_end_counts_by_its_status(
    service: Service, declare: Declare, status: int, kind: type[Exception]
) -> None:
    async def endless(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 %d Sorry\r\nConnection: close\r\n\r\n" % status)
        writer.write(b"x" * 1_200_000)
        await writer.drain()

    service.answer = endless
    with pytest.raises(kind, match=f"answered {status} with more than 1 MB"):
        await declare().call({}, CALL)


async def test_a_service_that_cannot_be_reached_is_worth_another_attempt(
    clients: HttpClients,
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{free.getsockname()[1]}/"
        [tool] = load_http_tools([{"name": "t", "endpoint": endpoint}], {}, clients)
        with pytest.raises(TransientError, match="could not be reached"):
            await tool.call({}, CALL)


async def test_a_connection_lost_after_sending_leaves_the_outcome_unknown(
    service: Service, declare: Declare
) -> None:
    service.answer = b""
    with pytest.raises(OutcomeUnknown, match="broke the connection off"):
        await declare().call({}, CALL)
    service.answer = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"
    with pytest.raises(OutcomeUnknown, match="broke the connection off"):
        await declare().call({}, CALL)
    assert len(service.seen) == 2


@pytest.mark.parametrize("drips", [False, True])
async def test_a_service_that_is_too_slow_leaves_the_outcome_unknown(
    service: Service, declare: Declare, drips: bool
) -> None:
    async def slow(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
        while not writer.is_closing():
            if drips:
                writer.write(b" ")
            await writer.drain()
            await asyncio.sleep(0.02)

    service.answer = slow
    with pytest.raises(OutcomeUnknown, match=r"did not answer within 0\.2 s"):
        await declare(timeout=0.2).call({}, CALL)


async def test_secrets_stand_in_no_error_and_no_repr(service: Service, declare: Declare) -> None:
    service.answers(500, {})
    tool = declare(headers={"Authorization": "Bearer ${TOKEN}"})
    with pytest.raises(TransientError) as caught:
        await tool.call({}, CALL)
    assert "s3cret" not in str(caught.value)
    assert "s3cret" not in repr(tool)


def test_one_document_serves_one_loop_after_another() -> None:
    async def main() -> Any:
        service = Service()
        service.answers(200, {"ok": 1})
        server = await asyncio.start_server(service.serve, "127.0.0.1", 0)
        async with server:
            env = {"PORT": str(server.sockets[0].getsockname()[1])}
            entry = {"name": "t", "endpoint": "http://127.0.0.1:${PORT}/"}
            [tool] = load_http_tools([entry], env, clients)
            try:
                return await tool.call({}, CALL)
            finally:
                await tool.aclose()

    clients = HttpClients()
    assert asyncio.run(main()) == {"ok": 1}
    assert asyncio.run(main()) == {"ok": 1}


def load(env: dict[str, str] | None = None, **entry: Any) -> HttpTool:
    declared = {"name": "t", "endpoint": "http://127.0.0.1/", **entry}
    return load_http_tools([declared], env or {})[0]


def test_a_declaration_becomes_a_spec() -> None:
    spec = load(description="Opens doors.", parameters=SCHEMA, approval="require").spec
    assert (spec.description, spec.timeout) == ("Opens doors.", 30.0)
    assert spec.approval.mode is ApprovalMode.REQUIRE_APPROVAL
    assert (spec.parameters, spec.idempotent, spec.read_only) == (SCHEMA, False, False)
    looks = load(name="check_door").spec
    assert (looks.idempotent, looks.read_only) == (True, True)


def test_a_variable_may_have_a_default() -> None:
    endpoint = "http://${HOST:-127.0.0.1}/"
    assert load(endpoint=endpoint).spec.version == load().spec.version
    assert load({"HOST": ""}, endpoint=endpoint).spec.version == load().spec.version
    assert load({"HOST": "localhost"}, endpoint=endpoint).spec.version != load().spec.version
    assert load(AnyEnvironment(), endpoint=endpoint).spec.version == load().spec.version


def test_the_version_covers_what_consent_is_given_to_but_not_a_new_token() -> None:
    versions = {
        load().spec.version,
        load(method="PUT").spec.version,
        load(envelope="tool").spec.version,
        load(parameters=SCHEMA).spec.version,
        load(endpoint="http://127.0.0.1/other").spec.version,
        load(version="2").spec.version,
    }
    assert len(versions) == 6
    headers = {"Authorization": "${TOKEN}"}
    old, new = (load({"TOKEN": token}, headers=headers) for token in "ab")
    assert old.spec.version == new.spec.version


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"endpoint": "${OFFICE}/x"}, "endpoint: the environment variable OFFICE is not set"),
        ({"headers": {"X-A": "${A}"}}, "headers.X-A: the environment variable A is not set"),
        ({"endpoint": None}, "endpoint: is required"),
        ({"endpoint": "ftp://host/"}, "endpoint: must begin with http:// or https://"),
        ({"endpoint": "http://a:b:c"}, "endpoint: must begin with http://"),
        ({"endpoint": 5}, "endpoint: must be text"),
        ({"method": "BREW"}, "method: must be one of GET, POST"),
        ({"headers": {"X-A": "a\r\nX-B: b"}}, "headers.X-A: holds a line break"),
        ({"headers": {"X A": "a"}}, "headers.X A: must be a header's name"),
        ({"headers": ["a"]}, "headers: must be names"),
        ({"parameters": {"type": "array"}}, "parameters: must be a JSON Schema of type object"),
        ({"parameters": {"type": "object", "x": float("nan")}}, "parameters: $.x: "),
        ({"body": {"who": "{nobody}"}}, "body: {nobody} is not one of the tool's parameters"),
        ({"body": {}, "envelope": "tool"}, "body: cannot stand beside `envelope`"),
        ({"envelope": "letter"}, "envelope: must be `tool`"),
        ({"idempotent": "yes"}, "idempotent: must be true or false"),
        ({"approval": "never"}, "approval is 'never': write auto"),
        ({"timeout": 0}, "timeout: must be a number of seconds"),
        ({"timeout": True}, "timeout: must be a number of seconds"),
        ({"retries": 3}, "retries: no such field"),
    ],
)
def test_a_mistake_names_the_tool_and_the_field(entry: dict[str, Any], message: str) -> None:
    with pytest.raises(AuthorError) as caught:
        load(**entry)
    assert str(caught.value).startswith("tool 't': ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_all_mistakes_of_a_document_are_told_at_once() -> None:
    good = {"name": "a", "endpoint": "http://127.0.0.1/"}
    document: list[Any] = [good, good, {"endpoint": "http://127.0.0.1/"}, "text", {**good, "x": 1}]
    with pytest.raises(AuthorError) as caught:
        load_http_tools(document, {})
    assert str(caught.value).splitlines() == [
        "tool number 3: name: is required",
        "tool number 4: name: is required",
        "tool number 4: endpoint: is required",
        "tool 'a': x: no such field",
        "tool 'a': name: declared more than once",
    ]


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(
    ("head", "seconds"),
    [
        ("Retry-After: 120\r\n", 120),
        (
            "Date: Wed, 21 Oct 2015 07:28:00 GMT\r\nRetry-After: Wed, 21 Oct 2015 07:30:00 GMT\r\n",
            120,
        ),
        ("Retry-After: soon\r\n", None),
        ("", None),
    ],
    ids=["seconds", "date", "nonsense", "none"],
)
async def test_a_service_may_ask_to_be_left_alone(
    service: Service, declare: Declare, status: int, head: str, seconds: float | None
) -> None:
    service.answers(status, {"error": "busy"}, head=head)
    with pytest.raises(TransientError) as raised:
        await declare().call({}, CALL)
    assert raised.value.retry_after == seconds
