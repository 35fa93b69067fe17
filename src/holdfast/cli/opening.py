"""Opening: from the common options to an application, or to a journal to read.

A home belongs to one process at a time. Commands that change a run open the whole
application and so take the home; commands that only look read the committed events
through a read-only connection, also while another process is at work. With `--url` both
go to a server instead.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import sqlite3
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from holdfast.app import DATABASE, Holdfast, default_home
from holdfast.cli.house import Heard, House, Reading
from holdfast.cli.loading import LeftOut, load_agents, load_plans
from holdfast.cli.local import LocalHouse
from holdfast.cli.progress import LOOK_AGAIN, PATIENCE
from holdfast.cli.screen import note
from holdfast.cli.shell import Settings
from holdfast.core.run.state import RunState
from holdfast.errors import (
    CallerError,
    HoldfastError,
    JournalTooNew,
    NotFound,
    OperatorError,
)
from holdfast.journal.codec import decode
from holdfast.journal.database import (
    APPLICATION,
    CHECKSUMS,
    SCHEMA,
    Connection,
    explain,
    open_reader,
)
from holdfast.journal.port import Journal, Kept, QuestionQuery, QuestionRow, RunQuery, RunRow
from holdfast.journal.sqlite import OLD_SQL, SqliteJournal
from holdfast.plans import LOCAL
from holdfast.runtime.hub import Recorded
from holdfast.runtime.library import Library
from holdfast.runtime.machines import blank, replay
from holdfast.runtime.tracebacks import Traceback, tracebacks_of
from holdfast.runtime.views import about_question

AGENTS = (Path("agents.yaml"), Path("agents"))
PLANS = Path("plans")
TOOLS = Path("tools.yaml")

_LONGEST_NUMBER = 18


class AnyEnvironment(dict[str, str]):
    """The environment for looking at plans, where no tool is ever called.

    A variable that is not set stands for some address, so that a plan can be checked
    and drawn without it.
    """

    def get(self, name: str, default: Any = None) -> Any:
        return os.environ.get(name, default) or "http://127.0.0.1"


@dataclass(frozen=True, slots=True)
class Opened:
    """An application, and the files that were left out of it because of their mistakes."""

    app: Holdfast
    agents: LeftOut
    plans: LeftOut

    def warn(self) -> None:
        for line in (*self.agents.warnings(), *self.plans.warnings()):
            note(f"warning: {line}")


def build_app(settings: Settings, env: Mapping[str, str] | None = None) -> Holdfast:
    """As `open_app`; whoever needs what was left out finds it missing."""
    return open_app(settings, env).app


def open_app(settings: Settings, env: Mapping[str, str] | None = None) -> Opened:
    """The user's application, or one made of the tools, agents and plans that stand here."""
    app = app_with_tools(settings, env)
    opened = Opened(
        app,
        load_agents(app, agent_places(settings)),
        load_plans(app, _places(settings, settings.plans, "--plans", (PLANS,))),
    )
    opened.warn()
    return opened


def agent_places(settings: Settings) -> list[Path]:
    return _places(settings, settings.agents, "--agents", AGENTS)


def _places(
    settings: Settings, given: Path | None, option: str, usual: Sequence[Path]
) -> list[Path]:
    """What was named, else what stands here by custom; an application has its own."""
    if given is not None:
        if not given.exists():
            raise NotFound(f"{option} {given}: there is no such file or directory")
        return [given]
    return [] if settings.app_name is not None else [one for one in usual if one.exists()]


def app_with_tools(settings: Settings, env: Mapping[str, str] | None = None) -> Holdfast:
    named = settings.app_name is not None
    app = _named_app(settings) if named else Holdfast(settings.home)
    tools = settings.tools or (TOOLS if TOOLS.is_file() and not named else None)
    if tools is not None:
        app.load_tools(tools, env)
    return app


