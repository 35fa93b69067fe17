"""The serve command: everything over HTTP, for programs and for people."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli import shell
from holdfast.cli.shell import OK, Settings, optional

if TYPE_CHECKING:
    from holdfast.cli.opening import Opened
    from holdfast.server.auth.jwt import Oidc
    from holdfast.server.serving import Serving
    from holdfast.server.settings import ServerSettings


def register(group: typer.Typer) -> None:
    shell.register(group, "serve", serve)


_Module = Annotated[
    str | None, typer.Argument(metavar="[MODULE:NAME]", help="Your Holdfast object; as --app.")
]
_Host = Annotated[
    str,
    typer.Option(
        "--host",
        envvar="HOLDFAST_HOST",
        help="The address to listen on. One that other machines reach needs a token first.",
    ),
]
_Port = Annotated[
    int | None,
    typer.Option(
        "--port",
        min=0,
        max=65535,
        envvar="HOLDFAST_PORT",
        help="Default: 8420; 0 takes one that is free.",
        show_default=False,
    ),
]
_AllowHost = Annotated[
    list[str] | None,
    optional(
        "--allow-host",
        "NAME",
        "A name that people call the server by, as holdfast.example. Repeatable.",
        envvar="HOLDFAST_ALLOW_HOST",
    ),
]
_OidcIssuer = Annotated[
    str | None,
    optional(
        "--oidc-issuer",
        "URL",
        "Let people in with JWTs of this issuer.",
        envvar="HOLDFAST_OIDC_ISSUER",
    ),
]
_OidcAudience = Annotated[
    str | None,
    optional(
        "--oidc-audience", "NAME", "Whom those JWTs must be for.", envvar="HOLDFAST_OIDC_AUDIENCE"
    ),
]
_OidcRolesClaim = Annotated[
    str,
    typer.Option(
        "--oidc-roles-claim",
        metavar="CLAIM",
        envvar="HOLDFAST_OIDC_ROLES_CLAIM",
        help="Where they name a person's roles, as realm_access.roles.",
    ),
]
_OidcPersonClaim = Annotated[
    str | None,
    optional(
        "--oidc-person-claim",
        "CLAIM",
        "What only those of people have, as sid or idtyp=user.",
        envvar="HOLDFAST_OIDC_PERSON_CLAIM",
    ),
]
_FourEyes = Annotated[
    bool,
    typer.Option(
        "--four-eyes",
        envvar="HOLDFAST_FOUR_EYES",
        help="Who wants a call may not approve it, and none is approved beforehand.",
    ),
]
_DefaultAgent = Annotated[
    str | None,
    optional(
        "--default-agent",
        "ID",
        "Who answers a chat that names no agent. Default: the only agent.",
        envvar="HOLDFAST_DEFAULT_AGENT",
    ),
]
_Rules = Annotated[
    list[str] | None,
    optional("--rule", "TEXT", "A rule that conversations keep. Repeatable."),
]
_Documents = Annotated[
    Path | None,
    optional("--knowledge", "DIR", "Markdown and text files that conversations draw on."),
]
_Link = Annotated[
    bool, typer.Option("--link", help="Print a new one-time link that signs an admin in.")
]
_SecureCookies = Annotated[
    bool,
    typer.Option(
        "--secure-cookies",
        envvar="HOLDFAST_SECURE_COOKIES",
        help="People reach the server over TLS, for instance through a proxy.",
    ),
]
_HeaderBytes = Annotated[
    int,
    typer.Option(
        "--header-bytes",
        metavar="N",
        min=1024,
        envvar="HOLDFAST_HEADER_BYTES",
        help="How large the headers of a request may be.",
    ),
]
_HeaderCount = Annotated[
    int,
    typer.Option(
        "--header-count",
        metavar="N",
        min=1,
        envvar="HOLDFAST_HEADER_COUNT",
        help="How many there may be.",
    ),
]
_UrlBytes = Annotated[
    int,
    typer.Option(
        "--url-bytes",
        metavar="N",
        min=256,
        envvar="HOLDFAST_URL_BYTES",
        help="How long its address may be.",
    ),
]
_HeaderSeconds = Annotated[
    float,
    typer.Option(
        "--header-seconds",
        metavar="S",
        min=0.1,
        envvar="HOLDFAST_HEADER_SECONDS",
        help="The time in which all that must arrive.",
    ),
]
_IdleSeconds = Annotated[
    float,
    typer.Option(
        "--idle-seconds",
        metavar="S",
        min=0.1,
        envvar="HOLDFAST_IDLE_SECONDS",
        help="How long a connection is kept between two requests.",
    ),
]
_MaxConnections = Annotated[
    int,
    typer.Option(
        "--max-connections",
        metavar="N",
        min=0,
        envvar="HOLDFAST_MAX_CONNECTIONS",
        help="How many there may be at once; 0: no limit.",
    ),
]
_PerAddress = Annotated[
    int,
    typer.Option(
        "--connections-per-address",
        metavar="N",
        min=0,
        envvar="HOLDFAST_CONNECTIONS_PER_ADDRESS",
        help="How many of them from one address; 0: no limit, as behind a proxy.",
    ),
]
_KeepFinished = Annotated[
    float,
    typer.Option(
        "--keep-finished-days",
        metavar="N",
        min=0,
        envvar="HOLDFAST_KEEP_FINISHED_DAYS",
        help="Remove runs that are done or cancelled for longer, every day; 0: never.",
    ),
]
_KeepFinishedExport = Annotated[
    Path | None,
    optional(
        "--keep-finished-export",
        "DIR",
        "Write them down there first, as JSON Lines.",
        envvar="HOLDFAST_KEEP_FINISHED_EXPORT",
    ),
]
_AccessLog = Annotated[
    bool,
    typer.Option(
        "--access-log", envvar="HOLDFAST_ACCESS_LOG", help="One line per request on stderr."
    ),
]
_Work = Annotated[
    bool,
    typer.Option(
        "--work",
        envvar="HOLDFAST_WORK",
        help="Of a database: drive its runs here too, and need no worker beside.",
    ),
]


def serve(
    settings: Settings,
    module: _Module = None,
    host: _Host = "127.0.0.1",
    port: _Port = None,
    allow_host: _AllowHost = None,
    oidc_issuer: _OidcIssuer = None,
    oidc_audience: _OidcAudience = None,
    oidc_roles_claim: _OidcRolesClaim = "roles",
    oidc_person_claim: _OidcPersonClaim = None,
    four_eyes: _FourEyes = False,
    default_agent: _DefaultAgent = None,
    rules: _Rules = None,
    knowledge: _Documents = None,
    link: _Link = False,
    secure_cookies: _SecureCookies = False,
    header_bytes: _HeaderBytes = 64 * 1024,
    header_count: _HeaderCount = 100,
    url_bytes: _UrlBytes = 8 * 1024,
    header_seconds: _HeaderSeconds = 10.0,
    idle_seconds: _IdleSeconds = 5.0,
    max_connections: _MaxConnections = 1000,
    connections_per_address: _PerAddress = 500,
    keep_finished_days: _KeepFinished = 0.0,
    keep_finished_export: _KeepFinishedExport = None,
    access_log: _AccessLog = False,
    work: _Work = False,
) -> int:
    """Serve the runs of a home, and everything that can be done with them, over HTTP.

    The application is the one named, else what stands here. At the first start a one-time
    link is printed that signs an admin in. Ctrl-C or SIGTERM stops it.
    """
    from holdfast.cli.commands.converse import documents_of
    from holdfast.cli.opening import open_app
    from holdfast.server.settings import ServerSettings

    settings = with_module(settings, module)
    opened = open_app(settings)
    opened.app.drives = work
    if default_agent is not None:
        opened.app.engine.definitions.agent(default_agent)
    chosen = ServerSettings(
        host=host.strip("[]"),
        port=ServerSettings().port if port is None else port,
        allowed_hosts=tuple(allow_host or ()),
        four_eyes=four_eyes,
        oidc=_oidc(oidc_issuer, oidc_audience, oidc_roles_claim, oidc_person_claim),
        secure_cookies=secure_cookies,
        default_agent=default_agent,
        header_bytes=header_bytes,
        header_count=header_count,
        url_bytes=url_bytes,
        header_seconds=header_seconds,
        idle_seconds=idle_seconds,
        max_connections=max_connections,
        connections_per_address=connections_per_address,
        keep_finished_days=keep_finished_days,
        keep_finished_export=keep_finished_export,
    )
    with documents_of(knowledge) as documents:
        opened.app.rules += tuple(rules or ())
        opened.app.knowledge = documents or opened.app.knowledge
        _Stand(settings, opened, chosen, link, access_log).open()
    return OK


def with_module(settings: Settings, module: str | None) -> Settings:
    if module is None:
        return settings
    if settings.app not in (None, module):
        raise typer.BadParameter(f"{module} and --app {settings.app} are two: leave one out.")
    return replace(settings, app=module)


def _oidc(
    issuer: str | None, audience: str | None, roles_claim: str, person_claim: str | None
) -> Oidc | None:
    from holdfast.server.auth.jwt import Oidc

    if issuer is None and audience is None:
        return None
    if issuer is None or audience is None:
        raise typer.BadParameter("--oidc-issuer and --oidc-audience go together.")
    try:
        return Oidc(issuer, audience, roles_claim=roles_claim, person_claim=person_claim)
    except ValueError as error:
        raise typer.BadParameter(f"--oidc-issuer: {error}.") from None


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
                on_stop=self._say_stopping,
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

    def _say_stopping(self) -> None:
        from holdfast.cli.terminal.plain import note

        if not self.settings.as_json:
            note("stopping: what is in flight ends first (Ctrl-C again leaves at once)")


def link_address(url: str, secret: str) -> str:
    return f"{url}/login?token={secret}"
