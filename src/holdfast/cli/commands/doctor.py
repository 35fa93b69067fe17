"""The command that looks after a home: whether it can be used, and whether it is whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli import shell
from holdfast.cli.shell import FAILED, OK, Settings

if TYPE_CHECKING:
    from holdfast.journal.integrity import Report


UNKNOWN = (
    "not known: whether the end of the audit's chain was cut off; `holdfast audit verify --head` "
    "tells, with a head that was noted elsewhere"
)


def register(group: typer.Typer) -> None:
    shell.register(group, "doctor", doctor)


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
    audit's chain it cannot know: `holdfast audit verify --head` can.
    """
    from holdfast.cli.commands.row_check import compare
    from holdfast.cli.home_journal import reading_journal
    from holdfast.cli.home_reader import HomeReader
    from holdfast.cli.terminal.plain import print_json
    from holdfast.cli.terminal.screen import say
    from holdfast.journal.integrity import Report, examine, to_json

    async with reading_journal(settings) as journal:
        path = journal.path
        if integrity:
            report = examine(path, _shown)
            await compare(HomeReader(journal, path.parent), report)
        else:
            report = Report({"runs": sum((await journal.run_counts()).values())})
            for problem in await journal.check():
                report.found("file", "pages", problem)
    if settings.as_json:
        print_json({"journal": str(path), **to_json(report), "notes": _notes(report)})
    else:
        say(f"{path}: {'sound' if not report.findings else 'damaged'}", *_lines(report))
    return FAILED if report.findings else OK


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
