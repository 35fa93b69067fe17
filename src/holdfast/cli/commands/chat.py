"""The chat command: talk to an agent, here and now or turn by turn from scripts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli import shell
from holdfast.cli.shell import AnywayOption, Settings

if TYPE_CHECKING:
    from holdfast.cli.backend import Backend, Partner


def register(group: typer.Typer) -> None:
    shell.register(group, "chat", chat, distant=True)


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
    from holdfast.cli.commands.chat_session import ChatSession
    from holdfast.cli.home_backend import HomeBackend
    from holdfast.cli.opening import backend_of
    from holdfast.cli.values import full_run_id
    from holdfast.views.homes import refuse_unused

    if message is None and session is None and not settings.interactive:
        raise typer.BadParameter("this is no terminal: give a MESSAGE.")
    backend = backend_of(settings, by=by)
    if isinstance(backend, HomeBackend) and session is not None:
        refuse_unused(backend.app)
    async with backend.opened():
        if session is None:
            conversation = ChatSession(backend, settings, await backend.partner(agent))
        else:
            session_id = full_run_id(session, "chat")
            partner = await _partner_in(backend, session_id, agent)
            await backend.refuse_without_tools(session_id, anyway=anyway)
            conversation = ChatSession(backend, settings, partner, session_id)
        if message is not None or not settings.interactive:
            return await conversation.one_turn(message)
        return await conversation.go_on()


async def _partner_in(backend: Backend, session_id: str, wanted: str | None) -> Partner:
    from holdfast.cli.backend import Partner
    from holdfast.cli.commands.chat_session import session_of
    from holdfast.errors import NotAllowed, NotFound

    try:
        chat = session_of(await backend.run(session_id))
    except NotFound as error:
        raise NotFound(f"{error}; leave --session out to begin a chat") from None
    if wanted not in (None, chat.agent_id):
        raise NotAllowed(f"{session_id} is a chat with {chat.agent_id}: leave --agent out")
    return Partner(chat.agent_id, chat.agent_name)
