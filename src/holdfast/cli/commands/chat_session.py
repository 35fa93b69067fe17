"""The turns of one chat, at a prompt or one by one.

The session is durable and this process is not: leaving at any moment, by Ctrl-C too,
loses nothing, and the last line says how to go on.
"""

from __future__ import annotations

import sys
from typing import cast

import questionary
from rich.text import Text

from holdfast.agents.events import AgentEventType, AgentExecutionEvent, Narrator
from holdfast.cli.backend import Backend, Partner
from holdfast.cli.driver import Driver
from holdfast.cli.shell import OK, Settings
from holdfast.cli.terminal.plain import print_json_line
from holdfast.cli.terminal.progress import Display, Silence
from holdfast.cli.terminal.report import (
    NOT_KEPT,
    exit_code,
    is_active,
    say_report,
    usage_words,
    way_on,
)
from holdfast.cli.terminal.screen import say
from holdfast.cli.terminal.transcript import Transcript
from holdfast.cli.terminal.untrusted_text import BAR, rows
from holdfast.errors import CallerError, NotFound
from holdfast.interactions.cards import request_to_wire
from holdfast.model.run import RunStatus
from holdfast.runtime.hub import Spoken
from holdfast.views.records import RunView, SessionView, TimelineEntry
from holdfast.views.stories.text import visible, visible_lines

HELP = (
    "/answer  show what is asked (an empty line does the same)",
    "/retry   try the turn again that failed",
    "/cancel  cancel this chat: nothing more runs in it",
    "/usage   tokens, cost and time so far",
    "/quit    leave; the chat stays as it is",
)


class EventLines(Silence):
    """Every event of a session as its followers see it, one JSON object per line."""

    def __init__(self, session_id: str) -> None:
        self._narrator = Narrator(session_id)

    def show(self, entry: TimelineEntry) -> None:
        if entry.narrated is not None:
            print_json_line(entry.narrated)

    def speak(self, spoken: Spoken) -> None:
        print_json_line(self._narrator.speak(spoken).to_wire())


