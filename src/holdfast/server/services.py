"""What every route may use: the application and what the server has built around it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from holdfast.app import Holdfast
from holdfast.runtime.store import Store
from holdfast.server.auth.authentication import Attempts
from holdfast.server.auth.jwt import Oidc
from holdfast.server.auth.refusals import SharedRefusals
from holdfast.server.auth.tokens import Tokens
from holdfast.server.caretaker import Caretaker
from holdfast.server.middleware.admission import Admission
from holdfast.server.middleware.idempotency import Requests
from holdfast.server.middleware.requests import Counts
from holdfast.server.readiness import Probe
from holdfast.server.registered_plans import RegisteredPlans
from holdfast.server.settings import ServerSettings
from holdfast.server.streams.feed import Feed
from holdfast.server.streams.newest import NewestSessions
from holdfast.server.streams.sse import Streams
from holdfast.server.supervisor import Supervisor
from holdfast.views.reader import RunReader


@dataclass(frozen=True, slots=True)
class Services:
    app: Holdfast
    settings: ServerSettings
    tokens: Tokens
    oidc: Oidc | None
    attempts: Attempts
    plans: RegisteredPlans
    requests: Requests
    newest: NewestSessions
    streams: Streams
    feed: Feed
    supervisor: Supervisor
    caretaker: Caretaker
    counts: Counts
    probe: Probe
    admission: Admission
    reader: RunReader
    store: Store
    now: Callable[[], float]

    @classmethod
    def around(cls, app: Holdfast, settings: ServerSettings) -> Services:
        """Everything that the routes need; nothing is opened yet."""
        store, clock, reader = app.engine.store, app.engine.clock, RunReader.of(app)
        app.engine.four_eyes.enabled |= settings.four_eyes
        streams = Streams(settings)
        return cls(
            app=app,
            settings=settings,
            tokens=Tokens(store, clock, settings.session_hours * 3600, streams.sign_out),
            oidc=settings.oidc,
            attempts=Attempts(clock),
            plans=RegisteredPlans(app),
            requests=Requests(store, clock, app.vault),
            newest=NewestSessions(store, clock),
            streams=streams,
            feed=Feed(reader, app.engine.hub, clock),
            supervisor=Supervisor(app),
            caretaker=Caretaker(app, settings),
            counts=Counts(),
            probe=Probe(store, clock.now),
            admission=Admission(app.engine.hub),
            reader=reader,
            store=store,
            now=clock.now,
        )

    async def open(self, stack: AsyncExitStack) -> None:
        """Whatever lives with the server, until `stack` closes; the application is open already."""
        await self.plans.open()
        follower = self.app.engine.follower
        if follower is not None:
            refusals = SharedRefusals(self.attempts, self.store, self.app.engine.clock)
            sweeps = [refusals.exchange, self.newest.look, follower.seal]
            follower.sweeps += sweeps
            for sweep in sweeps:
                stack.callback(follower.sweeps.remove, sweep)
        stack.push_async_callback(self.requests.late.close)
        await stack.enter_async_context(self.feed)
        listeners = self.app.engine.learning.listeners
        listeners.append(self.feed.tell)
        stack.callback(listeners.remove, self.feed.tell)
        stack.push_async_callback(self.supervisor.close)
        await self.supervisor.start()
        stack.push_async_callback(self.caretaker.close)
        self.caretaker.start()
        stack.callback(self.streams.close)


def services(request: Request) -> Services:
    found = request.app.state.services
    assert isinstance(found, Services)
    return found


async def served(request: Request) -> Services:
    """FastAPI would send what is not async to a thread."""
    return services(request)


Served = Annotated[Services, Depends(served)]
