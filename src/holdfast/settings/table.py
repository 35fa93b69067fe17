"""All settings. A record here is the whole declaration of one: its option, its environment
variable, its key in the file, what it may be, what it is by default, and what it is for.

A secret has neither option nor key: a command line is seen by every process, and files are copied
and committed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from holdfast.settings.kinds import Kind, Limits, Value

EVERY: Final = "every command"
SERVE: Final = "serve"
WORKER: Final = "worker"
MIGRATE: Final = "migrate"


@dataclass(frozen=True, slots=True)
class Setting:
    """`default_means` says what holds without a value. `scope` has the commands that it is for;
    those that it names have the option, or else all of them. `by_hand` says why it may not stand in
    the file."""

    name: str
    purpose: str
    kind: Kind = Kind.TEXT
    default: Value = None
    scope: tuple[str, ...] = (SERVE,)
    flag: str = ""
    metavar: str = ""
    variable: str = ""
    limits: Limits = Limits()
    default_means: str = ""
    secret: bool = False
    by_hand: str = ""

    @property
    def key(self) -> str:
        """Its key in the file; empty where it may not stand there."""
        return "" if self.secret or self.by_hand else self.name

    @property
    def default_text(self) -> str:
        if self.default_means:
            return self.default_means
        match self.default:
            case None | ():
                return "none"
            case bool():
                return "yes" if self.default else "no"
            case tuple():
                return " ".join(self.default)
            case _:
                return str(self.default)

    @property
    def help(self) -> str:
        """What an option's help says."""
        default = "" if self.kind is Kind.SWITCH else f" Default: {self.default_text}."
        also = f" Also ${self.variable}." if self.variable else ""
        return f"{self.purpose}{default}{also}"


def _variable(name: str) -> str:
    return f"HOLDFAST_{name.upper()}"


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _at_least(least: float, most: float | None = None) -> Limits:
    return Limits(least=least, most=most)


_PERSONAL: Final = "it is for one person, and goes with the token: name it in the environment"

_PLACES: Final = (
    Setting(
        "config",
        "The configuration file.",
        Kind.PATH,
        None,
        (EVERY,),
        "--config",
        "FILE",
        _variable("config"),
        default_means="holdfast.toml, if it is there",
        by_hand="it names the file",
    ),
    Setting(
        "home",
        "Where runs are kept.",
        Kind.PATH,
        Path(".holdfast"),
        (EVERY,),
        "--home",
        "DIR",
        _variable("home"),
    ),
    Setting(
        "app",
        "Your Holdfast object, with its tools, agents and plans.",
        scope=(EVERY,),
        flag="--app",
        metavar="MODULE:NAME",
        variable=_variable("app"),
        default_means="what stands here",
    ),
    Setting(
        "agents",
        "Agents in YAML, a file or a directory.",
        Kind.PATH,
        scope=(EVERY,),
        flag="--agents",
        metavar="PATH",
        variable=_variable("agents"),
        default_means="agents.yaml and agents/, if there",
    ),
    Setting(
        "plans",
        "Plans in YAML.",
        Kind.PATH,
        scope=(EVERY,),
        flag="--plans",
        metavar="DIR",
        variable=_variable("plans"),
        default_means="plans/, if it is there",
    ),
    Setting(
        "tools",
        "HTTP tools in YAML.",
        Kind.PATH,
        scope=(EVERY,),
        flag="--tools",
        metavar="FILE",
        variable=_variable("tools"),
        default_means="tools.yaml, if it is there",
    ),
    Setting(
        "url",
        "A server that has the runs, instead of a home here.",
        Kind.URL,
        scope=(EVERY,),
        flag="--url",
        metavar="URL",
        variable=_variable("url"),
        by_hand=_PERSONAL,
    ),
    Setting(
        "token_file",
        "A file with the token for --url.",
        Kind.PATH,
        scope=(EVERY,),
        flag="--token-file",
        metavar="FILE",
        variable=_variable("token_file"),
        default_means="the token itself in $HOLDFAST_TOKEN",
        by_hand=_PERSONAL,
    ),
    Setting(
        "token",
        "The token for --url.",
        scope=(EVERY,),
        variable=_variable("token"),
        secret=True,
    ),
)

