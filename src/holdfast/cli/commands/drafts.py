"""A command on plans that are not there yet: have a model draw one up, and see what it would do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from holdfast.cli import shell
from holdfast.cli.shell import FAILED, OK, SetOption, Settings


def register(group: typer.Typer) -> None:
    shell.register(group, "draft", draft, distant=True)


async def draft(
    settings: Settings,
    prompt: Annotated[
        str, typer.Argument(metavar="PROMPT", help="What is wanted, in your own words.")
    ],
    pairs: SetOption = None,
    values: Annotated[
        str | None,
        typer.Option("--values", metavar="JSON", help="What is known already, as a JSON object."),
    ] = None,
) -> int:
    """Have a model draw up a plan for a request, and show what it would do.

    Nothing is started or kept: a run that is started without naming a plan has one drawn up
    where none fits, and asks before it runs. The exit code is 1 where no plan came of it.
    """
    from holdfast.cli.terminal.plain import print_json
    from holdfast.cli.values import read_values

    told = await _told(settings, prompt, read_values(pairs, values, (), "--values"))
    if settings.as_json:
        print_json(told)
    else:
        _show(told)
    return OK if told["draft"] else FAILED


async def _told(settings: Settings, prompt: str, values: Mapping[str, Any]) -> Mapping[str, Any]:
    """As the API tells it."""
    if settings.server is not None:
        from holdfast.cli.server_backend import connected

        async with connected(settings.server) as client:
            return await client.plans.draft(prompt, values=values, language=settings.language)
    from holdfast.cli.opening import build_app
    from holdfast.server.schemas.drafts import DrawnShown

    app = build_app(settings)
    try:
        drawn = await app.plans.draft(prompt, values=values)
    finally:
        await app.models.aclose()
    return DrawnShown.of(drawn, settings.language).model_dump(mode="json")


def _show(told: Mapping[str, Any]) -> None:
    from holdfast.cli.terminal.report import usage_words
    from holdfast.cli.terminal.screen import say
    from holdfast.cli.terminal.untrusted_text import rows
    from holdfast.model.message import Usage

    draft = told["draft"]
    if not draft:
        say("No plan was drawn up:")
    say(*rows(draft["outline"] if draft else told["reason"]))
    say(usage_words(Usage(**told["usage"]), told["requests"]))
