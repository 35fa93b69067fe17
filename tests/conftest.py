"""What tests of every layer share: an application, the mock office, and ways to look and to wait.

The office is one real process for the whole session; each test finds it as on its first day.
Nothing here sleeps: `until` returns with the commit that makes its condition true.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, TypeAlias

import httpx
import pytest
import pytest_asyncio
from hypothesis import HealthCheck, settings

import stores
from holdfast import Holdfast, PlanInstance
from holdfast.core.plan.state import PlanState
from holdfast.demo.office import Office
from holdfast.journal.codec import decode
from holdfast.model.recorded import Event
from holdfast.testing.clock import ManualClock
from installation import SECRET_KEY, Installation
from postgresql_server import Server, migrated
from workshop import Workshop

PATIENCE = 60.0
"""Far beyond what anything here takes; a test that reaches it has hung."""

os.environ.pop("HOLDFAST_DATABASE", None)  # tests say themselves where runs are kept

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell's background jobs ignore it, and so would the commands that tests interrupt.
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile(
    "whatever the speed", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("whatever the speed")

OpenApp: TypeAlias = Callable[..., Awaitable[Holdfast]]
Until: TypeAlias = Callable[[Holdfast, PlanInstance, Callable[[PlanState], bool]], Awaitable[Any]]
EventsOf: TypeAlias = Callable[[Holdfast, str], Awaitable[list[Event]]]


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def running_office() -> AsyncIterator[Office]:
    async with Office.start() as office:
        yield office


@pytest.fixture
async def office(running_office: Office) -> AsyncIterator[Office]:
    """The running office, reset, with a client that belongs to this test's loop."""
    async with httpx.AsyncClient(base_url=running_office.url, trust_env=False) as client:
        mine = Office(running_office.url, client, running_office._process)
        await mine.reset()
        yield mine


@pytest.fixture
async def open_app() -> AsyncIterator[OpenApp]:
    """Opens applications, in memory or in a home directory, and closes them after the test."""
    async with AsyncExitStack() as stack:

        async def opened(home: Path | None = None, **options: Any) -> Holdfast:
            app = Holdfast(home, **options) if home else Holdfast.in_memory(**options)
            return await stack.enter_async_context(app)

        yield opened


@pytest.fixture
async def app(open_app: OpenApp) -> Holdfast:
    return await open_app()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def until() -> Until:
    """Waits for the first committed state that satisfies a condition."""

    async def waited(
        app: Holdfast, instance: PlanInstance, holds: Callable[[PlanState], bool]
    ) -> PlanState:
        async with asyncio.timeout(PATIENCE):
            return await app.engine.wait_for(instance.id, holds)

    return waited


@pytest.fixture
def events_of() -> EventsOf:
    """A run's journal, decoded."""

    async def read(app: Holdfast, run_id: str) -> list[Event]:
        return [decode(record) for record in await app.journal.read(run_id)]

    return read


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    """One for each process of tests (half a second). A test that harms one starts its own."""
    settings = {"max_connections": 200, "max_prepared_transactions": 5, "autovacuum_naptime": "1d"}
    with Server(fsync=False, **settings) as server:
        yield server


@pytest.fixture
def database(postgres_server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of a database with Holdfast's schema, and nothing else, which goes with the test;
    the key that all who share it need is set."""
    monkeypatch.setenv("HOLDFAST_SECRET_KEY", SECRET_KEY)
    url = postgres_server.create_database(migrated)
    yield url
    postgres_server.drop_database(url)


@pytest.fixture
def installation(database: str, tmp_path: Path) -> Iterator[Installation]:
    """Servers and workers of a database, which end with the test."""
    secret = {"HOLDFAST_SECRET_KEY": SECRET_KEY}
    started = Installation(database, Workshop(tmp_path), secret)
    yield started
    started.close()


@pytest.fixture(scope="session")
def databases(postgres_server: Server) -> stores.Databases:
    return stores.Databases(postgres_server)


@pytest.fixture(autouse=True)
def kept_elsewhere(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """With HOLDFAST_TESTS_ON what is said of applications in memory or in a home is said of those
    on another store (`stores`)."""
    match stores.ELSEWHERE:
        case "postgresql":
            monkeypatch.setenv("HOLDFAST_SECRET_KEY", SECRET_KEY)
            yield from stores.kept_in_databases(monkeypatch, request.getfixturevalue("databases"))
        case "sqlite":
            make: pytest.TempPathFactory = request.getfixturevalue("tmp_path_factory")
            yield from stores.kept_in_files(monkeypatch, lambda: make.mktemp("kept"))
        case _:
            yield


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Elsewhere without what is about a store of its own."""
    own = [item for item in items if stores.ELSEWHERE and has_its_own_store(item)]
    if own:
        config.hook.pytest_deselected(items=own)
        items[:] = [item for item in items if not has_its_own_store(item)]


def has_its_own_store(item: pytest.Item) -> bool:
    names = {"database", "empty_database", "installation", "mortals"}
    asks_for_one = isinstance(item, pytest.Function) and names & set(item.fixturenames)
    folder, file = item.path.parent.relative_to(item.config.rootpath).as_posix(), item.path.stem
    one_is_enough = file in stores.ONE_STORE_IS_ENOUGH.get(folder, ())
    marked = item.get_closest_marker("own_store") is not None
    return bool(asks_for_one) or one_is_enough or marked


@pytest.fixture
def empty_database(postgres_server: Server) -> Iterator[Callable[..., str]]:
    """Makes databases in which nothing is, with options of CREATE DATABASE."""
    made: list[str] = []

    def create(options: str = "") -> str:
        made.append(postgres_server.create_database(options=options))
        return made[-1]

    yield create
    for url in made:
        postgres_server.drop_database(url)
