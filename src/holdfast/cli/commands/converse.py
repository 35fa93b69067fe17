"""The converse command: a goal is made into tasks, and they are carried out."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import closing, contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli import shell
from holdfast.cli.shell import AnywayOption, FailedOption, Settings, optional

if TYPE_CHECKING:
    from holdfast.cli.commands.conversation import Conversation
    from holdfast.work.knowledge import Knowledge


class OnFailure(StrEnum):
    ERROR = "error"
    ASK = "ask"


def register(group: typer.Typer) -> None:
    shell.register(group, "converse", converse)


_Goal = Annotated[
    str | None,
    typer.Argument(metavar="[GOAL]", help="What is wanted. Default, with --id: go on."),
]
_Id = Annotated[
    str | None,
    typer.Option("--id", metavar="ID", help="Go on with a conversation, as conv_000001 or 1."),
]
_MaxParallel = Annotated[
    int | None,
    typer.Option("--max-parallel", min=1, help="How many tasks at a time. Default: 1."),
]
_OnFailure = Annotated[
    OnFailure | None,
    typer.Option(
        "--on-failure",
        help="What a failed task does: fail the conversation, or ask a person.",
        show_default="error",
    ),
]
_Documents = Annotated[
    Path | None,
    typer.Option("--knowledge", metavar="DIR", help="Markdown and text files to draw on."),
]
_Rules = Annotated[
    list[str] | None,
    optional("--rule", "TEXT", "A rule to keep. Repeatable."),
]
_Model = Annotated[
    str | None,
    typer.Option("--model", metavar="NAME", help="The model. Default: $HOLDFAST_MODEL."),
]
_ConfirmTasks = Annotated[
    bool | None,
    typer.Option(
        "--confirm-tasks/--run-tasks",
        help="Show the tasks to a person first.",
        show_default="run-tasks",
    ),
]


async def converse(
    settings: Settings,
    goal: _Goal = None,
    name: _Id = None,
    max_parallel: _MaxParallel = None,
    on_failure: _OnFailure = None,
    knowledge: _Documents = None,
    rules: _Rules = None,
    model: _Model = None,
    confirm_tasks: _ConfirmTasks = None,
    failed: FailedOption = None,
    anyway: AnywayOption = False,
) -> int:
    """Make tasks of a goal, and carry them out with the tools, agents and plans known here.

    In a terminal its progress is live: p pauses, r resumes, q leaves, and what a task asks is
    asked right here. A conversation outlives its process: --id goes on with it, and one that
    is completed takes the next goal. One that failed goes on as --failed says, or takes the next
    goal, for which the model is told what was done. Without a terminal nothing is asked. With
    --json every event is one line.
    """
    from holdfast.cli.commands.conversation import Conversation, ConverseOptions
    from holdfast.cli.home_backend import as_this_user
    from holdfast.cli.opening import build_app
    from holdfast.model.conversation import AfterFailure
    from holdfast.views.homes import refuse_unused

    _refuse_server(settings)
    if goal is None and name is None:
        raise typer.BadParameter("say what is wanted: holdfast converse 'GOAL'.")
    with documents_of(knowledge) as documents:
        given = ConverseOptions(
            rules=tuple(rules or ()),
            knowledge=documents,
            model=model,
            max_parallel=max_parallel,
            on_failure=None if on_failure is None else on_failure.value,
            confirm_tasks=confirm_tasks,
            failed=None if failed is None else AfterFailure(failed.value),
            spelled=_spelled(knowledge, rules, model),
        )
        app = build_app(settings)
        if goal is None:
            refuse_unused(app)
        async with app:
            with as_this_user():
                return await _carry_on(Conversation(app, settings, given), name, goal, anyway)


def _refuse_server(settings: Settings) -> None:
    if settings.server is not None:
        raise typer.BadParameter(
            f"$HOLDFAST_URL names {settings.server.url}, and converse works on a home: "
            "unset it, or name the home (--home .holdfast)."
        )


async def _carry_on(
    conversation: Conversation, name: str | None, text: str | None, anyway: bool
) -> int:
    from holdfast.cli.values import full_run_id

    if name is None:
        assert text is not None
        return await conversation.new(text)
    return await conversation.go_on(full_run_id(name, "conv"), text, anyway=anyway)


def _spelled(knowledge: Path | None, rules: list[str] | None, model: str | None) -> str:
    """These options as the next command needs them again."""
    given = [("--knowledge", knowledge), *(("--rule", one) for one in rules or ())]
    given.append(("--model", model))
    return "".join(f" {name} {shlex.quote(str(value))}" for name, value in given if value)


@contextmanager
def documents_of(directory: Path | None) -> Iterator[Knowledge | None]:
    """The documents of a directory, for as long as they are needed."""
    if directory is None:
        yield None
        return
    from holdfast.cli.terminal.plain import note
    from holdfast.work.knowledge import Knowledge

    with closing(Knowledge()) as documents:
        for pattern in ("**/*.md", "**/*.txt"):
            for skipped in documents.add_directory(directory, pattern).skipped:
                note(f"warning: {skipped.path} is left out: {skipped.reason}")
        yield documents
