"""Commands on questions: see what is asked, answer it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli import shell
from holdfast.cli.shell import OK, SetOption, Settings, WaitOption

if TYPE_CHECKING:
    from holdfast.cli.asking import Given
    from holdfast.journal.port import Journal, QuestionRow
    from holdfast.model.interaction import InteractionOption, InteractionRequest


def register(group: typer.Typer) -> None:
    shell.register(group, "inbox", inbox)
    shell.register(group, "answer", answer)


async def inbox(
    settings: Settings,
    limit: Annotated[
        int, typer.Option("--limit", min=1, max=10_000, help="How many, the oldest first.")
    ] = 100,
) -> int:
    """List the questions that wait for a person, the oldest first."""
    from holdfast.cli.opening import reading
    from holdfast.cli.report import question_json, short_ids
    from holdfast.cli.screen import clock, print_json, print_table, say, visible
    from holdfast.journal.port import QuestionQuery
    from holdfast.runtime.views import request_of

    async with reading(settings) as book:
        query = QuestionQuery(status=frozenset({"open"}), limit=limit)
        rows = await book.journal.questions(query)
    if settings.as_json:
        print_json([question_json(row) for row in rows])
    elif not rows:
        say("nothing waits for a person")
    else:
        short = short_ids([row.question_id for row in rows])
        print_table(
            ("question", "run", "asked", "until", "title", "wants"),
            [
                (
                    short[row.question_id],
                    row.run_id,
                    clock(row.opened_at, date=True),
                    clock(row.deadline, date=True) if row.deadline else "",
                    visible(row.title),
                    visible(_wants(request_of(row))),
                )
                for row in rows
            ],
        )
        say("to answer one: holdfast answer QUESTION")
    return OK


def _wants(request: InteractionRequest) -> str:
    if request.form.fields:
        return ", ".join(field.label or field.name for field in request.form.fields)
    return " / ".join(option.option_id for option in request.options)


async def answer(
    settings: Settings,
    question: Annotated[
        str, typer.Argument(metavar="QUESTION", help="Its id, or the beginning of it.")
    ],
    option: Annotated[
        str | None, typer.Option("--option", metavar="ID", help="Which of its options to take.")
    ] = None,
    pairs: SetOption = None,
    data: Annotated[
        str | None,
        typer.Option("--data", metavar="JSON", help="The form's values as a JSON object."),
    ] = None,
    feedback: Annotated[
        str | None,
        typer.Option("--feedback", metavar="TEXT", help="Your words, where an option wants some."),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Take a dangerous option without being asked again.")
    ] = False,
    wait: WaitOption = True,
) -> int:
    """Answer a question, and see its run go on.

    In a terminal, without options, the form is shown and checked while you type.
    """
    from holdfast.cli.asking import Given
    from holdfast.cli.driving import Driver, do_and_see
    from holdfast.cli.opening import build_app
    from holdfast.cli.values import read_values
    from holdfast.runtime.views import request_of

    async with build_app(settings) as app:
        driver = Driver(app, settings)
        row = await find_question(app.journal, question)
        fields = request_of(row).form.fields
        given = Given(option, read_values(pairs, data, fields, "--data"), feedback)
        sure = await _made_sure(settings, row, given, yes)
        if sure is None:
            return await driver.conclude(row.root_id)

        async def submit() -> None:
            await app.answer(
                row.question_id,
                option_id=sure.option_id,
                data=sure.data,
                feedback=sure.feedback,
            )

        return await do_and_see(driver, row.root_id, submit, wait=wait)


async def find_question(journal: Journal, name: str) -> QuestionRow:
    """The question of that id, or the only one whose id begins so; open ones come first."""
    from holdfast.errors import NotAllowed, NotFound
    from holdfast.journal.port import QuestionQuery

    exact = await journal.question(name)
    if exact is not None:
        return exact
    found: list[QuestionRow] = []
    for status in ("open", "answered", "expired", "withdrawn"):
        rows = await journal.questions(QuestionQuery(status=frozenset({status}), limit=100_000))
        found = found or [row for row in rows if name and row.question_id.startswith(name)]
    if not found:
        raise NotFound(f"no question begins with {name!r}: `holdfast inbox` lists the open ones")
    if len(found) > 1:
        ids = ", ".join(row.question_id for row in found[:5])
        raise NotAllowed(f"{len(found)} questions begin with {name!r}: write more of it ({ids})")
    return found[0]


async def _made_sure(settings: Settings, row: QuestionRow, given: Given, yes: bool) -> Given | None:
    """The answer to send: asked for in a terminal, and meant; None when left for later."""
    from holdfast.cli.asking import ask, confirmed
    from holdfast.errors import NotAllowed
    from holdfast.runtime.views import request_of

    request = request_of(row)
    if settings.interactive and row.status == "open" and not (given.data or given.feedback or yes):
        return await ask(request, given.option_id)
    option = _named(request, given.option_id)
    if option is None or not option.is_dangerous or yes:
        return given
    if settings.interactive:
        return given if await confirmed(option) else None
    raise NotAllowed(f"{option.option_id} ({option.label}) is dangerous: say --yes if you mean it")


def _named(request: InteractionRequest, option_id: str | None) -> InteractionOption | None:
    return next((one for one in request.options if one.option_id == option_id), None)
