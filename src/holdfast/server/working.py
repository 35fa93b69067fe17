"""Working: one application drives runs of a shared database until it is told to stop.

At a signal it takes no more runs and starts no more steps. What is in flight may end, within the
application's grace; then its runs are handed back, and other workers go on with them. A second
signal leaves at once, as a crash would.

The health port answers `/healthz` while the process lives and `/readyz` while it takes runs and the
database is there, in plain HTTP, for probes and load balancers.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Final

from holdfast.app import Holdfast
from holdfast.errors import OperatorError
from holdfast.server.registered_plans import RegisteredPlans
from holdfast.server.serving import listening
from holdfast.server.supervisor import Supervisor

REQUEST_SECONDS: Final = 5.0
MOST_BYTES: Final = 8_192


async def work(
    app: Holdfast,
    *,
    host: str,
    health_port: int | None,
    on_ready: Callable[[int | None], Awaitable[None]],
    on_stop: Callable[[], None] = lambda: None,
) -> None:
    """Drive runs until SIGINT or SIGTERM; `on_ready` is told the health port once it takes runs."""
    if not app.journal.shared:
        raise OperatorError(
            "a worker needs a database that it shares with servers: set HOLDFAST_DATABASE to its "
            "URL, as postgresql://user@host/holdfast. The runs of a home are driven by the process "
            "that serves it (`holdfast serve`)."
        )
    app.drives = True
    async with AsyncExitStack() as stack:
        stopped = _told_to_stop(stack, on_stop)
        port = None
        if health_port is not None:
            port = await stack.enter_async_context(_health(app, host, health_port))
        await stack.enter_async_context(app)
        await RegisteredPlans(app).open()
        await Supervisor(app).start()
        assert app.dispatcher is not None
        await _first(app.dispatcher.ready.wait(), stopped.wait())
        if not stopped.is_set():
            await on_ready(port)
            await stopped.wait()


def _told_to_stop(stack: AsyncExitStack, on_stop: Callable[[], None]) -> asyncio.Event:
    stopped, loop = asyncio.Event(), asyncio.get_running_loop()

    def stop(number: int) -> None:
        if stopped.is_set():
            os._exit(128 + number)
        stopped.set()
        on_stop()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop, number)
        stack.callback(loop.remove_signal_handler, number)
    return stopped


async def _first(*waits: Awaitable[object]) -> None:
    tasks = [asyncio.ensure_future(one) for one in waits]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def _health(app: Holdfast, host: str, port: int) -> AsyncIterator[int]:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(OSError, EOFError, asyncio.LimitOverrunError):
                async with asyncio.timeout(REQUEST_SECONDS):
                    line = await reader.readuntil(b"\r\n")
                    status, body = await _told(app, line.decode("latin-1").split(" "))
                    text = json.dumps(body).encode()
                    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\n"
                    head += f"Content-Length: {len(text)}\r\nConnection: close\r\n\r\n"
                    writer.write(head.encode() + text)
                    await writer.drain()
        finally:
            writer.close()

    with listening(host, port) as listener:
        server = await asyncio.start_server(answer, sock=listener, limit=MOST_BYTES)
        try:
            yield int(listener.getsockname()[1])
        finally:
            server.close()


async def _told(app: Holdfast, request: list[str]) -> tuple[str, dict[str, object]]:
    match request:
        case ["GET" | "HEAD", "/healthz", _]:
            return "200 OK", {"status": "alive"}
        case ["GET" | "HEAD", "/readyz", _]:
            return await _readiness(app)
        case _:
            return "404 Not Found", {"error": "there are /healthz and /readyz"}


async def _readiness(app: Holdfast) -> tuple[str, dict[str, object]]:
    dispatcher = app.dispatcher
    driving = 0 if dispatcher is None else dispatcher.driving
    if dispatcher is None or not dispatcher.ready.is_set():
        return "503 Service Unavailable", {"status": "takes no runs", "driving": driving}
    if not dispatcher.is_heard:
        status = "waits for the database: no runs were asked for lately"
        return "503 Service Unavailable", {"status": status, "driving": driving}
    try:
        await app.journal.version("")
    except OperatorError as error:
        return "503 Service Unavailable", {"status": str(error), "driving": driving}
    return "200 OK", {"status": "ready", "driving": driving}
