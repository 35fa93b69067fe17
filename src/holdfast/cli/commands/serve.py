"""The serve command: everything over HTTP, for programs and for people."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli import shell
from holdfast.cli.shell import COMMON, OK, Settings, options_of
from holdfast.settings.sources import in_effect

if TYPE_CHECKING:
    from holdfast.app import Holdfast
    from holdfast.cli.opening import Opened
    from holdfast.server.serving import Serving
    from holdfast.server.settings import ServerSettings
    from holdfast.settings.sources import Sources


def register(group: typer.Typer) -> None:
    shell.register(group, "serve", serve, options={**COMMON, **options_of("serve")})


_Module = Annotated[
    str | None, typer.Argument(metavar="[MODULE:NAME]", help="Your Holdfast object; as --app.")
]
_Link = Annotated[
    bool, typer.Option("--link", help="Print a new one-time link that signs an admin in.")
]


def serve(settings: Settings, module: _Module = None, link: _Link = False, **flags: Any) -> int:
    """Serve the runs of a home, and everything that can be done with them, over HTTP.

    The application is the one named, else what stands here. At the first start a one-time
    link is printed that signs an admin in. Ctrl-C or SIGTERM stops it.
    """
    from holdfast.cli.opening import open_app
    from holdfast.server.settings import chosen

    settings = with_module(settings, module)
    sources = in_effect(flags)
    wanted = chosen(sources)
    opened = open_app(settings)
    opened.app.drives = sources.value("work")
    shell.write_logs_unless_done(settings)
    if wanted.default_agent is not None:
        opened.app.engine.definitions.agent(wanted.default_agent)
    with conversing(opened.app, sources):
        _Stand(settings, opened, wanted, link, sources.value("access_log")).open()
    return OK


@contextmanager
def conversing(app: Holdfast, sources: Sources) -> Iterator[None]:
    """While within, conversations keep the rules and have the documents that the settings name."""
    from holdfast.cli.commands.converse import documents_of

    with documents_of(sources.value("knowledge")) as documents:
        app.rules += sources.value("rules")
        app.knowledge = documents or app.knowledge
        yield


def with_module(settings: Settings, module: str | None) -> Settings:
    if module is None:
        return settings
    if settings.app not in (None, module):
        raise typer.BadParameter(f"{module} and --app {settings.app} are two: leave one out.")
    return replace(settings, app=module)


@dataclass(frozen=True, slots=True)
class _Stand:
    """A server in a terminal, or under a supervisor that reads one line of JSON."""

    settings: Settings
    opened: Opened
    chosen: ServerSettings
    link: bool
    access_log: bool

    def open(self) -> None:
        import asyncio

        import uvloop

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        from holdfast.console import install
        from holdfast.server.serving import serve

        async with self.opened.app as app:
            await serve(
                app,
                self.chosen,
                self._say_ready,
                on_stop=partial(shell.say_stopping, self.settings),
                install=install,
                access_log=self.access_log,
            )

    async def _say_ready(self, serving: Serving) -> None:
        import os

        from holdfast.cli.terminal.plain import print_json_line
        from holdfast.cli.terminal.screen import say

        link = await self._new_link(serving)
        if self.settings.as_json:
            print_json_line({"url": serving.url, "link": link, "pid": os.getpid()})
            return
        say(f"{self.opened.app.place} is served at {serving.url}")
        if link is not None:
            say(f"  to sign in, once and within 15 minutes: {link}")
        else:
            say("  to sign in: a token, or a new link: start with --link, or by an admin's token")
            say(f"  `holdfast token link --url {serving.url}`")
        say("  Ctrl-C stops it")

    async def _new_link(self, serving: Serving) -> str | None:
        from holdfast.cli.home_backend import os_user
        from holdfast.server.auth.tokens import ensure_first_link

        tokens = serving.services.tokens
        secret = await ensure_first_link(tokens)
        if secret is None and self.link:
            _, secret = await tokens.new_link(by=os_user(), origin="cli")
        return None if secret is None else link_address(serving.url, secret)


def link_address(url: str, secret: str) -> str:
    return f"{url}/login?token={secret}"