_STORAGE: Final = (
    Setting(
        "database",
        "The PostgreSQL database that keeps the runs, instead of the home's own.",
        Kind.URL,
        None,
        (EVERY, MIGRATE),
        "--database",
        "URL",
        _variable("database"),
        limits=Limits(schemes=("postgresql", "postgres")),
        default_means="SQLite in the home",
    ),
    Setting(
        "database_direct",
        "The same database without a pooler such as PgBouncer between, for LISTEN.",
        Kind.URL,
        scope=(EVERY,),
        variable=_variable("database_direct"),
        limits=Limits(schemes=("postgresql", "postgres")),
        default_means="as HOLDFAST_DATABASE",
    ),
    Setting(
        "secret_key",
        "The key that seals secrets, 32 bytes in base64.",
        scope=(EVERY,),
        variable=_variable("secret_key"),
        default_means="secret.key in the home",
        secret=True,
    ),
)

_MODELS: Final = (
    Setting(
        "model",
        "The default model, such as openai:gpt-4o.",
        scope=(EVERY,),
        variable=_variable("model"),
    ),
    Setting(
        "model_base_url",
        "A server that speaks OpenAI's chat protocol; every model's name then goes to it.",
        scope=(EVERY,),
        variable=_variable("model_base_url"),
    ),
    Setting(
        "model_api_key",
        "The key for that server.",
        scope=(EVERY,),
        variable=_variable("model_api_key"),
        default_means="the provider's own variable",
        secret=True,
    ),
)

_LOGS: Final = (
    Setting(
        "log_level",
        "From which level on log lines are written: debug, info, warning or error.",
        Kind.CHOICE,
        "warning",
        (EVERY,),
        "--log-level",
        "LEVEL",
        _variable("log_level"),
        Limits(choices=("debug", "info", "warning", "error")),
    ),
    Setting(
        "log_format",
        "Log lines as text or json.",
        Kind.CHOICE,
        "text",
        (EVERY,),
        "--log-format",
        "FORMAT",
        _variable("log_format"),
        Limits(choices=("text", "json")),
    ),
    Setting(
        "access_log",
        "One line per request in the log.",
        Kind.SWITCH,
        False,
        flag="--access-log",
        variable=_variable("access_log"),
    ),
)


def _served(
    name: str, purpose: str, kind: Kind, default: Value, metavar: str = "", **more: object
) -> Setting:
    """A setting of `serve` whose option, variable and key are all its name."""
    named = {"flag": _flag(name), "variable": _variable(name), **more}
    return Setting(name, purpose, kind, default, metavar=metavar, **named)  # type: ignore[arg-type]


_SERVER: Final = (
    _served(
        "host",
        "The address to listen on. One that other machines reach needs a token first.",
        Kind.TEXT,
        "127.0.0.1",
        "ADDRESS",
    ),
    _served(
        "port",
        "The port to listen on; 0 takes one that is free.",
        Kind.WHOLE,
        8420,
        "N",
        limits=_at_least(0, 65535),
    ),
    _served(
        "allow_host",
        "A name that people call the server by, as holdfast.example. Repeatable.",
        Kind.NAMES,
        (),
        "NAME",
        default_means="the names of this machine and the address that is bound",
    ),
    _served(
        "trusted_proxies",
        "Proxies whose word on a request's client, scheme and host is believed. Repeatable.",
        Kind.NETWORKS,
        (),
        "CIDR",
        flag="--trusted-proxy",
    ),
    _served(
        "secure_cookies",
        "People reach the server over TLS, for instance through a proxy.",
        Kind.SWITCH,
        False,
    ),
    _served(
        "four_eyes",
        "Who wants a call may not approve it, and none is approved beforehand.",
        Kind.SWITCH,
        False,
        scope=(EVERY, SERVE),
    ),
    _served(
        "default_agent",
        "Who answers a chat that names no agent.",
        Kind.TEXT,
        None,
        "ID",
        default_means="the only agent",
    ),
    Setting(
        "rules",
        "A rule that conversations keep. Repeatable.",
        Kind.TEXTS,
        (),
        (SERVE, WORKER),
        flag="--rule",
        metavar="TEXT",
    ),
    _served(
        "knowledge",
        "Markdown and text files that conversations draw on.",
        Kind.PATH,
        None,
        "DIR",
        scope=(SERVE, WORKER),
    ),
    _served(
        "session_hours",
        "How long a sign-in to the console lasts.",
        Kind.NUMBER,
        12.0,
        flag="",
        limits=_at_least(0.1),
    ),
)

_OIDC: Final = (
    _served(
        "oidc_issuer",
        "Let people in with JWTs of this issuer.",
        Kind.TEXT,
        None,
        "URL",
    ),
    _served("oidc_audience", "Whom those JWTs must be for.", Kind.TEXT, None, "NAME"),
    _served(
        "oidc_roles_claim",
        "Where they name a person's roles, as realm_access.roles.",
        Kind.TEXT,
        "roles",
        "CLAIM",
    ),
    _served(
        "oidc_person_claim",
        "What only those of people have, as sid or idtyp=user.",
        Kind.TEXT,
        None,
        "CLAIM",
        default_means="by what issuers usually put into those of programs",
    ),
)

