"""The mock office: HR, access, IT, stock, mail and cash, over real HTTP, in a process of its own.

    POST /tool                {"tool": name, "args": {...}}, optionally an Idempotency-Key header
    POST /configure_failures  {"failures": {tool: n}}: the next n calls of that tool answer 500
    POST /configure_delays    {"delays": {tool: seconds}}: its answers come that much later
    POST /configure_faults    {"faults": {tool: {...} or [{...}, ...]}}: see `fault_reading`
    POST /advance             {"seconds": n}: the office's clock, by which faults last, is put on
    POST /reset_failures      no call fails any more, nor meets a fault
    POST /reset               everything as on the first day, the call log included
    GET  /calls /counts /state

It behaves as the outside world does, so that a run can be judged by what really happened:

- HR and access honour an idempotency key: a key they have answered with success gets that answer
  again, and the log says `repeated`. The others know no keys: each call is a new order.
- A delay holds back the answer, never the work. A caller that gives up waiting, or dies, leaves
  behind an effect that took place.
- The log has every call that reached a service, also one that the service refused or failed. A
  request turned away at the door (unknown tool, arguments of the wrong shape) leaves no trace.

The server side imports nothing beyond the standard library, which keeps its start short.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socketserver
import sys
import threading
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, cast

from holdfast.demo.answers import Answer, Body, failure
from holdfast.demo.reception import Reception
from holdfast.demo.services import Args, Refusal, bad
from holdfast.errors import OperatorError

if TYPE_CHECKING:
    from asyncio.subprocess import Process

    import httpx

LARGEST_REQUEST = 1_000_000


class Window(BaseHTTPRequestHandler):
    """One connection: requests in, JSON out."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # head and body leave in one piece
    server: OfficeServer

    def do_GET(self) -> None:
        reception = self.server.reception
        views = {"/calls": reception.calls, "/counts": reception.counts, "/state": reception.state}
        view = views.get(self.path, self._nowhere)
        self._send(view())

    def do_POST(self) -> None:
        try:
            answer = self._act(self._request())
        except Refusal as refusal:
            answer = failure(refusal.status, str(refusal))
        self._send(answer)

    def _act(self, request: Args) -> Answer:
        reception = self.server.reception
        if self.path == "/tool":
            return reception.call(request, self.headers.get("Idempotency-Key"))
        actions = {
            "/configure_failures": reception.configure_failures,
            "/configure_delays": reception.configure_delays,
            "/configure_faults": reception.configure_faults,
            "/advance": reception.advance,
            "/reset_failures": reception.reset_failures,
            "/reset": reception.reset,
        }
        action = actions.get(self.path)
        return action(request) if action else self._nowhere()

    def _nowhere(self) -> Answer:
        return failure(HTTPStatus.NOT_FOUND, f"there is no {self.command} {self.path}")

    def _request(self) -> Args:
        try:
            request = json.loads(self._content() or b"{}", parse_constant=_not_json)
        except (ValueError, RecursionError) as error:
            raise bad(f"the body is not JSON: {error}") from None
        if not isinstance(request, dict):
            raise bad("the body must be a JSON object")
        return request

    def _content(self) -> bytes:
        length = self.headers.get("Content-Length", "0")
        measured = length.isdecimal() and "Transfer-Encoding" not in self.headers
        if not measured or len(length) > 9 or int(length) > LARGEST_REQUEST:
            # The body is left unread, so the next request cannot be found behind it.
            self.close_connection = True
            raise bad(f"send a Content-Length of at most {LARGEST_REQUEST} bytes")
        return self.rfile.read(int(length))

    def _send(self, answer: Answer) -> None:
        time.sleep(answer.delay)
        if answer.cut:
            self.close_connection = True
            return
        kind, text = _content_of(answer)
        content = text.encode()
        self.send_response(answer.status)
        for name, value in {"Content-Type": kind, **answer.headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(content)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        self.close_connection = True
        status = HTTPStatus(code)
        self._send(failure(status, message or status.phrase))

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """The call log is the record; stderr stays for tracebacks."""


def _content_of(answer: Answer) -> tuple[str, str]:
    if answer.page is None:
        return "application/json", json.dumps(answer.body)
    kind = "html" if answer.page.startswith("<") else "plain"
    return f"text/{kind}; charset=utf-8", answer.page


def _not_json(constant: str) -> None:
    raise ValueError(f"{constant} is not a JSON value")


class OfficeServer(ThreadingHTTPServer):
    """The office on a loopback port; port 0 takes any free one."""

    request_queue_size = 128

    def __init__(self, port: int) -> None:
        self.reception = Reception()
        super().__init__(("127.0.0.1", port), Window)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def server_bind(self) -> None:
        # The inherited method looks up a host name, which may ask a name server and take seconds.
        socketserver.TCPServer.server_bind(self)
        self.server_name = "127.0.0.1"
        self.server_port = int(self.server_address[1])

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


def main() -> None:
    parser = argparse.ArgumentParser(prog="holdfast.demo.office", description="The mock office.")
    parser.add_argument("--port", type=int, default=0, help="0, the default, takes any free port")
    parser.add_argument("--until-stdin-closes", action="store_true", help="end with the parent")
    options = parser.parse_args()
    for ending in (signal.SIGTERM, signal.SIGINT):
        signal.signal(ending, signal.default_int_handler)
    try:
        server = OfficeServer(options.port)
    except (OSError, OverflowError) as error:
        parser.error(f"cannot listen on port {options.port} ({error}): choose another --port")
    with suppress(KeyboardInterrupt), server:
        if options.until_stdin_closes:
            threading.Thread(target=_exit_when_stdin_closes, daemon=True).start()
        sys.stdout.write(json.dumps({"url": server.url}) + "\n")
        sys.stdout.flush()
        server.serve_forever()


def _exit_when_stdin_closes() -> None:
    # Read below sys.stdin, whose lock a thread at exit would still hold; and leave at once, as
    # there is nothing to save.
    with suppress(OSError):
        while os.read(0, 4096):
            pass
    os._exit(0)


class Office:
    """A running office, for demos and tests: `async with Office.start() as office`."""

    def __init__(self, url: str, client: httpx.AsyncClient, process: Process) -> None:
        self.url = url
        self._client = client
        self._process = process

    @classmethod
    @asynccontextmanager
    async def start(cls) -> AsyncIterator[Office]:
        import httpx

        process = await _launch()
        try:
            url = await _announced_url(process)
            async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=30) as client:
                yield cls(url, client, process)
        finally:
            await _end(process)

    async def use(self, tool: str, args: Args) -> None:
        """Have a tool do its work, as any caller does."""
        await self._post("/tool", {"tool": tool, "args": args})

    async def configure_failures(self, failures: Mapping[str, int]) -> None:
        """Let the next n calls of each named tool fail."""
        await self._post("/configure_failures", {"failures": dict(failures)})

    async def configure_delays(self, delays: Mapping[str, float]) -> None:
        """Hold back the answers of each named tool by so many seconds."""
        await self._post("/configure_delays", {"delays": dict(delays)})

    async def configure_faults(self, faults: Mapping[str, Args | Sequence[Args]]) -> None:
        """Give each named tool these faults, in place of those that it had; see `fault_reading`."""
        await self._post("/configure_faults", {"faults": dict(faults)})

    async def advance(self, seconds: float) -> None:
        """Put the office's clock on."""
        await self._post("/advance", {"seconds": seconds})

    async def reset_failures(self) -> None:
        await self._post("/reset_failures", {})

    async def reset(self) -> None:
        await self._post("/reset", {})

    async def calls(self) -> list[dict[str, Any]]:
        """The call log, oldest first."""
        return cast(list[dict[str, Any]], await self._get("/calls"))

    async def counts(self) -> dict[str, int]:
        """How often each tool was called."""
        return cast(dict[str, int], await self._get("/counts"))

    async def state(self) -> dict[str, Any]:
        """Everything the services know, and the failures, delays and faults still to come."""
        return cast(dict[str, Any], await self._get("/state"))

    async def stop(self) -> None:
        """Close the office before the end of its context; a second time is harmless."""
        await _end(self._process)

    async def _post(self, path: str, body: Args) -> None:
        _insist(await self._client.post(path, json=body))

    async def _get(self, path: str) -> Body:
        return _insist(await self._client.get(path)).json()


def _insist(response: httpx.Response) -> httpx.Response:
    if response.is_error:
        raise ValueError(f"the office refused: {response.json()['error']}")
    return response


async def _launch() -> Process:
    from asyncio.subprocess import PIPE, create_subprocess_exec

    command = [sys.executable, "-m", "holdfast.demo.office", "--port", "0", "--until-stdin-closes"]
    # Its own session: an interrupt from the terminal must not close the office before the work
    # that still uses it has drained.
    return await create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, start_new_session=True)


async def _announced_url(process: Process) -> str:
    assert process.stdout is not None
    line = await process.stdout.readline()
    if not line:
        raise OperatorError("the mock office did not start: its own message stands above")
    return str(json.loads(line)["url"])


async def _end(process: Process) -> None:
    assert process.stdin is not None
    process.stdin.close()
    with suppress(ProcessLookupError):
        process.terminate()
    await process.communicate()


if __name__ == "__main__":
    main()
