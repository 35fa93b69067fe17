"""Commands on what was learned of failures: how calls recover, and repairs that have helped."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli import shell
from holdfast.cli.shell import COMMON, DISTANT, OK, Settings

if TYPE_CHECKING:
    from holdfast.views.experience import LessonView, Promotion

LessonArgument = Annotated[
    str, typer.Argument(metavar="LESSON", help="Its id, as `lessons` has it, or the beginning.")
]

_LONGEST = 400


def register(group: typer.Typer) -> None:
    shell.register(group, "experience", experience, distant=True)
    below = typer.Typer(name="lessons", rich_markup_mode=None)
    shell.register_group(below, lessons, {**COMMON, **DISTANT})
    shell.register(below, "pin", pin, distant=True)
    shell.register(below, "retire", retire, distant=True)
    shell.register(below, "promote", promote, distant=True)
    group.add_typer(below)


async def experience(
    settings: Settings,
    rebuild: Annotated[
        bool,
        typer.Option(
            "--rebuild",
            help="Learn it all from the journals of the runs again first, which takes the home. "
            "What people said of lessons stays.",
        ),
    ] = False,
) -> int:
    """List how calls that fail recover, by tool and failure, and how long calls take.

    The columns say how likely a call that has failed works again within that time.
    """
    from holdfast.cli.commands.lesson_book import lesson_book, rebuilt
    from holdfast.cli.terminal.experience import experience_json, say_experience
    from holdfast.cli.terminal.plain import note, print_json

    if rebuild and settings.server is not None:
        raise typer.BadParameter("--rebuild takes the home: stop the server, and leave --url out.")
    if rebuild:
        runs = await rebuilt(settings)
        note(f"learned again from {runs:,} run{'s' if runs != 1 else ''}")
    async with lesson_book(settings) as book:
        found = await book.experience()
    if settings.as_json:
        print_json(experience_json(found))
    else:
        say_experience(found)
    return OK


async def lessons(settings: Settings) -> int:
    """List lessons: repairs that have helped, kept for the same failure in other runs of the plan.

    After three wins and no loss a lesson is proven: it is proposed before any model is asked, and
    applied without a person only where the plan's author says so. A loss retires it, and so does
    another version of its tool.
    """
    from holdfast.cli.commands.lesson_book import lesson_book
    from holdfast.cli.terminal.experience import lesson_json, say_lessons
    from holdfast.cli.terminal.plain import print_json

    async with lesson_book(settings) as book:
        found = await book.lessons()
    if settings.as_json:
        print_json([lesson_json(one) for one in found])
    else:
        say_lessons(found, settings.language)
    return OK


async def pin(settings: Settings, lesson: LessonArgument) -> int:
    """Keep a lesson, whatever becomes of it: it is offered first, and outlives its losses."""
    from holdfast.cli.commands.lesson_book import lesson_book, lesson_id

    async with lesson_book(settings, to_write=True) as book:
        found = await book.pin(await lesson_id(book, lesson))
    return _said(settings, found, "pinned: it is offered first, and outlives its losses")


async def retire(settings: Settings, lesson: LessonArgument) -> int:
    """Offer a lesson no more."""
    from holdfast.cli.commands.lesson_book import lesson_book, lesson_id

    async with lesson_book(settings, to_write=True) as book:
        found = await book.retire(await lesson_id(book, lesson))
    return _said(settings, found, "retired: it is offered no more")


def _said(settings: Settings, lesson: LessonView, told: str) -> int:
    from holdfast.cli.terminal.experience import lesson_json
    from holdfast.cli.terminal.plain import print_json
    from holdfast.cli.terminal.screen import say

    if settings.as_json:
        print_json(lesson_json(lesson))
    else:
        say(f"{lesson.lesson_id} is {told}")
        if lesson.outdated:
            say("  its tool has changed since: it is offered to nobody now")
    return OK


async def promote(settings: Settings, lesson: LessonArgument) -> int:
    """Print the plan with a lesson's repair in it, for its author; nothing is changed.

    With the repair in the plan, new runs do not fail so any more: write it to the plan's file.
    """
    from holdfast.cli.commands.lesson_book import lesson_book, lesson_id
    from holdfast.cli.terminal.plain import print_json
    from holdfast.views.wire import to_json

    async with lesson_book(settings) as book:
        found = await book.promoted(await lesson_id(book, lesson))
    if settings.as_json:
        print_json(to_json(found))
    else:
        _print_plan(settings, found)
    return OK


def _print_plan(settings: Settings, found: Promotion) -> None:
    """The text alone on stdout, so that it may go into a file as it is."""
    from holdfast.cli.terminal.plain import note
    from holdfast.i18n.catalogue import worded
    from holdfast.views.stories.text import visible, visible_lines

    for words in found.words:
        note(visible(worded(words, settings.language), _LONGEST))
    note("nothing was registered: this is the plan as it would be")
    as_shown = sys.stdout.isatty()
    typer.echo(visible_lines(found.source) if as_shown else found.source, nl=False)
