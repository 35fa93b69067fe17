"""The chat command: talk to an agent, here and now or turn by turn from scripts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli import shell
from holdfast.cli.shell import AnywayOption, Settings

if TYPE_CHECKING:
    from holdfast.app import Holdfast
    from holdfast.cli.opening import Opened


def register(group: typer.Typer) -> None:
    shell.register(group, "chat", chat)


async def chat(
    settings: Settings,
    message: Annotated[
        str | None,
        typer.Argument(metavar="[MESSAGE]", help="What to say. Default: a prompt, in a terminal."),
    ] = None,
    agent: Annotated[
        str | None,
        typer.Option("--agent", metavar="ID", help="Whom to talk to. Default: the only one."),
    ] = None,
    session: Annotated[
        str | None,
        typer.Option("--session", metavar="ID", help="Go on with a chat, as chat_000001 or 1."),
    ] = None,
    by: Annotated[
        str, typer.Option("--by", metavar="NAME", help="Who speaks, as the history tells it.")
    ] = "local",
    anyway: AnywayOption = False,
) -> int:
    """Talk to an agent; its questions are asked right here.

    With MESSAGE it is one turn. In a terminal, without one, it is a prompt, where /help
    lists the commands. A chat outlives its process: --session goes on with it. Without a
    terminal nothing is asked: the answer is printed, or what is open and how to answer it.
    With --json every event is one line.
    """
    from holdfast.cli.conversing import Conversation
    from holdfast.cli.needs import refuse_without_tools
    from holdfast.cli.opening import full_run_id, open_app

    if message is None and session is None and not settings.interactive:
        raise typer.BadParameter("nobody is at a terminal: give a MESSAGE.")
    opened = open_app(settings)
    async with opened.app as app:
        if session is None:
            conversation = Conversation(app, settings, by, _chosen(opened, agent))
        else:
            session_id = full_run_id(session, "chat")
            agent_id = await _agent_of(app, session_id, agent)
            await refuse_without_tools(app, session_id, anyway=anyway)
            conversation = Conversation(app, settings, by, agent_id, session_id)
        if message is not None or not settings.interactive:
            return await conversation.one_turn(message)
        return await conversation.go_on()


async def _agent_of(app: Holdfast, session_id: str, wanted: str | None) -> str:
    from holdfast.errors import NotAllowed, NotFound

    try:
        agent_id = (await app.sessions.session(session_id)).agent_id
    except NotFound as error:
        raise NotFound(f"{error}; leave --session out to begin a chat") from None
    if wanted not in (None, agent_id):
        raise NotAllowed(f"{session_id} is a chat with {agent_id}: leave --agent out")
    return agent_id


def _chosen(opened: Opened, wanted: str | None) -> str:
    """The agent that was named, else the only one."""
    from holdfast.errors import NotAllowed, NotFound

    library = opened.app.engine.library
    known = sorted(library.agent_ids())
    if wanted is not None and wanted in known:
        return wanted
    if opened.agents.files:
        raise opened.agents.everything()
    if not known:
        raise NotFound(
            "no agent is declared here: write one into agents.yaml (agent_id, name, "
            "system_context, tools), or name your application with --app"
        )
    if wanted is not None:
        library.agent(wanted)
    if len(known) > 1:
        raise NotAllowed(f"there are several agents, name one with --agent: {', '.join(known)}")
    return known[0]
