"""Commands on questions: see what is asked, answer it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli import shell
from holdfast.cli.shell import OK, AnywayOption, SetOption, Settings, WaitOption, optional

if TYPE_CHECKING:
    from holdfast.cli.backend import Reader
    from holdfast.model.interaction import InteractionRequest
    from holdfast.views.records import InteractionView


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
    from holdfast.model.rows import QuestionQuery

    async with reading(settings) as reader:
        if question is not None:
            from holdfast.cli.commands.answers import find_question

            await show_one(reader, settings, await find_question(reader, question))
            return OK
        query = QuestionQuery(status=frozenset({"open"}), role=role, limit=limit)
        found = await reader.inbox(query)
        if settings.as_json:
            whole = [await reader.question(one.question_id) or one for one in found]
            print_json([_listed(one) for one in whole])
            return OK
    from holdfast.cli.terminal.screen import say

    if found:
        _print_rows(found)
        first, options = found[0].question_id[:8], settings.repeated
        say(f"to see the first, and how to answer it: holdfast inbox {first}{options}")
    else:
        say("nothing waits for a person" + (f" in the role {role}" if role else ""))
    return OK


def _listed(asked: InteractionView) -> dict[str, Any]:
    from holdfast.cli.terminal.question import question_json

    return {**question_json(asked, whole=True), "about": asked.about}


def _print_rows(found: list[InteractionView]) -> None:
    import time

    from holdfast.cli.terminal.question import short_ids, time_left
    from holdfast.cli.terminal.screen import print_table
    from holdfast.views.stories.text import clock, visible

    now = time.time()
    short = short_ids([one.question_id for one in found])
    print_table(
        ("question", "run", "about", "asked", "until", "role", "title", "wants"),
        [
            (
                short[one.question_id],
                one.root_id,
                visible(one.about),
                clock(one.opened_at, date=True),
                time_left(one.deadline, now),
                visible(one.role or ""),
                visible(_titled(one.request)),
                visible(_wants(one.request)),
            )
            for one in found
        ],
    )


def _titled(request: InteractionRequest) -> str:
    """The title; an author's may hide the tool."""
    from holdfast.interactions.cards import call_of

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


async def show_one(reader: Reader, settings: Settings, asked: InteractionView) -> None:
    """A question in full, and how to answer it."""
    import time

    from holdfast.cli.terminal.plain import print_json
    from holdfast.cli.terminal.prompts import introduce
    from holdfast.cli.terminal.question import answering, question_json, shown_drafts, shown_times
    from holdfast.cli.terminal.repairs import other_than, proposal_asked, shown_rehearsals
    from holdfast.cli.terminal.screen import say
    from holdfast.views.stories.text import clock

    if settings.as_json:
        print_json(question_json(asked, whole=True))
        return
    proposal = await proposal_asked(reader, asked)
    more = () if proposal is None else shown_rehearsals(proposal, "  ")
    introduce(asked.request, settings.repeated, more)
    opened = clock(asked.opened_at, date=True)
    say(f"  {asked.status.value}, asked by {asked.root_id} at {opened}")
    say(*shown_times(asked, time.time(), other_than(proposal)))
    say(*shown_drafts(asked, settings.repeated))
    if asked.is_open:
        say(*answering(asked, asked.question_id, settings.repeated, "  to answer: "))


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
        optional(
            "--data",
            "JSON|NAME=VALUE",
            "The form's values, or changed arguments of an approval. Repeatable.",
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
