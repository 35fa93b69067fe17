"""The server: everything that Holdfast does, over HTTP.

`create` makes an ASGI application of a `Holdfast`. Served by itself it opens and closes what it
needs with its lifespan. Mounted into another application it is started by that one's lifespan,
which is `Holdfast.lifespan`, or else by its first request.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version
from typing import Final

from fastapi import FastAPI

from holdfast.app import Holdfast
from holdfast.server.lifetime import Lifetime
from holdfast.server.middleware.requests import RequestMiddleware
from holdfast.server.openapi import DESCRIPTION, TITLE, describe
from holdfast.server.problems import answer_with_problems
from holdfast.server.services import Services
from holdfast.server.settings import ServerSettings

ROUTERS: Final = (
    "instances",
    "interactions",
    "plans",
    "drafts",
    "runs",
    "repairs",
    "forks",
    "events",
    "chats",
    "seed_chat",
    "conversations",
    "lifecycle",
    "catalogue",
    "experience",
    "health",
    "metrics",
    "login",
    "audit",
    "backup",
    "housekeeping",
)
"""Paths are tried in this order: what is asked most stands first."""


def create(app: Holdfast, settings: ServerSettings | None = None) -> FastAPI:
    """The application over HTTP; what it needs is opened when it is served."""
    services = Services.around(app, settings or ServerSettings())
    lifetime = Lifetime(services)
    server = FastAPI(
        title=TITLE,
        version=version("holdfast"),
        description=DESCRIPTION,
        lifespan=lifetime.around,
        openapi_url="/openapi.json",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    server.state.services = services
    answer_with_problems(server)
    for name in ROUTERS:
        server.router.routes += import_module(f"{__name__}.routes.{name}").router.routes
    describe(server)
    server.add_middleware(
        RequestMiddleware,
        settings=services.settings,
        counts=services.counts,
        admission=services.admission,
        lifetime=lifetime,
    )
    return server
