"""The command line: `holdfast …`.

Each command is declared in the file of its noun (`serve`, `plans`, `drafts`, `runs`, `questions`,
`repairs`, `experience`, `forks`, `chat`, `converse`, `tokens`, `audit`, `doctor`, `backups`,
`copies`, `housekeeping`, `settings`, `demo`).
Those files import nothing heavy, so that `--help` is there at once; what a command
needs is imported when it runs.

`main` turns every ending into an exit code that means something; see `shell`.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from holdfast.cli.commands import (
    audit,
    backups,
    chat,
    converse,
    copies,
    demo,
    doctor,
    drafts,
    experience,
    forks,
    housekeeping,
    plans,
    questions,
    repairs,
    runs,
    serve,
    settings,
    tokens,
    worker,
)
from holdfast.cli.shell import (
    COMMON,
    DISTANT,
    EXIT_CODES,
    USAGE,
    complain,
    with_options,
)
from holdfast.cli.usage_errors import plain_words


def version_wanted(context: typer.Context, wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        number = version("holdfast")
        as_json = context.params.get("as_json")
        typer.echo(json.dumps({"version": number}) if as_json else f"holdfast {number}")
        raise typer.Exit


app = typer.Typer(
    name="holdfast",
    help="Plans and agents that stop for people and go on afterwards, and lose nothing."
    f"\n\n{EXIT_CODES}",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def everywhere(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option("--version", callback=version_wanted, help="Say which version this is."),
    ] = False,
    **given: Any,
) -> None:
    context.obj = given


app.callback()(with_options(everywhere, {**COMMON, **DISTANT}))
app.add_typer(demo.app)
NOUNS = (
    serve,
    worker,
    plans,
    drafts,
    chat,
    converse,
    runs,
    questions,
    repairs,
    experience,
    forks,
    doctor,
    backups,
    copies,
    housekeeping,
    settings,
)
for noun in NOUNS:
    noun.register(app)
app.add_typer(tokens.app)
app.add_typer(audit.app)


def main(arguments: Sequence[str] | None = None) -> None:
    given = list(sys.argv[1:] if arguments is None else arguments)
    command = typer.main.get_command(app)
    try:
        _refuse_odd_bytes(given)
        sys.exit(
            command.main(_without_empty_choice(given), prog_name="holdfast", standalone_mode=False)
        )
    except typer.TyperException as error:
        complain("Usage", plain_words(error), as_json="--json" in given)
        sys.exit(USAGE)
    except typer.Abort:
        sys.exit(1)
    except BrokenPipeError:
        # The reader of our output is gone: no more is written, not even at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


_GO_ON = ("resume", "converse")


def _without_empty_choice(arguments: list[str]) -> list[str]:
    """`--failed` with nothing after it asks, as its absence does, where it is an option at all."""
    if not any(one in _GO_ON for one in arguments):
        return arguments
    following = zip(arguments, [*arguments[1:], "-"], strict=True)
    return [one for one, after in following if one != "--failed" or not after.startswith("-")]


def _refuse_odd_bytes(arguments: Sequence[str]) -> None:
    """No run can hold text that is not UTF-8, so no argument may be."""
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError:
            raise typer.BadParameter(f"{argument!a} is not UTF-8 text.") from None
