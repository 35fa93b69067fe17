"""What all commands share: their common options, their exit codes, their complaints.

A command is a function of `Settings` and its own options that returns an exit code,
or a coroutine of one. `register` adds the common options to its signature, so that
they may stand before or after the command's name.

A complaint is one line on stderr that says what to do about it; with `--json` it is
`{"error": {…}}` on stdout instead. A traceback means a mistake of ours.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
import re
import shlex
import sys
from collections.abc import Callable, Coroutine
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from holdfast.errors import (
    AuthorError,
    CallerError,
    HoldfastError,
    InvalidAnswer,
    NotFound,
    OperatorError,
    PatchRejected,
    PlanRejected,
    WrongSetting,
)
from holdfast.settings.file import find_file
from holdfast.settings.kinds import LISTS, Kind
from holdfast.settings.sources import DEFAULT, Sources, in_effect, use
from holdfast.settings.table import SETTINGS, for_command

OK, FAILED, USAGE, WAITS_FOR_RESUME, WAITS_FOR_PERSON, CANCELLED, INTERRUPTED = (
    0,
    1,
    2,
    3,
    4,
    5,
    130,
)

EXIT_CODES = (
    "Exit codes: 0 done; 1 failed or refused; 2 wrong usage; 3 the run waits for a resume;"
    " 4 the run waits for a person; 5 the run was cancelled; 130 interrupted."
)


_NO_RUN = re.compile(r"there is no run \S+")


def optional(name: str, metavar: str, text: str, **more: Any) -> Any:
    """An option that may be left out; its help says what then holds."""
    return typer.Option(name, metavar=metavar, help=text, show_default=False, **more)


def option_of(name: str) -> Any:
    """The option of a setting, by its record in the table. What was typed is read with whatever
    else the setting's value may come from."""
    setting = SETTINGS[name]
    if setting.kind is Kind.SWITCH:
        return Annotated[bool, typer.Option(setting.flag, help=setting.help)]
    kind: Any = list[str] if setting.kind in LISTS else Path if setting.kind is Kind.PATH else str
    return Annotated[kind | None, optional(setting.flag, setting.metavar, setting.help)]


TemporaryHomeOption: TypeAlias = Annotated[
    Path | None,
    optional("--home", "DIR", "Where runs are kept. Default: a temporary directory."),
]
JsonOption: TypeAlias = Annotated[
    bool,
    typer.Option("--json", is_eager=True, help="Print JSON instead of text, errors included."),
]


class Failed(StrEnum):
    """How to go on after a failure; the core's own names, without importing it."""

    RETRY = "retry"
    SKIP = "skip"
    STOP = "stop"


FailedOption: TypeAlias = Annotated[
    Failed | None,
    typer.Option(
        "--failed",
        help="How a conversation goes on after a failure: retry what failed, skip it with what "
        "depends on it, or stop the turn.",
        show_default=False,
    ),
]
AnywayOption: TypeAlias = Annotated[
    bool,
    typer.Option("--anyway", help="Go on although tools that the run needs are not known here."),
]
WaitOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--wait/--no-wait",
        help="Drive the run until it comes to rest, or return once the command is on disk.",
    ),
]
SetOption: TypeAlias = Annotated[
    list[str] | None,
    optional(
        "--set",
        "NAME=VALUE",
        "A field's value, read as the field's type; NAME:=JSON takes JSON. A secret is "
        "remembered by your shell: NAME=@- reads it from stdin, NAME=@env:VAR from a variable. "
        "Repeatable.",
    ),
]


@dataclass(frozen=True, slots=True)
class Address:
    """A server, and the file that has the token for it."""

    url: str
    token_file: Path | None = None

    def token(self) -> str | None:
        if self.token_file is not None:
            return self.token_file.read_text(encoding="utf-8").strip()
        token: str | None = in_effect().value("token")
        return token


