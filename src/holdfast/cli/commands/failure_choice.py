"""How a conversation that failed goes on: at a terminal a person is asked, elsewhere not."""

from __future__ import annotations

import questionary
from questionary import Choice

from holdfast.cli.required_tools import how_to_go_on
from holdfast.cli.shell import Settings
from holdfast.cli.terminal.report import WAYS
from holdfast.cli.terminal.screen import say
from holdfast.cli.terminal.untrusted_text import rows
from holdfast.core.conversation import recovery
from holdfast.core.conversation.state import ConversationState
from holdfast.core.run.state import RunState
from holdfast.model.conversation import AfterFailure
from holdfast.model.run import RunStatus
from holdfast.views.stories.text import visible


async def chosen(state: RunState, failed: str | None, settings: Settings) -> AfterFailure | None:
    """None for what is no conversation; nobody chooses in a person's place."""
    if failed is None and settings.interactive and isinstance(state, ConversationState):
        failed = await _asked(state) if state.status is RunStatus.ERROR else None
    elsewhere = settings.server is not None
    return how_to_go_on(state, failed, settings.repeated, elsewhere=elsewhere)


async def _asked(state: ConversationState) -> str | None:
    """What stands first, and is taken by Enter alone, changes nothing."""
    say(*rows(visible(f"{state.run_id} has failed: {state.error}", 2000), ""))
    choices = [Choice("(leave it as it is)", "")]
    choices += [Choice(_told(state, one), one.value) for one in recovery.choices(state)]
    question = questionary.select("How shall it go on?", choices, qmark=">")
    return str(await question.unsafe_ask_async()) or None


def _told(state: ConversationState, choice: AfterFailure) -> str:
    steps = {AfterFailure.RETRY: recovery.failed, AfterFailure.SKIP: recovery.to_skip}
    names = [state.tasks[one].id for one in steps[choice](state)] if choice in steps else []
    return f"{choice}: {WAYS[choice]}" + (f" ({visible(', '.join(names))})" if names else "")
