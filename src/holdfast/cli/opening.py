"""From the common options to an application, or to a server with `--url`.

A home belongs to one process at a time. Commands that change a run open the whole application and
so take the home; those that only look read its journal (`home_reader`), also while another process
drives the runs.
"""

from __future__ import annotations

import importlib
import os
import shlex
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.app import Holdfast
from holdfast.cli.backend import Backend
from holdfast.cli.home_backend import HomeBackend
from holdfast.cli.loading import LeftOut, load_agents, load_plans
from holdfast.cli.shell import Settings
from holdfast.cli.terminal.plain import note
from holdfast.errors import CallerError, HoldfastError, NotFound
from holdfast.runtime.identity import LOCAL
from holdfast.views.homes import refuse_unused

AGENTS = (Path("agents.yaml"), Path("agents"))
PLANS = Path("plans")
TOOLS = Path("tools.yaml")


class AnyEnvironment(dict[str, str]):
    """The environment for looking at plans, where no tool is ever called.

    A variable that is not set and has no default stands for some address, so that a plan can be
    checked and drawn without it.
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
    """As `open_app`, without the list of what was left out."""
    return open_app(settings, env).app


def open_app(settings: Settings, env: Mapping[str, str] | None = None) -> Opened:
    """The user's application, or one made of the tools, agents and plans that stand here."""
    app = app_with_tools(settings, env)
    opened = Opened(
        app,
        load_agents(app, agent_places(settings)),
        load_plans(app, _places(settings, "plans", (PLANS,))),
    )
    opened.warn()
    return opened


def agent_places(settings: Settings) -> list[Path]:
    return _places(settings, "agents", AGENTS)


def _places(settings: Settings, name: str, usual: Sequence[Path]) -> list[Path]:
    """What was named, else what stands here by custom; an application has its own."""
    found = settings.sources.find(name)
    if found.value is not None:
        if not found.value.exists():
            raise NotFound(f"{found.source} {found.value}: there is no such file or directory")
        return [found.value]
    return [] if settings.app_name is not None else [one for one in usual if one.exists()]


def app_with_tools(settings: Settings, env: Mapping[str, str] | None = None) -> Holdfast:
    named = settings.app_name is not None
    app = named_app(settings) if named else _app_of(settings)
    tools = settings.sources.value("tools") or (TOOLS if TOOLS.is_file() and not named else None)
    if tools is not None:
        app.load_tools(tools, env)
    return app


def _app_of(settings: Settings) -> Holdfast:
    """A home that was named goes before the database of the environment."""
    database = None if settings.home is None else ""
    return Holdfast(settings.home, database=database)


def named_app(settings: Settings) -> Holdfast:
    app = _imported(str(settings.app_name))
    if settings.home is not None and settings.home.resolve() != app.home.resolve():
        raise CallerError(
            f"{settings.app_name} keeps its runs in {app.home}: leave --home out. If it names no "
            f"home itself, HOLDFAST_HOME={shlex.quote(str(settings.home))} gives it one"
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


def backend_of(
    settings: Settings, env: Mapping[str, str] | None = None, by: str = LOCAL
) -> Backend:
    """A server where one is named, else this process with the application that stands here.

    `by` is whom the histories name; a server knows its callers itself.
    """
    if settings.server is not None:
        from holdfast.cli.server_backend import ServerBackend

        return ServerBackend(settings.server, settings.language)
    opened = open_app(settings, env)
    if by != LOCAL and opened.app.engine.four_eyes.enabled:
        raise CallerError(
            "--by only tells the history who speaks, and under four eyes names decide who may "
            f"approve: this command line has one name, {LOCAL}. Leave --by away, or give people "
            "tokens (`holdfast token create`) and name the server with --url."
        )
    return HomeBackend(opened.app, by, opened.plans, opened.agents, settings.language)


@asynccontextmanager
async def opened_backend(settings: Settings) -> AsyncIterator[Backend]:
    """For what is done to runs that are there. Those of a database are driven by its workers."""
    backend = backend_of(settings)
    if isinstance(backend, HomeBackend):
        refuse_unused(backend.app)
        backend.app.drives = False
    async with backend.opened():
        yield backend
