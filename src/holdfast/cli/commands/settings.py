"""The settings command: what holds here, and where it comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from holdfast.cli import shell
from holdfast.cli.shell import OK, Settings

if TYPE_CHECKING:
    from holdfast.settings.sources import Found, Sources


def register(group: typer.Typer) -> None:
    shell.register(group, "settings", settings, distant=True)


def settings(given: Settings) -> int:
    """Print every setting, its value, and where it comes from.

    A flag goes before the environment, the environment before the configuration file, the file
    before the default. Secrets are hidden, passwords in URLs too.
    """
    from holdfast.cli.terminal.plain import note, print_json
    from holdfast.cli.terminal.screen import say
    from holdfast.views.stories.text import visible

    sources = given.sources
    found = list(sources.all())
    if given.as_json:
        file = None if sources.file is None else str(sources.file.path)
        listed = {one.setting.name: _as_json(one) for one in found}
        print_json({"file": file, "settings": listed, "unknown_variables": sources.unknown()})
        return OK
    say(f"file: {'none' if sources.file is None else visible(str(sources.file.path), 200)}", "")
    _print(found)
    for line in _unknown(sources):
        note(f"warning: {line}")
    return OK


def _as_json(found: Found) -> dict[str, Any]:
    one = found.setting
    return {
        "value": found.shown,
        "source": found.source,
        "flag": one.flag or None,
        "variable": one.variable or None,
        "key": one.key or None,
        "purpose": one.purpose,
    }


def _print(found: list[Found]) -> None:
    from holdfast.cli.terminal.screen import say
    from holdfast.views.stories.text import visible

    rows = [(one.setting.name, visible(_value(one), 200), one.source) for one in found]
    name_width = max(len(name) for name, _, _ in rows)
    value_width = min(max(len(value) for _, value, _ in rows), 40)
    say(
        *(
            f"{name:<{name_width}}  {value:<{value_width}}  {visible(source, 200)}".rstrip()
            for name, value, source in rows
        )
    )


def _value(found: Found) -> str:
    match found.shown:
        case None | []:
            return f"({found.setting.default_text})"
        case bool() as switched:
            return "yes" if switched else "no"
        case list() as several:
            return " ".join(several)
        case value:
            return str(value)


def _unknown(sources: Sources) -> list[str]:
    from holdfast.language.spelling import nearest
    from holdfast.settings.table import SETTINGS

    known = [one.variable for one in SETTINGS.values() if one.variable]
    lines = []
    for name in sources.unknown():
        meant = nearest(name, known)
        remedy = f"did you mean ${meant}?" if meant else "nothing reads it"
        lines.append(f"${name} is no setting: {remedy}")
    return lines