def _named_app(settings: Settings) -> Holdfast:
    app = _imported(str(settings.app_name))
    if settings.home is not None and settings.home.resolve() != app.home.resolve():
        raise CallerError(
            f"{settings.app_name} keeps its runs in {app.home}: leave --home out, "
            "or let the app take its home from $HOLDFAST_HOME"
        )
    return app


def _imported(name: str) -> Holdfast:
    module_name, _, attribute = name.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        module = importlib.import_module(module_name)
    except HoldfastError:
        raise
    except ModuleNotFoundError as error:
        raise NotFound(f"--app {name}: {_missing(module_name, error)}") from None
    except Exception as error:
        kind = type(error).__name__
        raise NotFound(f"--app {name} cannot be imported: {kind}: {error}") from error
    found = getattr(module, attribute or "app", None)
    app = found() if callable(found) and not isinstance(found, Holdfast) else found
    if not isinstance(app, Holdfast):
        raise NotFound(f"--app {name}: {module_name} has no Holdfast object {attribute or 'app'!r}")
    return app


def _missing(module_name: str, error: ModuleNotFoundError) -> str:
    """A file is no module; and what the module itself imports is another matter."""
    if module_name.endswith(".py") or "/" in module_name:
        return "name it as MODULE:NAME, as clerk:app for the app in clerk.py"
    if not f"{module_name}.".startswith(f"{error.name}."):
        return str(error)
    return f"there is no {module_name.replace('.', '/')}.py in {os.getcwd()}"


