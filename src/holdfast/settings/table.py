"""All settings, in the order of the documentation. A record here, or in `servers`, is the whole
declaration of one.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from holdfast.settings.kinds import Kind, Limits
from holdfast.settings.servers import BOUNDS, OIDC, SERVER, WORKERS
from holdfast.settings.setting import EVERY, MIGRATE, Setting, variable

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
        variable("config"),
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
        variable("home"),
    ),
    Setting(
        "app",
        "Your Holdfast object, with its tools, agents and plans.",
        scope=(EVERY,),
        flag="--app",
        metavar="MODULE:NAME",
        variable=variable("app"),
        default_means="what stands here",
    ),
    Setting(
        "agents",
        "Agents in YAML, a file or a directory.",
        Kind.PATH,
        scope=(EVERY,),
        flag="--agents",
        metavar="PATH",
        variable=variable("agents"),
        default_means="agents.yaml and agents/, if there",
    ),
    Setting(
        "plans",
        "Plans in YAML.",
        Kind.PATH,
        scope=(EVERY,),
        flag="--plans",
        metavar="DIR",
        variable=variable("plans"),
        default_means="plans/, if it is there",
    ),
    Setting(
        "tools",
        "HTTP tools in YAML.",
        Kind.PATH,
        scope=(EVERY,),
        flag="--tools",
        metavar="FILE",
        variable=variable("tools"),
        default_means="tools.yaml, if it is there",
    ),
    Setting(
        "url",
        "A server that has the runs, instead of a home here.",
        Kind.URL,
        scope=(EVERY,),
        flag="--url",
        metavar="URL",
        variable=variable("url"),
        by_hand=_PERSONAL,
    ),
    Setting(
        "token_file",
        "A file with the token for --url.",
        Kind.PATH,
        scope=(EVERY,),
        flag="--token-file",
        metavar="FILE",
        variable=variable("token_file"),
        default_means="the token itself in $HOLDFAST_TOKEN",
        by_hand=_PERSONAL,
    ),
    Setting(
        "token",
        "The token for --url.",
        scope=(EVERY,),
        variable=variable("token"),
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
        variable("database"),
        limits=Limits(schemes=("postgresql", "postgres")),
        default_means="SQLite in the home",
    ),
    Setting(
        "database_direct",
        "The same database without a pooler such as PgBouncer between, for LISTEN.",
        Kind.URL,
        scope=(EVERY,),
        variable=variable("database_direct"),
        limits=Limits(schemes=("postgresql", "postgres")),
        default_means="as HOLDFAST_DATABASE",
    ),
    Setting(
        "secret_key",
        "The key that seals secrets, 32 bytes in base64.",
        scope=(EVERY,),
        variable=variable("secret_key"),
        default_means="secret.key in the home",
        secret=True,
    ),
)

_MODELS: Final = (
    Setting(
        "model",
        "The default model, such as openai:gpt-4o.",
        scope=(EVERY,),
        variable=variable("model"),
    ),
    Setting(
        "model_base_url",
        "A server that speaks OpenAI's chat protocol; every model's name then goes to it.",
        scope=(EVERY,),
        variable=variable("model_base_url"),
    ),
    Setting(
        "model_api_key",
        "The key for that server.",
        scope=(EVERY,),
        variable=variable("model_api_key"),
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
        variable("log_level"),
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
        variable("log_format"),
        Limits(choices=("text", "json")),
    ),
    Setting(
        "access_log",
        "One line per request in the log.",
        Kind.SWITCH,
        False,
        flag="--access-log",
        variable=variable("access_log"),
    ),
)


GROUPS: Final = {
    "Places": _PLACES,
    "Storage": _STORAGE,
    "Models": _MODELS,
    "Logs": _LOGS,
    "The server": SERVER,
    "Signing in with an issuer": OIDC,
    "Limits of the server": BOUNDS,
    "Workers": WORKERS,
}

SETTINGS: Final = {one.name: one for group in GROUPS.values() for one in group}

INTERNAL: Final = frozenset({"HOLDFAST_FROZEN"})
"""Variables that are for our own tests."""


def for_command(command: str) -> Iterable[Setting]:
    """Those whose options are this command's."""
    return [one for one in SETTINGS.values() if one.flag and command in one.scope]
