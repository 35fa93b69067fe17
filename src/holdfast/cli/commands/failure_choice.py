"""How a conversation that failed goes on: chosen on the command line, or asked at a terminal."""

from __future__ import annotations

import questionary
from questionary import Choice

from holdfast.cli.shell import Settings
from holdfast.cli.terminal.report import WAYS
from holdfast.cli.terminal.screen import say
from holdfast.cli.terminal.untrusted_text import rows
from holdfast.errors import NotAllowed
from holdfast.model.conversation import AfterFailure
from holdfast.model.run import RunStatus
from holdfast.views.records import ConversationView, RunView
from holdfast.views.stories.text import visible


async def chosen(run: RunView, failed: str | None, settings: Settings) -> AfterFailure | None:
    """None for a run that is no conversation; without a choice nothing is chosen."""
    if failed is None and settings.interactive and run.status is RunStatus.ERROR:
        failed = None if run.conversation is None else await _asked(run, run.conversation)
    elsewhere = settings.server is not None
    return checked_choice(run, failed, settings.repeated, elsewhere=elsewhere)


def checked_choice(
    run: RunView, failed: str | None, options: str = "", *, elsewhere: bool = False
) -> AfterFailure | None:
    """What was chosen for a conversation that failed, or NotAllowed with the choices.

    One that is paused on a server goes on without a choice.
    """
    view = run.conversation
    if failed is None and view is None:
        return None
    if view is None or run.status is not RunStatus.ERROR:
        if view is not None and elsewhere and run.held and failed is None:
            return None
        go_on = (
            f": `holdfast converse --id {run.run_id}{options}` goes on with it"
            if view is not None and not elsewhere
            else ""
        )
        raise NotAllowed(f"{run.run_id} is no conversation that has failed{go_on}")
    if failed is None or AfterFailure(failed) not in view.choices:
        ways = ", ".join(f"--failed {one}" for one in view.choices)
        raise NotAllowed(f"{run.run_id} has failed; say how to go on: {ways}")
    return AfterFailure(failed)


async def _asked(run: RunView, view: ConversationView) -> str | None:
    """What stands first, and is taken by Enter alone, changes nothing."""
    say(*rows(visible(f"{run.run_id} has failed: {run.error}", 2000), ""))
    choices = [Choice("(leave it as it is)", "")]
    choices += [Choice(_told(view, one), one.value) for one in view.choices]
    question = questionary.select("How shall it go on?", choices, qmark=">")
    return str(await question.unsafe_ask_async()) or None


def _told(view: ConversationView, choice: AfterFailure) -> str:
    tasks = {AfterFailure.RETRY: view.retried, AfterFailure.SKIP: view.left_out}
    names = visible(", ".join(tasks.get(choice, ())))
    return f"{choice}: {WAYS[choice]}" + (f" ({names})" if names else "")
