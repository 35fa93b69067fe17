"""The command that says whether a home, or an installation on a database, is well."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli import shell
from holdfast.cli.shell import FAILED, OK, Settings

if TYPE_CHECKING:
    from holdfast.app import Holdfast
    from holdfast.views.integrity import Report


UNKNOWN = (
    "not known: whether the end of the audit's chain was cut off; `holdfast audit verify --head` "
    "tells, with a head that was noted elsewhere"
)


def register(group: typer.Typer) -> None:
    shell.register(group, "doctor", doctor, distant=True)


async def doctor(
    settings: Settings,
    module: Annotated[
        str | None,
        typer.Argument(
            metavar="[MODULE:NAME]",
            help="The application that is to be deployed, as --app: which runs would miss what "
            "it has not.",
        ),
    ] = None,
    integrity: Annotated[
        bool,
        typer.Option(
            "--integrity",
            help="Read everything: records, questions, definitions, snapshots and what is kept "
            "against their checksums, the audit's chain and the order of commits; and replay every "
            "run, whose rows must say what its events say.",
        ),
    ] = False,
) -> int:
    """Say whether a home or a database is sound: what it holds, and what is wrong with it.

    Of a database it looks at the whole installation: servers and workers, jobs that wait or stall,
    the order of commits, connections. Exit code 1: something is wrong, and its remedy is printed.

    It changes nothing and may be used while a server has the home. What was cut off the end of the
    audit's chain it cannot know: `holdfast audit verify --head` can. With --url it says whether the
    server answers, whether it can write, and as whom it knows you.
    """
    from holdfast.cli.commands.serve import with_module
    from holdfast.cli.home_reader import journal_path
    from holdfast.cli.terminal.plain import print_json
    from holdfast.cli.terminal.screen import say
    from holdfast.views import diagnosis
    from holdfast.views.homes import place_name
    from holdfast.views.integrity import to_json

    if settings.server is not None:
        return await _of_server(settings, integrity or module is not None)
    settings = with_module(settings, module)
    place, app = journal_path(settings), _application(settings)
    found = await diagnosis.diagnose(place, app, _shown if integrity else None)
    report, name = found.report, place_name(place)
    if settings.as_json:
        told = {"journal": name, **to_json(report), "notes": _notes(report)}
        print_json(told if found.condition is None else {**told, "installation": found.condition})
    else:
        say(
            f"{name}: {_verdict(report)}",
            *(f"  {one}" for one in found.in_words(settings.language)),
            *_lines(report, settings.language),
        )
    return OK if report.is_sound else FAILED


def _application(settings: Settings) -> Holdfast | None:
    from holdfast.cli.opening import AnyEnvironment, build_app

    return None if settings.app is None else build_app(settings, AnyEnvironment())


def _verdict(report: Report) -> str:
    if report.is_sound:
        return "sound"
    return "damaged" if any(not one.remedy for one in report.findings) else "needs attention"


async def _of_server(settings: Settings, reads: bool) -> int:
    from holdfast.cli.server_backend import connected
    from holdfast.cli.terminal.plain import print_json
    from holdfast.cli.terminal.screen import say
    from holdfast.errors import JournalUnavailable

    assert settings.server is not None
    if reads:
        raise typer.BadParameter(
            "--integrity and an application are for the home or database itself: leave --url out."
        )
    problem = None
    async with connected(settings.server) as client:
        me = await client.me()
        try:
            await client.readiness()
        except JournalUnavailable as error:
            problem = str(error)
    if settings.as_json:
        told = {"id": me["id"], "roles": me["roles"]}
        print_json({"url": client.url, "ok": problem is None, "problem": problem, "you": told})
    else:
        state = "ready" if problem is None else f"not ready: {problem}"
        say(f"{client.url}: {state}", f"  you are {me['id']} ({', '.join(me['roles'])})")
    return OK if problem is None else FAILED


def _lines(report: Report, language: str) -> list[str]:
    from holdfast.i18n.catalogue import worded
    from holdfast.views.stories.text import visible

    read = ", ".join(f"{count:,} {what}" for what, count in report.counts.items())
    lines = [f"  read: {read or 'nothing'}"]
    lines += [f"  {note}" for note in _notes(report)]
    for one in report.findings:
        place = " ".join(str(part) for part in (one.name, one.seq) if part not in ("", None))
        head = f"{one.what} {visible(place, 80)}".rstrip()
        lines.append(f"  {head}: {visible(worded(one.problem, language), 400)}")
        if one.remedy:
            lines.append(f"    → {worded(one.remedy, language)}")
    return lines


def _notes(report: Report) -> list[str]:
    """What is to be known beside the findings."""
    notes = []
    if report.without_checksum:
        notes.append(f"{report.without_checksum:,} records are from before there were checksums")
    if report.counts.get("audit entries"):
        notes.append(UNKNOWN)
    return notes


def _shown(done: int, total: int) -> None:
    """A line that is written over, where a person looks on."""
    import sys

    if sys.stderr.isatty() and (done == total or not done % 100):
        sys.stderr.write(f"\r{done:,} of {total:,} runs read{chr(10) if done == total else ''}")
        sys.stderr.flush()
