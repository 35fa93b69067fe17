"""Serving: one application over HTTP, from the first request to the last stream.

uvicorn waits for open connections before it leaves, and a stream of events is open for as
long as a client listens. So a signal first ends the streams; then the requests under way
have `GRACE` seconds, and the application ends what is in flight. A second signal leaves at
once: nothing that was acknowledged is lost by that.

While it serves, `server.json` beside the database says where, for a process that finds the
home taken. The file of a process that died stays and is ignored: it counts only for the process
that holds the home.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Final

import uvicorn
from fastapi import FastAPI

from holdfast.app import Holdfast
from holdfast.errors import OperatorError
from holdfast.runtime.collector import COLLECTOR
from holdfast.runtime.log_lines import access_lines
from holdfast.server import create
from holdfast.server.auth.tokens import Tokens
from holdfast.server.middleware.connections import bounded
from holdfast.server.services import Services
from holdfast.server.settings import ServerSettings
from holdfast.views.homes import announced

GRACE: Final = 5
"""Seconds that requests under way are given to end once the server stops."""

SWITCH_SECONDS: Final = 0.0005
"""How long a thread that computes keeps the interpreter from another that wants it: Python's 5 ms
are what the event loop would wait after each pause beside a drawing in the making, and the
journal's thread after each statement beside a loop that is never idle."""


@dataclass(frozen=True, slots=True)
class Serving:
    """A server that takes requests: where, and what its routes use."""

    url: str
    services: Services


OnReady = Callable[[Serving], Awaitable[None]]


async def serve(
    app: Holdfast,
    settings: ServerSettings,
    on_ready: OnReady,
    *,
    on_stop: Callable[[], None] = lambda: None,
    install: Callable[[FastAPI], None] = lambda web: None,
    access_log: bool = False,
) -> None:
    """Serve an open application until SIGINT or SIGTERM; `on_ready` is awaited when it does.

    `on_stop` is called when it is told to stop. `install` adds what stands above the server,
    the console for one. OperatorError says why it cannot begin. What
    `on_ready` raises ends the server.
    """
    await refuse_unguarded(app, settings)
    with listening(settings.host, settings.port) as listener:
        url = url_of(settings.host, listener.getsockname()[1])
        web = create(app, settings)
        install(web)
        config = configured(web, settings, access_log=access_log)
        keep_for_good(app, web)
        with announced(app, url), access_lines(access_log), switching_often():
            server = _Server(config, Serving(url, web.state.services), on_ready, on_stop)
            await server.serve([listener])
            server.raise_failure()


def configured(web: FastAPI, settings: ServerSettings, *, access_log: bool) -> uvicorn.Config:
    config = uvicorn.Config(
        web,
        http=bounded(settings),
        log_config=None,
        access_log=access_log,
        ws="none",
        lifespan="on",
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE,
    )
    config.timeout_keep_alive = settings.idle_seconds  # type: ignore[assignment]
    return config


def keep_for_good(app: Holdfast, web: FastAPI) -> None:
    """What is there by now stays until the end. To look whether any of it could go took the
    garbage collector a tenth of a second, on the loop, whenever callers had sent enough. The
    API's description is made now rather than when it is asked for."""
    web.openapi()
    if app.tunes_collector:
        COLLECTOR.keep_for_good()


class _Server(uvicorn.Server):
    def __init__(
        self,
        config: uvicorn.Config,
        serving: Serving,
        on_ready: OnReady,
        on_stop: Callable[[], None],
    ) -> None:
        super().__init__(config)
        self._serving = serving
        self._on_ready = on_ready
        self._on_stop = on_stop
        self._loop = asyncio.get_running_loop()
        self._failure: Exception | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        try:
            await self._on_ready(self._serving)
        except Exception as error:
            self._failure, self.should_exit = error, True

    def raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Unlike uvicorn's it raises no signal again afterwards: having been told is no failure."""
        if self.should_exit:
            os._exit(128 + sig)
        self.should_exit = True
        self._loop.call_soon_threadsafe(self._stop)

    def _stop(self) -> None:
        self._serving.services.streams.close()
        self._on_stop()


def url_of(host: str, port: int) -> str:
    """As people on this machine reach it."""
    name = {"0.0.0.0": "127.0.0.1", "::": "[::1]", "": "127.0.0.1"}.get(host, host)  # noqa: S104
    return f"http://{f'[{name}]' if ':' in name.strip('[]') and name[0] != '[' else name}:{port}"


@contextmanager
def listening(host: str, port: int) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named as TCP, or asyncio leaves Nagle's delay of 40 ms on its connections.
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host.strip("[]"), port))
            listener.listen(2048)
        except OSError as error:
            raise OperatorError(_why_not(host, port, error)) from None
        listener.setblocking(False)
        yield listener


def _why_not(host: str, port: int, error: OSError) -> str:
    match error.errno:
        case errno.EADDRINUSE:
            return f"port {port} of {host} is in use: choose another with --port, or 0 for any"
        case errno.EACCES:
            return f"this user may not listen on port {port}: choose one above 1023 with --port"
        case _:
            return f"{host}:{port} cannot be listened on: {error.strerror or error}"


async def refuse_unguarded(app: Holdfast, settings: ServerSettings) -> None:
    """Beyond this machine nothing is served before there is a way to tell who asks."""
    if settings.local_only or settings.oidc is not None:
        return
    if not await Tokens(app.engine.store, app.engine.clock).ever_opened():
        raise OperatorError(
            f"{settings.host} can be reached from other machines, and there is no way to sign in: "
            "make a token first (`holdfast token create NAME --role admin`), or name an issuer "
            "(--oidc-issuer, --oidc-audience), or leave --host out to serve this machine only"
        )


@contextmanager
def switching_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(min(before, SWITCH_SECONDS))
    try:
        yield
    finally:
        sys.setswitchinterval(before)