class ReadingJournal(SqliteJournal):
    """The committed events of a home, which may be in use by another process."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, connect=_connect_to_read)
        self._keeps = True

    async def open(self) -> None:
        refuse_empty(self.path)
        try:
            self._reader = open_reader(self.path, self._connect)
            if _schema_of(self._reader, self.path) < CHECKSUMS:
                self._sql = OLD_SQL
            self._keeps = _schema_of(self._reader, self.path) > 1
        except sqlite3.Error as error:
            raise explain(error, self.path) from error

    async def all_kept(self, kind: str, now: float) -> list[Kept]:
        """The first schema kept nothing."""
        return await super().all_kept(kind, now) if self._keeps else []

    async def close(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None


def refuse_empty(database: Path) -> None:
    """Looking for a run, or going on with one, makes no home."""
    if not database.is_file():
        raise NotFound(f"{database.parent} holds no runs yet: start one with `holdfast run PLAN`")


def refuse_unused(app: Holdfast) -> None:
    if isinstance(app.journal, SqliteJournal):
        refuse_empty(app.journal.path)


def _connect_to_read(path: Path) -> Connection:
    address = f"file:{quote(str(path.resolve()))}?mode=ro"
    return sqlite3.connect(address, uri=True, timeout=1.0, isolation_level=None)


def _schema_of(connection: Connection, path: Path) -> int:
    [[application]] = connection.execute("PRAGMA application_id").fetchall()
    [[version]] = connection.execute("PRAGMA user_version").fetchall()
    if application != APPLICATION:
        raise OperatorError(f"{path} belongs to another program. Choose another home.")
    if version > SCHEMA:
        raise JournalTooNew(f"{path} was written by a newer Holdfast. Upgrade this one.")
    return int(version)


def house_of(settings: Settings, env: Mapping[str, str] | None = None, by: str = LOCAL) -> House:
    """A server where one is named, else this process with the application that stands here.

    `by` is whom the histories name; a server knows its callers itself.
    """
    if settings.server is not None:
        from holdfast.cli.remote import RemoteHouse

        return RemoteHouse(settings.server)
    opened = open_app(settings, env)
    return LocalHouse(opened.app, by, opened.plans, opened.agents)


@asynccontextmanager
async def entering(settings: Settings) -> AsyncIterator[House]:
    """For what is done to runs that are there."""
    house = house_of(settings)
    if isinstance(house, LocalHouse):
        refuse_unused(house.app)
    async with house.entered():
        yield house


@dataclass(frozen=True, slots=True)
class HomeReading:
    """A look at the runs of one home, which another process may drive."""

    journal: Journal
    library: Library
    home: Path

    look_again = LOOK_AGAIN

    def is_driven(self) -> bool:
        return is_driven(self.home)

    async def runs(self, query: RunQuery) -> list[RunRow]:
        return await self.journal.runs(query)

    async def version(self, run_id: str) -> int:
        return await self.journal.version(run_id)

    async def questions(self, query: QuestionQuery) -> list[QuestionRow]:
        return await self.journal.questions(query)

    async def question(self, question_id: str) -> QuestionRow | None:
        return await self.journal.question(question_id)

    async def about(self, row: QuestionRow) -> str:
        return await about_question(self.journal, row)

    async def beginning(self, run_id: str) -> RunState:
        """The run before its first event."""
        row = await self.journal.run(run_id)
        if row is None:
            raise NotFound(f"there is no run {run_id}: `holdfast runs` lists them")
        return blank(run_id, await self.library.by_digest(row.definition))

    async def records(self, run_id: str, after: int = 0) -> list[Recorded]:
        records = await self.journal.read(run_id, after)
        return [Recorded(record.seq, record.at, decode(record)) for record in records]

    async def tracebacks(self, run_id: str) -> list[Traceback]:
        return await tracebacks_of(self.journal, run_id, time.time())

    async def state(self, run_id: str) -> RunState:
        state = await self.beginning(run_id)
        return replay(state, ((one.at, one.event) for one in await self.records(run_id)))

    async def listen(self, run_id: str, after: int = 0) -> Heard:
        """Ends when for a while nothing came and nobody is at work."""
        idle = 0
        while idle < PATIENCE or self.is_driven():
            records = await self.records(run_id, after)
            for recorded in records:
                after = recorded.seq
                yield recorded
            idle = 0 if records else idle + 1
            await asyncio.sleep(LOOK_AGAIN)


@asynccontextmanager
async def reading(settings: Settings) -> AsyncIterator[Reading]:
    if settings.server is not None:
        async with entering(settings) as house:
            yield house
        return
    async with reading_journal(settings) as journal:
        yield HomeReading(journal, Library(journal), journal.path.parent)


@asynccontextmanager
async def reading_journal(settings: Settings) -> AsyncIterator[ReadingJournal]:
    journal = ReadingJournal(_database(settings))
    await journal.open()
    try:
        yield journal
    finally:
        await journal.close()


@asynccontextmanager
async def writing_journal(settings: Settings) -> AsyncIterator[Journal]:
    """The journal of a home that is taken for this alone: no run of it moves."""
    journal = SqliteJournal(_database(settings))
    await journal.open()
    try:
        yield journal
    finally:
        await journal.close()


def _database(settings: Settings) -> Path:
    if settings.app_name is None or (settings.home is not None and settings.app is None):
        return (settings.home or default_home()) / DATABASE
    journal = _named_app(settings).journal
    if not isinstance(journal, SqliteJournal):
        raise CallerError(f"{settings.app_name} keeps no journal that another process could read")
    return journal.path


def is_driven(home: Path) -> bool:
    """Whether a process on this machine seems to hold the home.

    Taking the lock for a moment would tell for certain, and could turn away a
    process that is just starting; so its word about itself must do.
    """
    try:
        holder = json.loads((home / f"{DATABASE}.lock").read_text(encoding="utf-8"))
        os.kill(int(holder["pid"]), 0)
    except PermissionError:
        return True
    except (OSError, ValueError, LookupError, TypeError):
        return False
    return True


def full_run_id(name: str, series: str = "inst") -> str:
    """`7` is short for `inst_000007`."""
    number = name.isascii() and name.isdecimal() and len(name) <= _LONGEST_NUMBER
    return f"{series}_{int(name):06d}" if number else name
