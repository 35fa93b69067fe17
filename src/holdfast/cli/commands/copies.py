"""The command that moves everything between a home and a database in PostgreSQL."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli import shell
from holdfast.cli.shell import OK, Interrupted, Settings

if TYPE_CHECKING:
    from holdfast.views.copies import Copied
    from holdfast.views.homes import Place


def register(group: typer.Typer) -> None:
    shell.register(group, "copy", copy)


async def copy(
    settings: Settings,
    source: Annotated[
        str,
        typer.Argument(metavar="SOURCE", help="A home, or a database: postgresql://user@host/name"),
    ],
    target: Annotated[
        str, typer.Argument(metavar="TARGET", help="The other of the two, in which nothing is yet.")
    ],
    verify: Annotated[
        bool,
        typer.Option(
            "--verify/--no-verify",
            help="Compare all rows with the source's and replay every run, before the target can "
            "be used.",
        ),
    ] = True,
) -> int:
    """Copy everything from a home into a database in PostgreSQL, or the other way.

    Nothing may use either meanwhile: stop its server and workers first. All of it goes over: runs,
    questions, the order of commits, the audit with its chain, plans, tokens and secrets, which need
    the same HOLDFAST_SECRET_KEY. A copy that was interrupted cannot be used; the same command goes
    on with it. Do not serve the source afterwards: its runs would go on twice.
    """
    from holdfast.cli.terminal.counting import counted
    from holdfast.cli.terminal.plain import print_json
    from holdfast.views import copies

    if settings.home is not None:
        raise typer.BadParameter("--home: SOURCE and TARGET say where from and where to.")
    places = copies.place_named(source), copies.place_named(target)
    try:
        copied = await copies.copy(*places, counted(settings), verify=verify)
    except asyncio.CancelledError:
        raise Interrupted(copies.unfinished(places[1])) from None
    if settings.as_json:
        print_json(copies.to_json(copied))
    else:
        _say(copied, places[1])
    return OK


def _say(copied: Copied, target: Place) -> None:
    from holdfast.cli.terminal.screen import say

    report = copied.report
    told = ", ".join(f"{count:,} {what}" for what, count in copied.rows.items())
    say(
        f"{copied.target}: {'verified' if report is not None else 'copied, not verified'}",
        f"  {told or 'nothing was left to copy'}",
    )
    if report is not None:
        say(f"  {', '.join(f'{count:,} {what}' for what, count in report.counts.items())}")
    if copied.standing.audit_head:
        say(f"  audit head: {copied.standing.audit_head}")
    if copied.active:
        say(f"  {copied.active:,} runs go on by themselves as soon as they are driven there")
    say(*_next(target), f"  do not serve {copied.source} again: its runs would go on twice")


def _next(target: Place) -> list[str]:
    if isinstance(target, str):
        return [
            "  to use it, set HOLDFAST_DATABASE to its address, and keep HOLDFAST_SECRET_KEY as it "
            "is set here"
        ]
    home = target.parent
    return [
        f"  to use it, say --home {home}, and keep HOLDFAST_SECRET_KEY as it is set here, or put "
        f"that key into {home / 'secret.key'} (chmod 600)"
    ]