@dataclass(frozen=True, slots=True)
class Settings:
    """The common options, as they were given before or after the command's name."""

    home: Path | None = None
    as_json: bool = False
    app: str | None = None
    plans: Path | None = None
    tools: Path | None = None
    agents: Path | None = None
    url: str | None = None
    token_file: Path | None = None
    config: Path | None = None
    log_level: str | None = None
    log_format: str | None = None

    @property
    def sources(self) -> Sources:
        """Where values come from: these options, the environment, the file, the defaults."""
        return in_effect({one: getattr(self, one) for one in FLAGS})

    @property
    def server(self) -> Address | None:
        """The server to go to: the one named here, else $HOLDFAST_URL where no home is named."""
        if self.url is None and self.names_home:
            return None
        url = self.sources.value("url")
        return None if url is None else Address(url.rstrip("/"), self.sources.value("token_file"))

    @property
    def language(self) -> str:
        """The reader's, by the locale; JSON is the same everywhere."""
        from holdfast.i18n.catalogue import preferred_in

        return "en" if self.as_json else preferred_in(os.environ)

    @property
    def names_home(self) -> bool:
        return any((self.home, self.app, self.plans, self.tools, self.agents))

    @property
    def app_name(self) -> str | None:
        found: str | None = self.sources.value("app")
        return found

    @property
    def interactive(self) -> bool:
        """Whether a person may be asked: both ends are a terminal, and this is no CI."""
        if self.as_json or os.environ.get("CI") or os.environ.get("TERM") == "dumb":
            return False
        return sys.stdin.isatty() and sys.stdout.isatty()

    @property
    def repeated(self) -> str:
        """These options as the next command needs them again."""
        given: dict[str, object] = {"--home": self.home, "--app": self.app, "--plans": self.plans}
        given |= {"--tools": self.tools, "--agents": self.agents}
        given |= {"--url": self.url, "--token-file": self.token_file, "--config": self.config}
        return "".join(
            f" {name} {shlex.quote(str(value))}" for name, value in given.items() if value
        )


Ending: TypeAlias = int | Coroutine[Any, Any, int]

COMMON: dict[str, tuple[Any, Any]] = {
    "home": (option_of("home"), None),
    "as_json": (JsonOption, False),
    "app": (option_of("app"), None),
    "plans": (option_of("plans"), None),
    "tools": (option_of("tools"), None),
    "agents": (option_of("agents"), None),
    "config": (option_of("config"), None),
    "log_level": (option_of("log_level"), None),
    "log_format": (option_of("log_format"), None),
}


def options_of(command: str) -> dict[str, tuple[Any, Any]]:
    """The options of a command's own settings; none of them is required."""
    return {
        one.name: (option_of(one.name), False if one.kind is Kind.SWITCH else None)
        for one in for_command(command)
    }


TEMPORARY: dict[str, tuple[Any, Any]] = {**COMMON, "home": (TemporaryHomeOption, None)}
DISTANT: dict[str, tuple[Any, Any]] = {
    "url": (option_of("url"), None),
    "token_file": (option_of("token_file"), None),
}
"""The common options of commands that also work on a server's runs."""

FLAGS: tuple[str, ...] = tuple(one for one in (*COMMON, *DISTANT) if one in SETTINGS)


class Interrupted(Exception):
    """A person pressed Ctrl-C; the message says how to go on."""


def register(
    group: typer.Typer,
    name: str,
    function: Callable[..., Ending],
    *,
    distant: bool = False,
    options: dict[str, tuple[Any, Any]] = COMMON,
) -> None:
    """Make `function` a command with the common options; its docstring is its help.

    `distant` ones take `--url` as well.
    """
    text = str(inspect.getdoc(function))
    first = text.partition("\n")[0]
    help_text = f"{text}\n\n{EXIT_CODES}"
    group.command(name, short_help=first, help=help_text)(
        _with_common(function, {**options, **DISTANT} if distant else options)
    )


def register_group(
    group: typer.Typer, function: Callable[..., Ending], options: dict[str, tuple[Any, Any]]
) -> None:
    """Make `function` what the group does when no command of its own is named."""
    text = str(inspect.getdoc(function))
    first = text.partition("\n")[0]
    callback = group.callback(
        invoke_without_command=True, short_help=first, help=f"{text}\n\n{EXIT_CODES}"
    )
    callback(_with_common(function, options))


def _with_common(
    function: Callable[..., Ending], options: dict[str, tuple[Any, Any]]
) -> Callable[..., None]:
    def command(context: typer.Context, **given: Any) -> None:
        common = {one.name: given.pop(one.name, None) for one in fields(Settings)}
        settings = Settings(**{**(context.obj or {}), **_given_only(common)})
        _refuse_two_places(settings, "url" in options, context.command_path)
        if context.invoked_subcommand is not None:
            _refuse_misplaced(given, context.invoked_subcommand)
            context.obj = asdict(settings)
            return
        raise typer.Exit(run(settings, lambda: function(settings, **given)))

    return with_options(command, options, of=function)


def with_options(
    command: Callable[..., None],
    options: dict[str, tuple[Any, Any]],
    of: Callable[..., Any] | None = None,
) -> Callable[..., None]:
    """Declare `command` with the arguments of `of`, or its own, and these options."""
    declared = list(inspect.signature(of or command, eval_str=True).parameters.values())[1:]
    own = [one for one in declared if one.kind is not inspect.Parameter.VAR_KEYWORD]
    parameters = [
        inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context),
        *(one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in own),
        *(
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=none, annotation=kind)
            for name, (kind, none) in options.items()
        ),
    ]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in parameters}
    return command