class ChatSession:
    """A chat of one person; it is opened with its first message."""

    def __init__(
        self,
        backend: Backend,
        settings: Settings,
        agent: Partner,
        session_id: str | None = None,
    ) -> None:
        self._backend = backend
        self._settings = settings
        self._agent = agent
        self._session_id = session_id
        self._driver = Driver(backend, settings)

    async def one_turn(self, message: str | None) -> int:
        """Say it, or only go on with what is under way; then report and leave."""
        run = await (self._say(message) if message is not None else self._catch_up())
        if self._settings.as_json:
            await self._print_ending(run)
        elif self._settings.interactive and run.status is not RunStatus.ERROR:
            await self._say_ending(run)
        else:
            await self._report(run)
        return exit_code(run.status)

    async def go_on(self) -> int:
        """The prompt, until the person leaves."""
        say(f"chat with {visible(self._agent.name)}; /help lists the commands, /quit leaves")
        if self._session_id is not None:
            await self._say_ending(await self._catch_up())
        while (line := await self._prompt()) is not None:
            try:
                if not await self._obey(line.strip()):
                    break
            except CallerError as error:
                say(*rows(str(error), ""))
        return await self._leave()

    async def _prompt(self) -> str | None:
        """What the person types; None when there will be no more."""
        try:
            line = await questionary.text("", qmark="you>").unsafe_ask_async()
        except (KeyboardInterrupt, EOFError):
            return None
        return cast(str, line)

    async def _obey(self, line: str) -> bool:
        """Do what a line says; False to leave."""
        match line:
            case "/quit" | "/exit":
                return False
            case "/help":
                say(*HELP)
            case "/usage":
                await self._say_usage()
            case "/cancel":
                return not await self._cancelled()
            case "/retry":
                await self._retry()
            case "" | "/answer":
                await self._answer()
            case _ if line.startswith("/"):
                say(f"there is no command {visible(line)}; /help lists them")
            case _:
                await self._say_ending(await self._say(line))
        return True

    async def _say(self, message: str) -> RunView:
        before = await self._session()
        await self._backend.say(before.run_id, message)
        return await self._see_through(before)

    async def _catch_up(self) -> RunView:
        run = await self._session()
        if run.rests and run.status is not RunStatus.PAUSE:
            return run
        return await self._see_through(run)

    async def _see_through(self, before: RunView) -> RunView:
        return await self._driver.see_through(before, self._display(before))

    def _display(self, run: RunView) -> Display:
        if self._settings.as_json:
            return EventLines(run.run_id)
        return Transcript(echo=False) if self._settings.interactive else Silence()

    async def _session(self) -> RunView:
        if self._session_id is None:
            self._session_id = await self._backend.open_chat(self._agent.agent_id)
        return await self._backend.run(self._session_id)

    async def _retry(self) -> None:
        before = await self._session()
        await self._backend.resume(before.run_id)
        await self._say_ending(await self._see_through(before))

    async def _cancelled(self) -> bool:
        if self._session_id is None:
            say("nothing has been said yet")
            return False
        before = await self._session()
        await self._backend.cancel(before.run_id, "")
        await self._say_ending(await self._see_through(before))
        return True

    async def _answer(self) -> None:
        if self._session_id is None or not await self._backend.open_questions(self._session_id):
            return
        before = await self._session()
        if before.status is not RunStatus.ERROR:
            await self._say_ending(await self._catch_up())
            return
        answered = await self._driver.asked(before.run_id)
        await self._say_ending(await self._see_through(before) if answered else before)

    async def _say_usage(self) -> None:
        if self._session_id is None:
            say("nothing has been said yet")
            return
        session = session_of(await self._session())
        say(usage_words(session.usage, session.requests))

    async def _say_ending(self, run: RunView) -> None:
        """What the transcript has not shown: why it stands still."""
        match run.status:
            case RunStatus.ERROR:
                error = rows(visible(run.error, 2000), "error: ", BAR)
                say(*(Text(row, style="red") for row in error))
                say(await self._ways_out(run))
            case RunStatus.PAUSE:
                questions = await self._backend.open_questions(run.run_id)
                titles = ", ".join(visible(row.title) for row in questions)
                say(*rows(f"{titles} (/answer shows it again)", "left open: "))
            case RunStatus.CANCELLED:
                say(f"{run.run_id} is cancelled")
            case _:
                return

    async def _ways_out(self, run: RunView) -> str:
        """Of a turn that failed; while calls of it wait, a message would be refused."""
        if not is_active(run):
            return "/retry tries again; a further message begins the next turn"
        asked = await self._backend.open_questions(run.run_id)
        answer = "/answer shows what is asked; " if asked else ""
        return f"/retry tries again; {answer}/cancel cancels the chat"

    async def _leave(self) -> int:
        if self._session_id is None:
            return OK
        run = await self._session()
        if run.status is not RunStatus.CANCELLED:
            kept = self._driver.backend.keeps_runs
            say(f"to go on: {way_on(run, self._settings.repeated)}" if kept else NOT_KEPT)
        return exit_code(run.status)

    async def _report(self, run: RunView) -> None:
        """For scripts: the answer and nothing else, or where it stands."""
        if run.status is RunStatus.DONE:
            answer = visible_lines(session_of(run).answer).rstrip("\n")
            seen = "\n".join(rows(answer)) if sys.stdout.isatty() else answer
            sys.stdout.write(f"{seen}\n")
            return
        questions = await self._backend.open_questions(run.run_id)
        kept = self._driver.backend.keeps_runs
        say_report(run, questions, self._settings.repeated, kept=kept)

    async def _print_ending(self, run: RunView) -> None:
        """The questions of runs below, which its own events do not tell; then DONE."""
        for one in await self._backend.open_questions(run.run_id):
            if one.run_id != run.run_id:
                asked = request_to_wire(one.request)
                kind = AgentEventType.INTERACTION
                event = AgentExecutionEvent(kind, run.run_id, asked, at=one.opened_at)
                print_json_line(event.to_wire())
        ending = {"status": run.status.value, "turn": session_of(run).turn}
        last = AgentExecutionEvent(AgentEventType.DONE, run.run_id, ending)
        print_json_line(last.to_wire())


def session_of(run: RunView) -> SessionView:
    if run.session is None:
        raise NotFound(f"{run.run_id} is not a session with an agent")
    return run.session