_BOUNDS: Final = (
    _served(
        "header_bytes",
        "How large the headers of a request may be.",
        Kind.WHOLE,
        64 * 1024,
        "N",
        limits=_at_least(1024),
    ),
    _served(
        "header_count",
        "How many headers there may be.",
        Kind.WHOLE,
        100,
        "N",
        limits=_at_least(1),
    ),
    _served(
        "url_bytes",
        "How long a request's address may be.",
        Kind.WHOLE,
        8 * 1024,
        "N",
        limits=_at_least(256),
    ),
    _served(
        "header_seconds",
        "The time in which a request's address and headers must arrive.",
        Kind.NUMBER,
        10.0,
        "S",
        limits=_at_least(0.1),
    ),
    _served(
        "idle_seconds",
        "How long a connection is kept between two requests.",
        Kind.NUMBER,
        5.0,
        "S",
        limits=_at_least(0.1),
    ),
    _served(
        "max_connections",
        "How many connections there may be at once; 0: no limit.",
        Kind.WHOLE,
        1000,
        "N",
        limits=_at_least(0),
    ),
    _served(
        "connections_per_address",
        "How many of them from one address that is no trusted proxy; 0: no limit.",
        Kind.WHOLE,
        500,
        "N",
        limits=_at_least(0),
    ),
    _served(
        "keep_finished_days",
        "Remove runs that are done or cancelled for longer, every day; 0: never.",
        Kind.NUMBER,
        0.0,
        "N",
        limits=_at_least(0),
    ),
    _served(
        "keep_finished_export",
        "Write them down there first, as JSON Lines.",
        Kind.PATH,
        None,
        metavar="DIR",
    ),
    _served(
        "body_limit",
        "How many bytes a request's body may have.",
        Kind.WHOLE,
        1024 * 1024,
        flag="",
        limits=_at_least(1024),
    ),
    _served(
        "body_seconds",
        "The time in which it must arrive.",
        Kind.NUMBER,
        30.0,
        flag="",
        limits=_at_least(0.1),
    ),
    _served(
        "json_depth",
        "How deep JSON in a body may be nested.",
        Kind.WHOLE,
        64,
        flag="",
        limits=_at_least(8, 256),
    ),
    _served(
        "json_values",
        "How many values it may hold.",
        Kind.WHOLE,
        10_000,
        flag="",
        limits=_at_least(100),
    ),
    _served(
        "heartbeat",
        "Seconds between two signs of life on an event stream that is silent.",
        Kind.NUMBER,
        15.0,
        flag="",
        limits=_at_least(0.1),
    ),
    _served(
        "stall_seconds",
        "How long a reader of an event stream may take nothing before it is let go.",
        Kind.NUMBER,
        30.0,
        flag="",
        limits=_at_least(0.1),
    ),
)

_WORKERS: Final = (
    _served(
        "concurrency",
        "How many runs a worker drives at a time.",
        Kind.WHOLE,
        100,
        "N",
        scope=(WORKER,),
        limits=_at_least(1),
    ),
    _served(
        "grace",
        "How long calls under way may take to end when it is told to stop.",
        Kind.NUMBER,
        10.0,
        "S",
        scope=(WORKER,),
        limits=_at_least(0),
    ),
    _served(
        "health_port",
        "Answer /healthz and /readyz at this port; 0 takes one that is free.",
        Kind.WHOLE,
        None,
        "PORT",
        scope=(WORKER,),
        limits=_at_least(0, 65535),
    ),
    _served(
        "health_host",
        "The address of the health port.",
        Kind.TEXT,
        "127.0.0.1",
        "ADDRESS",
        scope=(WORKER,),
    ),
    _served(
        "work",
        "Of a database: drive its runs here too, and need no worker beside.",
        Kind.SWITCH,
        False,
    ),
)

GROUPS: Final = {
    "Places": _PLACES,
    "Storage": _STORAGE,
    "Models": _MODELS,
    "Logs": _LOGS,
    "The server": _SERVER,
    "Signing in with an issuer": _OIDC,
    "Limits of the server": _BOUNDS,
    "Workers": _WORKERS,
}

SETTINGS: Final = {one.name: one for group in GROUPS.values() for one in group}

INTERNAL: Final = frozenset({"HOLDFAST_FROZEN"})
"""Variables that are for our own tests."""


def for_command(command: str) -> Iterable[Setting]:
    """Those whose options are this command's."""
    return [one for one in SETTINGS.values() if one.flag and command in one.scope]
