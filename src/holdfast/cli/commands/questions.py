"""Commands on questions: see what is asked, answer it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli import shell
from holdfast.cli.shell import OK, AnywayOption, SetOption, Settings, WaitOption

if TYPE_CHECKING:
    from holdfast.cli.backend import Reading
    from holdfast.core.run.state import QuestionState
    from holdfast.journal.port import QuestionRow
    from holdfast.model.interaction import InteractionRequest


def register(group: typer.Typer) -> None:
    shell.register(group, "inbox", inbox, distant=True)
    shell.register(group, "answer", answer, distant=True)


async def inbox(
    settings: Settings,
    question: Annotated[
        str | None,
        typer.Argument(
            metavar="[QUESTION]", help="Show one in full: its id, or the beginning of it."
        ),
    ] = None,
    role: Annotated[
        str | None,
        typer.Option("--role", metavar="NAME", help="Only what is asked of this role."),
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", min=1, max=10_000, help="How many, the oldest first.")
    ] = 100,
) -> int:
    """List the questions that wait for a person, the oldest first, or show one in full."""
    from holdfast.cli.home_reader import reading
    from holdfast.cli.terminal.plain import print_json
    from holdfast.journal.port import QuestionQuery

    async with reading(settings) as reader:
        if question is not None:
            from holdfast.cli.commands.question_lookup import find_question

            row = await find_question(reader, question)
            await _show_one(settings, row, await _state_of(reader, row))
            return OK
        query = QuestionQuery(status=frozenset({"open"}), role=role, limit=limit)
        rows = await reader.questions(query)
        if settings.as_json:
            print_json([await _listed(reader, row) for row in rows])
            return OK
        abouts = [await reader.about(row) for row in rows]
    from holdfast.cli.terminal.screen import say

    if rows:
        _print_rows(rows, abouts)
        first, options = rows[0].question_id[:8], settings.repeated
        say(f"to see the first, and how to answer it: holdfast inbox {first}{options}")
    else:
        say("nothing waits for a person" + (f" in the role {role}" if role else ""))
    return OK


async def _listed(reader: Reading, row: QuestionRow) -> dict[str, Any]:
    from holdfast.cli.terminal.question import question_json

    return {**question_json(row, await _state_of(reader, row)), "about": await reader.about(row)}


async def _state_of(reader: Reading, row: QuestionRow) -> QuestionState | None:
    """What only the run itself knows: who has begun to answer, how often it reminded."""
    return (await reader.state(row.run_id)).questions.get(row.question_id)


def _print_rows(rows: list[QuestionRow], abouts: list[str]) -> None:
    import time

    from holdfast.cli.terminal.question import short_ids, time_left
    from holdfast.cli.terminal.screen import print_table
    from holdfast.runtime.projections import request_of
    from holdfast.views.stories.text import clock, visible

    now = time.time()
    short = short_ids([row.question_id for row in rows])
    print_table(
        ("question", "run", "about", "asked", "until", "role", "title", "wants"),
        [
            (
                short[row.question_id],
                row.root_id,
                visible(about),
                clock(row.opened_at, date=True),
                time_left(row.deadline, now),
                visible(row.role or ""),
                visible(_titled(request_of(row))),
                visible(_wants(request_of(row))),
            )
            for row, about in zip(rows, abouts, strict=True)
        ],
    )


def _titled(request: InteractionRequest) -> str:
    """The title; an author's may hide the tool."""
    from holdfast.core.interactions.consequences import call_of

    tool, _ = call_of(request) or ("", {})
    return request.title if tool in request.title else f"{tool}: {request.title}"


def _wants(request: InteractionRequest) -> str:
    fields = [field.label or field.name for field in request.form.fields]
    single = len(request.options) == 1
    return (
        ", ".join(fields)
        if single and fields
        else " / ".join(option.option_id for option in request.options)
    )


async def _show_one(settings: Settings, row: QuestionRow, state: QuestionState | None) -> None:
    import time

    from holdfast.cli.terminal.plain import print_json
    from holdfast.cli.terminal.prompts import introduce
    from holdfast.cli.terminal.question import answering, question_json, shown_drafts, shown_times
    from holdfast.cli.terminal.screen import say
    from holdfast.runtime.projections import request_of
    from holdfast.views.stories.text import clock

    if settings.as_json:
        print_json(question_json(row, state))
        return
    request = request_of(row)
    introduce(request, settings.repeated)
    say(f"  {row.status}, asked by {row.root_id} at {clock(row.opened_at, date=True)}")
    say(*shown_times(row, state, time.time()), *shown_drafts(state, settings.repeated))
    if row.status == "open":
        say(*answering(request, row.question_id, settings.repeated, "  to answer: "))


async def answer(
    settings: Settings,
    questions: Annotated[
        list[str], typer.Argument(metavar="QUESTION…", help="Its id, or the beginning of it.")
    ],
    option: Annotated[
        str | None, typer.Option("--option", metavar="ID", help="Which of its options to take.")
    ] = None,
    pairs: SetOption = None,
    data: Annotated[
        list[str] | None,
        typer.Option(
            "--data",
            metavar="JSON|NAME=VALUE",
            help="The form's values, or changed arguments of an approval. Repeatable.",
            show_default=False,
        ),
    ] = None,
    feedback: Annotated[
        str | None,
        typer.Option("--feedback", metavar="TEXT", help="Your words, where an option wants some."),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Take a dangerous option without being asked again.")
    ] = False,
    anyway: AnywayOption = False,
    wait: WaitOption = True,
) -> int:
    """Answer a question, and see its run go on.

    In a terminal, without options, the form is shown and checked while you type. Several
    questions may be given the same answer: exactly those named, each with its own outcome.
    """
    from holdfast.cli.commands.answers import Answering, Words
    from holdfast.cli.opening import opened_backend

    words = Words(option, tuple(pairs or ()), tuple(data or ()), feedback, yes)
    async with opened_backend(settings) as backend:
        answering = Answering(backend, settings, words, anyway, wait)
        if len(questions) == 1:
            return await answering.one(questions[0])
        return await answering.many(questions)
