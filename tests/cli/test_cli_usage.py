"""How commands explain themselves: help, usage errors, and the page in the docs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import typer
from cli_scene import Command

from holdfast.cli import app
from holdfast.cli.shell import EXIT_CODES
from holdfast.server.settings import ServerSettings
from holdfast.settings.setting import EVERY
from holdfast.settings.table import SETTINGS

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"
NAMES = [
    "demo",
    "serve",
    "token",
    "audit",
    "run",
    "chat",
    "check",
    "graph",
    "runs",
    "watch",
    "inbox",
    "answer",
    "continue",
    "resume",
    "cancel",
    "history",
]


SHARED = {"--json"} | {one.flag for one in SETTINGS.values() if one.flag and one.scope == (EVERY,)}


def commands() -> Iterator[tuple[str, Any]]:
    yield from walk("holdfast", typer.main.get_command(app))


def walk(path: str, command: Any) -> Iterator[tuple[str, Any]]:
    yield path, command
    for name, below in getattr(command, "commands", {}).items():
        yield from walk(f"{path} {name}", below)


def test_every_command_of_the_design_is_there() -> None:
    assert {f"holdfast {name}" for name in NAMES} <= {path for path, _ in commands()}


@pytest.mark.parametrize(("path", "command"), list(commands()), ids=lambda one: str(one)[:40])
def test_every_command_and_every_option_has_help(path: str, command: Any) -> None:
    assert command.help
    assert EXIT_CODES in command.help
    for parameter in command.params:
        assert parameter.help, f"{path} {parameter.name}"


def sections() -> dict[str, str]:
    parts = re.split(r"^#+ `(holdfast[^`]*)`$", PAGE.read_text(encoding="utf-8"), flags=re.M)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.parametrize(("path", "command"), list(commands()), ids=lambda one: str(one)[:40])
def test_the_page_has_a_section_for_every_command_with_its_options(path: str, command: Any) -> None:
    section = sections()[path]
    own = [name for one in command.params for name in one.opts if name.startswith("--")]
    for name in sorted({*own} - SHARED):
        assert f"`{name}" in section, name


def test_the_page_has_no_section_for_what_is_not_there() -> None:
    assert set(sections()) == {path for path, _ in commands()}


def test_the_page_explains_every_exit_code() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for code in (0, 1, 2, 3, 4, 5, 130):
        assert re.search(rf"^\| {code} \|", page, flags=re.M)


@pytest.mark.parametrize(
    "arguments",
    [
        ("nonsense",),
        ("runs", "--bogus"),
        ("runs", "--status", "sleeping"),
        ("runs", "--limit", "0"),
        ("run",),
        ("run", "ask", "--set", "count"),
        ("run", "ask", "--set", "count:={"),
        ("run", "ask", "--values", "[1]"),
        ("run", "ask", "--values", "{"),
        ("graph", "ask", "--format", "png"),
        ("demo", "request", "tea"),
        ("token", "create", "will"),
        ("token", "create", "will", "--role", "admin", "--expires", "soon"),
        ("token", "create", "will", "--grant", "operator"),
        ("runs", "--url", "127.0.0.1:8420"),
        ("runs", "--url", "http://127.0.0.1:8420", "--home", "kept"),
        ("--url", "http://127.0.0.1:8420", "check", "plans"),
        ("history", "\udcff"),
    ],
    ids=repr,
)
def test_wrong_usage_is_2_with_one_line_and_the_way_to_the_help(
    holdfast: Command, arguments: tuple[str, ...]
) -> None:
    ending = holdfast(*arguments)
    assert ending.code == 2
    assert ending.out == ""
    assert re.fullmatch(r"error: .+\. Try: holdfast.* --help\n", ending.err)
    in_json = holdfast(*arguments, "--json")
    assert in_json.code == 2
    assert in_json.json["error"]["kind"] == "Usage"


@pytest.mark.parametrize("command", ["serve", "demo"])
def test_help_names_the_port_that_is_taken_without_one(holdfast: Command, command: str) -> None:
    assert f"Default: {ServerSettings().port}" in holdfast(command, "--help").out


def test_help_says_what_the_exit_codes_mean(holdfast: Command) -> None:
    shown = " ".join(holdfast("--help").out.split())
    assert EXIT_CODES in shown
    for name in NAMES:
        assert name in shown


def test_the_version_is_told(holdfast: Command) -> None:
    ending = holdfast("--version")
    assert (ending.code, ending.out) == (0, "holdfast 0.1.0\n")


@pytest.mark.parametrize(
    "command",
    [
        ("answer", "x"),
        ("continue", "1"),
        ("resume", "1"),
        ("cancel", "1"),
        ("chat", "hello", "--session", "1"),
        ("converse", "--id", "1"),
        ("run", "nothing"),
        ("inbox",),
    ],
)
def test_what_is_refused_for_want_of_runs_makes_no_home(
    holdfast: Command, place: Path, command: tuple[str, ...]
) -> None:
    assert holdfast(*command).code == 1
    assert not (place / ".holdfast").exists()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("runs", "--kind", "x"), "'--kind': 'x' is not one of 'plan', 'chat', 'conversation'"),
        (("demo", "request", "x"), "'KIND': 'x' is not one of 'computer', "),
        (("runs", "--limit", "0"), "'--limit': it must be at least 1."),
        (("serve", "--port", "70000"), "it must be at most 65535."),
        (("runs", "--limit", "x"), "'--limit': it is no whole number."),
        (("serve", "--header-seconds", "x"), "it is no number."),
    ],
)
def test_a_wrong_value_is_refused_in_our_words(
    holdfast: Command, arguments: tuple[str, ...], complaint: str
) -> None:
    ending = holdfast(*arguments)
    assert (ending.code, complaint in ending.err) == (2, True), ending.err


@pytest.mark.parametrize("arguments", [("--json", "--version"), ("--version", "--json")])
def test_the_version_is_json_too(holdfast: Command, arguments: tuple[str, ...]) -> None:
    assert holdfast(*arguments).json == {"version": version("holdfast")}


@pytest.mark.parametrize("part", [(), ("tour",), ("onboarding",), ("request",)])
def test_the_demo_says_where_its_runs_are_kept(holdfast: Command, part: tuple[str, ...]) -> None:
    shown = " ".join(holdfast("demo", *part, "--help").out.split())
    assert "--home DIR Where runs are kept. Default: a temporary directory." in shown


@pytest.mark.parametrize("noted", ["12", "", "g" * 64, "A" * 64])
def test_what_is_no_digest_is_not_looked_for(holdfast: Command, noted: str) -> None:
    ending = holdfast("audit", "verify", "--head", noted)
    assert (ending.code, "is no digest: that has 64 of" in ending.err) == (2, True)


def test_looking_at_a_named_home_needs_no_application(
    holdfast: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    holdfast("run", "ask", "--home", "copy")
    monkeypatch.setenv("HOLDFAST_APP", "nowhere:app")
    assert holdfast("doctor", "--integrity", "--home", "copy").code == 0
    assert holdfast("runs", "--home", "copy").code == 0


def test_an_option_of_another_command_is_refused_also_with_nothing_after_it(
    holdfast: Command,
) -> None:
    refused = holdfast("runs", "--failed")
    assert (refused.code, "--failed" in refused.err) == (2, True)