def _refuse_two_places(settings: Settings, distant: bool, command: str) -> None:
    if settings.url is None:
        return
    if not distant:
        raise typer.BadParameter(f"{command} works on a home: leave --url out.")
    if settings.names_home:
        raise typer.BadParameter(
            "runs are on a server or in a home here: leave --url out, or --home and its like."
        )


def _refuse_misplaced(given: dict[str, Any], command: str) -> None:
    """What a group does by itself, its commands do not: only the common options go over."""
    for name in _given_only(given):
        option = f"--{name.replace('_', '-')}"
        raise typer.BadParameter(f"{option} is not for {command}, whose options stand after it.")


def _given_only(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value not in (None, False)}


def run(settings: Settings, work: Callable[[], Ending]) -> int:
    """The exit code of `work`; what it refuses becomes a complaint."""
    try:
        _prepare(settings)
        ending = work()
        return asyncio.run(ending) if inspect.iscoroutine(ending) else int(ending)  # type: ignore[arg-type]
    except WrongSetting as error:
        if error.source.startswith("--"):
            raise typer.BadParameter(f"{error}.") from None
        complain(type(error).__name__, str(error), settings.as_json)
        return FAILED
    except (CallerError, AuthorError, OperatorError) as error:
        complain(type(error).__name__, _sentence(error), settings.as_json, _particulars(error))
        return FAILED
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        place = f"{error.filename}: " if error.filename else ""
        complain("File", f"{place}{error.strerror or error}", settings.as_json)
        return FAILED
    except (Interrupted, KeyboardInterrupt) as stop:
        complain("Interrupted", str(stop) or "stopped", settings.as_json)
        return INTERRUPTED


def _prepare(settings: Settings) -> None:
    """What holds for every command: the configuration file, and log lines where they are wanted in
    a certain way; else Python's own way holds."""
    use(None)
    use(find_file(settings.sources.value("config")))
    sources = settings.sources
    level, form = sources.find("log_level"), sources.find("log_format")
    if {level.source, form.source} != {DEFAULT}:
        write_logs(settings)


def write_logs_unless_done(settings: Settings) -> None:
    """For what runs for long: log lines as by default, unless the application has a way of its
    own or they are written as they are wanted."""
    if not logging.getLogger().handlers:
        write_logs(settings)


def write_logs(settings: Settings) -> None:
    """Write log lines as they are wanted."""
    from holdfast.runtime.log_lines import configure

    sources = settings.sources
    configure(sources.value("log_level"), sources.value("log_format"))


def say_stopping(settings: Settings) -> None:
    """What runs for long has been told to stop. Where log lines are JSON, so is this."""
    from holdfast.cli.terminal.plain import note

    told = "stopping: what is in flight ends first"
    if settings.sources.value("log_format") == "json":
        logging.getLogger("holdfast").info(told)
    elif not settings.as_json:
        note(f"{told} (Ctrl-C again leaves at once)")


def complain(
    kind: str, message: str, as_json: bool, particulars: dict[str, Any] | None = None
) -> None:
    from holdfast.cli.terminal.plain import json_text
    from holdfast.views.stories.text import visible_lines

    if as_json:
        error = {"kind": kind, "message": message.partition("\n")[0], **(particulars or {})}
        typer.echo(json_text({"error": error}))
    else:
        typer.echo(f"error: {visible_lines(message)}", err=True)


def _sentence(error: HoldfastError) -> str:
    match error:
        case PlanRejected(problems=problems) | PatchRejected(problems=problems):
            count = f"{len(problems)} problem{'s' if len(problems) != 1 else ''}"
            return "\n".join([f"{count} found", *(f"  {one}" for one in problems)])
        case InvalidAnswer(fields=wrong) if wrong:
            return f"{error}: " + "; ".join(f"{name}: {why}" for name, why in wrong.items())
        case NotFound() if _NO_RUN.fullmatch(str(error)):
            return f"{error}: `holdfast runs` lists them"
    return str(error) or type(error).__name__


def _particulars(error: HoldfastError) -> dict[str, Any]:
    match error:
        case PlanRejected(problems=problems):
            return {"problems": [problem_json(one) for one in problems]}
        case PatchRejected(problems=problems):
            return {"problems": [{"message": one} for one in problems]}
        case InvalidAnswer(fields=wrong):
            return {"fields": wrong}
    return {}


def problem_json(problem: Any) -> dict[str, Any]:
    return {
        "file": problem.file,
        "line": problem.line,
        "column": problem.column,
        "message": problem.message,
    }
