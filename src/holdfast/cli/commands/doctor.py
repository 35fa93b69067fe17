"""The command that looks after a home: whether it can be used, and whether it is whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli import shell
from holdfast.cli.shell import FAILED, OK, Settings

if TYPE_CHECKING:
    from holdfast.views.integrity import Report


UNKNOWN = (
    "not known: whether the end of the audit's chain was cut off; `holdfast audit verify --head` "
    "tells, with a head that was noted elsewhere"
)


def register(group: typer.Typer) -> None:
    shell.register(group, "doctor", doctor, distant=True)


async def doctor(
    settings: Settings,
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
    """Say whether a home is sound: what it holds, and what of it is damaged.

    It changes nothing and may be used while a server has the home. What was cut off the end of the
    audit's chain it cannot know: `holdfast audit verify --head` can. With --url it says whether the
    server answers, whether it can write, and as whom it knows you.
    """
    from holdfast.cli.home_reader import journal_path
    from holdfast.cli.terminal.plain import print_json
    from holdfast.cli.terminal.screen import say
    from holdfast.views import homes
    from holdfast.views.integrity import examined, looked_at, to_json

    if settings.server is not None:
        return await _of_server(settings, integrity)
    place = journal_path(settings)
    async with homes.reading(place) as journal:
        report = await (examined(journal, _shown) if integrity else looked_at(journal))
    if settings.as_json:
        print_json({"journal": homes.place_name(place), **to_json(report), "notes": _notes(report)})
    else:
        say(
            f"{homes.place_name(place)}: {'sound' if not report.findings else 'damaged'}",
            *_lines(report),
        )
    return FAILED if report.findings else OK


async def _of_server(settings: Settings, integrity: bool) -> int:
    from holdfast.cli.server_backend import connected
    from holdfast.cli.terminal.plain import print_json
    from holdfast.cli.terminal.screen import say
    from holdfast.errors import JournalUnavailable

    assert settings.server is not None
    if integrity:
        raise typer.BadParameter("--integrity reads the home itself: leave --url out.")
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


def _lines(report: Report) -> list[str]:
    from holdfast.views.stories.text import visible

    read = ", ".join(f"{count:,} {what}" for what, count in report.counts.items())
    lines = [f"  read: {read or 'nothing'}"]
    lines += [f"  {note}" for note in _notes(report)]
    for one in report.findings:
        place = one.name if one.seq is None else f"{one.name} {one.seq}"
        lines.append(f"  {one.what} {visible(place, 80)}: {visible(one.problem, 200)}")
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
